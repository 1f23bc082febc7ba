//! One connection attempt, and the end of the connection that it made.

use std::sync::{Arc, atomic::Ordering};

use tokio::time::Instant;

use super::{ConnectAttempt, ConnectionClaim, ServerContext, Supervisor};
use crate::{
    capacity_holder::Holder,
    config::defaults,
    connection::{ConnectError, Connection, ReconnectWindow, RequestFailure},
    error_report::chain,
    pool::{
        admission::ConnectionPermit,
        connection_lifecycle::{ConnectionLifecycle, LifecycleState},
        server_events::ServerEventKind,
        status::ServerFailure,
    },
    server_name::ServerName,
    single_flight::FlightWaiter,
    telemetry::message_id::message_id,
};

/// The outcome of a connection attempt, for all waiters.
pub(super) type ConnectOutcome = Result<Arc<NewConnection>, ConnectRefusal>;

/// A new connection. It stays in use until all waiters have seen it.
#[derive(Debug)]
pub(super) struct NewConnection {
    pub(super) connection: Arc<Connection>,
    _held: Option<ConnectionClaim>,
}

/// The reason for the lack of a connection.
#[derive(Clone, Debug)]
pub(super) enum ConnectRefusal {
    /// The attempt with this number failed.
    Dial { attempt: u64, error: Arc<ConnectError> },
    /// The attempt was not started because no request waits for it.
    Abandoned,
    /// The attempt was not started, or was cancelled, because the server is closing.
    Closing,
}

/// The facts about earlier connections.
#[derive(Debug, Default)]
pub(super) struct ConnectionHistory {
    /// A connection existed before.
    pub(super) was_connected: bool,
    /// The fingerprint of the last connection's tools.
    tools: Option<u64>,
    /// Clients got an answer without this unavailable server.
    pub(super) is_omitted: bool,
    pub(super) failure: Option<ServerFailure>,
    /// The log says that the server needs a login, since its last connection.
    is_login_logged: bool,
    /// The last lines that the last child wrote to standard error, for operators.
    pub(super) error_lines: Vec<String>,
}

impl Supervisor {
    /// Starts to connect unless there is a connection or an attempt already.
    pub(in crate::pool) fn start_connecting(self: &Arc<Self>) {
        let supervisor = Arc::clone(self);
        self.context.dialer.tasks().spawn(async move {
            let _reported_by_the_dial = supervisor.lease(Holder::SERVICE, None).await;
        });
    }

    pub(super) fn join_dial(self: &Arc<Self>) -> FlightWaiter<ConnectOutcome> {
        let supervisor = Arc::clone(self);
        let ready = || {
            let (connection, claim) = self.claim()?;
            Some(Ok(Arc::new(NewConnection { connection, _held: Some(claim) })))
        };
        self.dials.join(self.context.dialer.tasks(), ready, || async move {
            let attempt = ConnectAttempt { since: Instant::now(), waits_for: None };
            supervisor.state().attempt = Some(attempt);
            let outcome = supervisor.dial().await;
            supervisor.state().attempt = None;
            outcome
        })
    }

    async fn dial(self: &Arc<Self>) -> ConnectOutcome {
        if let Some(last) = self.live.load_full() {
            // The watcher of the connection may not have run yet.
            self.note_lost(&last);
            // A server has one process at a time: wait until the last one has ended.
            if last.is_child() {
                last.skip_drain();
                last.down().await;
            }
        }
        self.begin_with_permits().await?;
        let generation = self.context.generation.fetch_add(1, Ordering::Relaxed) + 1;
        let attempt = self.context.attempts.fetch_add(1, Ordering::Relaxed) + 1;
        let closing = self.closing.child_token();
        let ServerContext { name, declared, dialer, .. } = &self.context;
        tracing::debug!(mcp_server = %name, generation, attempt, "connecting to server `{name}`");
        let absent = |error: &ConnectError| {
            self.state().history.failure = Some(ServerFailure::of_connect(error));
            self.is_absent.send_replace(true);
        };
        let window = {
            let state = self.state();
            let down_since = state.life.outage().map_or_else(Instant::now, |outage| outage.since);
            ReconnectWindow {
                ends: down_since + defaults::ABSENCE_TIMEOUT,
                was_connected: state.history.was_connected,
                on_absence: &absent,
            }
        };
        let owner = self.owner.clone();
        match dialer.dial(name, declared, generation, owner, closing, window).await {
            Ok(connection) => Ok(Arc::new(self.connected(connection))),
            Err(error) => {
                let error = self.not_connected(generation, error);
                Err(ConnectRefusal::Dial { attempt, error })
            }
        }
    }

    /// Takes the permits that a connection needs, unless it has them, and begins to connect.
    async fn begin_with_permits(self: &Arc<Self>) -> Result<(), ConnectRefusal> {
        let mut taken = Vec::new();
        while !self.begin(&mut taken)? {
            taken = match self.acquire_permits().await {
                Some(permits) => permits,
                None if self.closing.is_cancelled() => return Err(ConnectRefusal::Closing),
                None => return Err(ConnectRefusal::Abandoned),
            };
        }
        Ok(())
    }

    /// Begins to connect with the permits in `taken`, or with those of the last connection. Returns
    /// `false` if there are none. One lock: the last connection may return its permits at any time.
    fn begin(&self, taken: &mut Vec<ConnectionPermit>) -> Result<bool, ConnectRefusal> {
        let mut state = self.state();
        if state.is_closing {
            return Err(ConnectRefusal::Closing);
        }
        state.permits.append(taken);
        if state.permits.is_empty() {
            return Ok(false);
        }
        state.life.renew();
        self.transition(&mut state, |life| life.dial(Instant::now()));
        Ok(true)
    }

    fn connected(self: &Arc<Self>, connection: Arc<Connection>) -> NewConnection {
        let generation = connection.generation();
        let was_absent = self.is_absent.send_replace(false);
        let mut state = self.state();
        if std::mem::take(&mut state.history.is_login_logged) || was_absent {
            // The server was late, or waited for a login, and no connection was lost.
            state.history.failure = None;
        }
        let has_failed = state.life.outage().is_some_and(|outage| outage.has_failed);
        let is_closing = state.is_closing;
        if !is_closing {
            self.transition(&mut state, |life| life.connected(generation));
        }
        state.reconnects.n_failed = 0;
        if state.history.note_connection(connection.tools_fingerprint(), has_failed) {
            connection.announce_lists_changed();
        }
        self.desired().connected(generation);
        self.live.store(Some(Arc::clone(&connection)));
        drop(state);
        self.context.admission.note_arrival(self.name());
        let version = connection.profile().map(|profile| profile.protocol_version.as_str());
        let name = self.name();
        tracing::info!(
            mcp_server = %name, generation, child_pid = connection.pid(),
            protocol_version = version, "server `{name}` connected"
        );
        let process = connection.pid().map(|pid| format!("pid {pid}")).unwrap_or_default();
        self.context.events.record(ServerEventKind::Connected, &process);
        let tasks = self.context.dialer.tasks();
        tasks.spawn(Arc::clone(self).record_end(Arc::clone(&connection)));
        let supervisor = Arc::clone(self);
        tasks.spawn(async move { supervisor.reconcile().await });
        // The attempt itself holds the first lease.
        let supervisor = Arc::clone(self);
        let _held = (!is_closing).then(|| ConnectionClaim { supervisor, generation });
        NewConnection { connection, _held }
    }

    fn not_connected(self: &Arc<Self>, generation: u64, error: ConnectError) -> Arc<ConnectError> {
        // Take the number back, unless another connection has the next one already.
        let _taken = self.context.generation.compare_exchange(
            generation,
            generation - 1,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        let (name, text, hint) = (self.name(), chain(&error), error.hint());
        let permits = {
            let mut state = self.state();
            if !state.is_closing {
                // The breaker does not count it, so each call comes here until the login.
                let (needs_login, cause) = (error.is_login_required(), error.cause());
                if needs_login && state.history.is_login_logged {
                    tracing::debug!(mcp_server = %name, "server `{name}` still needs a login");
                } else {
                    tracing::warn!(
                        mcp_server = %name, error = text, %hint, message_id = message_id(error.code()),
                        "connection to server `{name}` failed: {cause}. {hint}"
                    );
                }
                state.history.is_login_logged |= needs_login;
                self.transition(&mut state, |life| life.fail(Instant::now()));
            }
            let failure = ServerFailure::of_connect(&error);
            self.context.events.record(ServerEventKind::ConnectFailed, &failure.cause);
            state.history.failure = Some(failure);
            self.schedule_reconnect(&mut state);
            std::mem::take(&mut state.permits)
        };
        drop(permits);
        self.is_absent.send_replace(false);
        Arc::new(error)
    }

    /// Waits for the end of `connection` and records it.
    async fn record_end(self: Arc<Self>, connection: Arc<Connection>) {
        let since = Instant::now();
        connection.wait_until_gone().await;
        self.context.dialer.durations().connections.observe(since.elapsed());
        if since.elapsed() >= defaults::STABLE_AFTER {
            self.state().reconnects.backoff = None;
        }
        self.note_lost(&connection);
        // Running requests may finish within the longest request timeout. Then the link closes.
        connection.drain_and_close(connection.longest_timeout()).await;
        connection.down().await;
        let permits = {
            let mut state = self.state();
            // The exit status of a process is known only now.
            state.history.note_end(&connection, &self.context.name);
            if let Some(reason) = connection.reason().filter(|reason| !reason.is_by_metamcp()) {
                self.context.events.record(ServerEventKind::Ended, &reason.cause());
            }
            if !self.is_current(&connection) {
                return;
            }
            self.live.store(None);
            // The next attempt uses them.
            let is_connecting = matches!(state.life, ConnectionLifecycle::Connecting { .. });
            if is_connecting { Vec::new() } else { std::mem::take(&mut state.permits) }
        };
        drop(permits);
    }

    /// Records that `connection` takes no more requests, unless that is known or the connection has
    /// been replaced.
    pub(super) fn note_lost(self: &Arc<Self>, connection: &Connection) {
        if connection.is_live() {
            return;
        }
        let mut state = self.state();
        if !self.is_current(connection) {
            return;
        }
        if !matches!(state.life.state(), LifecycleState::Idle | LifecycleState::Active) {
            return;
        }
        // Unanswered pings count as a failed use of the connection.
        let is_fault = matches!(connection.reason(), Some(RequestFailure::Unresponsive));
        self.transition(&mut state, |life| life.lose(is_fault, Instant::now()));
        state.history.note_end(connection, &self.context.name);
        self.context.losses.fetch_add(1, Ordering::Relaxed);
        self.schedule_reconnect(&mut state);
    }

    fn is_current(&self, connection: &Connection) -> bool {
        let live = self.live.load();
        live.as_ref().is_some_and(|live| live.generation() == connection.generation())
    }
}

impl ConnectionHistory {
    /// Records a new connection with the fingerprint `tools`, after a failure or not. Returns
    /// whether clients must read the lists again.
    ///
    /// An upstream's tools are known. A restarted child may have changed, unless metamcp itself
    /// closed it.
    fn note_connection(&mut self, tools: Option<u64>, has_failed: bool) -> bool {
        let is_again = std::mem::replace(&mut self.was_connected, true);
        let has_changed = match (self.tools, tools) {
            (Some(before), Some(now)) => before != now,
            _ => is_again && has_failed,
        };
        self.tools = tools.or(self.tools);
        std::mem::take(&mut self.is_omitted) || has_changed
    }

    /// Records why a connection has ended, if that is known.
    fn note_end(&mut self, connection: &Connection, server: &ServerName) {
        self.error_lines = connection.error_lines();
        match connection.reason() {
            // metamcp closed it.
            None => {}
            Some(reason) if reason.is_by_metamcp() => {}
            Some(reason) => self.failure = Some(ServerFailure::of_end(reason, server)),
        }
    }
}
