//! The state of the process: requests in flight, waiting calls, sessions and received data.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use serde_json::{Value, json};

use crate::{
    call::Call,
    carrier::Carrier,
    executions::Executions,
    listen::Listen,
    message,
    notice::Notice,
    session::{Level, Session},
    tasks::Job,
    waiting::Waiting,
    wire::Wire,
};

/// The mutable state.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) seen: Seen,
    /// Named counters, for `/control/log`.
    pub(crate) counts: BTreeMap<&'static str, u64>,
    pub(crate) sessions: BTreeMap<String, Session>,
    /// The open bodies.
    pub(crate) carriers: BTreeMap<u64, Carrier>,
    pub(crate) n_carriers: u64,
    pub(crate) executions: Executions,
    pub(crate) pings: Pings,
    /// The number of tools that `flip_tools` has added.
    pub(crate) n_extra_tools: usize,
    /// The number of added prompts.
    pub(crate) n_extra_prompts: usize,
    pub(crate) n_extra_resources: usize,
    /// The era of the pipe, once known.
    pub(crate) is_modern_pipe: Option<bool>,
    /// A probe has broken the pipe.
    pub(crate) is_spoilt: bool,
    pub(crate) listens: Vec<Listen>,
    /// The tasks, in the order of their start.
    pub(crate) jobs: Vec<Job>,
    pub(crate) waiting: Waiting,
    pub(crate) in_flight: BTreeMap<u64, InFlight>,
    pub(crate) n_started: u64,
    /// The callers that wait for an answer of the client, by the id of the request.
    pub(crate) asked: BTreeMap<String, oneshot::Sender<String>>,
    pub(crate) n_asked: u64,
    /// The streams of cancelled requests, which never end.
    pub(crate) orphans: Vec<Wire>,
}

/// Everything the clients sent, in its original form.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) methods: BTreeMap<String, u64>,
    pub(crate) ids: Vec<String>,
    pub(crate) tokens: Vec<String>,
    pub(crate) cancelled: Vec<String>,
    /// The calls that were cancelled by the end of their stream.
    pub(crate) closed: Vec<String>,
    pub(crate) duplicates: Vec<String>,
    pub(crate) n_unreadable: u64,
    /// The client capabilities of each `initialize`.
    pub(crate) capabilities: Vec<Value>,
    /// The call of each tool that may be a task.
    pub(crate) jobs: Vec<Value>,
    pub(crate) levels: Vec<Level>,
    pub(crate) subscribes: Vec<String>,
    pub(crate) unsubscribes: Vec<String>,
    pub(crate) last_event_ids: Vec<String>,
}

/// The treatment of `ping`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Pings {
    #[default]
    Answer,
    Never,
    /// Refused with this status over HTTP; never answered on a pipe.
    Status(u16),
}

/// A request without an answer so far.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) session: Option<String>,
    pub(crate) id: String,
    pub(crate) cancelled: CancellationToken,
    pub(crate) wire: Wire,
}

impl State {
    /// Returns a count by its name, which may be the name of a reported list or map.
    pub(crate) fn n(&self, name: &str) -> u64 {
        let seen = &self.seen;
        let n_items = match name.split_once('.') {
            Some(("requests", method)) => return seen.methods.get(method).copied().unwrap_or(0),
            Some(("executions", key)) => return self.executions.n(key),
            _ => match name {
                "cancelled" => seen.cancelled.len(),
                "capabilities" => seen.capabilities.len(),
                "closed" => seen.closed.len(),
                "gone" => seen.cancelled.len() + seen.closed.len(),
                "hearers" => self.n_hearers(),
                "held" => self.waiting.n_held(),
                "in_flight" => self.in_flight.len(),
                "jobs" => seen.jobs.len(),
                "last_event_ids" => seen.last_event_ids.len(),
                "levels" => seen.levels.len(),
                "listens" => self.listens.len(),
                "meeting" => self.waiting.n_meeting(),
                "posts_open" => self.n_open(false),
                "sessions" => self.sessions.len(),
                "streams_open" => self.n_open(true),
                "subscribed" => self.subscribed().len(),
                "subscribes" => seen.subscribes.len(),
                "unsubscribes" => seen.unsubscribes.len(),
                _ => return self.counts.get(name).copied().unwrap_or(0),
            },
        };
        n_items as u64
    }

    /// Adds a tool and returns its name.
    pub(crate) fn flip(&mut self) -> String {
        self.extend(&Notice::Tools)
    }

    /// Adds an item to a list and returns its name.
    pub(crate) fn extend(&mut self, list: &Notice) -> String {
        let n_items = match list {
            Notice::Tools => &mut self.n_extra_tools,
            Notice::Prompts => &mut self.n_extra_prompts,
            Notice::Resources | Notice::Updated(_) => &mut self.n_extra_resources,
        };
        *n_items += 1;
        format!("extra_{n_items}")
    }

    /// Takes the waiting calls that were cancelled.
    pub(crate) fn take_cancelled(&mut self) -> Vec<Call> {
        let over = self.listens.extract_if(.., |listen| listen.is_over());
        let mut taken: Vec<Call> = over.map(Listen::into_call).collect();
        taken.extend(self.waiting.take_cancelled());
        taken
    }

    /// Returns everything seen, as the text of an object.
    pub(crate) fn summary(&self) -> String {
        let Seen { methods, ids, tokens, cancelled, duplicates, n_unreadable, .. } = &self.seen;
        let n_initialize = methods.get("initialize").copied().unwrap_or_default();
        let mut more = self.told().to_string();
        more.remove(0);
        format!(
            r#"{{"methods":{},"ids":{},"tokens":{},"cancelled":{},"duplicates":{},"initializes":{n_initialize},"unreadable":{n_unreadable},"in_flight":{},{more}"#,
            json!(methods),
            message::array(ids),
            message::array(tokens),
            message::array(cancelled),
            message::array(duplicates),
            self.in_flight.len(),
        )
    }

    /// Returns the members common to `seen` and `/control/log`.
    pub(crate) fn told(&self) -> Value {
        let seen = &self.seen;
        let ids = seen.closed.iter().map(|id| serde_json::from_str(id).unwrap_or_default());
        let closed: Vec<Value> = ids.collect();
        json!({
            "asked": self.n("asked"),
            "closed": closed,
            "listened": self.n("listened"),
            "listens": self.listens.len(),
            "retries": self.n("retries"),
            "capabilities": seen.capabilities,
            "executions": self.executions.counts(),
            "jobs": seen.jobs,
            "last_event_ids": seen.last_event_ids,
            "levels": seen.levels,
            "requests": seen.methods,
            "subscribed": self.subscribed(),
            "subscribes": seen.subscribes,
            "tasks": self.n("tasks"),
            "unasked": self.n("unasked"),
            "unsubscribes": seen.unsubscribes,
            "updates": self.n("updates"),
        })
    }

    /// Returns the number of streams that receive list changes.
    fn n_hearers(&self) -> usize {
        let listening = self.sessions.values().filter(|session| session.listener.is_some());
        listening.count() + self.listens.len()
    }

    /// Returns the resources with a subscription.
    fn subscribed(&self) -> BTreeSet<&String> {
        let in_sessions = self.sessions.values().flat_map(|session| &session.subscribed);
        in_sessions.chain(self.listens.iter().flat_map(Listen::uris)).collect()
    }
}

impl Seen {
    /// Counts a message by its method.
    pub(crate) fn note(&mut self, method: &str) {
        *self.methods.entry(method.to_owned()).or_default() += 1;
    }
}
