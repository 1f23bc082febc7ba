//! The pool's status.

use std::{fmt, time::SystemTime};

use serde::Serialize;

use super::connection_lifecycle::LifecycleState;
use crate::{
    breaker::BreakerSnapshot,
    config::StartPolicy,
    connection::{ConnectError, ConnectionTraffic, RequestFailure},
    error_report::chain,
    server_name::ServerName,
};

/// The status of one server.
#[derive(Clone, Debug, Serialize)]
pub struct SlotStatus {
    /// Its name.
    pub name: ServerName,
    /// `idle`, `connecting`, `active`, `failed` or `closed`.
    pub state: LifecycleState,
    /// `stdio` or `http`, or `sse` while it is connected over SSE.
    pub transport: &'static str,
    /// `shared`, `exclusive` or `session`.
    pub sharing: &'static str,
    /// `true` if no request to it succeeds before a login.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub needs_login: bool,
    /// It should be connected and is not.
    #[serde(skip)]
    pub is_missing: bool,
    /// The number of connections.
    pub connections: usize,
    /// The number of its connections that wait for a permit.
    pub waiting: usize,
    /// The number of connections made so far.
    pub generation: u64,
    /// The process id of a spawned child, of the first if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The process ids of all spawned children.
    #[serde(skip)]
    pub pids: Vec<u32>,
    /// `legacy` (with a handshake) or `modern` (without).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era: Option<&'static str>,
    /// The protocol version in use with the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The reason why the last attempt failed, or why the last connection ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The same failure, with its cause and its time.
    #[serde(skip)]
    pub failure: Option<ServerFailure>,
    /// The state of the breaker.
    pub breaker: BreakerSnapshot,
    /// The traffic of all its connections together.
    #[serde(flatten)]
    pub traffic: ConnectionTraffic,
    /// The declared start policy.
    pub start: StartPolicy,
}

/// The last failure of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFailure {
    /// The whole error.
    pub text: String,
    /// Its cause, about the server: "its process exited with code 1".
    pub cause: String,
    /// The next step for the operator.
    pub remedy: String,
    /// The time.
    pub at: SystemTime,
}

impl ServerFailure {
    /// Returns the failure of an attempt to connect that fails now.
    pub(super) fn of_connect(error: &ConnectError) -> Self {
        let remedy = error.hint().into_owned();
        Self { text: chain(error), cause: error.cause(), remedy, at: SystemTime::now() }
    }

    /// Returns the failure of a connection to `server` that ends now.
    pub(super) fn of_end(reason: &RequestFailure, server: &ServerName) -> Self {
        let remedy = reason.hint(server).into_owned();
        Self { text: reason.to_string(), cause: reason.cause(), remedy, at: SystemTime::now() }
    }
}

/// The connections of one server, for error messages to waiting requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerConnections {
    /// The server.
    pub server: ServerName,
    /// The number of connections, including those that are connecting.
    pub connections: usize,
    /// The number of these that are in use.
    pub active: usize,
    /// The number of requests that hold them.
    pub requests: usize,
    /// The number of connections that are connecting.
    pub connecting: usize,
    /// The number that are closing.
    pub closing: usize,
}

impl ServerConnections {
    /// Returns an entry without connections.
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
            (*connecting, "connecting"),
            (*closing, "closing"),
            (idle, "idle"),
        ];
        let parts = parts.iter().filter(|(number, _)| *number > 0);
        let words: Vec<_> = parts.map(|(number, state)| format!("{number} {state}")).collect();
        write!(f, "{server}: {}", words.join(", "))
    }
}

/// The status of the pool as a whole.
#[derive(Clone, Debug, Serialize)]
pub struct PoolStatus {
    /// The maximum number of connections.
    pub size: usize,
    /// The number of reserve connections for requests that have waited.
    pub reserve_size: usize,
    /// The number of connections to keep although they are idle.
    pub min_size: usize,
    /// The number of connections, including those that are connecting or closing.
    pub connections: usize,
    /// The number of these in use.
    pub active: usize,
    /// The number of these that are idle.
    pub idle: usize,
    /// The number of connections that wait for a permit.
    pub waiting: usize,
    /// The number of connections evicted so far.
    pub evicted: u64,
    /// The number of connections closed so far because of the idle timeout.
    pub swept: u64,
    /// The number of refused state transitions so far. Each one is a bug in metamcp.
    pub illegal_transitions: u64,
}
