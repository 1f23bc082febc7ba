//! What the process remembers: requests in flight, held calls, sessions and everything seen.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{oneshot, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Options,
    message::{self, Fault, Message},
    methods,
    wire::{Wire, Write},
};

/// The server behind any transport.
#[derive(Debug)]
pub(crate) struct Fake {
    pub(crate) options: Options,
    /// Owns every task that answers.
    pub(crate) tasks: TaskTracker,
    /// Whether the answer stream of a cancelled request stays open.
    keeps_cancelled: bool,
    state: Mutex<State>,
    changes: watch::Sender<u64>,
    log: Option<File>,
}

/// All that changes.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) seen: Seen,
    /// Named counters, for `/control/log`.
    pub(crate) counts: BTreeMap<&'static str, u64>,
    pub(crate) sessions: BTreeMap<String, Session>,
    /// How many tools `flip_tools` has added.
    pub(crate) n_extra_tools: usize,
    in_flight: BTreeMap<u64, InFlight>,
    n_started: u64,
    meeting: Vec<(Call, String)>,
    held: BTreeMap<String, Vec<Call>>,
    n_dropped: usize,
    asked: BTreeMap<String, oneshot::Sender<String>>,
    n_asked: u64,
    orphans: Vec<Wire>,
}

/// Everything the clients sent, as they wrote it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) methods: BTreeMap<String, u64>,
    ids: Vec<String>,
    tokens: Vec<String>,
    cancelled: Vec<String>,
    duplicates: Vec<String>,
    n_unreadable: u64,
}

/// A session of the HTTP transport.
#[derive(Debug)]
pub(crate) struct Session {
    /// Ends the streams of the session.
    pub(crate) closed: CancellationToken,
    /// The GET stream, while there is one.
    pub(crate) stream: Option<Wire>,
}

#[derive(Debug)]
struct InFlight {
    session: Option<String>,
    id: String,
    cancelled: CancellationToken,
    wire: Wire,
}

/// A request that waits for its answer. Dropping it means never to answer.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) fake: Arc<Fake>,
    pub(crate) session: Option<String>,
    pub(crate) id: String,
    pub(crate) progress_token: Option<String>,
    pub(crate) cancelled: CancellationToken,
    pub(crate) wire: Wire,
    number: u64,
}

impl Call {
    /// Answers with the text of a result, unless the request was cancelled.
    pub(crate) async fn result(self, result: &str) {
        if !self.cancelled.is_cancelled() {
            self.send(result).await;
        }
    }

    /// Answers with an error, unless the request was cancelled.
    pub(crate) async fn error(self, fault: &Fault) {
        if !self.cancelled.is_cancelled() {
            self.wire.send(Write::Answer(fault.answer(&self.id))).await;
        }
    }

    /// Writes an answer, whatever has happened to the request.
    pub(crate) async fn send(&self, result: &str) {
        self.wire.send(Write::Answer(self.message(result))).await;
    }

    /// Returns the whole answer.
    pub(crate) fn message(&self, result: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.id)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let finished = self.fake.state().in_flight.remove(&self.number);
        // Dropped after the lock is released, like every other wire.
        drop(finished);
    }
}

impl Fake {
    /// Returns a server; opens its log.
    pub(crate) fn new(options: Options, keeps_cancelled: bool) -> std::io::Result<Arc<Self>> {
        let open = |path| File::options().create(true).append(true).open(path);
        let log = options.log.as_ref().map(open).transpose()?;
        Ok(Arc::new(Self {
            options,
            tasks: TaskTracker::new(),
            keeps_cancelled,
            state: Mutex::default(),
            changes: watch::Sender::new(0),
            log,
        }))
    }

    /// Appends one event; `members` is empty or starts with a comma.
    pub(crate) fn log(&self, event: &str, members: &str) {
        if let Some(mut log) = self.log.as_ref() {
            let pid = std::process::id();
            let line = format!("{{\"pid\":{pid},\"event\":\"{event}\"{members}}}\n");
            log.write_all(line.as_bytes()).ok(); // One write: lines of several processes mix whole.
        }
    }

    /// Locks the state. Never held across an await.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those who wait for a change.
    pub(crate) fn changed(&self) {
        self.changes.send_modify(|n_changes| *n_changes += 1);
    }

    /// Adds one to a counter.
    pub(crate) fn count(&self, name: &'static str) {
        *self.state().counts.entry(name).or_default() += 1;
        self.changed();
    }

    /// Waits until `is_reached` of the state.
    pub(crate) async fn reached(&self, is_reached: impl Fn(&State) -> bool) {
        let mut changes = self.changes.subscribe();
        while !is_reached(&self.state()) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Takes one message in; answers are written to `wire`.
    ///
    /// Books are kept before this returns, so that they follow the order of arrival.
    pub(crate) fn receive(
        self: &Arc<Self>,
        message: &Message<'_>,
        session: Option<&str>,
        wire: &Wire,
    ) {
        match (&message.method, message.id) {
            (Some(method), Some(id)) => self.request(message, method, id.get(), session, wire),
            (Some(method), None) => self.notification(message, method, session),
            (None, Some(id)) => self.response(message, id.get()),
            (None, None) => self.unreadable(),
        }
        self.changed();
    }

    /// Notes a line or body that is no message.
    pub(crate) fn unreadable(&self) {
        self.state().seen.n_unreadable += 1;
        self.changed();
    }

    fn request(
        self: &Arc<Self>,
        message: &Message<'_>,
        method: &str,
        id: &str,
        session: Option<&str>,
        wire: &Wire,
    ) {
        let progress_token = message.progress_token();
        let call = {
            let mut state = self.state();
            state.seen.note(method);
            state.seen.ids.push(id.to_owned());
            state.seen.tokens.extend(progress_token.clone());
            let is_duplicate = state
                .in_flight
                .values()
                .any(|other| other.id == id && other.session.as_deref() == session);
            if is_duplicate {
                state.seen.duplicates.push(id.to_owned());
                if self.options.drop_duplicate_ids {
                    state.orphans.push(wire.clone());
                    return;
                }
            }
            state.n_started += 1;
            let number = state.n_started;
            let cancelled = CancellationToken::new();
            let in_flight = InFlight {
                session: session.map(str::to_owned),
                id: id.to_owned(),
                cancelled: cancelled.clone(),
                wire: wire.clone(),
            };
            state.in_flight.insert(number, in_flight);
            Call {
                fake: self.clone(),
                session: session.map(str::to_owned),
                id: id.to_owned(),
                progress_token,
                cancelled,
                wire: wire.clone(),
                number,
            }
        };
        let method = method.to_owned();
        let params = message.params.map(|params| params.get().to_owned());
        self.tasks.spawn(methods::run(call, method, params));
    }

    fn notification(&self, message: &Message<'_>, method: &str, session: Option<&str>) {
        self.state().seen.note(method);
        if method != "notifications/cancelled" {
            return;
        }
        let params = message::Members::read(message.params.map(|params| params.get()));
        let Some(id) = params.raw("requestId") else { return };
        self.log("cancelled", &format!(r#","id":{id}"#));
        let dropped = {
            let mut state = self.state();
            let State { seen, in_flight, orphans, .. } = &mut *state;
            seen.cancelled.push(id.to_owned());
            let named = in_flight
                .values()
                .filter(|call| call.id == id && call.session.as_deref() == session);
            for call in named {
                call.cancelled.cancel();
                if self.keeps_cancelled {
                    orphans.push(call.wire.clone());
                }
            }
            state.take_cancelled()
        };
        drop(dropped); // Outside of the lock, which the drop of a call takes.
    }

    fn response(&self, message: &Message<'_>, id: &str) {
        let asker = {
            let mut state = self.state();
            state.seen.note("(response)");
            state.asked.remove(id)
        };
        let answer = match (message.result, message.error) {
            (_, Some(error)) => format!(r#"{{"error":{}}}"#, error.get()),
            (Some(result), None) => format!(r#"{{"result":{}}}"#, result.get()),
            (None, None) => r#"{"result":null}"#.to_owned(),
        };
        if let Some(asker) = asker {
            asker.send(answer).ok();
        }
    }

    /// Asks the client; returns `{"result":…}` or `{"error":…}`.
    pub(crate) async fn ask(&self, wire: &Wire, method: &str, params: &str) -> String {
        let (sender, answer) = oneshot::channel();
        let id = {
            let mut state = self.state();
            state.n_asked += 1;
            let id = format!("\"fake-{}\"", state.n_asked);
            state.asked.insert(id.clone(), sender);
            id
        };
        let method = message::quoted(method);
        wire.send(Write::Aside(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#
        )))
        .await;
        answer.await.unwrap_or_default()
    }

    /// Keeps `call` until `n_calls` of them have met, then answers all, the last one first.
    pub(crate) async fn meet(&self, call: Call, n_calls: usize, value: String) {
        let (gone, met) = {
            let mut state = self.state();
            let gone: Vec<_> =
                state.meeting.extract_if(.., |(call, _)| call.cancelled.is_cancelled()).collect();
            state.meeting.push((call, value));
            let is_complete = state.meeting.len() >= n_calls;
            (gone, if is_complete { std::mem::take(&mut state.meeting) } else { Vec::new() })
        };
        drop(gone);
        self.changed();
        for (call, value) in met.into_iter().rev() {
            call.result(&message::structured(&value, &format!(r#"{{"value":{value}}}"#))).await;
        }
    }

    /// Keeps `call` until its key is released.
    pub(crate) fn hold(&self, call: Call, key: String) {
        let dropped = {
            let mut state = self.state();
            state.held.entry(key).or_default().push(call);
            state.take_cancelled() // It may have been cancelled before it got here.
        };
        drop(dropped);
        self.changed();
    }

    /// Answers all calls that are held under `key`; returns how many.
    pub(crate) async fn release(&self, key: &str) -> usize {
        let released = self.state().held.remove(key).unwrap_or_default();
        let n_released = released.len();
        let data = format!(r#"{{"key":{}}}"#, message::quoted(key));
        for call in released {
            call.result(&message::told(&data)).await;
        }
        self.changed();
        n_released
    }

    /// Writes a message to every client that listens: the GET streams, or else `wire`.
    pub(crate) async fn broadcast(&self, message: &str, wire: Option<&Wire>) -> usize {
        let streams: Vec<Wire> =
            self.state().sessions.values().filter_map(|session| session.stream.clone()).collect();
        let wires = if streams.is_empty() { wire.cloned().into_iter().collect() } else { streams };
        for wire in &wires {
            wire.send(Write::Aside(message.to_owned())).await;
        }
        wires.len()
    }
}

impl State {
    /// Returns how many calls are held.
    pub(crate) fn n_held(&self) -> usize {
        self.held.values().map(Vec::len).sum()
    }

    /// Returns how many requests were cancelled.
    pub(crate) fn n_cancelled(&self) -> usize {
        self.seen.cancelled.len()
    }

    /// Returns how many `meet` calls wait for more.
    pub(crate) fn n_meeting(&self) -> usize {
        self.meeting.len()
    }

    /// Returns what is held, as the text of an object.
    pub(crate) fn held(&self) -> String {
        let keys: BTreeMap<&String, usize> =
            self.held.iter().map(|(key, calls)| (key, calls.len())).collect();
        let (held, dropped) = (self.n_held(), self.n_dropped);
        serde_json::json!({ "keys": keys, "held": held, "dropped": dropped }).to_string()
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

    /// Takes the held calls that were cancelled and counts them.
    fn take_cancelled(&mut self) -> Vec<Call> {
        let mut taken = Vec::new();
        for calls in self.held.values_mut() {
            taken.extend(calls.extract_if(.., |call| call.cancelled.is_cancelled()));
        }
        self.held.retain(|_, calls| !calls.is_empty());
        self.n_dropped += taken.len();
        taken
    }
}

impl Seen {
    fn note(&mut self, method: &str) {
        *self.methods.entry(method.to_owned()).or_default() += 1;
    }
}
