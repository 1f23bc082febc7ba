//! Keeps one connection: dials it once for all who wait, watches it, dials it again.
//!
//! ```text
//!  ten requests ──▶ connection() ──▶ live? ───────────▶ the connection
//!                                     │ no
//!                                     ▼
//!                         dial under way? ──no──▶ start one
//!                                     │ yes         │
//!                                     ▼             ▼
//!                              wait for its outcome, all ten
//! ```
//!
//! A client that leaves does not take the dial down for the others.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{slot::SlotError, wants::Standing};
use crate::{
    backoff::Backoff,
    config::{Server, Start, defaults},
    connection::{Connection, DialError, Dialer, Party},
    name::ServerName,
    report::chain,
    single_flight::{Flight, SingleFlight},
};

mod settle;

type Outcome = Result<Arc<Connection>, Arc<DialError>>;

/// What every keeper of one server needs.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) name: ServerName,
    pub(super) declared: Arc<Server>,
    pub(super) dialer: Dialer,
    /// How many times the server was connected.
    pub(super) generation: Arc<AtomicU64>,
    /// Ends every connection of the server, and every dial.
    pub(super) closing: CancellationToken,
}

/// Keeps one connection to a server.
#[derive(Debug)]
pub(super) struct Keeper {
    origin: Origin,
    party: Party,
    live: ArcSwapOption<Connection>,
    dials: Arc<SingleFlight<Outcome>>,
    state: Mutex<KeeperState>,
    standing: Mutex<Standing>,
    settles: Arc<SingleFlight<()>>,
    /// Ends the connection of this keeper, and its dial.
    closing: CancellationToken,
}

#[derive(Debug, Default)]
struct KeeperState {
    last_error: Option<String>,
    has_failed: bool,
    is_redialling: bool,
    /// How many dials that nobody asked for have failed since the last one that did not.
    n_redials_failed: u32,
    is_closing: bool,
    /// How long to wait before the next dial that nobody asked for.
    backoff: Option<Backoff>,
    /// Since when there has been no connection although one was wanted, or had been there.
    down_since: Option<Instant>,
    /// There was a connection before.
    was_connected: bool,
    /// What the tools of the last connection were.
    tools: Option<u64>,
    /// Clients were told something without the server, which was not there.
    is_missed: bool,
}

impl Keeper {
    /// Returns a keeper of a connection for `party`; nothing is connected yet.
    pub(super) fn new(origin: Origin, party: Party) -> Arc<Self> {
        let closing = origin.closing.child_token();
        Arc::new(Self {
            origin,
            party,
            live: ArcSwapOption::empty(),
            dials: SingleFlight::new(),
            state: Mutex::default(),
            standing: Mutex::default(),
            settles: SingleFlight::new(),
            closing,
        })
    }

    fn name(&self) -> &ServerName {
        &self.origin.name
    }

    /// Returns the connection if there is one that takes requests.
    pub(super) fn live(&self) -> Option<Arc<Connection>> {
        self.live.load_full().filter(|connection| connection.is_live())
    }

    /// Returns the connection, dialling first where there is none. However many ask at a time,
    /// the server is dialled once.
    ///
    /// # Errors
    ///
    /// [`SlotError`] when that dial fails, for everybody who waited for it.
    ///
    /// # Cancel safety
    ///
    /// Safe: the dial goes on for the others.
    pub(super) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, SlotError> {
        if let Some(connection) = self.live() {
            return Ok(connection);
        }
        let closing = || SlotError::Closing(self.name().clone());
        if self.state().is_closing {
            return Err(closing());
        }
        // A flight without an outcome was taken down by a stop.
        self.join_dial().outcome().await.ok_or_else(closing)?.map_err(SlotError::Dial)
    }

    /// Starts a dial unless there is a connection or a dial already.
    pub(super) fn dial_soon(self: &Arc<Self>) {
        let _not_waited_for = self.join_dial();
    }

    fn join_dial(self: &Arc<Self>) -> Flight<Outcome> {
        let keeper = Arc::clone(self);
        let ready = || self.live().map(Ok);
        self.dials.join(self.origin.dialer.tasks(), ready, || async move { keeper.dial().await })
    }

    async fn dial(self: &Arc<Self>) -> Outcome {
        // A server has one process at a time: the last one is seen off first.
        if let Some(last) = self.live.load_full()
            && last.is_child()
        {
            last.down().await;
        }
        let generation = self.origin.generation.fetch_add(1, Ordering::Relaxed) + 1;
        tracing::debug!(mcp_server = %self.name(), generation, "dialling");
        let closing = self.closing.child_token();
        let Origin { name, declared, dialer, .. } = &self.origin;
        let down_since = *self.state().down_since.get_or_insert_with(Instant::now);
        let patience_ends = down_since + defaults::CONNECT_PATIENCE;
        let party = self.party.clone();
        let dialled = dialer.dial(name, declared, generation, party, closing, patience_ends).await;
        let mut state = self.state();
        match dialled {
            Ok(connection) => {
                state.has_failed = false;
                state.n_redials_failed = 0;
                state.down_since = None;
                // Clients that know other lists are told to read them again. What an upstream has
                // is known; a child that is there again may have changed.
                let tools = connection.tools_fingerprint();
                let is_again = std::mem::replace(&mut state.was_connected, true);
                let has_changed = match (state.tools, tools) {
                    (Some(before), Some(now)) => before != now,
                    _ => is_again,
                };
                state.tools = tools.or(state.tools);
                if std::mem::take(&mut state.is_missed) || has_changed {
                    connection.tell_changed();
                }
                self.standing().connected(generation);
                self.live.store(Some(Arc::clone(&connection)));
                let version = connection.profile().map(|profile| profile.protocol_version.as_str());
                tracing::info!(
                    mcp_server = %self.name(), generation, child_pid = connection.pid(),
                    protocol_version = version, "server connected"
                );
                let watcher = Arc::clone(self).watch(Arc::clone(&connection));
                dialer.tasks().spawn(watcher);
                let keeper = Arc::clone(self);
                dialer.tasks().spawn(async move { keeper.settle().await });
                Ok(connection)
            }
            Err(error) => {
                // Taken back, unless another connection has the next number already.
                let generations = &self.origin.generation;
                let _taken = generations.compare_exchange(
                    generation,
                    generation - 1,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                let text = chain(&error);
                if !state.is_closing {
                    tracing::warn!(
                        mcp_server = %self.name(), error = text, hint = %error.hint(), "server not connected"
                    );
                }
                state.has_failed = true;
                state.last_error = Some(text);
                self.redial_later(&mut state);
                Err(Arc::new(error))
            }
        }
    }

    /// Waits for the end of `connection` and takes note of it.
    async fn watch(self: Arc<Self>, connection: Arc<Connection>) {
        let since = Instant::now();
        connection.gone().await;
        if since.elapsed() >= defaults::STABLE_AFTER {
            self.state().backoff = None;
        }
        // A child must be gone before there is another one; an upstream's last session may drain
        // while there is a new one.
        let is_child = connection.is_child();
        if !is_child {
            self.lost(&connection);
        }
        // What still runs may finish, for as long as a request may take; then the link goes.
        connection.drain_and_close(connection.longest()).await;
        connection.down().await;
        if is_child {
            self.lost(&connection);
        }
        let _unchanged_meanwhile = self.state();
        if self.is_current(&connection) {
            self.live.store(None);
        }
    }

    /// Takes note that `connection` takes no more requests, unless there is another one already.
    fn lost(self: &Arc<Self>, connection: &Connection) {
        let mut state = self.state();
        if let Some(reason) = connection.reason() {
            state.last_error = Some(reason.to_string());
        }
        if self.is_current(connection) {
            state.has_failed = true;
            state.down_since.get_or_insert_with(Instant::now);
            self.redial_later(&mut state);
        }
    }

    fn is_current(&self, connection: &Connection) -> bool {
        let live = self.live.load();
        live.as_ref().is_some_and(|live| live.generation() == connection.generation())
    }

    /// Has a server that is to be there always dialled again in the background.
    fn redial_later(self: &Arc<Self>, state: &mut KeeperState) {
        let has_more = !self.is_enough(state.n_redials_failed);
        if self.origin.declared.start != Start::Lazy
            && !state.is_redialling
            && !state.is_closing
            && has_more
        {
            state.is_redialling = true;
            self.origin.dialer.tasks().spawn(Arc::clone(self).redial());
        }
    }

    /// Tells whether no dial is to be made any more that nobody asks for.
    fn is_enough(&self, n_redials_failed: u32) -> bool {
        self.origin.declared.health.max_reconnects.is_some_and(|max| n_redials_failed >= max)
    }

    /// Dials again until it succeeds or is enough, with growing pauses.
    async fn redial(self: Arc<Self>) {
        loop {
            let pause = self.pause();
            tokio::select! {
                () = self.closing.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            let outcome = self.connection().await;
            // Decided under the lock, so that an end which comes at this moment is not missed.
            let mut state = self.state();
            if matches!(outcome, Err(SlotError::Closing(_))) || self.live().is_some() {
                state.is_redialling = false;
                return;
            }
            state.n_redials_failed += 1;
            if self.is_enough(state.n_redials_failed) {
                state.is_redialling = false;
                tracing::warn!(
                    mcp_server = %self.name(), n_attempts = state.n_redials_failed,
                    "server is left alone until a request asks for it"
                );
                return;
            }
        }
    }

    /// Returns how long to wait before the next dial that nobody asked for.
    fn pause(&self) -> Duration {
        let mut state = self.state();
        state
            .backoff
            .get_or_insert_with(|| Backoff::new(defaults::RECONNECT_PAUSE))
            .pause(fastrand::f64())
    }

    /// Lets running requests finish for at most `patience` and closes the connection for good.
    ///
    /// # Cancel safety
    ///
    /// Dropped halfway, it takes no requests but keeps its connection until the runtime ends.
    pub(super) async fn close(&self, patience: Duration) {
        self.state().is_closing = true;
        if let Some(connection) = self.live.load_full() {
            connection.drain_and_close(patience).await;
        }
        self.closing.cancel();
    }

    /// Notes that clients were told something without the server, so that they are told to ask
    /// again once it is there.
    pub(super) fn missed(&self) {
        let mut state = self.state();
        match self.live() {
            Some(connection) => connection.tell_changed(),
            None => state.is_missed = true,
        }
    }

    /// Tells whether a dial is under way.
    pub(super) fn is_dialling(&self) -> bool {
        self.dials.is_flying()
    }

    /// Returns the connection, also while it finishes what runs on it.
    pub(super) fn last(&self) -> Option<Arc<Connection>> {
        self.live.load_full()
    }

    /// Returns whether the last attempt failed, and what went wrong last.
    pub(super) fn trouble(&self) -> (bool, Option<String>) {
        let state = self.state();
        (state.has_failed, state.last_error.clone())
    }

    fn state(&self) -> MutexGuard<'_, KeeperState> {
        // Held for statements on plain data, never across an await.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod redial_tests;
