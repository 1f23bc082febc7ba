//! What the service tells about itself: to systemd, to probes, to operators.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde::Serialize;
use serde_json::Value;
use tokio::{runtime::Handle, time::Instant};

use crate::{
    breaker::BreakerState,
    budget::{self, MemoryUsage},
    catalog::{Catalog, NameCollision, QuarantinedItem},
    name::ServerName,
    pool::{LifecycleState, Pool, PoolStatus, SlotStatus},
    telemetry::liveness::{Liveness, StuckLoop},
};

mod memory;
mod server;

pub use memory::MemoryFigures;
pub use server::ServerState;

/// Where the parts of the service write what they know of its state.
#[derive(Debug)]
pub struct StatusBoard {
    started: Instant,
    clients: Arc<AtomicUsize>,
    /// How many requests of operators run.
    operators: Arc<AtomicUsize>,
    /// How many clients and requests of operators there ever were.
    n_ever: AtomicU64,
    is_serving: AtomicBool,
    pool: Arc<Pool>,
    catalog: Arc<Catalog>,
    liveness: Arc<Liveness>,
    scales: memory::MemoryMeter,
}

/// The state of the service at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceStatus {
    /// The version of the program.
    pub version: &'static str,
    /// The process id.
    pub pid: u32,
    /// How long the service runs, in milliseconds.
    pub uptime_ms: u64,
    /// How many connections clients hold open.
    pub clients: usize,
    /// How many tasks live; in a service that only grows older, as many as before.
    pub tasks: usize,
    /// How many connections to servers were made since the start, all servers together.
    pub generation: u64,
    /// The memory that messages take.
    pub memory_budget: MemoryUsage,
    /// The connections of all servers together.
    pub pool: PoolStatus,
    /// Every declared server.
    pub servers: Vec<SlotStatus>,
    /// Items that clients are not shown, as far as lists were read.
    pub quarantined: Vec<QuarantinedItem>,
    /// Items that are called the same in the merged view, as far as lists were read.
    pub collisions: Vec<NameCollision>,
}

/// Whether the service has all that its configuration asks for.
#[derive(Clone, Debug, Serialize)]
pub struct Readiness {
    /// Nothing is missing.
    pub ready: bool,
    /// What is missing, in words.
    pub missing: Vec<MissingPart>,
}

/// One thing that is missing.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum MissingPart {
    /// The service is starting or stopping.
    Service {
        /// Which of the two.
        reason: &'static str,
    },
    /// A server that is to be connected always is not.
    Server {
        /// Its name.
        server: ServerName,
        /// Its state.
        state: LifecycleState,
        /// Why, if that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A loop does not turn.
    Loop(StuckLoop),
}

/// Who uses the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// How many clients there are, requests of operators, and requests that servers work on.
    pub n_now: usize,
    /// How many clients and requests of operators there ever were.
    pub n_ever: u64,
}

/// Counts a client's connection, or a request, for as long as it lives.
#[derive(Debug)]
pub struct ClientGuard(Arc<AtomicUsize>);

impl StatusBoard {
    /// Returns a board for a service that is starting.
    pub fn new(pool: Arc<Pool>, catalog: Arc<Catalog>, liveness: Arc<Liveness>) -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            clients: Arc::default(),
            operators: Arc::default(),
            n_ever: AtomicU64::new(0),
            is_serving: AtomicBool::new(false),
            pool,
            catalog,
            liveness,
            scales: memory::MemoryMeter::default(),
        })
    }

    /// Notes that clients are served, or not any more.
    pub fn serving(&self, is_serving: bool) {
        self.is_serving.store(is_serving, Ordering::Relaxed);
    }

    /// Counts a client's connection until the guard is dropped.
    pub fn client(&self) -> ClientGuard {
        self.count(&self.clients)
    }

    /// Counts a request of an operator until the guard is dropped.
    pub fn operator(&self) -> ClientGuard {
        self.count(&self.operators)
    }

    fn count(&self, counter: &Arc<AtomicUsize>) -> ClientGuard {
        self.n_ever.fetch_add(1, Ordering::Relaxed);
        counter.fetch_add(1, Ordering::Relaxed);
        ClientGuard(Arc::clone(counter))
    }

    /// Returns who uses the service.
    pub fn activity(&self) -> Activity {
        let n_in_flight: usize =
            self.pool.servers().iter().map(|server| server.traffic.in_flight).sum();
        let n_clients = self.clients.load(Ordering::Relaxed);
        let n_now = n_clients + self.operators.load(Ordering::Relaxed) + n_in_flight;
        Activity { n_now, n_ever: self.n_ever.load(Ordering::Relaxed) }
    }

    /// Returns how many clients have gone and how many requests of operators are over.
    pub fn n_gone(&self) -> u64 {
        let n_here = self.n_clients() + self.operators.load(Ordering::Relaxed);
        self.n_ever.load(Ordering::Relaxed).saturating_sub(n_here as u64)
    }

    /// Returns how many connections clients hold open.
    pub fn n_clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }

    /// Returns the loops that do not turn; empty while the service is alive.
    pub fn stuck(&self) -> Vec<StuckLoop> {
        self.liveness.stuck()
    }

    /// Returns how long the service runs.
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
            // Always asked for by a task.
            tasks: Handle::try_current().map_or(0, |it| it.metrics().num_alive_tasks()),
            generation: self.pool.n_connected(),
            memory_budget: budget::global().usage(),
            pool: self.pool.status(),
            servers: self.pool.servers(),
            quarantined: self.catalog.quarantined(),
            collisions: self.catalog.collisions(),
        }
    }

    /// Returns whether everything is there that should be.
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
    /// Returns the line that `systemctl status` shows.
    pub fn line(&self) -> String {
        let n_up = self.servers.iter().filter(|server| server.is_connected()).count();
        let mut line = format!(
            "{n_up}/{} servers up, {} clients, generation {}",
            self.servers.len(),
            self.clients,
            self.generation
        );
        let is_open = |server: &&SlotStatus| server.breaker.state != BreakerState::Normal;
        match self.servers.iter().filter(is_open).count() {
            0 => {}
            1 => line.push_str(", 1 breaker open"),
            n_open => line.push_str(&format!(", {n_open} breakers open")),
        }
        line
    }
}

/// Returns a value of ours with the names of its members in camel case, as operators' programs know
/// them.
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
    /// Tells whether the server has a connection that takes requests.
    pub fn is_connected(&self) -> bool {
        self.protocol_version.is_some()
    }
}

impl Drop for ClientGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
