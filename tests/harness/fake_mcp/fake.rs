//! The server behind any transport: it receives messages, answers, asks and notifies.

use std::{
    fs::File,
    io::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{oneshot, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    call::Call,
    executions::Executions,
    message::{self, Message},
    methods,
    modern_client::ModernClient,
    options::Options,
    output::{Output, OutputSender},
    session::Session,
    state::{PingMode, RequestInFlight, State},
};

/// The server behind any transport.
#[derive(Debug)]
pub(crate) struct Fake {
    pub(crate) options: Options,
    /// Tracks every task that answers.
    pub(crate) tasks: TaskTracker,
    /// `true` if the answer stream of a cancelled request stays open.
    keeps_cancelled: bool,
    state: Mutex<State>,
    changes: watch::Sender<u64>,
    log: Option<File>,
}

impl Fake {
    /// Returns a server; opens its log and its state file.
    pub(crate) fn new(options: Options, keeps_cancelled: bool) -> std::io::Result<Arc<Self>> {
        let open = |path| File::options().create(true).append(true).open(path);
        let log = options.log.as_ref().map(open).transpose()?;
        let executions = Executions::open(options.state.as_deref())?;
        let n_extra_tools = if options.flip_at_start { executions.n_earlier_starts } else { 0 };
        let is_silent = options.silent_pings;
        let pings = if is_silent { PingMode::Never } else { PingMode::Answer };
        let state = State { executions, n_extra_tools, pings, ..State::default() };
        Ok(Arc::new(Self {
            options,
            tasks: TaskTracker::new(),
            keeps_cancelled,
            state: Mutex::new(state),
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

    /// Adds a session and returns its id.
    pub(crate) fn add_session(&self, session: Session) -> String {
        let id = uuid::Uuid::new_v4().to_string();
        self.state().sessions.insert(id.clone(), session);
        self.count("sessions_minted");
        id
    }

    /// Counts a message without processing it.
    pub(crate) fn count_method(&self, method: &str) {
        self.state().seen.count_method(method);
        self.changed();
    }

    /// Wakes the tasks that wait for a change.
    pub(crate) fn changed(&self) {
        self.changes.send_modify(|n_changes| *n_changes += 1);
    }

    /// Adds one to a counter.
    pub(crate) fn count(&self, name: &'static str) {
        *self.state().counts.entry(name).or_default() += 1;
        self.changed();
    }

    /// Waits until `is_reached` returns `true` for the state.
    pub(crate) async fn wait_until(&self, is_reached: impl Fn(&State) -> bool) {
        let mut changes = self.changes.subscribe();
        while !is_reached(&self.state()) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Receives a message; answers are written to `output`.
    ///
    /// All records are updated before this returns, in the order of arrival.
    pub(crate) fn receive(
        self: &Arc<Self>,
        message: &Message<'_>,
        session: Option<&str>,
        output: &OutputSender,
    ) {
        match (&message.method, message.id) {
            (Some(_), Some(_)) => drop(self.request(message, session, None, output)),
            (Some(method), None) => self.notification(message, method, session),
            (None, Some(id)) => self.response(message, id.get()),
            (None, None) => self.count_unreadable(),
        }
        self.changed();
    }

    /// Counts a line or body that is not a message.
    pub(crate) fn count_unreadable(&self) {
        self.state().seen.n_unreadable += 1;
        self.changed();
    }

    /// Starts to answer a request; returns the number of its call.
    pub(crate) fn request(
        self: &Arc<Self>,
        message: &Message<'_>,
        session: Option<&str>,
        client: Option<Arc<ModernClient>>,
        output: &OutputSender,
    ) -> Option<u64> {
        let (Some(method), Some(id)) = (message.method.as_deref(), message.id) else { return None };
        let id = id.get();
        // Modern clients do not know each other's ids, and share no session.
        let is_alone = client.as_ref().is_some_and(|client| client.is_http());
        let progress_token = message.progress_token();
        let call = {
            let mut state = self.state();
            state.seen.count_method(method);
            state.seen.ids.push(id.to_owned());
            state.seen.tokens.extend(progress_token.clone());
            let is_duplicate = !is_alone
                && state
                    .in_flight
                    .values()
                    .any(|other| other.id == id && other.session.as_deref() == session);
            if is_duplicate {
                state.seen.duplicates.push(id.to_owned());
                if self.options.drop_duplicate_ids {
                    state.orphans.push(output.clone());
                    return None;
                }
            }
            state.n_started += 1;
            let number = state.n_started;
            let cancelled = CancellationToken::new();
            let in_flight = RequestInFlight {
                session: session.map(str::to_owned),
                id: id.to_owned(),
                cancelled: cancelled.clone(),
                output: output.clone(),
            };
            state.in_flight.insert(number, in_flight);
            Call {
                fake: self.clone(),
                session: session.map(str::to_owned),
                client,
                id: id.to_owned(),
                progress_token,
                cancelled,
                output: output.clone(),
                number,
            }
        };
        let number = call.number;
        let method = method.to_owned();
        let params = message.params.map(|params| params.get().to_owned());
        self.tasks.spawn(methods::run(call, method, params));
        Some(number)
    }

    fn notification(&self, message: &Message<'_>, method: &str, session: Option<&str>) {
        self.state().seen.count_method(method);
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
                    orphans.push(call.output.clone());
                }
            }
            state.take_cancelled()
        };
        drop(dropped); // Outside the lock, which the drop of a call takes.
    }

    fn response(&self, message: &Message<'_>, id: &str) {
        let waiter = {
            let mut state = self.state();
            state.seen.count_method("(response)");
            state.asked.remove(id)
        };
        let answer = match (message.result, message.error) {
            (_, Some(error)) => format!(r#"{{"error":{}}}"#, error.get()),
            (Some(result), None) => format!(r#"{{"result":{}}}"#, result.get()),
            (None, None) => r#"{"result":null}"#.to_owned(),
        };
        if let Some(waiter) = waiter {
            waiter.send(answer).ok();
        } else {
            self.count("unasked");
        }
    }

    /// Asks the client; returns `{"result":…}` or `{"error":…}` in the client's notation.
    pub(crate) async fn ask(&self, output: &OutputSender, method: &str, params: &str) -> String {
        let (sender, answer) = oneshot::channel();
        let id = {
            let mut state = self.state();
            state.n_asked += 1;
            let id = format!("\"fake-{}\"", state.n_asked);
            state.asked.insert(id.clone(), sender);
            id
        };
        let method = message::quoted(method);
        output
            .send(Output::ServerMessage(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#
            )))
            .await;
        self.count("asked");
        answer.await.unwrap_or_default()
    }
}
