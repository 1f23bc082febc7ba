//! The state of the process: requests in flight, waiting calls, sessions and received data.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use serde_json::{Value, json};

use crate::{
    call::Call,
    executions::Executions,
    listen_requests::ListenRequest,
    message,
    notice::Notice,
    open_bodies::OpenBody,
    output::OutputSender,
    session::{Level, Session},
    tasks::Task,
    waiting_calls::WaitingCalls,
};

/// The mutable state.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) seen: ClientTraffic,
    /// Named counters, for `/control/log`.
    pub(crate) counts: BTreeMap<&'static str, u64>,
    pub(crate) sessions: BTreeMap<String, Session>,
    /// The open response bodies.
    pub(crate) bodies: BTreeMap<u64, OpenBody>,
    pub(crate) n_bodies: u64,
    pub(crate) executions: Executions,
    pub(crate) pings: PingMode,
    /// The number of tools that `flip_tools` has added.
    pub(crate) n_extra_tools: usize,
    /// The number of added prompts.
    pub(crate) n_extra_prompts: usize,
    pub(crate) n_extra_resources: usize,
    /// The era of the pipe, once known.
    pub(crate) is_modern_pipe: Option<bool>,
    /// `true` after a probe has broken the pipe.
    pub(crate) is_broken: bool,
    pub(crate) listen_requests: Vec<ListenRequest>,
    /// The tasks, in the order of their start.
    pub(crate) tasks: Vec<Task>,
    pub(crate) waiting: WaitingCalls,
    pub(crate) in_flight: BTreeMap<u64, RequestInFlight>,
    pub(crate) n_started: u64,
    /// The senders for the answers of the client, by the id of the request.
    pub(crate) asked: BTreeMap<String, oneshot::Sender<String>>,
    pub(crate) n_asked: u64,
    /// The streams of cancelled requests, which never end.
    pub(crate) orphans: Vec<OutputSender>,
}

/// Everything the clients sent, in its original form.
#[derive(Debug, Default)]
pub(crate) struct ClientTraffic {
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
    /// The calls of the tools that may be tasks.
    pub(crate) task_calls: Vec<Value>,
    pub(crate) levels: Vec<Level>,
    pub(crate) subscribes: Vec<String>,
    pub(crate) unsubscribes: Vec<String>,
    pub(crate) last_event_ids: Vec<String>,
}

/// The reaction to `ping`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum PingMode {
    #[default]
    Answer,
    Never,
    /// The ping is refused with this status over HTTP, and never answered on a pipe.
    Status(u16),
}

/// A request without an answer so far.
#[derive(Debug)]
pub(crate) struct RequestInFlight {
    pub(crate) session: Option<String>,
    pub(crate) id: String,
    pub(crate) cancelled: CancellationToken,
    pub(crate) output: OutputSender,
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
                "hearers" => self.n_listening(),
                "held" => self.waiting.n_held(),
                "in_flight" => self.in_flight.len(),
                "jobs" => seen.task_calls.len(),
                "last_event_ids" => seen.last_event_ids.len(),
                "levels" => seen.levels.len(),
                "listens" => self.listen_requests.len(),
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
        let over = self.listen_requests.extract_if(.., |listen| listen.is_over());
        let mut taken: Vec<Call> = over.map(ListenRequest::into_call).collect();
        taken.extend(self.waiting.take_cancelled());
        taken
    }

    /// Returns everything seen, as the text of an object.
    pub(crate) fn summary(&self) -> String {
        let ClientTraffic { methods, ids, tokens, cancelled, duplicates, n_unreadable, .. } =
            &self.seen;
        let n_initialize = methods.get("initialize").copied().unwrap_or_default();
        let mut more = self.report().to_string();
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

    /// Returns the members that `seen` and `/control/log` share.
    pub(crate) fn report(&self) -> Value {
        let seen = &self.seen;
        let ids = seen.closed.iter().map(|id| serde_json::from_str(id).unwrap_or_default());
        let closed: Vec<Value> = ids.collect();
        json!({
            "asked": self.n("asked"),
            "closed": closed,
            "listened": self.n("listened"),
            "listens": self.listen_requests.len(),
            "retries": self.n("retries"),
            "capabilities": seen.capabilities,
            "executions": self.executions.counts(),
            "jobs": seen.task_calls,
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
    fn n_listening(&self) -> usize {
        let listening = self.sessions.values().filter(|session| session.listener.is_some());
        listening.count() + self.listen_requests.len()
    }

    /// Returns the resources with a subscription.
    fn subscribed(&self) -> BTreeSet<&String> {
        let in_sessions = self.sessions.values().flat_map(|session| &session.subscribed);
        in_sessions.chain(self.listen_requests.iter().flat_map(ListenRequest::uris)).collect()
    }
}

impl ClientTraffic {
    /// Counts a message by its method.
    pub(crate) fn count_method(&mut self, method: &str) {
        *self.methods.entry(method.to_owned()).or_default() += 1;
    }
}
