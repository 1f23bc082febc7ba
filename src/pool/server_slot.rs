//! One declared server's place in the pool, with the connections that its sharing mode needs.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::{
    LifecycleState, SlotStatus,
    admission::{Evictable as _, PermitAdmission},
    breaker_gate::BreakerGate,
    desired_state::ClientDemand,
    exclusive::ExclusivePool,
    immediate_task_results::FinishedTasks,
    per_session::PerSessionPool,
    server_events::ServerEvents,
    supervisor::{ServerContext, Supervisor, SupervisorStatus},
    tool_hints::ToolHints,
};
use crate::{
    capacity_holder::Holder,
    config::{self, LifecycleConfig, ServerConfig, SharingMode, StartPolicy, defaults},
    connection::{
        ConnectionOwner, ConnectionTraffic, Dialer, ListRevisions, ServerDurations, SessionOwner,
    },
    oauth::LoginService,
    protocol::task::TaskCapability,
    server_name::ServerName,
};

mod connection_lease;

pub use connection_lease::ConnectionLease;

/// One declared server's place in the pool.
#[derive(Debug)]
pub struct ServerSlot {
    context: ServerContext,
    connections: Connections,
    hints: ToolHints,
    finished: FinishedTasks,
    /// The slot that replaced this one after a reload changed the server.
    successor: OnceLock<Arc<Self>>,
}

#[derive(Debug)]
enum Connections {
    /// One connection for all clients.
    Shared(Arc<Supervisor>),
    /// One connection for each request.
    Exclusive(Arc<ExclusivePool>),
    /// One connection for each client.
    PerSession(Arc<PerSessionPool>),
}

impl ServerSlot {
    pub(super) fn new(
        dialer: Dialer,
        admission: Arc<PermitAdmission>,
        (name, declared): (ServerName, Arc<ServerConfig>),
        (generation, events): (u64, Arc<ServerEvents>),
        breaker: config::BreakerConfig,
        closing: CancellationToken,
    ) -> Arc<Self> {
        let sharing = declared.sharing;
        let generation = Arc::new(AtomicU64::new(generation));
        // [`ExclusivePool`] has its own queue.
        let server_admission = if let SharingMode::Session { max_connections } = sharing {
            Some(PermitAdmission::of_one(max_connections, dialer.durations().queue_waits.clone()))
        } else {
            None
        };
        let draining = CancellationToken::new();
        let gate = BreakerGate::new(name.clone(), breaker, Arc::clone(&events));
        let context = ServerContext {
            name,
            declared,
            dialer,
            generation,
            attempts: Arc::default(),
            losses: Arc::default(),
            events,
            gate,
            admission,
            server_admission,
            draining,
            closing,
        };
        let connections = match sharing {
            SharingMode::Shared => {
                Connections::Shared(Supervisor::new(context.clone(), ConnectionOwner::Shared))
            }
            SharingMode::Exclusive { max_connections } => {
                Connections::Exclusive(ExclusivePool::new(context.clone(), max_connections))
            }
            SharingMode::Session { .. } => {
                Connections::PerSession(Arc::new(PerSessionPool::new(context.clone())))
            }
        };
        let (hints, finished, successor) =
            (ToolHints::default(), FinishedTasks::default(), OnceLock::new());
        Arc::new(Self { context, connections, hints, finished, successor })
    }

    /// Returns the server's name.
    pub fn name(&self) -> &ServerName {
        &self.context.name
    }

    /// Returns the number of connections made to the server.
    pub fn generation(&self) -> u64 {
        self.context.generation.load(Ordering::Relaxed)
    }

    /// Returns the number of the current connection attempt, or of the last one.
    pub fn attempts(&self) -> u64 {
        self.context.attempts.load(Ordering::Relaxed)
    }

    /// Returns the number of lost connections.
    pub fn n_lost(&self) -> u64 {
        self.context.losses.load(Ordering::Relaxed)
    }

    /// Returns the last events of the server.
    pub fn events(&self) -> &Arc<ServerEvents> {
        &self.context.events
    }

    /// Returns the gate that decides whether a request may reach the server now.
    pub fn gate(&self) -> &Arc<BreakerGate> {
        &self.context.gate
    }

    /// Returns the tool hints that the server has given on any of its connections.
    pub fn hints(&self) -> &ToolHints {
        &self.hints
    }

    /// Returns the tasks that finished before their clients knew of them.
    pub fn finished(&self) -> &FinishedTasks {
        &self.finished
    }

    /// Returns the task capability to announce to a client that metamcp recognises across requests.
    pub fn tasks(&self) -> TaskCapability {
        match &self.connections {
            // The next request may go to another process.
            _ if self.declared().lifecycle == LifecycleConfig::Ephemeral => TaskCapability::Nothing,
            Connections::Exclusive(_) => TaskCapability::Nothing,
            Connections::Shared(_) => TaskCapability::ById,
            Connections::PerSession(_) => TaskCapability::All,
        }
    }

    /// Returns the slot that replaced this one, if a reload has changed the server.
    pub fn successor(&self) -> Option<&Arc<Self>> {
        self.successor.get()
    }

    /// Records the slot that replaces this one. The caller does so before it closes this slot, so
    /// that a rejected request can find the successor.
    pub(super) fn set_successor(&self, successor: Arc<Self>) {
        let _once = self.successor.set(successor);
    }

    /// Returns the server's configuration.
    pub fn declared(&self) -> &ServerConfig {
        &self.context.declared
    }

    /// Returns the durations that are measured at the server.
    pub fn durations(&self) -> &ServerDurations {
        self.context.dialer.durations()
    }

    /// Returns the logins of this host.
    pub fn logins(&self) -> Option<&Arc<LoginService>> {
        self.context.dialer.logins()
    }

    /// Returns whether a client always uses the same connection, so that a server can notify it.
    pub fn has_fixed_connection(&self) -> bool {
        !matches!(self.connections, Connections::Exclusive(_))
    }

    /// Returns whether each client has its own connection.
    pub fn is_per_session(&self) -> bool {
        matches!(self.connections, Connections::PerSession(_))
    }

    /// Sets the desired state of the connection of `owner` and reconciles it. Without a connection,
    /// the next connection applies it. Cancel safe: the next change or connection completes it.
    pub async fn set_demand(
        &self,
        owner: Option<&SessionOwner>,
        demand: impl FnOnce() -> ClientDemand,
    ) {
        if let Some(supervisor) = self.apply_demand(owner, demand) {
            supervisor.reconcile().await;
        }
    }

    /// Does the same as [`ServerSlot::set_demand`], in the background.
    pub fn set_demand_in_background(
        &self,
        owner: Option<&SessionOwner>,
        demand: impl FnOnce() -> ClientDemand,
    ) {
        if let Some(supervisor) = self.apply_demand(owner, demand) {
            self.context.dialer.tasks().spawn(async move { supervisor.reconcile().await });
        }
    }

    fn apply_demand(
        &self,
        owner: Option<&SessionOwner>,
        demand: impl FnOnce() -> ClientDemand,
    ) -> Option<Arc<Supervisor>> {
        match &self.connections {
            Connections::Shared(supervisor) => {
                supervisor.set_demand(demand);
                Some(Arc::clone(supervisor))
            }
            Connections::PerSession(per_session) => per_session.set_demand(owner, demand),
            Connections::Exclusive(_) => None,
        }
    }

    /// Returns the error object, as JSON text, with which the server refused a subscription to
    /// `uri`.
    pub fn refusal(&self, owner: Option<&SessionOwner>, uri: &str) -> Option<String> {
        self.supervisor_of(owner)?.refusal(uri)
    }

    /// Records that clients got an answer without this unavailable server, so that it sends them
    /// `list_changed` once it is connected.
    pub fn note_omitted(&self) {
        if let Connections::Shared(supervisor) = &self.connections {
            supervisor.note_omitted();
        }
    }

    /// Returns whether the server is connecting for the first time, with no failed attempt.
    pub(super) fn is_starting(&self) -> bool {
        self.attempts() <= 1
            && self.supervisors().iter().any(|supervisor| supervisor.is_first_connecting())
    }

    /// Closes the connection of `owner` if it is idle, as at the end of its idle timeout.
    pub fn close_idle(&self, owner: Option<&SessionOwner>) {
        if let Some(supervisor) = self.supervisor_of(owner) {
            let _unless_it_is_used = supervisor.close_if_idle(false);
        }
    }

    /// Returns the supervisors of the connections that a request of `owner` may get.
    fn supervisors_for(&self, owner: Option<&SessionOwner>) -> Vec<Arc<Supervisor>> {
        match &self.connections {
            Connections::Exclusive(exclusive) => exclusive.supervisors(),
            Connections::Shared(_) | Connections::PerSession(_) => {
                self.supervisor_of(owner).into_iter().collect()
            }
        }
    }

    /// Returns the supervisor of the connection that all requests of `owner` share, if any.
    fn supervisor_of(&self, owner: Option<&SessionOwner>) -> Option<Arc<Supervisor>> {
        match &self.connections {
            Connections::Shared(supervisor) => Some(Arc::clone(supervisor)),
            Connections::PerSession(per_session) => per_session.get(owner),
            Connections::Exclusive(_) => None,
        }
    }

    /// Closes the connection of a client that has disconnected.
    pub(super) fn release(&self, owner: &SessionOwner) {
        if let Connections::PerSession(per_session) = &self.connections
            && let Some(supervisor) = per_session.remove(owner)
        {
            let tasks = self.context.dialer.tasks();
            tasks.spawn(async move { supervisor.close(Duration::ZERO).await });
        }
    }

    /// Connects a shared server.
    pub(super) async fn connect(&self) {
        if let Connections::Shared(supervisor) = &self.connections {
            tokio::select! {
                _reported_by_the_dial = supervisor.lease(Holder::SERVICE, None) => {}
                () = supervisor.wait_until_absent() => {}
            }
        }
    }

    /// Returns whether these lists belong to the connection that a request of `owner` would most
    /// likely get. The lists of a connection that was closed because it was idle stay valid.
    pub fn has(&self, lists: &Arc<ListRevisions>, owner: Option<&SessionOwner>) -> bool {
        if let Some(connection) = self.live(owner) {
            return Arc::ptr_eq(connection.lists(), lists);
        }
        self.supervisors_for(owner).iter().any(|supervisor| supervisor.was_closed_idle(lists))
    }

    /// Returns whether metamcp closed a connection for `owner` because it was idle, so that its end
    /// does not say anything about the server.
    pub fn is_closed_idle(&self, owner: Option<&SessionOwner>) -> bool {
        self.supervisors_for(owner).iter().any(|supervisor| supervisor.status().is_closed_idle)
    }

    /// Starts to connect unless there is a connection or an attempt already.
    pub(super) fn start_connecting(&self) {
        if let Connections::Shared(supervisor) = &self.connections {
            supervisor.start_connecting();
        }
    }

    /// Lets running requests finish for at most `drain_timeout`, then closes the slot. Not cancel
    /// safe: it takes no requests, but keeps its connections until the runtime ends.
    pub(super) async fn close(&self, drain_timeout: Duration) {
        self.context.draining.cancel();
        if let Connections::Exclusive(exclusive) = &self.connections {
            exclusive.close();
        }
        let supervisors = self.supervisors();
        let closing = supervisors.iter().map(|supervisor| supervisor.close(drain_timeout));
        futures_util::future::join_all(closing).await;
        self.context.closing.cancel();
    }

    fn supervisors(&self) -> Vec<Arc<Supervisor>> {
        match &self.connections {
            Connections::Shared(supervisor) => vec![Arc::clone(supervisor)],
            Connections::Exclusive(exclusive) => exclusive.supervisors(),
            Connections::PerSession(per_session) => per_session.supervisors(),
        }
    }

    /// Returns the last lines that the server's children wrote to standard error, for operators
    /// only.
    pub fn error_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.supervisors().iter().flat_map(|supervisor| supervisor.error_lines()).collect();
        lines.drain(..lines.len().saturating_sub(defaults::STDERR_LINES_KEPT));
        lines
    }

    /// Returns the state for status output.
    pub fn status(&self) -> SlotStatus {
        let supervisors: Vec<SupervisorStatus> =
            self.supervisors().iter().map(|supervisor| supervisor.status()).collect();
        let connections =
            || supervisors.iter().filter_map(|supervisor| supervisor.connection.as_ref());
        let live: Vec<_> = connections().filter(|connection| connection.is_live()).collect();
        let traffic: ConnectionTraffic = connections().map(|connection| connection.traffic()).sum();
        let is_any = |state| supervisors.iter().any(|supervisor| supervisor.state == state);
        let states = [
            LifecycleState::Active,
            LifecycleState::Idle,
            LifecycleState::Connecting,
            LifecycleState::Failed,
            LifecycleState::Closed,
        ];
        let state = match () {
            () if self.context.closing.is_cancelled() => LifecycleState::Closed,
            // A server that was never needed is idle too.
            () => states.into_iter().find(|state| is_any(*state)).unwrap_or(LifecycleState::Idle),
        };
        let profile = live.first().and_then(|connection| connection.profile());
        let failures = supervisors.iter().filter_map(|supervisor| supervisor.failure.as_ref());
        let failure = failures.max_by_key(|failure| failure.at).cloned();
        SlotStatus {
            name: self.context.name.clone(),
            state,
            needs_login: self.logins().is_some_and(|logins| logins.needs_login(&self.context.name)),
            is_missing: self.context.declared.start != StartPolicy::Lazy
                && live.is_empty()
                && !supervisors.iter().any(|supervisor| supervisor.is_closed_idle),
            transport: live.first().map_or_else(
                || self.context.declared.transport.name(),
                |connection| connection.transport(),
            ),
            sharing: self.context.declared.sharing.name(),
            connections: live.len(),
            waiting: supervisors.iter().filter(|supervisor| supervisor.is_waiting).count(),
            generation: self.generation(),
            pid: live.first().and_then(|connection| connection.pid()),
            pids: live.iter().filter_map(|connection| connection.pid()).collect(),
            era: profile.map(|profile| profile.era().name()),
            protocol_version: profile.map(|profile| profile.protocol_version.clone()),
            last_error: failure.as_ref().map(|failure| failure.text.clone()),
            failure,
            breaker: self.context.gate.snapshot(),
            traffic,
            start: self.context.declared.start,
        }
    }
}
