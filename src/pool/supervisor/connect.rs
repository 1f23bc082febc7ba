//! One connection attempt, and the end of the connection that it made.

use std::sync::{Arc, atomic::Ordering};

use tokio::time::Instant;

use super::{ConnectionClaim, KeeperState, ServerContext, Supervisor};
use crate::{
    capacity_holder::Holder,
    config::defaults,
    connection::{ConnectError, Connection, ReconnectWindow, RequestFailure},
    error_report::chain,
    pool::{
        admission::ConnectionPermit,
        connection_lifecycle::{ConnectionLifecycle, LifecycleState},
    },
    single_flight::FlightWaiter,
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
    /// The attempt was not started because no request waits for it any more.
    Deserted,
    /// The attempt was not started, or was cancelled, because the server is closing.
    Closing,
}

impl Supervisor {
    /// Starts to connect unless there is a connection or an attempt already.
    pub(in crate::pool) fn start_connecting(self: &Arc<Self>) {
        let keeper = Arc::clone(self);
        self.origin.dialer.tasks().spawn(async move {
            let _reported_by_the_dial = keeper.lease(Holder::SERVICE, None).await;
        });
    }

    pub(super) fn join_dial(self: &Arc<Self>) -> FlightWaiter<ConnectOutcome> {
        let keeper = Arc::clone(self);
        let ready = || {
            let (connection, claim) = self.claim()?;
            Some(Ok(Arc::new(NewConnection { connection, _held: Some(claim) })))
        };
        self.dials.join(self.origin.dialer.tasks(), ready, || async move {
            keeper.state().dialled_since = Some(Instant::now());
            let outcome = keeper.dial().await;
            keeper.state().dialled_since = None;
            outcome
        })
    }

    async fn dial(self: &Arc<Self>) -> ConnectOutcome {
        if let Some(last) = self.live.load_full() {
            // The watcher of the connection may not have run yet.
            self.lost(&last);
            // A server has one process at a time: wait until the last one has ended.
            if last.is_child() {
                last.skip_drain();
                last.down().await;
            }
        }
        self.be_seated().await?;
        let generation = self.origin.generation.fetch_add(1, Ordering::Relaxed) + 1;
        let attempt = self.origin.attempts.fetch_add(1, Ordering::Relaxed) + 1;
        tracing::debug!(mcp_server = %self.name(), generation, attempt, "dialling");
        let closing = self.closing.child_token();
        let ServerContext { name, declared, dialer, .. } = &self.origin;
        let absent = |error: &ConnectError| {
            self.state().last_error = Some(chain(error));
            self.is_absent.send_replace(true);
        };
        let patience = {
            let mut state = self.state();
            let down_since = *state.down_since.get_or_insert_with(Instant::now);
            ReconnectWindow::until(
                down_since + defaults::CONNECT_PATIENCE,
                state.was_connected,
                &absent,
            )
        };
        let party = self.party.clone();
        match dialer.dial(name, declared, generation, party, closing, patience).await {
            Ok(connection) => Ok(Arc::new(self.connected(connection))),
            Err(error) => {
                let error = self.not_connected(generation, error);
                Err(ConnectRefusal::Dial { attempt, error })
            }
        }
    }

    /// Takes the permits that a connection needs, unless it has them, and begins to connect.
    async fn be_seated(self: &Arc<Self>) -> Result<(), ConnectRefusal> {
        let mut taken = Vec::new();
        while !self.begin(&mut taken)? {
            taken = match self.acquire_permits().await {
                Some(seats) => seats,
                None if self.closing.is_cancelled() => return Err(ConnectRefusal::Closing),
                None => return Err(ConnectRefusal::Deserted),
            };
        }
        Ok(())
    }

    /// Begins to connect with the permits in `taken`, or with those of the last connection. Returns
    /// `false` if there are none. One lock, as the last connection may return its permits anytime.
    fn begin(&self, taken: &mut Vec<ConnectionPermit>) -> Result<bool, ConnectRefusal> {
        let mut state = self.state();
        if state.is_closing {
            return Err(ConnectRefusal::Closing);
        }
        state.seats.append(taken);
        if state.seats.is_empty() {
            return Ok(false);
        }
        state.put_away = None;
        if state.life.state() == LifecycleState::Closed {
            state.life = ConnectionLifecycle::default();
        }
        self.note(&mut state, ConnectionLifecycle::dial);
        Ok(true)
    }

    fn connected(self: &Arc<Self>, connection: Arc<Connection>) -> NewConnection {
        let generation = connection.generation();
        let was_absent = self.is_absent.send_replace(false);
        let mut state = self.state();
        if was_absent {
            // The server was late, and no connection was lost.
            state.last_error = None;
        }
        let is_closing = state.is_closing;
        if !is_closing {
            self.note(&mut state, ConnectionLifecycle::connected);
        }
        state.generation = generation;
        state.down_since = None;
        state.n_redials_failed = 0;
        // Clients that know other lists must read them again. An upstream's lists are known. A
        // restarted child may have changed, unless metamcp itself closed it.
        let tools = connection.tools_fingerprint();
        let is_again = std::mem::replace(&mut state.was_connected, true);
        let has_changed = match (state.tools, tools) {
            (Some(before), Some(now)) => before != now,
            _ => is_again && state.has_failed_since,
        };
        state.has_failed_since = false;
        state.tools = tools.or(state.tools);
        if std::mem::take(&mut state.is_missed) || has_changed {
            connection.announce_lists_changed();
        }
        self.standing().connected(generation);
        self.live.store(Some(Arc::clone(&connection)));
        drop(state);
        self.origin.roster.note_arrival(self.name());
        let version = connection.profile().map(|profile| profile.protocol_version.as_str());
        tracing::info!(
            mcp_server = %self.name(), generation, child_pid = connection.pid(),
            protocol_version = version, "server connected"
        );
        let tasks = self.origin.dialer.tasks();
        tasks.spawn(Arc::clone(self).watch(Arc::clone(&connection)));
        let keeper = Arc::clone(self);
        tasks.spawn(async move { keeper.reconcile().await });
        let held = (!is_closing).then(|| ConnectionClaim::of_dial(self, generation));
        NewConnection { connection, _held: held }
    }

    fn not_connected(self: &Arc<Self>, generation: u64, error: ConnectError) -> Arc<ConnectError> {
        // Take the number back, unless another connection has the next one already.
        let _taken = self.origin.generation.compare_exchange(
            generation,
            generation - 1,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        let text = chain(&error);
        let seats = {
            let mut state = self.state();
            if !state.is_closing {
                tracing::warn!(
                    mcp_server = %self.name(), error = text, hint = %error.hint(),
                    "server not connected"
                );
                self.note(&mut state, ConnectionLifecycle::fail);
            }
            state.has_failed_since = true;
            state.last_error = Some(text);
            self.schedule_reconnect(&mut state);
            std::mem::take(&mut state.seats)
        };
        drop(seats);
        self.is_absent.send_replace(false);
        Arc::new(error)
    }

    /// Waits for the end of `connection` and records it.
    async fn watch(self: Arc<Self>, connection: Arc<Connection>) {
        let since = Instant::now();
        connection.wait_until_gone().await;
        if since.elapsed() >= defaults::STABLE_AFTER {
            self.state().backoff = None;
        }
        self.lost(&connection);
        // Running requests may finish within the longest request timeout. Then the link closes.
        connection.drain_and_close(connection.longest_timeout()).await;
        connection.down().await;
        let seats = {
            let mut state = self.state();
            // The exit status of a process is known only now.
            state.note_end(&connection);
            if !self.is_current(&connection) {
                return;
            }
            self.live.store(None);
            match state.life.state() {
                // The next attempt uses them.
                LifecycleState::Connecting => Vec::new(),
                LifecycleState::Idle
                | LifecycleState::Active
                | LifecycleState::Failed
                | LifecycleState::Closed => std::mem::take(&mut state.seats),
            }
        };
        drop(seats);
    }

    /// Records that `connection` takes no more requests, unless that is known or the connection has
    /// been replaced.
    pub(super) fn lost(self: &Arc<Self>, connection: &Connection) {
        if connection.is_live() {
            return;
        }
        let mut state = self.state();
        if !self.is_current(connection) {
            return;
        }
        match state.life.state() {
            LifecycleState::Active => {
                self.note(&mut state, ConnectionLifecycle::fail);
            }
            // Unanswered pings count as a failed use of the connection.
            LifecycleState::Idle
                if matches!(connection.reason(), Some(RequestFailure::Unresponsive)) =>
            {
                self.note(&mut state, ConnectionLifecycle::lease);
                self.note(&mut state, ConnectionLifecycle::fail);
            }
            LifecycleState::Idle => {
                self.note(&mut state, ConnectionLifecycle::close);
            }
            LifecycleState::Connecting | LifecycleState::Failed | LifecycleState::Closed => return,
        }
        state.note_end(connection);
        self.origin.losses.fetch_add(1, Ordering::Relaxed);
        state.has_failed_since = true;
        state.down_since.get_or_insert_with(Instant::now);
        self.schedule_reconnect(&mut state);
    }

    fn is_current(&self, connection: &Connection) -> bool {
        let live = self.live.load();
        live.as_ref().is_some_and(|live| live.generation() == connection.generation())
    }
}

impl KeeperState {
    /// Records why a connection has ended, if that is known.
    fn note_end(&mut self, connection: &Connection) {
        self.error_lines = connection.error_lines();
        match connection.reason() {
            // metamcp closed it.
            None | Some(RequestFailure::Closed) => {}
            Some(reason) => self.last_error = Some(reason.to_string()),
        }
    }
}
