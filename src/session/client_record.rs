//! One client as operators see it: its name, its transport, and the servers that it uses.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    call_record::{ClientName, PeerTransport},
    config::defaults,
    protocol::Era,
    server_name::ServerName,
};

/// The transport between a client and metamcp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientTransport {
    /// Streamable HTTP.
    Http,
    /// The HTTP+SSE transport of 2024-11-05.
    LegacySse,
    /// Standard input and output, or a connection attached to the control socket.
    Pipe,
}

/// One client as operators see it.
#[derive(Debug)]
pub struct ClientRecord {
    name: Arc<ClientName>,
    era: Era,
    transport: ClientTransport,
    created: Instant,
    /// The time from `created` to the last request, in milliseconds.
    seen_ms: AtomicU64,
    usage: Mutex<ServerUsage>,
}

/// The servers that a client has called or read from.
#[derive(Debug, Default)]
struct ServerUsage {
    servers: BTreeSet<ServerName>,
    last_call: Option<Instant>,
}

impl ClientTransport {
    /// Returns the word for status output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::LegacySse => "sse",
            Self::Pipe => "stdio",
        }
    }

    /// Returns the transport below HTTP or MCP.
    pub(super) fn network(self) -> PeerTransport {
        match self {
            Self::Http | Self::LegacySse => PeerTransport::Tcp,
            Self::Pipe => PeerTransport::Pipe,
        }
    }
}

impl ClientRecord {
    /// Returns the record of a client that has sent a request now.
    pub fn new(name: ClientName, era: Era, transport: ClientTransport) -> Self {
        Self {
            name: Arc::new(name),
            era,
            transport,
            created: Instant::now(),
            seen_ms: AtomicU64::new(0),
            usage: Mutex::default(),
        }
    }

    pub(super) fn name(&self) -> &Arc<ClientName> {
        &self.name
    }

    pub(super) fn era(&self) -> Era {
        self.era
    }

    pub(super) fn transport(&self) -> ClientTransport {
        self.transport
    }

    /// Records a request of the client.
    pub(super) fn note_request(&self, now: Instant) {
        let seen = now.saturating_duration_since(self.created).as_millis();
        self.seen_ms.fetch_max(u64::try_from(seen).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Records that the client calls `server`, or reads from it.
    pub(super) fn note_use(&self, server: &ServerName) {
        let mut usage = self.usage();
        usage.last_call = Some(Instant::now());
        if !usage.servers.contains(server) {
            usage.servers.insert(server.clone());
        }
    }

    /// Returns the time from the first to the last request.
    pub(super) fn seen_for(&self) -> Duration {
        Duration::from_millis(self.seen_ms.load(Ordering::Relaxed))
    }

    /// Returns the time since the last request.
    pub(super) fn unseen_for(&self, now: Instant) -> Duration {
        let seen = self.created + Duration::from_millis(self.seen_ms.load(Ordering::Relaxed));
        now.saturating_duration_since(seen)
    }

    /// Returns whether the client sent a request within [`defaults::CLIENT_PRESENT_WINDOW`].
    pub(super) fn is_recent(&self, now: Instant) -> bool {
        self.unseen_for(now) < defaults::CLIENT_PRESENT_WINDOW
    }

    /// Returns the time of the last call or read.
    pub(super) fn last_call(&self) -> Option<Instant> {
        self.usage().last_call
    }

    /// Returns whether the client has called `server` or read from it.
    pub(super) fn has_used(&self, server: &ServerName) -> bool {
        self.usage().servers.contains(server)
    }

    /// Returns the servers that the client has called or read from.
    pub(super) fn servers(&self) -> BTreeSet<ServerName> {
        self.usage().servers.clone()
    }

    fn usage(&self) -> MutexGuard<'_, ServerUsage> {
        // Held only for statements on plain data.
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
