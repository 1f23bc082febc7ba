//! What the pool tells about itself.

use std::fmt;

use serde::Serialize;

use super::lifecycle::LifecycleState;
use crate::{
    breaker::BreakerSnapshot, config::StartPolicy, connection::ConnectionTraffic, name::ServerName,
};

/// One server as status output shows it.
#[derive(Clone, Debug, Serialize)]
pub struct SlotStatus {
    /// Its name.
    pub name: ServerName,
    /// `idle`, `connecting`, `active`, `failed` or `closed`.
    pub state: LifecycleState,
    /// `stdio`, `http`, or `sse` while it is connected over that.
    pub transport: &'static str,
    /// `shared`, `exclusive` or `session`.
    pub sharing: &'static str,
    /// It is to be connected, and is not.
    #[serde(skip)]
    pub is_missing: bool,
    /// How many connections there are.
    pub connections: usize,
    /// How many of its connections wait for room.
    pub waiting: usize,
    /// How many times it was connected.
    pub generation: u64,
    /// The process id of a spawned child, of the first where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The process ids of all spawned children.
    #[serde(skip)]
    pub pids: Vec<u32>,
    /// `legacy` or `modern`: whether it shakes hands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era: Option<&'static str>,
    /// The protocol version that it is spoken to in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// Why the last attempt to connect failed, or the last connection ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Whether requests reach it.
    pub breaker: BreakerSnapshot,
    /// Numbers of the connections, all together.
    #[serde(flatten)]
    pub traffic: ConnectionTraffic,
    /// When it is to be connected.
    pub start: StartPolicy,
}

/// The connections of one server, for those who wait for one of theirs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerConnections {
    /// The server.
    pub server: ServerName,
    /// How many connections it has, those that are being made included.
    pub connections: usize,
    /// How many of these are in use.
    pub active: usize,
    /// How many requests hold them.
    pub requests: usize,
    /// How many connections are being made.
    pub connecting: usize,
    /// How many are being closed.
    pub closing: usize,
}

impl ServerConnections {
    /// Returns one that has no connection.
    pub(super) fn none(server: ServerName) -> Self {
        Self { server, connections: 0, active: 0, requests: 0, connecting: 0, closing: 0 }
    }

    /// Counts a connection in `state` that `n_requests` hold.
    pub(super) fn add(&mut self, state: LifecycleState, n_requests: usize) {
        self.connections += 1;
        self.requests += n_requests;
        match state {
            LifecycleState::Active => self.active += 1,
            LifecycleState::Connecting => self.connecting += 1,
            LifecycleState::Failed | LifecycleState::Closed => self.closing += 1,
            LifecycleState::Idle => {}
        }
    }
}

impl fmt::Display for ServerConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, connections, active, requests, connecting, closing } = self;
        let idle = connections - active - connecting - closing;
        let in_use = format!("in use by {requests} requests");
        let parts = [
            (*active, in_use.as_str()),
            (*connecting, "being made"),
            (*closing, "being closed"),
            (idle, "not in use"),
        ];
        let parts = parts.iter().filter(|(number, _)| *number > 0);
        let words: Vec<_> = parts.map(|(number, what)| format!("{number} {what}")).collect();
        write!(f, "{server}: {}", words.join(", "))
    }
}

/// The pool as a whole, for status output.
#[derive(Clone, Debug, Serialize)]
pub struct PoolStatus {
    /// How many connections there may be.
    pub size: usize,
    /// How many more for those who have waited.
    pub reserve_size: usize,
    /// How many are kept although nobody uses them.
    pub min_size: usize,
    /// How many there are, those that are being made or closed included.
    pub connections: usize,
    /// How many of these serve a request.
    pub active: usize,
    /// How many of these serve none.
    pub idle: usize,
    /// How many connections wait for room.
    pub waiting: usize,
    /// How many made room for others so far.
    pub evicted: u64,
    /// How many were closed so far because nobody used them.
    pub swept: u64,
    /// How many changes of state were refused so far; each one is a fault of ours.
    pub illegal_transitions: u64,
}
