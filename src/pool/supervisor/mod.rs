//! Keeps one connection: dials it once for all who wait, watches it, puts it away, dials it again.
//!
//! ```text
//!  ten requests ──▶ lease() ──▶ live? ──────────────▶ a lease of the connection, each
//!                                │ no                          ▲
//!                                ▼                             │
//!                    dial under way? ──no──▶ start one ──▶ a seat ──▶ the dial
//!                                │ yes                         │
//!                                ▼                             ▼
//!                                   wait for its outcome, all ten
//! ```
//!
//! A client that leaves does not take the dial down for the others. One that nobody waits for any
//! more does not wait for a seat.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    admission::{ConnectionPermit, Evictable, PermitAdmission},
    breaker_gate::BreakerGate,
    desired_state::DesiredState,
    idle::{EvictionCost, IdleConnection, IdleLimit},
    lifecycle::{ConnectionLifecycle, IllegalTransition, LifecycleState},
};
use crate::{
    backoff::Backoff,
    config::{LifecycleConfig, ServerConfig, defaults},
    connection::{Connection, ConnectionOwner, Dialer, ListRevisions},
    holder::Holder,
    name::ServerName,
    single_flight::SingleFlight,
};

mod claim;
mod connect;
mod reconcile;
mod reconnect;

pub(super) use claim::ConnectionClaim;
use connect::ConnectOutcome;

/// What every keeper of one server needs.
#[derive(Clone, Debug)]
pub(super) struct ServerContext {
    pub(super) name: ServerName,
    pub(super) declared: Arc<ServerConfig>,
    pub(super) dialer: Dialer,
    /// How many times the server was connected.
    pub(super) generation: Arc<AtomicU64>,
    /// How many times it was dialled; never taken back.
    pub(super) attempts: Arc<AtomicU64>,
    /// How many connections to it were lost; what was put away is none of them.
    pub(super) losses: Arc<AtomicU64>,
    /// Whether it may be asked anything.
    pub(super) gate: Arc<BreakerGate>,
    /// The connections of all servers.
    pub(super) roster: Arc<PermitAdmission>,
    /// The connections of this server, where it declares how many it may have for its clients.
    pub(super) own: Option<Arc<PermitAdmission>>,
    /// Cancelled when no more requests are taken.
    pub(super) leaving: CancellationToken,
    /// Ends every connection of the server, and every dial.
    pub(super) closing: CancellationToken,
}

/// Keeps one connection to a server.
#[derive(Debug)]
pub(super) struct Supervisor {
    origin: ServerContext,
    party: ConnectionOwner,
    live: ArcSwapOption<Connection>,
    dials: Arc<SingleFlight<ConnectOutcome>>,
    state: Mutex<KeeperState>,
    /// Told when the last one who waits for a connection has left.
    deserted: Notify,
    /// Told when a dial begins to wait for a seat.
    queued: Notify,
    /// An attempt of the dial that is under way has failed, and another one follows; or the upstream
    /// takes no connection.
    is_absent: watch::Sender<bool>,
    standing: Mutex<DesiredState>,
    settles: Arc<SingleFlight<()>>,
    /// Ends the connection of this keeper, and its dial.
    closing: CancellationToken,
}

#[derive(Debug)]
struct KeeperState {
    life: ConnectionLifecycle,
    /// Of the connection whose leases are counted.
    generation: u64,
    /// Given back when the connection is down.
    seats: Vec<ConnectionPermit>,
    waits_for: Option<WaitsFor>,
    /// The party that its seats count for: a connection that all share counts for the service.
    holder: Holder,
    /// How many wait for a connection.
    n_asking: usize,
    used: Instant,
    /// The lists of the last connection, if that was closed because nobody used it.
    put_away: Option<Arc<ListRevisions>>,
    last_error: Option<String>,
    /// What the last child wrote to standard error at last, for operators.
    error_lines: Vec<String>,
    is_redialling: bool,
    /// How many dials in a row have failed that nobody asked for.
    n_redials_failed: u32,
    is_closing: bool,
    /// How long to wait before the next dial that nobody asked for.
    backoff: Option<Backoff>,
    /// Since when there has been no connection although one was wanted, or had been there.
    down_since: Option<Instant>,
    /// Since when a dial is under way, or waits for a seat.
    dialled_since: Option<Instant>,
    /// There was a connection before.
    was_connected: bool,
    /// It has failed, or ended by itself, since there was a connection.
    has_failed_since: bool,
    /// What the tools of the last connection were.
    tools: Option<u64>,
    /// Clients were told something without the server, which was not there.
    is_missed: bool,
}

/// What a dial waits for before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitsFor {
    /// One of the server's own seats.
    Own,
    /// One of those for all servers.
    Pool,
}

/// What status output tells of a keeper.
#[derive(Debug)]
pub(super) struct SupervisorStatus {
    pub(super) state: LifecycleState,
    /// It was closed because nobody used it.
    pub(super) is_put_away: bool,
    pub(super) last_error: Option<String>,
    pub(super) is_waiting: bool,
    pub(super) connection: Option<Arc<Connection>>,
}

impl Supervisor {
    /// Returns a keeper of a connection for `party`; nothing is connected yet.
    pub(super) fn new(origin: ServerContext, party: ConnectionOwner) -> Arc<Self> {
        let closing = origin.closing.child_token();
        Arc::new(Self {
            origin,
            party,
            live: ArcSwapOption::empty(),
            dials: SingleFlight::new(),
            state: Mutex::new(KeeperState {
                life: ConnectionLifecycle::default(),
                generation: 0,
                seats: Vec::new(),
                waits_for: None,
                holder: Holder::SERVICE,
                n_asking: 0,
                used: Instant::now(),
                put_away: None,
                last_error: None,
                error_lines: Vec::new(),
                is_redialling: false,
                n_redials_failed: 0,
                is_closing: false,
                backoff: None,
                down_since: None,
                dialled_since: None,
                was_connected: false,
                has_failed_since: false,
                tools: None,
                is_missed: false,
            }),
            deserted: Notify::new(),
            queued: Notify::new(),
            is_absent: watch::Sender::new(false),
            standing: Mutex::default(),
            settles: SingleFlight::new(),
            closing,
        })
    }

    /// Waits until an attempt of the dial that is under way has failed, and another one follows.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(super) async fn absent(&self) {
        let mut told = self.is_absent.subscribe();
        // The sender is ours.
        let _is_absent = told.wait_for(|is_absent| *is_absent).await;
    }

    fn name(&self) -> &ServerName {
        &self.origin.name
    }

    /// Returns the connection if there is one that takes requests.
    pub(super) fn live(&self) -> Option<Arc<Connection>> {
        self.live.load_full().filter(|connection| connection.is_live())
    }

    /// Tells whether the connection that these lists are from was closed because nobody used it,
    /// and there was none since.
    pub(super) fn was_closed_idle(&self, lists: &Arc<ListRevisions>) -> bool {
        self.state().put_away.as_ref().is_some_and(|put_away| Arc::ptr_eq(put_away, lists))
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
        {
            let mut state = self.state();
            if state.life.state() != LifecycleState::Closed {
                self.note(&mut state, ConnectionLifecycle::close);
            }
        }
        self.closing.cancel();
    }

    /// Notes that clients were told something without the server, so that they are told to ask
    /// again once it is there.
    pub(super) fn note_omitted(&self) {
        let mut state = self.state();
        match self.live() {
            Some(connection) => connection.announce_lists_changed(),
            None => state.is_missed = true,
        }
    }

    /// Returns for how long a dial has been under way, if one is.
    pub(super) fn connecting_for(&self) -> Option<Duration> {
        self.state().dialled_since.map(|since| since.elapsed())
    }

    /// Returns whether the first dial is in progress, with no failed attempt.
    pub(super) fn is_first_connecting(&self) -> bool {
        let state = self.state();
        state.dialled_since.is_some() && !state.was_connected && !*self.is_absent.borrow()
    }

    /// Returns what status output tells.
    pub(super) fn status(&self) -> SupervisorStatus {
        let connection = self.live.load_full();
        let state = self.state();
        SupervisorStatus {
            state: state.life.state(),
            is_put_away: state.put_away.is_some(),
            last_error: state.last_error.clone(),
            is_waiting: state.waits_for.is_some(),
            connection,
        }
    }

    /// Returns what the last child wrote to standard error, and the one that there is, for operators.
    pub(super) fn error_lines(&self) -> Vec<String> {
        // Held while the other is looked at: a connection becomes the last one under it.
        let state = self.state();
        let mut lines = state.error_lines.clone();
        if let Some(connection) = self.live.load_full() {
            lines.extend(connection.error_lines());
        }
        lines
    }

    /// Changes the state of the connection. What is refused is a fault of ours: it is logged and
    /// counted, and nothing changes.
    fn note<T>(
        &self,
        state: &mut KeeperState,
        event: impl FnOnce(&mut ConnectionLifecycle) -> Result<T, IllegalTransition>,
    ) -> Option<T> {
        match event(&mut state.life) {
            Ok(taken) => Some(taken),
            Err(illegal) => {
                self.origin.roster.illegal();
                tracing::error!(mcp_server = %self.name(), %illegal, "change of state refused");
                None
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, KeeperState> {
        // Held for statements on plain data, never across an await.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how long the connection may stay when nobody uses it.
    fn stay(&self) -> IdleLimit {
        let declared = &self.origin.declared;
        match declared.lifecycle {
            _ if declared.is_keep_alive() => IdleLimit::Always,
            // Whoever watches something with it waits without asking.
            _ if self.is_watched() => IdleLimit::Own(None),
            LifecycleConfig::KeepAlive { idle_timeout } => IdleLimit::Own(idle_timeout),
            LifecycleConfig::Ephemeral => IdleLimit::Own(Some(defaults::EPHEMERAL_LINGER)),
            LifecycleConfig::Pooled => IdleLimit::Pooled(self.origin.roster.default_idle_limit()),
        }
    }

    /// Takes note that nobody watches anything with the connection any more.
    fn left(&self) {
        let now = Instant::now();
        {
            let mut state = self.state();
            if state.life.state() != LifecycleState::Idle {
                return;
            }
            state.used = now;
        }
        self.became_idle(now);
    }

    /// Takes note that nobody uses the connection any more.
    fn became_idle(&self, used: Instant) {
        if let Some(own) = &self.origin.own {
            own.became_idle(None);
        }
        self.origin.roster.became_idle(self.stay().ends(used));
    }
}

impl Evictable for Supervisor {
    fn idle(&self) -> Option<IdleConnection<()>> {
        let connection = self.live()?;
        let since = {
            let state = self.state();
            (state.life.state() == LifecycleState::Idle).then_some(state.used)
        }?;
        let loss = match () {
            () if !connection.is_idle() => EvictionCost::Work,
            () if matches!(self.party, ConnectionOwner::Owned(_)) || self.is_watched() => {
                EvictionCost::State
            }
            () => EvictionCost::Nothing,
        };
        Some(IdleConnection { key: (), since, stay: self.stay(), loss, is_above_share: false })
    }

    fn put_away(&self, is_awaited: bool) -> bool {
        let Some(connection) = self.live() else { return false };
        let seats = {
            let mut state = self.state();
            let is_idle = state.life.state() == LifecycleState::Idle;
            if !is_idle || state.generation != connection.generation() {
                return false;
            }
            self.note(&mut state, ConnectionLifecycle::close);
            state.put_away = Some(Arc::clone(connection.lists()));
            std::mem::take(&mut state.seats)
        };
        if is_awaited {
            connection.skip_drain();
        }
        connection.close();
        self.origin.dialer.tasks().spawn(async move {
            connection.down().await;
            drop(seats);
        });
        true
    }

    fn holding(&self) -> (ServerName, LifecycleState, usize) {
        let state = self.state();
        (self.name().clone(), state.life.state(), state.life.n_leases())
    }
}
