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
//! [`connection_lifecycle`](super::connection_lifecycle) has the states of the connection.
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
    server_events::{ServerEventKind, ServerEvents},
    status::ServerFailure,
};
use crate::{
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

use connect::{ConnectOutcome, ConnectionHistory};
pub(super) use lease_queue::ConnectionClaim;
use reconnect::Reconnects;

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
    /// The last events of the server.
    pub(super) events: Arc<ServerEvents>,
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

/// The state of a supervised connection, and what outlives every state.
#[derive(Debug, Default)]
struct SupervisorState {
    life: ConnectionLifecycle,
    /// The current attempt. It is not *connecting* while it waits for a permit.
    attempt: Option<ConnectAttempt>,
    /// The permits, from the attempt to the end of the process: longer than *active* and *idle*.
    permits: Vec<ConnectionPermit>,
    /// The client that the permits count for. A shared connection has none.
    holder: Option<Holder>,
    /// The number of requests that wait for a connection.
    n_waiting_requests: usize,
    reconnects: Reconnects,
    history: ConnectionHistory,
    /// The supervisor connects no more.
    is_closing: bool,
}

/// A connection attempt, including its wait for permits.
#[derive(Debug)]
struct ConnectAttempt {
    since: Instant,
    waits_for: Option<PermitSource>,
}

/// The source of the permit that an attempt waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PermitSource {
    /// The server's own maximum.
    Server,
    /// The pool.
    Pool,
}

#[derive(Debug)]
pub(super) struct SupervisorStatus {
    pub(super) state: LifecycleState,
    /// The connection was closed because it was idle.
    pub(super) is_closed_idle: bool,
    pub(super) failure: Option<ServerFailure>,
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
        self.state().life.closed_idle_lists().is_some_and(|closed| Arc::ptr_eq(closed, lists))
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
            None => state.history.is_omitted = true,
        }
    }

    /// Returns how long the current attempt has been in progress, if there is one.
    pub(super) fn connecting_for(&self) -> Option<Duration> {
        self.state().attempt.as_ref().map(|attempt| attempt.since.elapsed())
    }

    /// Returns whether the first attempt is in progress, with no failure yet.
    pub(super) fn is_first_connecting(&self) -> bool {
        let state = self.state();
        state.attempt.is_some() && !state.history.was_connected && !*self.is_absent.borrow()
    }

    pub(super) fn status(&self) -> SupervisorStatus {
        let connection = self.live.load_full();
        let state = self.state();
        SupervisorStatus {
            state: state.life.state(),
            is_closed_idle: state.life.closed_idle_lists().is_some(),
            failure: state.history.failure.clone(),
            is_waiting: state.attempt.as_ref().is_some_and(|attempt| attempt.waits_for.is_some()),
            connection,
        }
    }

    /// Returns the last lines that the last and current child wrote to standard error.
    pub(super) fn error_lines(&self) -> Vec<String> {
        // Held until both are read: a connection becomes the last one under this lock.
        let state = self.state();
        let mut lines = state.history.error_lines.clone();
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
        if let ConnectionLifecycle::Idle { since, .. } = &mut state.life {
            *since = now;
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
        let ConnectionLifecycle::Idle { since, .. } = self.state().life else { return None };
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
            let is_idle = matches!(state.life,
                ConnectionLifecycle::Idle { generation, .. } if generation == connection.generation());
            if !is_idle {
                return false;
            }
            let lists = Arc::clone(connection.lists());
            self.transition(&mut state, |life| life.close_idle(lists));
            self.context.events.record(ServerEventKind::ClosedIdle, "");
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
