//! Bounds on the number and lifetime of connections.

use std::time::Duration;

/// The first and the longest pause before a failed `keep-alive` server is tried again.
pub const RECONNECT_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The time that a connection must last before the pauses start again at the first one. A server
/// that ends right after its handshake must not be started every second.
pub const STABLE_AFTER: Duration = Duration::from_secs(60);

/// The largest number of connections to servers, all servers together.
pub const POOL_SIZE: usize = 20;

/// The number of further connections, for requests that have waited.
pub const POOL_RESERVE_SIZE: usize = 0;

/// The time that a request waits before it may use the reserve.
pub const POOL_RESERVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The number of idle connections that are kept.
pub const POOL_MIN_SIZE: usize = 0;

/// The time after which an idle connection is closed.
pub const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The largest `pool.size`, and the largest `pool.reserve_size`.
pub const POOL_SIZE_MAX: usize = 1024;

/// The time that an `ephemeral` connection waits for another request after its last answer: clients
/// list tools right after the handshake. It is a quarter of the 100 ms until it must be closed.
pub const EPHEMERAL_LINGER: Duration = Duration::from_millis(25);

/// The default of `max_connections` for an `exclusive` server. Each may be a process.
pub const EXCLUSIVE_CONNECTIONS: usize = 4;

/// The default of `max_connections` for a `session` server. Each may be a browser.
pub const SESSION_CONNECTIONS: usize = 16;

/// The largest `max_connections`. Beyond it, a host runs out of processes.
pub const MAX_CONNECTIONS_MAX: usize = 1024;

/// The number of events of a server that are kept for operators, such as starts and ends.
pub const SERVER_EVENTS_KEPT: usize = 32;

/// The number of these that `metamcp status NAME` shows.
pub const SERVER_EVENTS_SHOWN: usize = 10;

/// The longest details of such an event, in bytes.
pub const SERVER_EVENT_BYTES_MAX: usize = 1 << 10;

/// The time that a server may take to acknowledge a log level or a subscription.
pub const RECONCILE_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest number of rounds that reconcile a connection with the demand of clients, before the
/// next change. One round is enough unless the demand changes meanwhile.
pub const RECONCILE_ROUNDS_MAX: usize = 8;
