//! How many connections there are, and for how long.

use std::time::Duration;

/// The first and the longest pause before a `keep-alive` server that failed is tried again.
/// Source: seed 001, "1, 2, 4, 8, 16 … 60 s".
pub const RECONNECT_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How long a connection must have lasted for the pauses to begin at the first one again: a server
/// that ends right after its handshake must not be started every second. Ours.
pub const STABLE_AFTER: Duration = Duration::from_secs(60);

/// How many connections to servers there may be, all servers together.
/// Source: seed 000, `poolSize`.
pub const POOL_SIZE: usize = 20;

/// How many more there may be for those who have waited. Source: seed 000, `resPoolSize`.
pub const POOL_RESERVE_SIZE: usize = 0;

/// How long a request waits before it may have one of the reserve. Source: seed 000,
/// `resPoolTimeout`.
pub const POOL_RESERVE_TIMEOUT: Duration = Duration::from_secs(5);

/// How many connections are kept although nobody uses them. Source: seed 000, `minPoolSize`.
pub const POOL_MIN_SIZE: usize = 0;

/// How long a connection is kept that nobody uses. Source: seed 000, `idleTimeoutMs`.
pub const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The largest `pool.size`, and the largest `pool.reserve_size`. Source: seed 000, `MAX_CHILDREN`.
pub const POOL_SIZE_MAX: usize = 1024;

/// How long an `ephemeral` connection waits for another request after its last answer: clients list
/// tools right after the handshake. Ours: a quarter of the 100 ms in which it is to be closed.
pub const EPHEMERAL_LINGER: Duration = Duration::from_millis(25);

/// How many connections an `exclusive` server has at most. Ours: each may be a process.
pub const EXCLUSIVE_CONNECTIONS: usize = 4;

/// How many connections a `session` server has at most. Ours: each may be a browser.
pub const SESSION_CONNECTIONS: usize = 16;

/// The largest `max_connections`: beyond it, a host runs out of processes. Ours.
pub const MAX_CONNECTIONS_MAX: usize = 1024;

/// How long a server may take to set a log level, to have a resource watched, or to acknowledge a
/// subscription. Ours.
pub const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);

/// How often what clients want of a session is compared with what it has, before it is left to the
/// next change. Ours: one round is enough unless others change it meanwhile.
pub const SETTLE_ROUNDS: usize = 8;
