//! Waits, sessions, tokens and costs, as metrics.

use std::{fmt, sync::Arc};

use prometheus_client::{collector::Collector, encoding::DescriptorEncoder};

use super::metric_family::{
    MetricFamily, Sample, counter, durations, gauge, histogram, number, sample,
};
use crate::{
    call_record::{CallRecorder, ViewComparison},
    oauth::TokenRequestCount,
    pool::{Pool, ServerSlot},
    session::SessionRegistry,
};

/// The parts of the service that have counted and measured since its start.
#[derive(Debug)]
pub(super) struct ActivityMetrics {
    pub(super) pool: Arc<Pool>,
    pub(super) sessions: Arc<SessionRegistry>,
    pub(super) calls: Arc<CallRecorder>,
    /// The costs of each client at both views.
    pub(super) costs: Vec<ViewComparison>,
}

impl Collector for ActivityMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let families = [self.of_servers(), self.of_clients(), self.of_costs()];
        families.into_iter().flatten().try_for_each(|family| family.encode(&mut encoder))
    }
}

impl ActivityMetrics {
    fn of_servers(&self) -> Vec<MetricFamily> {
        let each = |of: fn(&ServerSlot) -> Sample| {
            self.pool.slots().values().map(|slot| of(slot)).collect::<Vec<_>>()
        };
        let token_requests = self.pool.logins().map(|logins| logins.token_requests());
        let token_requests = token_requests.unwrap_or_default().into_iter().map(|count| {
            let TokenRequestCount { server, grant, outcome, n_requests } = count;
            let labels = [
                ("mcp_server", server.to_string()),
                ("grant", grant.to_owned()),
                ("outcome", outcome.to_owned()),
            ];
            sample(labels, n_requests as f64)
        });
        vec![
            histogram(
                "metamcp_pool_wait",
                "The time that a connection waited for room in the pool, of those that waited",
                vec![durations([], self.pool.waits())],
            ),
            histogram(
                "metamcp_server_queue_wait",
                "The time that a request waited for its turn at the server, of those that waited",
                each(|slot| durations(server(slot), &slot.durations().queue_waits)),
            ),
            histogram(
                "mcp_client_session_duration",
                "The time from the start to the end of a connection to the server",
                each(|slot| durations(server(slot), &slot.durations().connections)),
            ),
            counter(
                "metamcp_server_connect_attempts",
                "The attempts to connect to the server",
                None,
                each(|slot| sample(server(slot), slot.attempts() as f64)),
            ),
            counter(
                "metamcp_server_token_requests",
                "The requests for tokens that the server accepts",
                None,
                token_requests.collect(),
            ),
        ]
    }

    fn of_clients(&self) -> Vec<MetricFamily> {
        vec![
            histogram(
                "mcp_server_session_duration",
                "The time from the first to the last request of a session of a client",
                vec![durations([], self.sessions.durations())],
            ),
            gauge(
                "metamcp_subscriptions",
                "The subscriptions of clients to resources",
                None,
                number(self.sessions.n_subscriptions() as f64),
            ),
            counter(
                "metamcp_call_records_dropped",
                "The records of calls that were not written in time",
                None,
                number(self.calls.n_dropped() as f64),
            ),
        ]
    }

    fn of_costs(&self) -> Vec<MetricFamily> {
        let each = |tokens: fn(&ViewComparison) -> u64| {
            let of_client = |costs: &ViewComparison| {
                let labels = [
                    ("mcp_client", costs.client.clone()),
                    ("mcp_client_version", costs.version.clone()),
                    ("view", costs.view.name().to_owned()),
                ];
                sample(labels, tokens(costs) as f64)
            };
            self.costs.iter().map(of_client).collect::<Vec<_>>()
        };
        vec![
            gauge(
                "metamcp_client_list_tokens",
                "The tokens of the tool list that clients of this name read",
                None,
                each(|costs| costs.list_tokens),
            ),
            gauge(
                "metamcp_client_direct_tokens",
                "The tokens of lists in all turns at the direct view: read, or estimated at another",
                None,
                each(|costs| costs.direct_tokens),
            ),
            gauge(
                "metamcp_client_meta_tokens",
                "The tokens of lists and searches in all turns at the meta view, likewise",
                None,
                each(|costs| costs.meta_tokens),
            ),
        ]
    }
}

fn server(slot: &ServerSlot) -> [(&'static str, String); 1] {
    [("mcp_server", slot.name().to_string())]
}
