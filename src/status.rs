//! The status of the service for systemd, probes and operators.

use std::{
    net::SocketAddr,
    path::{self, Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use serde::Serialize;
use serde_json::Value;
use tokio::{runtime::Handle, sync::Semaphore, time::Instant};

use crate::{
    breaker::BreakerState,
    catalog::{Catalog, NameCollision, QuarantinedItem},
    memory_budget::{self, MemoryUsage},
    pool::{LifecycleState, Pool, PoolStatus, SlotStatus},
    redact,
    server_name::ServerName,
    session::{ClientCensus, SessionRegistry},
    telemetry::liveness::{Liveness, StuckLoop},
};

mod memory;
mod server;

pub use memory::{MeasuredUsage, MemoryFigures};
pub use server::ServerState;

/// The board on which the parts of the service record their state.
#[derive(Debug)]
pub struct StatusBoard {
    started: Instant,
    clients: Arc<AtomicUsize>,
    /// The number of running operator requests.
    operators: Arc<AtomicUsize>,
    /// The total number of clients and operator requests so far.
    n_total: AtomicU64,
    is_serving: AtomicBool,
    pool: Arc<Pool>,
    sessions: Arc<SessionRegistry>,
    catalog: Arc<Catalog>,
    liveness: Arc<Liveness>,
    /// The configuration file, as an absolute path.
    config_file: ArcSwapOption<PathBuf>,
    /// The TCP addresses that the service listens at.
    addresses: Vec<SocketAddr>,
    /// The permit to measure: one measurement at a time, since it reads all of `/proc`.
    memory_meter: Arc<Semaphore>,
}

/// The state of the service at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceStatus {
    /// The version of the program.
    pub version: &'static str,
    /// The process id.
    pub pid: u32,
    /// The uptime, in milliseconds.
    pub uptime_ms: u64,
    /// The number of open client connections.
    pub clients: usize,
    /// The number of client sessions.
    pub sessions: usize,
    /// The number of live tasks, which does not grow with the age of the service.
    pub tasks: usize,
    /// The number of connections made to servers since the start, over all servers.
    pub generation: u64,
    /// The memory that messages use.
    pub memory_budget: MemoryUsage,
    /// The connections of all servers together.
    pub pool: PoolStatus,
    /// Every declared server.
    pub servers: Vec<SlotStatus>,
    /// The items that are hidden from clients, among the lists read so far.
    pub quarantined: Vec<QuarantinedItem>,
    /// The items with equal names in the merged view, among the lists read so far.
    pub collisions: Vec<NameCollision>,
}

/// The readiness of the service: it is ready when it has all that its configuration requires.
#[derive(Clone, Debug, Serialize)]
pub struct Readiness {
    /// The service is ready: nothing is missing.
    pub ready: bool,
    /// The missing parts.
    pub missing: Vec<MissingPart>,
}

/// One missing part.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum MissingPart {
    /// The service is starting or stopping.
    Service {
        /// The state: starting or stopping.
        reason: &'static str,
    },
    /// A server that must always be connected is not connected.
    Server {
        /// Its name.
        server: ServerName,
        /// Its state.
        state: LifecycleState,
        /// The reason, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A loop is stuck.
    Loop(StuckLoop),
}

/// The current and total use of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// The number of clients, operator requests, and requests in flight to servers.
    pub n_now: usize,
    /// The total number of clients and operator requests so far.
    pub n_total: u64,
}

/// A guard that counts a client connection or a request while it lives.
#[derive(Debug)]
pub struct ClientGuard(Arc<AtomicUsize>);

impl StatusBoard {
    /// Returns a board for a service that is starting.
    pub fn new(
        pool: Arc<Pool>,
        sessions: Arc<SessionRegistry>,
        catalog: Arc<Catalog>,
        liveness: Arc<Liveness>,
        addresses: Vec<SocketAddr>,
    ) -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            clients: Arc::default(),
            operators: Arc::default(),
            n_total: AtomicU64::new(0),
            is_serving: AtomicBool::new(false),
            pool,
            sessions,
            catalog,
            liveness,
            config_file: ArcSwapOption::empty(),
            addresses,
            memory_meter: Arc::new(Semaphore::new(1)),
        })
    }

    /// Returns the connections to servers.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Returns the sessions of clients.
    pub fn sessions(&self) -> &Arc<SessionRegistry> {
        &self.sessions
    }

    /// Records the configuration file in use.
    pub fn follow_config(&self, file: Option<&Path>) {
        let absolute = |file: &Path| path::absolute(file).unwrap_or_else(|_| file.to_owned());
        self.config_file.store(file.map(|file| Arc::new(absolute(file))));
    }

    /// Returns the configuration file in use, as an absolute path.
    pub fn config_file(&self) -> Option<Arc<PathBuf>> {
        self.config_file.load_full()
    }

    /// Returns the TCP addresses that the service listens at.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Records whether clients are served.
    pub fn serving(&self, is_serving: bool) {
        self.is_serving.store(is_serving, Ordering::Relaxed);
    }

    /// Counts a client's connection until the guard is dropped.
    pub fn client(&self) -> ClientGuard {
        self.count(&self.clients)
    }

    /// Counts an operator request until the guard is dropped.
    pub fn operator(&self) -> ClientGuard {
        self.count(&self.operators)
    }

    fn count(&self, counter: &Arc<AtomicUsize>) -> ClientGuard {
        self.n_total.fetch_add(1, Ordering::Relaxed);
        counter.fetch_add(1, Ordering::Relaxed);
        ClientGuard(Arc::clone(counter))
    }

    /// Returns the current and total use of the service.
    pub fn activity(&self) -> Activity {
        let n_in_flight: usize =
            self.pool.servers().iter().map(|server| server.traffic.in_flight).sum();
        let n_clients = self.clients.load(Ordering::Relaxed);
        let n_now = n_clients + self.operators.load(Ordering::Relaxed) + n_in_flight;
        Activity { n_now, n_total: self.n_total.load(Ordering::Relaxed) }
    }

    /// Returns the number of clients that left and operator requests that ended.
    pub fn n_gone(&self) -> u64 {
        let n_here = self.n_clients() + self.operators.load(Ordering::Relaxed);
        self.n_total.load(Ordering::Relaxed).saturating_sub(n_here as u64)
    }

    /// Returns the number of open client connections.
    pub fn n_clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }

    /// Counts the clients that are present now.
    pub fn census(&self) -> ClientCensus {
        self.sessions.census()
    }

    /// Returns the stuck loops; empty while the service is alive.
    pub fn stuck(&self) -> Vec<StuckLoop> {
        self.liveness.stuck()
    }

    /// Returns the uptime.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the state at this moment.
    pub fn status(&self) -> ServiceStatus {
        ServiceStatus {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            uptime_ms: u64::try_from(self.uptime().as_millis()).unwrap_or(u64::MAX),
            clients: self.n_clients(),
            sessions: self.sessions.n_present(),
            // A task always makes this call.
            tasks: Handle::try_current().map_or(0, |it| it.metrics().num_alive_tasks()),
            generation: self.pool.n_connected(),
            memory_budget: memory_budget::global().usage(),
            pool: self.pool.status(),
            servers: self.pool.servers(),
            quarantined: self.catalog.quarantined(),
            collisions: self.catalog.collisions(),
        }
    }

    /// Returns whether all required parts are available.
    pub fn readiness(&self) -> Readiness {
        let mut missing = Vec::new();
        if !self.is_serving.load(Ordering::Relaxed) {
            missing.push(MissingPart::Service { reason: "starting or stopping" });
        }
        missing.extend(self.stuck().into_iter().map(MissingPart::Loop));
        let servers = self.pool.servers().into_iter();
        missing.extend(servers.filter(|server| server.is_missing).map(|server| {
            MissingPart::Server {
                server: server.name,
                state: server.state,
                reason: server.last_error,
            }
        }));
        Readiness { ready: missing.is_empty(), missing }
    }
}

impl ServiceStatus {
    /// Returns the line that `systemctl status` shows: the numbers, then the servers that need
    /// attention, with their causes.
    pub fn line(&self) -> String {
        let n_up = self.servers.iter().filter(|server| server.is_connected()).count();
        let clients = if self.sessions == 1 { "client" } else { "clients" };
        let mut line = format!(
            "{n_up}/{} servers up, {} {clients}, generation {}",
            self.servers.len(),
            self.sessions,
            self.generation
        );
        let with_problem = |server: &SlotStatus| Some((server.name.clone(), server.problem()?));
        let problems: Vec<_> = self.servers.iter().filter_map(with_problem).collect();
        let (shown, rest) = problems.split_at(problems.len().min(PROBLEMS_SHOWN));
        for (name, problem) in shown {
            line.push_str(&format!("; {name}{problem}"));
        }
        let (named, rest) = rest.split_at(rest.len().min(PROBLEMS_NAMED));
        if !named.is_empty() {
            let names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
            line.push_str(&format!("; see `metamcp status` for {}", names.join(", ")));
        }
        if !rest.is_empty() {
            line.push_str(&format!(" and {} more", rest.len()));
        }
        line
    }
}

/// The number of servers whose cause is in the line for `systemctl status`.
const PROBLEMS_SHOWN: usize = 3;

/// The number of further servers that the line names.
const PROBLEMS_NAMED: usize = 8;

/// The longest cause in that line, in bytes.
const PROBLEM_BYTES_MAX: usize = 120;

/// Returns a value with its member names in camel case, as the control interface writes them.
pub fn camel(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (camel_name(&name), camel(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(camel).collect(),
        other => other,
    }
}

fn camel_name(name: &str) -> String {
    let mut words = name.split('_');
    let mut found = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        found.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        found.extend(letters);
    }
    found
}

impl SlotStatus {
    /// Returns whether the server has a connection that accepts requests.
    pub fn is_connected(&self) -> bool {
        self.protocol_version.is_some()
    }

    /// Returns what an operator should know about the server, to follow its name.
    fn problem(&self) -> Option<String> {
        if self.needs_login {
            return Some(format!(" needs a login: `metamcp login {}`", self.name));
        }
        let is_open = self.breaker.state != BreakerState::Normal;
        if self.state == LifecycleState::Connecting && self.is_missing && self.failure.is_none() {
            return Some(" is connecting".to_owned());
        }
        let tries_again = self.state == LifecycleState::Connecting && self.failure.is_some();
        let has_failed =
            self.state == LifecycleState::Failed || self.is_missing || is_open || tries_again;
        if self.is_connected() && !is_open || !has_failed {
            return None;
        }
        let cause = self.failure.as_ref().map_or("it is not connected", |failure| &failure.cause);
        let shown = redact::cut(cause.lines().next().unwrap_or_default(), PROBLEM_BYTES_MAX);
        let more = if shown.len() < cause.len() { " …" } else { "" };
        let state = match (is_open, tries_again) {
            (true, _) => ", breaker open",
            (false, true) => ", trying again",
            (false, false) => "",
        };
        Some(format!("{state}: {shown}{more}"))
    }
}

impl Drop for ClientGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
