//! The owner of a connection.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::protocol::{mcp_apps, payloads::CLIENT_CAPABILITIES};

/// The key of the owner that is not a client: the keys of clients begin with 1.
const OBSERVER_KEY: u64 = 0;

/// The clients that may use a connection.
#[derive(Clone, Debug)]
pub enum ConnectionOwner {
    /// All clients, many at a time. A question would have no single addressee, so the server is
    /// offered only capabilities that do not let it ask.
    Shared,
    /// All clients, one at a time: questions go to the client that holds the connection.
    Exclusive,
    /// One client.
    Owned(SessionOwner),
}

/// A client that can have connections of its own.
#[derive(Clone, Debug)]
pub struct SessionOwner {
    /// The number that identifies the client for as long as the service runs.
    pub key: u64,
    /// The capabilities that the client declared, as JSON text.
    pub capabilities: Arc<str>,
    has_gone: Arc<AtomicBool>,
}

impl ConnectionOwner {
    /// Returns the client capabilities that the server is offered, as JSON text.
    pub(super) fn capabilities(&self) -> &str {
        match self {
            Self::Shared => mcp_apps::CAPABILITIES,
            Self::Exclusive => CLIENT_CAPABILITIES,
            Self::Owned(owner) => &owner.capabilities,
        }
    }
}

impl SessionOwner {
    /// Returns the client `key` with `capabilities`, which are JSON text.
    pub fn new(key: u64, capabilities: &str) -> Self {
        Self { key, capabilities: capabilities.into(), has_gone: Arc::default() }
    }

    /// Returns the owner that is not a client. It reads the lists of servers that need a connection
    /// per client, on behalf of all clients that have none or cannot be identified.
    pub fn observer() -> Self {
        Self::new(OBSERVER_KEY, mcp_apps::CAPABILITIES)
    }

    /// Records that the client will never come back.
    pub fn close(&self) {
        self.has_gone.store(true, Ordering::Release);
    }

    /// Returns whether the client has gone: a connection for it would never be closed.
    pub fn has_gone(&self) -> bool {
        self.has_gone.load(Ordering::Acquire)
    }
}

impl PartialEq for SessionOwner {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
