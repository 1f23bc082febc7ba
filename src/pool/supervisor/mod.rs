//! The supervisor of one connection: connects for all waiters, closes when idle, reconnects.
//!
//! ```text
//!  ten requests ──▶ lease() ──▶ live? ──────────────▶ a lease of the connection, each
//!                                │ no                          ▲
//!                                ▼                             │
//!                   in progress? ──no──▶ start one ──▶ a permit ──▶ connect
//!                                │ yes                         │
//!                                ▼                             ▼
//!                                   wait for its outcome, all ten
//! ```
//!
//! A client that leaves does not cancel the attempt for the others. An attempt without waiters does
//! not wait for a permit.

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
    connection_lifecycle::{ConnectionLifecycle, IllegalTransition, LifecycleState},
    desired_state::DesiredState,
    idle_connections::{EvictionCost, IdleConnection, IdleLimit},
};
use crate::{
    backoff::Backoff,
    capacity_holder::Holder,
    config::{LifecycleConfig, ServerConfig, defaults},
    connection::{Connection, ConnectionOwner, Dialer, ListRevisions},
    server_name::ServerName,
    single_flight::SingleFlight,
};

mod connect;
mod lease_queue;
mod reconcile;
mod reconnect;

use connect::ConnectOutcome;
pub(super) use lease_queue::ConnectionClaim;

/// The context that all supervisors of one server share.
#[derive(Clone, Debug)]
pub(super) struct ServerContext {
    pub(super) name: ServerName,
    pub(super) declared: Arc<ServerConfig>,
    pub(super) dialer: Dialer,
    /// The number of connections made to the server.
    pub(super) generation: Arc<AtomicU64>,
    /// The number of connection attempts. Never decreases.
    pub(super) attempts: Arc<AtomicU64>,
    /// The number of lost connections. Idle connections that metamcp closed do not count.
    pub(super) losses: Arc<AtomicU64>,
    /// The gate that decides whether the server may get requests.
    pub(super) gate: Arc<BreakerGate>,
    /// The admission for the connections of all servers.
    pub(super) admission: Arc<PermitAdmission>,
    /// The admission for this server's connections, if it declares a maximum for its clients.
    pub(super) server_admission: Option<Arc<PermitAdmission>>,
    /// Cancelled when the server takes no more requests.
    pub(super) draining: CancellationToken,
    /// Ends every connection and every attempt of the server.
    pub(super) closing: CancellationToken,
}

/// The supervisor of one connection to a server.
#[derive(Debug)]
pub(super) struct Supervisor {
    context: ServerContext,
    owner: ConnectionOwner,
    live: ArcSwapOption<Connection>,
    dials: Arc<SingleFlight<ConnectOutcome>>,
    state: Mutex<SupervisorState>,
    /// Notified when the last request that waits for a connection leaves.
    abandoned: Notify,
    /// Notified when an attempt begins to wait for a permit.
    queued: Notify,
    /// Set when an attempt has failed and another follows, or when the upstream accepts no
    /// connection.
    is_absent: watch::Sender<bool>,
    desired: Mutex<DesiredState>,
    reconciliation: Arc<SingleFlight<()>>,
    /// Ends this supervisor's connection and attempt.
    closing: CancellationToken,
}

#[derive(Debug, Default)]
struct SupervisorState {
    life: ConnectionLifecycle,
    /// The generation of the connection whose leases are counted.
    generation: u64,
    /// The permits. Returned when the connection is down.
    permits: Vec<ConnectionPermit>,
    waits_for: Option<PermitSource>,
    /// The client that the permits count for. A shared connection has none.
    holder: Option<Holder>,
    /// The number of requests that wait for a connection.
    n_waiting_requests: usize,
    /// The end of the last use of the connection.
    used: Option<Instant>,
    /// The lists of the last connection, if that was closed because it was idle.
    closed_idle_lists: Option<Arc<ListRevisions>>,
    last_error: Option<String>,
    /// The last lines that the last child wrote to standard error, for operators.
    error_lines: Vec<String>,
    is_reconnecting: bool,
    /// The number of consecutive failures of background reconnects.
    n_reconnects_failed: u32,
    is_closing: bool,
    /// The pause before the next background reconnect.
    backoff: Option<Backoff>,
    /// The start of the time without a connection, although one was wanted or had been lost.
    down_since: Option<Instant>,
    /// The start of the current attempt, including its wait for a permit.
    dialled_since: Option<Instant>,
    /// A connection existed before.
    was_connected: bool,
    /// An attempt failed, or the connection ended by itself, since the last connection was made.
    has_failed_since: bool,
    /// The fingerprint of the last connection's tools.
    tools: Option<u64>,
    /// Clients got an answer without this unavailable server.
    is_missed: bool,
}

/// The source of the permit that an attempt waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PermitSource {
    /// The server's own maximum.
    Server,
    /// The pool.
    Pool,
}

/// The status of one supervisor.
#[derive(Debug)]
pub(super) struct SupervisorStatus {
    pub(super) state: LifecycleState,
    /// The connection was closed because it was idle.
    pub(super) is_closed_idle: bool,
    pub(super) last_error: Option<String>,
    pub(super) is_waiting: bool,
    pub(super) connection: Option<Arc<Connection>>,
}

impl Supervisor {
    /// Returns the supervisor of a connection for `owner`. Connects nothing yet.
    pub(super) fn new(context: ServerContext, owner: ConnectionOwner) -> Arc<Self> {
        let closing = context.closing.child_token();
        Arc::new(Self {
            context,
            owner,
            live: ArcSwapOption::empty(),
            dials: SingleFlight::new(),
            state: Mutex::default(),
            abandoned: Notify::new(),
            queued: Notify::new(),
            is_absent: watch::Sender::new(false),
            desired: Mutex::default(),
            reconciliation: SingleFlight::new(),
            closing,
        })
    }

    /// Waits until an attempt has failed and another one follows. Cancel safe.
    pub(super) async fn wait_until_absent(&self) {
        let mut is_absent = self.is_absent.subscribe();
        // Cannot fail: this supervisor owns the sender.
        let _is_absent = is_absent.wait_for(|is_absent| *is_absent).await;
    }

    fn name(&self) -> &ServerName {
        &self.context.name
    }

    /// Returns the connection if there is one that takes requests.
    pub(super) fn live(&self) -> Option<Arc<Connection>> {
        self.live.load_full().filter(|connection| connection.is_live())
    }

    /// Returns whether the connection with these lists was closed because it was idle, and has not
    /// been replaced since.
    pub(super) fn was_closed_idle(&self, lists: &Arc<ListRevisions>) -> bool {
        self.state().closed_idle_lists.as_ref().is_some_and(|closed| Arc::ptr_eq(closed, lists))
    }

    /// Lets running requests finish for at most `drain_timeout`, then closes the connection. Not
    /// cancel safe: it takes no requests, but keeps its connection until the runtime ends.
    pub(super) async fn close(&self, drain_timeout: Duration) {
        self.state().is_closing = true;
        if let Some(connection) = self.live.load_full() {
            connection.drain_and_close(drain_timeout).await;
        }
        {
            let mut state = self.state();
            if state.life.state() != LifecycleState::Closed {
                self.transition(&mut state, ConnectionLifecycle::close);
            }
        }
        self.closing.cancel();
    }

    /// Records that clients got an answer without the server, so that they get `list_changed` once
    /// it is connected.
    pub(super) fn note_omitted(&self) {
        let mut state = self.state();
        match self.live() {
            Some(connection) => connection.announce_lists_changed(),
            None => state.is_missed = true,
        }
    }

    /// Returns how long the current attempt has been in progress, if there is one.
    pub(super) fn connecting_for(&self) -> Option<Duration> {
        self.state().dialled_since.map(|since| since.elapsed())
    }

    /// Returns whether the first attempt is in progress, with no failure yet.
    pub(super) fn is_first_connecting(&self) -> bool {
        let state = self.state();
        state.dialled_since.is_some() && !state.was_connected && !*self.is_absent.borrow()
    }

    /// Returns the status.
    pub(super) fn status(&self) -> SupervisorStatus {
        let connection = self.live.load_full();
        let state = self.state();
        SupervisorStatus {
            state: state.life.state(),
            is_closed_idle: state.closed_idle_lists.is_some(),
            last_error: state.last_error.clone(),
            is_waiting: state.waits_for.is_some(),
            connection,
        }
    }

    /// Returns the last lines that the last and current child wrote to standard error.
    pub(super) fn error_lines(&self) -> Vec<String> {
        // Held until both are read: a connection becomes the last one under this lock.
        let state = self.state();
        let mut lines = state.error_lines.clone();
        if let Some(connection) = self.live.load_full() {
            lines.extend(connection.error_lines());
        }
        lines
    }

    /// Changes the state of the connection. An illegal transition is a bug in metamcp: it is logged
    /// and counted, and the state stays as it is.
    fn transition<T>(
        &self,
        state: &mut SupervisorState,
        event: impl FnOnce(&mut ConnectionLifecycle) -> Result<T, IllegalTransition>,
    ) -> Option<T> {
        match event(&mut state.life) {
            Ok(done) => Some(done),
            Err(illegal) => {
                self.context.admission.count_illegal_transition();
                let name = self.name();
                tracing::error!(
                    mcp_server = %name, %illegal,
                    "bug in metamcp: connection of server `{name}`: {illegal}"
                );
                None
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, SupervisorState> {
        // Held only for statements on plain data, never across an await.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the limit on the connection's idle time.
    fn idle_limit(&self) -> IdleLimit {
        let declared = &self.context.declared;
        match declared.lifecycle {
            _ if declared.is_keep_alive() => IdleLimit::Always,
            // A client that watches a resource waits without sending requests.
            _ if self.is_watched() => IdleLimit::Own(None),
            LifecycleConfig::KeepAlive { idle_timeout } => IdleLimit::Own(idle_timeout),
            LifecycleConfig::Ephemeral => IdleLimit::Own(Some(defaults::EPHEMERAL_LINGER)),
            LifecycleConfig::Pooled => {
                IdleLimit::Pooled(self.context.admission.default_idle_limit())
            }
        }
    }

    /// Records that clients no longer watch a resource with the connection.
    fn note_unwatched(&self) {
        let now = Instant::now();
        let mut state = self.state();
        if state.life.state() == LifecycleState::Idle {
            state.used = Some(now);
            drop(state);
            self.became_idle(now);
        }
    }

    /// Records that the connection is idle.
    fn became_idle(&self, used: Instant) {
        if let Some(admission) = &self.context.server_admission {
            admission.became_idle(None);
        }
        self.context.admission.became_idle(self.idle_limit().ends(used));
    }
}

impl Evictable for Supervisor {
    fn idle(&self) -> Option<IdleConnection<()>> {
        let connection = self.live()?;
        let since = {
            let state = self.state();
            state.used.filter(|_| state.life.state() == LifecycleState::Idle)
        }?;
        let cost = match () {
            () if !connection.is_idle() => EvictionCost::Work,
            () if matches!(self.owner, ConnectionOwner::Owned(_)) || self.is_watched() => {
                EvictionCost::State
            }
            () => EvictionCost::Nothing,
        };
        Some(IdleConnection {
            key: (),
            since,
            limit: self.idle_limit(),
            cost,
            is_above_share: false,
        })
    }

    fn close_if_idle(&self, is_awaited: bool) -> bool {
        let Some(connection) = self.live() else { return false };
        let permits = {
            let mut state = self.state();
            let is_idle = state.life.state() == LifecycleState::Idle;
            if !is_idle || state.generation != connection.generation() {
                return false;
            }
            self.transition(&mut state, ConnectionLifecycle::close);
            state.closed_idle_lists = Some(Arc::clone(connection.lists()));
            std::mem::take(&mut state.permits)
        };
        if is_awaited {
            connection.skip_drain();
        }
        connection.close();
        self.context.dialer.tasks().spawn(async move {
            connection.down().await;
            drop(permits);
        });
        true
    }

    fn usage(&self) -> (ServerName, LifecycleState, usize) {
        let state = self.state();
        (self.name().clone(), state.life.state(), state.life.n_leases())
    }
}
