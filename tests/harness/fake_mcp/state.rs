//! What the process remembers: requests in flight, calls that wait, sessions and everything seen.

use std::collections::BTreeMap;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{message, session::Session, waiting::Waiting, wire::Wire};

/// All that changes.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) seen: Seen,
    /// Named counters, for `/control/log`.
    pub(crate) counts: BTreeMap<&'static str, u64>,
    pub(crate) sessions: BTreeMap<String, Session>,
    /// How many tools `flip_tools` has added.
    pub(crate) n_extra_tools: usize,
    pub(crate) waiting: Waiting,
    pub(crate) in_flight: BTreeMap<u64, InFlight>,
    pub(crate) n_started: u64,
    /// Who waits for an answer of the client, by the id of our request.
    pub(crate) asked: BTreeMap<String, oneshot::Sender<String>>,
    pub(crate) n_asked: u64,
    /// The streams of cancelled requests, which are never ended.
    pub(crate) orphans: Vec<Wire>,
}

/// Everything the clients sent, as they wrote it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) methods: BTreeMap<String, u64>,
    pub(crate) ids: Vec<String>,
    pub(crate) tokens: Vec<String>,
    pub(crate) cancelled: Vec<String>,
    pub(crate) duplicates: Vec<String>,
    pub(crate) n_unreadable: u64,
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) session: Option<String>,
    pub(crate) id: String,
    pub(crate) cancelled: CancellationToken,
    pub(crate) wire: Wire,
}

impl State {
    /// Returns how many requests were cancelled.
    pub(crate) fn n_cancelled(&self) -> usize {
        self.seen.cancelled.len()
    }

    /// Returns everything seen, as the text of an object.
    pub(crate) fn summary(&self) -> String {
        let Seen { methods, ids, tokens, cancelled, duplicates, n_unreadable } = &self.seen;
        let n_initialize = methods.get("initialize").copied().unwrap_or_default();
        format!(
            r#"{{"methods":{},"ids":{},"tokens":{},"cancelled":{},"duplicates":{},"initializes":{n_initialize},"unreadable":{n_unreadable},"in_flight":{}}}"#,
            serde_json::json!(methods),
            message::array(ids),
            message::array(tokens),
            message::array(cancelled),
            message::array(duplicates),
            self.in_flight.len(),
        )
    }
}

impl Seen {
    /// Counts a message by its method.
    pub(crate) fn note(&mut self, method: &str) {
        *self.methods.entry(method.to_owned()).or_default() += 1;
    }
}
