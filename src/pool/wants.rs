//! State that a session has only once, shared by many clients: the log level and the resources
//! that are watched.
//!
//! Pure: what is wanted, what the server was told, and the next step from one to the other.

use std::collections::{BTreeMap, BTreeSet};

use crate::protocol::{Level, Message, mcp::method};

/// What the clients of one connection want of it, all together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// The lowest level that any of them has set.
    pub level: Option<Level>,
    /// The resources that any of them watches.
    pub uris: BTreeSet<String>,
}

/// What is wanted of a connection, and what its server was told.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Of the connection whose server was told.
    generation: u64,
    wanted: Wants,
    told: Wants,
    /// Subscriptions that the server refused, or did not answer, with the error objects as JSON text.
    refused: BTreeMap<String, String>,
}

/// What to tell the server next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    SetLevel(Level),
    Subscribe(String),
    Unsubscribe(String),
}

impl Step {
    /// Returns the request.
    pub(super) fn request(&self) -> Message {
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
        };
        Message::request(method, Some(&params.to_string()))
    }
}

impl Standing {
    /// Takes in what is wanted from now on.
    pub(super) fn want(&mut self, wants: Wants) {
        // What nobody wants any more may be asked for again later.
        self.refused.retain(|uri, _| wants.uris.contains(uri));
        self.wanted = wants;
    }

    /// Tells whether anybody watches a resource.
    pub(super) fn is_watched(&self) -> bool {
        !self.wanted.uris.is_empty()
    }

    /// There is a new connection, whose server was told nothing yet.
    pub(super) fn connected(&mut self, generation: u64) {
        self.generation = generation;
        self.told = Wants::default();
        self.refused.clear();
    }

    /// Returns the next step; `has` tells which capabilities the server declared.
    pub(super) fn next(&self, has: impl Fn(&str) -> bool) -> Option<Step> {
        // There is no way to unset a level: with nobody left who wants one, the noise ends.
        let level = self.wanted.level.or(self.told.level.map(|_| Level::Info));
        if let Some(level) = level
            && self.told.level != Some(level)
            && has("logging")
        {
            return Some(Step::SetLevel(level));
        }
        if !has("resources") {
            return None;
        }
        let is_new = |uri: &&String| !self.refused.contains_key(*uri);
        let added = self.wanted.uris.difference(&self.told.uris).find(is_new);
        let removed = || self.told.uris.difference(&self.wanted.uris).next();
        added
            .map(|uri| Step::Subscribe(uri.clone()))
            .or_else(|| removed().map(|uri| Step::Unsubscribe(uri.clone())))
    }

    /// Notes that a step was taken on the connection `generation`; `refusal` is an error object,
    /// as JSON text. An answer may come when there is the next connection already.
    pub(super) fn done(&mut self, generation: u64, step: &Step, refusal: Option<&str>) {
        if generation != self.generation {
            return;
        }
        match step {
            Step::SetLevel(level) => self.told.level = Some(*level),
            Step::Subscribe(uri) => match refusal {
                Some(error) => {
                    self.refused.insert(uri.clone(), error.to_owned());
                }
                None => {
                    self.told.uris.insert(uri.clone());
                }
            },
            Step::Unsubscribe(uri) => {
                self.told.uris.remove(uri);
            }
        }
    }

    /// Returns the error object with which a subscription was refused.
    pub(super) fn refusal(&self, uri: &str) -> Option<String> {
        self.refused.get(uri).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(level: Option<Level>, uris: &[&str]) -> Wants {
        Wants { level, uris: uris.iter().map(|uri| (*uri).to_owned()).collect() }
    }

    /// Takes every step and returns what was taken.
    fn settle(standing: &mut Standing) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some(step) = standing.next(|_| true) {
            standing.done(standing.generation, &step, None);
            steps.push(step);
        }
        steps
    }

    #[test]
    fn the_server_is_told_only_what_changes() {
        let mut standing = Standing::default();
        standing.want(wants(Some(Level::Debug), &["a", "b"]));
        let subscribe = |uri: &str| Step::Subscribe(uri.to_owned());
        assert_eq!(
            settle(&mut standing),
            [Step::SetLevel(Level::Debug), subscribe("a"), subscribe("b")]
        );

        standing.want(wants(Some(Level::Debug), &["b", "c"]));
        assert_eq!(settle(&mut standing), [subscribe("c"), Step::Unsubscribe("a".to_owned())]);

        standing.want(wants(None, &[]));
        assert_eq!(
            settle(&mut standing),
            [
                Step::SetLevel(Level::Info),
                Step::Unsubscribe("b".to_owned()),
                Step::Unsubscribe("c".to_owned())
            ]
        );
        assert!(settle(&mut standing).is_empty());
    }

    #[test]
    fn a_new_connection_is_told_everything_again() {
        let mut standing = Standing::default();
        standing.want(wants(Some(Level::Error), &["a"]));
        let first = settle(&mut standing);
        standing.connected(2);
        assert_eq!(settle(&mut standing), first);
    }

    #[test]
    fn what_the_last_server_has_taken_says_nothing_of_the_next() {
        let mut standing = Standing::default();
        standing.connected(1);
        standing.want(wants(None, &["a"]));
        let step = standing.next(|_| true).expect("a step");
        standing.connected(2);
        standing.done(1, &step, None);
        assert_eq!(standing.next(|_| true), Some(step));
    }

    #[test]
    fn a_refused_subscription_is_not_asked_for_again_while_it_is_wanted() {
        let mut standing = Standing::default();
        standing.want(wants(None, &["a"]));
        let step = standing.next(|_| true).expect("a step");
        standing.done(0, &step, Some("{}"));
        assert_eq!(standing.next(|_| true), None);
        assert_eq!(standing.refusal("a").as_deref(), Some("{}"));

        standing.want(wants(None, &[]));
        standing.want(wants(None, &["a"]));
        assert_eq!(standing.next(|_| true), Some(step));
    }

    #[test]
    fn a_server_without_the_capability_is_told_nothing() {
        let mut standing = Standing::default();
        standing.want(wants(Some(Level::Debug), &["a"]));
        assert_eq!(standing.next(|_| false), None);
        assert_eq!(
            standing.next(|capability| capability == "logging"),
            Some(Step::SetLevel(Level::Debug))
        );
    }
}
