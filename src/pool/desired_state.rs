//! State that a session has only once but many clients share: the log level and the watched
//! resources.
//!
//! Pure: it holds the demand and the state of the server, and computes the next step.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::protocol::{Era, LoggingLevel, Message, payloads::method};

/// The combined demand of one connection's clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientDemand {
    /// The lowest level that a client has set.
    pub level: Option<LoggingLevel>,
    /// The resources that at least one client watches.
    pub uris: BTreeSet<String>,
}

/// The demand on a connection, and the state that its server has been sent.
#[derive(Debug, Default)]
pub(super) struct DesiredState {
    /// The generation of the connection that `sent` describes.
    generation: u64,
    demand: ClientDemand,
    /// The demand that the server has been sent.
    sent: ClientDemand,
    /// Subscriptions that the server refused or did not answer, with the error objects as JSON
    /// text.
    refused: BTreeMap<String, String>,
}

/// The next change to send to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReconcileStep {
    SetLevel(LoggingLevel),
    Subscribe(String),
    Unsubscribe(String),
    /// Watch exactly these, on a server of the modern era, where one subscription covers all.
    Watch(BTreeSet<String>),
}

impl ReconcileStep {
    /// Returns the request, if the step is one.
    pub(super) fn request(&self) -> Option<Message> {
        let (method, params) = match self {
            Self::SetLevel(level) => (method::LOGGING_SET_LEVEL, json!({ "level": level.name() })),
            Self::Subscribe(uri) => (method::RESOURCES_SUBSCRIBE, json!({ "uri": uri })),
            Self::Unsubscribe(uri) => (method::RESOURCES_UNSUBSCRIBE, json!({ "uri": uri })),
            Self::Watch(_) => return None,
        };
        Some(Message::request(method, Some(&params.to_string())))
    }
}

impl DesiredState {
    /// Replaces the demand.
    pub(super) fn set_demand(&mut self, demand: ClientDemand) {
        // A resource that is no longer wanted may be requested again later.
        self.refused.retain(|uri, _| demand.uris.contains(uri));
        self.demand = demand;
    }

    /// Returns whether a client watches a resource.
    pub(super) fn is_watched(&self) -> bool {
        !self.demand.uris.is_empty()
    }

    /// Records a new connection, whose server has been sent nothing.
    pub(super) fn connected(&mut self, generation: u64) {
        self.generation = generation;
        self.sent = ClientDemand::default();
        self.refused.clear();
    }

    /// Returns the next step for a server of `era`. `has` returns whether it declared a capability.
    pub(super) fn next(&self, era: Era, has: impl Fn(&str) -> bool) -> Option<ReconcileStep> {
        match era {
            Era::Legacy => self.next_request(has),
            // Modern requests carry their own level.
            Era::Modern => {
                let is_new = |uri: &&String| !self.refused.contains_key(*uri);
                let uris: BTreeSet<_> = self.demand.uris.iter().filter(is_new).cloned().collect();
                (has("resources") && uris != self.sent.uris).then_some(ReconcileStep::Watch(uris))
            }
        }
    }

    fn next_request(&self, has: impl Fn(&str) -> bool) -> Option<ReconcileStep> {
        // MCP cannot unset a level. If no client wants one, `info` ends the noise.
        let level = self.demand.level.or(self.sent.level.map(|_| LoggingLevel::Info));
        if let Some(level) = level
            && self.sent.level != Some(level)
            && has("logging")
        {
            return Some(ReconcileStep::SetLevel(level));
        }
        if !has("resources") {
            return None;
        }
        let is_new = |uri: &&String| !self.refused.contains_key(*uri);
        let added = self.demand.uris.difference(&self.sent.uris).find(is_new);
        let removed = || self.sent.uris.difference(&self.demand.uris).next();
        added
            .map(|uri| ReconcileStep::Subscribe(uri.clone()))
            .or_else(|| removed().map(|uri| ReconcileStep::Unsubscribe(uri.clone())))
    }

    /// Records that a step was taken on the connection `generation`. `refusal` is an error object,
    /// as JSON text. Answers on an earlier connection are ignored.
    pub(super) fn done(&mut self, generation: u64, step: &ReconcileStep, refusal: Option<&str>) {
        if generation != self.generation {
            return;
        }
        match step {
            ReconcileStep::SetLevel(level) => self.sent.level = Some(*level),
            ReconcileStep::Subscribe(uri) => {
                if let Some(error) = refusal {
                    self.refused.insert(uri.clone(), error.to_owned());
                } else {
                    self.sent.uris.insert(uri.clone());
                }
            }
            ReconcileStep::Unsubscribe(uri) => {
                self.sent.uris.remove(uri);
            }
            ReconcileStep::Watch(uris) => {
                let refused = refusal
                    .into_iter()
                    .flat_map(|error| uris.iter().map(move |uri| (uri.clone(), error.to_owned())));
                self.watched(generation, uris, refused.collect());
            }
        }
    }

    /// Records that the server watches `uris` on the connection `generation`, except those in
    /// `refused`, whose error objects are JSON text.
    pub(super) fn watched(
        &mut self,
        generation: u64,
        uris: &BTreeSet<String>,
        refused: BTreeMap<String, String>,
    ) {
        if generation == self.generation {
            self.sent.uris =
                uris.iter().filter(|uri| !refused.contains_key(*uri)).cloned().collect();
            self.refused.extend(refused);
        }
    }

    /// Returns the error object with which the server refused a subscription.
    pub(super) fn refusal(&self, uri: &str) -> Option<String> {
        self.refused.get(uri).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(level: Option<LoggingLevel>, uris: &[&str]) -> ClientDemand {
        ClientDemand { level, uris: uris.iter().map(|uri| (*uri).to_owned()).collect() }
    }

    /// Takes every step and returns the steps.
    fn take_all_steps(desired: &mut DesiredState) -> Vec<ReconcileStep> {
        let mut steps = Vec::new();
        while let Some(step) = desired.next(Era::Legacy, |_| true) {
            desired.done(desired.generation, &step, None);
            steps.push(step);
        }
        steps
    }

    #[test]
    fn the_server_is_sent_only_changes() {
        let mut desired = DesiredState::default();
        desired.set_demand(demand(Some(LoggingLevel::Debug), &["a", "b"]));
        let subscribe = |uri: &str| ReconcileStep::Subscribe(uri.to_owned());
        assert_eq!(
            take_all_steps(&mut desired),
            [ReconcileStep::SetLevel(LoggingLevel::Debug), subscribe("a"), subscribe("b")]
        );

        desired.set_demand(demand(Some(LoggingLevel::Debug), &["b", "c"]));
        assert_eq!(
            take_all_steps(&mut desired),
            [subscribe("c"), ReconcileStep::Unsubscribe("a".to_owned())]
        );

        desired.set_demand(demand(None, &[]));
        assert_eq!(
            take_all_steps(&mut desired),
            [
                ReconcileStep::SetLevel(LoggingLevel::Info),
                ReconcileStep::Unsubscribe("b".to_owned()),
                ReconcileStep::Unsubscribe("c".to_owned())
            ]
        );
        assert!(take_all_steps(&mut desired).is_empty());
    }

    #[test]
    fn a_new_connection_is_sent_the_whole_demand() {
        let mut desired = DesiredState::default();
        desired.set_demand(demand(Some(LoggingLevel::Error), &["a"]));
        let first = take_all_steps(&mut desired);
        desired.connected(2);
        assert_eq!(take_all_steps(&mut desired), first);
    }

    #[test]
    fn a_step_completed_on_an_old_connection_is_repeated_on_the_next_one() {
        let mut desired = DesiredState::default();
        desired.connected(1);
        desired.set_demand(demand(None, &["a"]));
        let step = desired.next(Era::Legacy, |_| true).expect("a step");
        desired.connected(2);
        desired.done(1, &step, None);
        assert_eq!(desired.next(Era::Legacy, |_| true), Some(step));
    }

    #[test]
    fn a_refused_subscription_is_not_repeated_while_clients_want_it() {
        let mut desired = DesiredState::default();
        desired.set_demand(demand(None, &["a"]));
        let step = desired.next(Era::Legacy, |_| true).expect("a step");
        desired.done(0, &step, Some("{}"));
        assert_eq!(desired.next(Era::Legacy, |_| true), None);
        assert_eq!(desired.refusal("a").as_deref(), Some("{}"));

        desired.set_demand(demand(None, &[]));
        desired.set_demand(demand(None, &["a"]));
        assert_eq!(desired.next(Era::Legacy, |_| true), Some(step));
    }

    #[test]
    fn a_modern_server_gets_all_subscriptions_in_one_request() {
        let mut desired = DesiredState::default();
        desired.set_demand(demand(Some(LoggingLevel::Debug), &["a", "b"]));
        let step = desired.next(Era::Modern, |_| true).expect("a step");
        let both = demand(None, &["a", "b"]).uris;
        assert_eq!(step, ReconcileStep::Watch(both.clone()), "and no level");
        assert_eq!(step.request().map(|_| ()), None);

        desired.watched(0, &both, BTreeMap::from([("b".to_owned(), "{}".to_owned())]));
        assert_eq!(desired.refusal("b").as_deref(), Some("{}"));
        assert_eq!(desired.next(Era::Modern, |_| true), None, "not again");
        desired.set_demand(demand(None, &["b"]));
        let none = ReconcileStep::Watch(BTreeSet::new());
        assert_eq!(desired.next(Era::Modern, |_| true), Some(none.clone()));
        desired.done(0, &none, None);
        assert_eq!(desired.next(Era::Modern, |_| true), None);
        desired.set_demand(demand(None, &["c"]));
        assert_eq!(desired.next(Era::Modern, |_| false), None, "it has no resources");
        let step = desired.next(Era::Modern, |_| true).expect("a step");
        desired.done(0, &step, Some("{}"));
        assert_eq!(desired.refusal("c").as_deref(), Some("{}"), "the server refused it");
    }

    #[test]
    fn a_server_without_the_capability_is_sent_nothing() {
        let mut desired = DesiredState::default();
        desired.set_demand(demand(Some(LoggingLevel::Debug), &["a"]));
        assert_eq!(desired.next(Era::Legacy, |_| false), None);
        assert_eq!(
            desired.next(Era::Legacy, |capability| capability == "logging"),
            Some(ReconcileStep::SetLevel(LoggingLevel::Debug))
        );
    }
}
