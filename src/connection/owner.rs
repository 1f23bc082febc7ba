//! Whose connection it is.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::protocol::{apps, payloads::CLIENT_CAPABILITIES};

/// The key of the owner that is no client: those of clients begin with 1.
const ONLOOKER: u64 = 0;

/// For whom a connection is.
#[derive(Clone, Debug)]
pub enum ConnectionOwner {
    /// Everybody, many at a time. Nothing can be asked of nobody, so the server is offered no
    /// capability of a client that lets it ask (ruling 3). What a client only declares is offered.
    Shared,
    /// Everybody, one at a time: what the server asks is for whoever has the connection.
    Exclusive,
    /// One client.
    Owned(SessionOwner),
}

/// A client that can have connections of its own.
#[derive(Clone, Debug)]
pub struct SessionOwner {
    /// Tells clients apart for as long as the service runs.
    pub key: u64,
    /// The capabilities that it declared, as JSON text.
    pub capabilities: Arc<str>,
    has_gone: Arc<AtomicBool>,
}

impl ConnectionOwner {
    /// Returns the client capabilities that the server is offered, as JSON text.
    pub(super) fn capabilities(&self) -> &str {
        match self {
            Self::Shared => apps::CAPABILITIES,
            Self::Exclusive => CLIENT_CAPABILITIES,
            Self::Owned(owner) => &owner.capabilities,
        }
    }
}

impl SessionOwner {
    /// Returns the client `key` with these capabilities, JSON text.
    pub fn new(key: u64, capabilities: &str) -> Self {
        Self { key, capabilities: capabilities.into(), has_gone: Arc::default() }
    }

    /// Returns the one that is no client: it looks at what servers offer that have a connection for
    /// each, for all clients that have none or cannot be told from others.
    pub fn observer() -> Self {
        Self::new(ONLOOKER, apps::CAPABILITIES)
    }

    /// Notes that the client will never come again.
    pub fn close(&self) {
        self.has_gone.store(true, Ordering::Release);
    }

    /// Tells whether the client has gone: a connection for it would never be closed.
    pub fn has_gone(&self) -> bool {
        self.has_gone.load(Ordering::Acquire)
    }
}

impl PartialEq for SessionOwner {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
