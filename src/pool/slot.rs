//! One declared server's place in the pool: its connections, however many its sharing takes.

use std::{
    future::pending,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    LifecycleState, SlotError, SlotStatus,
    admission::{Evictable as _, PermitAdmission},
    breaker_gate::BreakerGate,
    desired_state::ClientDemand,
    exclusive::{Checkout, ExclusivePool},
    finished_tasks::FinishedTasks,
    per_session::PerSessionPool,
    supervisor::{ConnectionClaim, ServerContext, Supervisor, SupervisorStatus},
    tool_hints::ToolHints,
};
use crate::{
    config::{self, LifecycleConfig, ServerConfig, SharingMode, StartPolicy, defaults},
    connection::{
        Connection, ConnectionOwner, ConnectionTraffic, Dialer, ListRevisions, SessionOwner,
    },
    holder::Holder,
    name::ServerName,
    protocol::task::TaskCapability,
};

/// One declared server's place in the pool.
#[derive(Debug)]
pub struct ServerSlot {
    origin: ServerContext,
    connections: Connections,
    hints: ToolHints,
    finished: FinishedTasks,
    /// The slot of the same server as a reload has declared it anew.
    successor: OnceLock<Arc<Self>>,
}

#[derive(Debug)]
enum Connections {
    /// One for everybody.
    Shared(Arc<Supervisor>),
    /// One for each request.
    Exclusive(Arc<ExclusivePool>),
    /// One for each client.
    Owned(Arc<PerSessionPool>),
}

/// A connection for one request; it may be another one the next time.
#[derive(Debug)]
pub struct ConnectionLease {
    /// The connection.
    pub connection: Arc<Connection>,
    /// Keeps it in use until the request is over.
    _held: Held,
}

#[derive(Debug)]
enum Held {
    /// With others.
    Claim { _claim: Option<ConnectionClaim> },
    /// Alone.
    Checkout { _checkout: Checkout },
}

impl ServerSlot {
    pub(super) fn new(
        dialer: Dialer,
        roster: Arc<PermitAdmission>,
        (name, declared): (ServerName, Arc<ServerConfig>),
        generation: u64,
        breaker: config::BreakerConfig,
        closing: CancellationToken,
    ) -> Arc<Self> {
        let sharing = declared.sharing;
        let generation = Arc::new(AtomicU64::new(generation));
        let own = match sharing {
            SharingMode::Session { max_connections } => {
                Some(PermitAdmission::of_one(max_connections))
            }
            // Requests wait for these in [`ExclusivePool`].
            SharingMode::Shared | SharingMode::Exclusive { .. } => None,
        };
        let leaving = CancellationToken::new();
        let gate = BreakerGate::new(name.clone(), breaker);
        let origin = ServerContext {
            name,
            declared,
            dialer,
            generation,
            attempts: Arc::default(),
            losses: Arc::default(),
            gate,
            roster,
            own,
            leaving,
            closing,
        };
        let connections = match sharing {
            SharingMode::Shared => {
                Connections::Shared(Supervisor::new(origin.clone(), ConnectionOwner::Shared))
            }
            SharingMode::Exclusive { max_connections } => {
                Connections::Exclusive(ExclusivePool::new(origin.clone(), max_connections))
            }
            SharingMode::Session { .. } => {
                Connections::Owned(Arc::new(PerSessionPool::new(origin.clone())))
            }
        };
        let (hints, finished, successor) =
            (ToolHints::default(), FinishedTasks::default(), OnceLock::new());
        Arc::new(Self { origin, connections, hints, finished, successor })
    }

    /// Returns the server's name.
    pub fn name(&self) -> &ServerName {
        &self.origin.name
    }

    /// Returns how many times the server was connected.
    pub fn generation(&self) -> u64 {
        self.origin.generation.load(Ordering::Relaxed)
    }

    /// Returns the number of the dial that is under way, or else of the last one.
    pub fn attempts(&self) -> u64 {
        self.origin.attempts.load(Ordering::Relaxed)
    }

    /// Returns how many connections to the server were lost.
    pub fn n_lost(&self) -> u64 {
        self.origin.losses.load(Ordering::Relaxed)
    }

    /// Returns what decides whether a request may reach the server now.
    pub fn gate(&self) -> &Arc<BreakerGate> {
        &self.origin.gate
    }

    /// Returns what the server has said about its tools, on whichever connection.
    pub fn hints(&self) -> &ToolHints {
        &self.hints
    }

    /// Returns the tasks that were finished before their clients knew of them.
    pub fn finished(&self) -> &FinishedTasks {
        &self.finished
    }

    /// Returns what of the server's tasks a client is told that is known from request to request.
    pub fn tasks(&self) -> TaskCapability {
        match &self.connections {
            // The next request goes, or may go, to another process.
            _ if self.declared().lifecycle == LifecycleConfig::Ephemeral => TaskCapability::Nothing,
            Connections::Exclusive(_) => TaskCapability::Nothing,
            Connections::Shared(_) => TaskCapability::ById,
            Connections::Owned(_) => TaskCapability::All,
        }
    }

    /// Returns the slot that has taken the place of this one, if a reload has changed the server.
    pub fn successor(&self) -> Option<&Arc<Self>> {
        self.successor.get()
    }

    /// Notes what has taken the place of this one. Before it is closed, so that whoever is turned
    /// away knows where to go.
    pub(super) fn set_successor(&self, successor: Arc<Self>) {
        let _once = self.successor.set(successor);
    }

    /// Returns what the configuration says about the server.
    pub fn declared(&self) -> &ServerConfig {
        &self.origin.declared
    }

    /// Tells whether a client always has the same connection, so that there is something that can
    /// notify it.
    pub fn has_fixed_connection(&self) -> bool {
        !matches!(self.connections, Connections::Exclusive(_))
    }

    /// Tells whether each client has a connection of its own.
    pub fn is_per_session(&self) -> bool {
        matches!(self.connections, Connections::Owned(_))
    }

    /// Returns a connection for a request of metamcp itself, as [`ServerSlot::lease_for`] does.
    ///
    /// # Errors
    ///
    /// As [`ServerSlot::lease_for`].
    ///
    /// # Cancel safety
    ///
    /// Safe: the dial goes on for the others.
    pub async fn lease(
        &self,
        owner: Option<&SessionOwner>,
        until: Instant,
    ) -> Result<ConnectionLease, SlotError> {
        self.lease_for(Holder::SERVICE, owner, until).await
    }

    /// Returns a connection for a request of `owner`, which counts for `holder`, dialling first where
    /// there is none. However
    /// many ask at a time for one that they share, the server is dialled once. Room for another
    /// connection, or one that is given back where they are checked out, is waited for until
    /// `until`; a dial that has begun as long as it takes.
    ///
    /// # Errors
    ///
    /// [`SlotError`] when there is none; a dial fails for everybody who waited for it.
    ///
    /// # Cancel safety
    ///
    /// Safe: the dial goes on for the others.
    pub async fn lease_for(
        &self,
        holder: Holder,
        owner: Option<&SessionOwner>,
        until: Instant,
    ) -> Result<ConnectionLease, SlotError> {
        let keeper = match &self.connections {
            Connections::Shared(keeper) => Arc::clone(keeper),
            Connections::Owned(owned) => owned.of(owner)?,
            Connections::Exclusive(exclusive) => {
                let (connection, checkout) = exclusive.check_out(holder, until).await?;
                return Ok(ConnectionLease {
                    connection,
                    _held: Held::Checkout { _checkout: checkout },
                });
            }
        };
        let (connection, claim) = keeper.lease(holder, Some(until)).await?;
        Ok(ConnectionLease { connection, _held: Held::Claim { _claim: claim } })
    }

    /// Returns a connection for a request of `owner` if there is one that need not be waited for.
    pub fn ready(&self, owner: Option<&SessionOwner>) -> Option<ConnectionLease> {
        let (connection, claim) = self.standing(owner)?.claim()?;
        Some(ConnectionLease { connection, _held: Held::Claim { _claim: Some(claim) } })
    }

    /// Returns the connection that a request of `owner` would most likely get, if there is one.
    pub fn live(&self, owner: Option<&SessionOwner>) -> Option<Arc<Connection>> {
        match &self.connections {
            Connections::Exclusive(exclusive) => exclusive.live(),
            Connections::Shared(_) | Connections::Owned(_) => self.standing(owner)?.live(),
        }
    }

    /// Tells what is wanted of the state that the connection of `owner` has only once, and brings
    /// it about where there is a connection; the next one is told otherwise.
    ///
    /// # Cancel safety
    ///
    /// Safe: it is brought about by the next change or connection.
    pub async fn set_demand(
        &self,
        owner: Option<&SessionOwner>,
        wants: impl FnOnce() -> ClientDemand,
    ) {
        if let Some(keeper) = self.wanting(owner, wants) {
            keeper.reconcile().await;
        }
    }

    /// As [`ServerSlot::set_demand`], in the background.
    pub fn set_demand_in_background(
        &self,
        owner: Option<&SessionOwner>,
        wants: impl FnOnce() -> ClientDemand,
    ) {
        if let Some(keeper) = self.wanting(owner, wants) {
            self.origin.dialer.tasks().spawn(async move { keeper.reconcile().await });
        }
    }

    fn wanting(
        &self,
        owner: Option<&SessionOwner>,
        wants: impl FnOnce() -> ClientDemand,
    ) -> Option<Arc<Supervisor>> {
        match &self.connections {
            Connections::Shared(keeper) => {
                keeper.set_demand(wants);
                Some(Arc::clone(keeper))
            }
            Connections::Owned(owned) => owned.set_demand(owner, wants),
            Connections::Exclusive(_) => None,
        }
    }

    /// Returns the error object, as JSON text, with which the server refused to have the resource
    /// `uri` watched.
    pub fn refusal(&self, owner: Option<&SessionOwner>, uri: &str) -> Option<String> {
        self.standing(owner)?.refusal(uri)
    }

    /// Notes that clients were told something without the server, which was not there, so that they
    /// are told to ask again once it is.
    pub fn note_omitted(&self) {
        if let Connections::Shared(keeper) = &self.connections {
            keeper.note_omitted();
        }
    }

    /// Returns for how long the connection of `owner` has been in the making, if it is.
    pub fn connecting_for(&self, owner: Option<&SessionOwner>) -> Option<Duration> {
        match &self.connections {
            Connections::Exclusive(exclusive) => {
                exclusive.supervisors().iter().filter_map(|keeper| keeper.connecting_for()).max()
            }
            Connections::Shared(_) | Connections::Owned(_) => {
                self.standing(owner)?.connecting_for()
            }
        }
    }

    /// Returns whether the server is connecting for the first time, with no failed attempt.
    pub(super) fn is_starting(&self) -> bool {
        self.attempts() <= 1 && self.keepers().iter().any(|keeper| keeper.is_first_connecting())
    }

    /// Closes the connection of `owner` if it is idle, as at the end of its idle timeout.
    pub fn close_idle(&self, owner: Option<&SessionOwner>) {
        if let Some(keeper) = self.standing(owner) {
            let _unless_it_is_used = keeper.put_away(false);
        }
    }

    fn standing(&self, owner: Option<&SessionOwner>) -> Option<Arc<Supervisor>> {
        match &self.connections {
            Connections::Shared(keeper) => Some(Arc::clone(keeper)),
            Connections::Owned(owned) => owned.known(owner),
            Connections::Exclusive(_) => None,
        }
    }

    /// Closes the connection of a client that has gone.
    pub(super) fn release(&self, owner: &SessionOwner) {
        if let Connections::Owned(owned) = &self.connections
            && let Some(keeper) = owned.remove(owner)
        {
            self.origin.dialer.tasks().spawn(async move { keeper.close(Duration::ZERO).await });
        }
    }

    /// Connects a shared server.
    pub(super) async fn connect(&self) {
        if let Connections::Shared(keeper) = &self.connections {
            tokio::select! {
                _reported_by_the_dial = keeper.lease(Holder::SERVICE, None) => {}
                () = keeper.absent() => {}
            }
        }
    }

    /// Waits until an attempt of the dial for `owner` has failed, and another one follows: for ever where
    /// each request may have a connection of its own.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn absent(&self, owner: Option<&SessionOwner>) {
        match self.standing(owner) {
            Some(keeper) => keeper.absent().await,
            None => pending().await,
        }
    }

    /// Tells whether these lists are those of the connection that a request of `owner` would most
    /// likely get. Where there is none because nobody has used it, what is known of the server
    /// still holds.
    pub fn has(&self, lists: &Arc<ListRevisions>, owner: Option<&SessionOwner>) -> bool {
        if let Some(connection) = self.live(owner) {
            return Arc::ptr_eq(connection.lists(), lists);
        }
        match &self.connections {
            Connections::Exclusive(exclusive) => {
                exclusive.supervisors().iter().any(|keeper| keeper.was_closed_idle(lists))
            }
            Connections::Shared(_) | Connections::Owned(_) => {
                self.standing(owner).is_some_and(|keeper| keeper.was_closed_idle(lists))
            }
        }
    }

    /// Tells whether a connection that a request of `owner` could have got was closed by us because
    /// nobody used it, so that its end says nothing about the server.
    pub fn is_closed_idle(&self, owner: Option<&SessionOwner>) -> bool {
        let is_put_away = |keeper: &Arc<Supervisor>| keeper.status().is_put_away;
        match &self.connections {
            Connections::Exclusive(exclusive) => exclusive.supervisors().iter().any(is_put_away),
            Connections::Shared(_) | Connections::Owned(_) => {
                self.standing(owner).as_ref().is_some_and(is_put_away)
            }
        }
    }

    /// Starts a dial unless there is a connection or a dial already.
    pub(super) fn start_connecting(&self) {
        if let Connections::Shared(keeper) = &self.connections {
            keeper.start_connecting();
        }
    }

    /// Lets running requests finish for at most `patience` and closes the slot for good.
    ///
    /// # Cancel safety
    ///
    /// Dropped halfway, the slot takes no requests but keeps its connections until the runtime ends.
    pub(super) async fn close(&self, patience: Duration) {
        self.origin.leaving.cancel();
        if let Connections::Exclusive(exclusive) = &self.connections {
            exclusive.close();
        }
        let keepers = self.keepers();
        futures_util::future::join_all(keepers.iter().map(|keeper| keeper.close(patience))).await;
        self.origin.closing.cancel();
    }

    fn keepers(&self) -> Vec<Arc<Supervisor>> {
        match &self.connections {
            Connections::Shared(keeper) => vec![Arc::clone(keeper)],
            Connections::Exclusive(exclusive) => exclusive.supervisors(),
            Connections::Owned(owned) => owned.supervisors(),
        }
    }

    /// Returns the last lines that its children wrote to standard error, for operators only.
    pub fn error_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.keepers().iter().flat_map(|keeper| keeper.error_lines()).collect();
        lines.drain(..lines.len().saturating_sub(defaults::STDERR_LINES_KEPT));
        lines
    }

    /// Returns the state for status output.
    pub fn status(&self) -> SlotStatus {
        let keepers: Vec<SupervisorStatus> =
            self.keepers().iter().map(|keeper| keeper.status()).collect();
        let connections = || keepers.iter().filter_map(|keeper| keeper.connection.as_ref());
        let live: Vec<_> = connections().filter(|connection| connection.is_live()).collect();
        let traffic: ConnectionTraffic = connections().map(|connection| connection.traffic()).sum();
        let is_any = |state| keepers.iter().any(|keeper| keeper.state == state);
        let states = [
            LifecycleState::Active,
            LifecycleState::Idle,
            LifecycleState::Connecting,
            LifecycleState::Failed,
            LifecycleState::Closed,
        ];
        let state = match () {
            () if self.origin.closing.is_cancelled() => LifecycleState::Closed,
            // One that was never needed is idle too.
            () => states.into_iter().find(|state| is_any(*state)).unwrap_or(LifecycleState::Idle),
        };
        let profile = live.first().and_then(|connection| connection.profile());
        SlotStatus {
            name: self.origin.name.clone(),
            state,
            is_missing: self.origin.declared.start != StartPolicy::Lazy
                && live.is_empty()
                && !keepers.iter().any(|keeper| keeper.is_put_away),
            transport: live.first().map_or_else(
                || self.origin.declared.transport.name(),
                |connection| connection.transport(),
            ),
            sharing: self.origin.declared.sharing.name(),
            connections: live.len(),
            waiting: keepers.iter().filter(|keeper| keeper.is_waiting).count(),
            generation: self.generation(),
            pid: live.first().and_then(|connection| connection.pid()),
            pids: live.iter().filter_map(|connection| connection.pid()).collect(),
            era: profile.map(|profile| profile.era().name()),
            protocol_version: profile.map(|profile| profile.protocol_version.clone()),
            last_error: keepers.into_iter().find_map(|keeper| keeper.last_error),
            breaker: self.origin.gate.snapshot(),
            traffic,
            start: self.origin.declared.start,
        }
    }
}
