//! The bridge between a client on standard input and output and the service.

use std::time::Duration;

/// The largest number of client messages that wait for an absent service: as many as requests run.
pub const BRIDGE_LINES_MAX: usize = super::PIPE_REQUESTS_MAX;

/// The largest size of kept client messages, in bytes: those that wait, and requests that may have
/// to be sent again. It is four of the largest.
pub const BRIDGE_BYTES_MAX: usize = 16 << 20;

/// The largest number of notifications and answers kept in case the service has not read them.
pub const BRIDGE_TAIL_MAX: usize = 64;

/// The time that a message waits for a service that is away. A restart may take
/// [`super::SHUTDOWN_TIMEOUT`] to finish requests, then [`super::PREWARM_TIMEOUT`] to connect
/// servers. It is below the 60 s after which the SDKs give up.
pub const BRIDGE_TIMEOUT: Duration = Duration::from_secs(40);

/// The first and the longest pause between attempts to reach a service that is away. A socket of
/// systemd always accepts connections; any other exists again within a moment.
pub const BRIDGE_BACKOFF: (Duration, Duration) =
    (Duration::from_millis(20), Duration::from_secs(1));

/// The time to wait for answers after the client has closed its end: [`super::PIPE_CLOSE_TIMEOUT`],
/// in which the service gives them, and some slack.
pub const BRIDGE_CLOSE_TIMEOUT: Duration = Duration::from_millis(1500);

/// The unread data for a client, in bytes, above which the bridge reads no more of the service.
pub const BRIDGE_UNREAD_BYTES: usize = 1 << 20;

/// The longest message of the service, in bytes: a server's answer, and what metamcp adds to it.
pub const BRIDGE_ANSWER_BYTES_MAX: usize = super::MESSAGE_BYTES_MAX + (1 << 20);
