//! The state of the service and of its servers, as metrics.

use std::fmt;

use prometheus_client::{collector::Collector, encoding::DescriptorEncoder, registry::Unit};

use super::metric_family::{MetricFamily, counter, gauge, number, sample};
use crate::{
    breaker::BreakerState,
    pool::SlotStatus,
    server_name::ServerName,
    status::{MeasuredUsage, ServiceStatus},
};

/// The state of the service at the moment of a scrape.
#[derive(Debug)]
pub(super) struct ServiceMetrics {
    pub(super) status: ServiceStatus,
    pub(super) usage: MeasuredUsage,
}

impl Collector for ServiceMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let families = [self.of_service(), self.of_pool(), self.of_servers(), self.of_resources()];
        families.into_iter().flatten().try_for_each(|family| family.encode(&mut encoder))
    }
}

impl ServiceMetrics {
    fn of_service(&self) -> Vec<MetricFamily> {
        let status = &self.status;
        let info = sample([("version", status.version.to_owned())], 1.0);
        vec![
            gauge("metamcp_build_info", "The version of the service", None, vec![info]),
            gauge(
                "metamcp_uptime",
                "The time since the start of the service",
                Some(Unit::Seconds),
                number(status.uptime_ms as f64 / 1000.0),
            ),
            gauge(
                "metamcp_client_connections",
                "The open connections of clients",
                None,
                number(status.clients as f64),
            ),
            gauge(
                "metamcp_client_sessions",
                "The sessions of clients that are present",
                None,
                number(status.sessions as f64),
            ),
            gauge(
                "metamcp_message_memory",
                "The memory that messages of clients and servers take",
                Some(Unit::Bytes),
                number(status.memory_budget.used_bytes as f64),
            ),
            gauge(
                "metamcp_message_memory_max",
                "The memory that messages may take",
                Some(Unit::Bytes),
                number(status.memory_budget.max_bytes as f64),
            ),
            counter(
                "metamcp_message_memory_refusals",
                "The messages that were refused because memory was exhausted",
                None,
                number(status.memory_budget.refused as f64),
            ),
        ]
    }

    fn of_pool(&self) -> Vec<MetricFamily> {
        let pool = &self.status.pool;
        let opening = pool.connections.saturating_sub(pool.active + pool.idle);
        let states = [("active", pool.active), ("idle", pool.idle), ("other", opening)];
        let connections = states.map(|(state, n)| sample([("state", state.to_owned())], n as f64));
        vec![
            gauge(
                "metamcp_pool_connections",
                "The connections to all servers, by state",
                None,
                connections.into(),
            ),
            gauge(
                "metamcp_pool_size",
                "The largest number of connections to servers",
                None,
                number(pool.size as f64),
            ),
            gauge(
                "metamcp_pool_waiting",
                "The connections that wait for room in the pool",
                None,
                number(pool.waiting as f64),
            ),
            counter(
                "metamcp_pool_evictions",
                "The idle connections that made room for others",
                None,
                number(pool.evicted as f64),
            ),
        ]
    }

    fn of_servers(&self) -> Vec<MetricFamily> {
        let each = |value: fn(&SlotStatus) -> f64| {
            let of_server = |server: &SlotStatus| {
                sample([("mcp_server", server.name.to_string())], value(server))
            };
            self.status.servers.iter().map(of_server).collect::<Vec<_>>()
        };
        vec![
            gauge(
                "metamcp_server_up",
                "1 if the server has a connection that accepts requests, else 0",
                None,
                each(|server| f64::from(u8::from(server.is_connected()))),
            ),
            gauge(
                "metamcp_server_missing",
                "1 if the server should be connected and is not, else 0",
                None,
                each(|server| f64::from(u8::from(server.is_missing))),
            ),
            gauge(
                "metamcp_server_needs_login",
                "1 if the server waits for a login, else 0",
                None,
                each(|server| f64::from(u8::from(server.needs_login))),
            ),
            gauge(
                "metamcp_server_connections",
                "The connections to the server",
                None,
                each(|server| server.connections as f64),
            ),
            gauge(
                "metamcp_server_requests_in_flight",
                "The requests that wait for an answer of the server",
                None,
                each(|server| server.traffic.in_flight as f64),
            ),
            counter(
                "metamcp_server_connects",
                "The connections that were made to the server",
                None,
                each(|server| server.generation as f64),
            ),
            gauge(
                "metamcp_server_breaker_open",
                "1 if metamcp refuses requests because the server failed repeatedly, else 0",
                None,
                each(|server| f64::from(u8::from(server.breaker.state != BreakerState::Normal))),
            ),
            counter(
                "metamcp_server_breaker_trips",
                "The times that the server failed so often that metamcp refused requests",
                None,
                each(|server| server.breaker.trips as f64),
            ),
        ]
    }

    fn of_resources(&self) -> Vec<MetricFamily> {
        let mut servers: Vec<_> = self.usage.servers.iter().collect();
        servers.sort_by_key(|(server, _)| server.as_str().to_owned());
        let labels = |server: &ServerName| [("mcp_server", server.to_string())];
        let memory =
            servers.iter().map(|(server, used)| sample(labels(server), used.memory_bytes as f64));
        let cpu =
            servers.iter().map(|(server, used)| sample(labels(server), used.cpu.as_secs_f64()));
        let (bytes, seconds) = (Some(Unit::Bytes), Some(Unit::Seconds));
        let mut families = vec![
            gauge(
                "metamcp_server_memory",
                "The memory of the processes of the server, or of its unit",
                bytes.clone(),
                memory.collect(),
            ),
            counter(
                "metamcp_server_cpu",
                "The processor time of the running processes of the server, or of its unit",
                seconds.clone(),
                cpu.collect(),
            ),
        ];
        if let Some(own) = self.usage.own {
            let memory = number(own.memory_bytes as f64);
            let cpu = number(own.cpu.as_secs_f64());
            families.extend([
                gauge("metamcp_memory", "The memory of the service itself", bytes, memory),
                counter("metamcp_cpu", "The processor time of the service itself", seconds, cpu),
            ]);
        }
        families
    }
}
