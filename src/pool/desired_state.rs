//! State that a session has only once but many clients share: the log level and the watched
//! resources.
//!
//! Pure: holds the demand and the state that the server has, and computes the next step.

use std::collections::{BTreeMap, BTreeSet};

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
    /// The generation of the connection that `told` describes.
    generation: u64,
    wanted: ClientDemand,
    told: ClientDemand,
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
            Self::SetLevel(level) => {
                (method::LOGGING_SET_LEVEL, serde_json::json!({ "level": level.name() }))
            }
            Self::Subscribe(uri) => {
                (method::RESOURCES_SUBSCRIBE, serde_json::json!({ "uri": uri }))
            }
            Self::Unsubscribe(uri) => {
                (method::RESOURCES_UNSUBSCRIBE, serde_json::json!({ "uri": uri }))
            }
            Self::Watch(_) => return None,
        };
        Some(Message::request(method, Some(&params.to_string())))
    }
}

impl DesiredState {
    /// Replaces the demand.
    pub(super) fn set_demand(&mut self, wants: ClientDemand) {
        // A resource that is not wanted any more may be requested again later.
        self.refused.retain(|uri, _| wants.uris.contains(uri));
        self.wanted = wants;
    }

    /// Returns whether a client watches a resource.
    pub(super) fn is_watched(&self) -> bool {
        !self.wanted.uris.is_empty()
    }

    /// Records a new connection, whose server has been sent nothing.
    pub(super) fn connected(&mut self, generation: u64) {
        self.generation = generation;
        self.told = ClientDemand::default();
        self.refused.clear();
    }

    /// Returns the next step for a server of `era`. `has` returns whether it declared a capability.
    pub(super) fn next(&self, era: Era, has: impl Fn(&str) -> bool) -> Option<ReconcileStep> {
        match era {
            Era::Legacy => self.next_request(has),
            // Modern requests carry their own level.
            Era::Modern => {
                let is_new = |uri: &&String| !self.refused.contains_key(*uri);
                let uris: BTreeSet<_> = self.wanted.uris.iter().filter(is_new).cloned().collect();
                (has("resources") && uris != self.told.uris).then_some(ReconcileStep::Watch(uris))
            }
        }
    }

    fn next_request(&self, has: impl Fn(&str) -> bool) -> Option<ReconcileStep> {
        // MCP cannot unset a level. If no client wants one, `info` ends the noise.
        let level = self.wanted.level.or(self.told.level.map(|_| LoggingLevel::Info));
        if let Some(level) = level
            && self.told.level != Some(level)
            && has("logging")
        {
            return Some(ReconcileStep::SetLevel(level));
        }
        if !has("resources") {
            return None;
        }
        let is_new = |uri: &&String| !self.refused.contains_key(*uri);
        let added = self.wanted.uris.difference(&self.told.uris).find(is_new);
        let removed = || self.told.uris.difference(&self.wanted.uris).next();
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
            ReconcileStep::SetLevel(level) => self.told.level = Some(*level),
            ReconcileStep::Subscribe(uri) => match refusal {
                Some(error) => {
                    self.refused.insert(uri.clone(), error.to_owned());
                }
                None => {
                    self.told.uris.insert(uri.clone());
                }
            },
            ReconcileStep::Unsubscribe(uri) => {
                self.told.uris.remove(uri);
            }
            ReconcileStep::Watch(uris) => match refusal {
                Some(error) => {
                    let refusals = uris.iter().map(|uri| (uri.clone(), error.to_owned()));
                    self.watched(generation, uris, refusals.collect());
                }
                None => self.watched(generation, uris, BTreeMap::new()),
            },
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
            self.told.uris =
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

    fn wants(level: Option<LoggingLevel>, uris: &[&str]) -> ClientDemand {
        ClientDemand { level, uris: uris.iter().map(|uri| (*uri).to_owned()).collect() }
    }

    /// Takes every step and returns the steps.
    fn settle(standing: &mut DesiredState) -> Vec<ReconcileStep> {
        let mut steps = Vec::new();
        while let Some(step) = standing.next(Era::Legacy, |_| true) {
            standing.done(standing.generation, &step, None);
            steps.push(step);
        }
        steps
    }

    #[test]
    fn the_server_is_told_only_what_changes() {
        let mut standing = DesiredState::default();
        standing.set_demand(wants(Some(LoggingLevel::Debug), &["a", "b"]));
        let subscribe = |uri: &str| ReconcileStep::Subscribe(uri.to_owned());
        assert_eq!(
            settle(&mut standing),
            [ReconcileStep::SetLevel(LoggingLevel::Debug), subscribe("a"), subscribe("b")]
        );

        standing.set_demand(wants(Some(LoggingLevel::Debug), &["b", "c"]));
        assert_eq!(
            settle(&mut standing),
            [subscribe("c"), ReconcileStep::Unsubscribe("a".to_owned())]
        );

        standing.set_demand(wants(None, &[]));
        assert_eq!(
            settle(&mut standing),
            [
                ReconcileStep::SetLevel(LoggingLevel::Info),
                ReconcileStep::Unsubscribe("b".to_owned()),
                ReconcileStep::Unsubscribe("c".to_owned())
            ]
        );
        assert!(settle(&mut standing).is_empty());
    }

    #[test]
    fn a_new_connection_is_told_everything_again() {
        let mut standing = DesiredState::default();
        standing.set_demand(wants(Some(LoggingLevel::Error), &["a"]));
        let first = settle(&mut standing);
        standing.connected(2);
        assert_eq!(settle(&mut standing), first);
    }

    #[test]
    fn a_step_completed_on_an_old_connection_is_repeated_on_the_next_one() {
        let mut standing = DesiredState::default();
        standing.connected(1);
        standing.set_demand(wants(None, &["a"]));
        let step = standing.next(Era::Legacy, |_| true).expect("a step");
        standing.connected(2);
        standing.done(1, &step, None);
        assert_eq!(standing.next(Era::Legacy, |_| true), Some(step));
    }

    #[test]
    fn a_refused_subscription_is_not_asked_for_again_while_it_is_wanted() {
        let mut standing = DesiredState::default();
        standing.set_demand(wants(None, &["a"]));
        let step = standing.next(Era::Legacy, |_| true).expect("a step");
        standing.done(0, &step, Some("{}"));
        assert_eq!(standing.next(Era::Legacy, |_| true), None);
        assert_eq!(standing.refusal("a").as_deref(), Some("{}"));

        standing.set_demand(wants(None, &[]));
        standing.set_demand(wants(None, &["a"]));
        assert_eq!(standing.next(Era::Legacy, |_| true), Some(step));
    }

    #[test]
    fn a_server_without_sessions_is_told_all_at_once() {
        let mut standing = DesiredState::default();
        standing.set_demand(wants(Some(LoggingLevel::Debug), &["a", "b"]));
        let step = standing.next(Era::Modern, |_| true).expect("a step");
        let both = wants(None, &["a", "b"]).uris;
        assert_eq!(step, ReconcileStep::Watch(both.clone()), "and no level");
        assert_eq!(step.request().map(|_| ()), None);

        standing.watched(0, &both, BTreeMap::from([("b".to_owned(), "{}".to_owned())]));
        assert_eq!(standing.refusal("b").as_deref(), Some("{}"));
        assert_eq!(standing.next(Era::Modern, |_| true), None, "not again");
        standing.set_demand(wants(None, &["b"]));
        let none = ReconcileStep::Watch(BTreeSet::new());
        assert_eq!(standing.next(Era::Modern, |_| true), Some(none.clone()));
        standing.done(0, &none, None);
        assert_eq!(standing.next(Era::Modern, |_| true), None);
        standing.set_demand(wants(None, &["c"]));
        assert_eq!(standing.next(Era::Modern, |_| false), None, "it has no resources");
        let step = standing.next(Era::Modern, |_| true).expect("a step");
        standing.done(0, &step, Some("{}"));
        assert_eq!(standing.refusal("c").as_deref(), Some("{}"), "nothing came of it");
    }

    #[test]
    fn a_server_without_the_capability_is_told_nothing() {
        let mut standing = DesiredState::default();
        standing.set_demand(wants(Some(LoggingLevel::Debug), &["a"]));
        assert_eq!(standing.next(Era::Legacy, |_| false), None);
        assert_eq!(
            standing.next(Era::Legacy, |capability| capability == "logging"),
            Some(ReconcileStep::SetLevel(LoggingLevel::Debug))
        );
    }
}
