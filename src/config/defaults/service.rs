//! The service as a whole: its start and end, its logs, its control socket, what it shows and asks.

use std::time::Duration;

/// How long running requests may go on after a stop was asked for.
/// Source: seed 001, `shutdownTimeout`.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the service waits for its `prewarm` servers before it accepts clients without them.
/// Below systemd's 90 s start time-out. Source: design ruling 11; the number is ours.
pub const PREWARM_TIMEOUT: Duration = Duration::from_secs(20);

/// The longest path of a Unix socket, in bytes. Source: unix(7), 108 with the final NUL.
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The longest request line on the control socket, in bytes. Ours: what a body at the edge may have.
pub const CONTROL_LINE_BYTES_MAX: usize = super::BODY_BYTES_MAX;
