//! One server's place in the pool: its connection, and the single dial that makes it.
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

use super::{SlotStatus, State};
use crate::{
    backoff::Backoff,
    config::{Server, Start, defaults},
    connection::{Connection, DialError, Dialer},
    name::ServerName,
    report::chain,
    single_flight::{Flight, SingleFlight},
};

type Outcome = Result<Arc<Connection>, Arc<DialError>>;

/// One server's place in the pool.
#[derive(Debug)]
pub struct Slot {
    name: ServerName,
    declared: Arc<Server>,
    dialer: Dialer,
    live: ArcSwapOption<Connection>,
    dials: Arc<SingleFlight<Outcome>>,
    state: Mutex<SlotState>,
    generation: AtomicU64,
    /// Ends every connection of this slot, and every dial.
    closing: CancellationToken,
}

#[derive(Debug, Default)]
struct SlotState {
    last_error: Option<String>,
    has_failed: bool,
    is_redialling: bool,
    is_closing: bool,
    /// How long to wait before the next dial that nobody asked for.
    backoff: Option<Backoff>,
    /// Since when there has been no connection although one was wanted, or had been there.
    down_since: Option<Instant>,
}

/// Why a slot has no connection to offer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SlotError {
    /// The dial failed.
    #[error(transparent)]
    Dial(Arc<DialError>),
    /// The server is being closed: stop, or a reload that removed it.
    #[error("server `{0}` is being closed")]
    Closing(ServerName),
}

impl Slot {
    pub(super) fn new(
        dialer: Dialer,
        name: ServerName,
        declared: Arc<Server>,
        generation: u64,
        closing: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            declared,
            dialer,
            live: ArcSwapOption::empty(),
            dials: SingleFlight::new(),
            state: Mutex::default(),
            generation: AtomicU64::new(generation),
            closing,
        })
    }

    /// Returns the server's name.
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// Returns how many times the server was connected.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Returns what the configuration says about the server.
    pub fn declared(&self) -> &Server {
        &self.declared
    }

    /// Returns the connection if there is one that takes requests.
    pub fn live(&self) -> Option<Arc<Connection>> {
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
    pub async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, SlotError> {
        if let Some(connection) = self.live() {
            return Ok(connection);
        }
        let closing = || SlotError::Closing(self.name.clone());
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
        let slot = Arc::clone(self);
        let ready = || self.live().map(Ok);
        self.dials.join(self.dialer.tasks(), ready, || async move { slot.dial().await })
    }

    async fn dial(self: &Arc<Self>) -> Outcome {
        // A server has one process at a time: the last one is seen off first.
        if let Some(last) = self.live.load_full()
            && last.pid().is_some()
        {
            last.down().await;
        }
        let generation = self.generation() + 1;
        tracing::debug!(mcp_server = %self.name, generation, "dialling");
        let closing = self.closing.child_token();
        let down_since = *self.state().down_since.get_or_insert_with(Instant::now);
        let patience_ends = down_since + defaults::CONNECT_PATIENCE;
        let dialled =
            self.dialer.dial(&self.name, &self.declared, generation, closing, patience_ends).await;
        let mut state = self.state();
        match dialled {
            Ok(connection) => {
                self.generation.store(generation, Ordering::Relaxed);
                state.has_failed = false;
                state.down_since = None;
                self.live.store(Some(Arc::clone(&connection)));
                let version = connection.profile().map(|profile| profile.protocol_version.as_str());
                tracing::info!(
                    mcp_server = %self.name, generation, child_pid = connection.pid(),
                    protocol_version = version, "server connected"
                );
                let watcher = Arc::clone(self).watch(Arc::clone(&connection));
                self.dialer.tasks().spawn(watcher);
                Ok(connection)
            }
            Err(error) => {
                let text = chain(&error);
                if !state.is_closing {
                    tracing::warn!(
                        mcp_server = %self.name, error = text, hint = error.hint(), "server not connected"
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
        let is_child = connection.pid().is_some();
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
    fn redial_later(self: &Arc<Self>, state: &mut SlotState) {
        if self.declared.start != Start::Lazy && !state.is_redialling && !state.is_closing {
            state.is_redialling = true;
            self.dialer.tasks().spawn(Arc::clone(self).redial());
        }
    }

    /// Dials again until it succeeds, with growing pauses.
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
        }
    }

    /// Returns how long to wait before the next dial that nobody asked for.
    fn pause(&self) -> Duration {
        let mut state = self.state();
        state.backoff.get_or_insert_with(|| Backoff::new(defaults::RECONNECT_PAUSE)).pause()
    }

    /// Lets running requests finish for at most `patience` and closes the slot for good.
    ///
    /// # Cancel safety
    ///
    /// Dropped halfway, the slot takes no requests but keeps its connection until the runtime ends.
    pub(super) async fn close(&self, patience: Duration) {
        self.state().is_closing = true;
        if let Some(connection) = self.live.load_full() {
            connection.drain_and_close(patience).await;
        }
        self.closing.cancel();
    }

    /// Returns the state for status output.
    pub fn status(&self) -> SlotStatus {
        let connection = self.live.load_full();
        let state = self.state();
        let live = connection.as_ref().filter(|connection| connection.is_live());
        let traffic = connection.as_ref().map(|found| found.traffic()).unwrap_or_default();
        SlotStatus {
            name: self.name.clone(),
            state: match live {
                _ if state.is_closing => State::Closed,
                Some(_) if traffic.in_flight > 0 => State::Active,
                Some(_) => State::Idle,
                None if self.dials.is_flying() => State::Connecting,
                None if state.has_failed => State::Failed,
                None => State::Idle,
            },
            transport: live
                .map_or_else(|| self.declared.transport.name(), |found| found.transport()),
            generation: self.generation(),
            pid: live.and_then(|connection| connection.pid()),
            protocol_version: live
                .and_then(|connection| connection.profile())
                .map(|profile| profile.protocol_version.clone()),
            last_error: state.last_error.clone(),
            traffic,
            start: self.declared.start,
        }
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        // Held for statements on plain data, never across an await.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
