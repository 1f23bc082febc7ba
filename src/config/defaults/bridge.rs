//! The bridge between a client on standard input and output and the service.

use std::time::Duration;

/// How many messages of the client wait while the service is away. Ours: as many requests as run.
pub const BRIDGE_LINES_MAX: usize = super::PIPE_REQUESTS_MAX;

/// How much of the client's messages is kept, in bytes: those that wait, and requests that could have
/// to be sent again. Ours: four of the largest.
pub const BRIDGE_BYTES_MAX: usize = 16 << 20;

/// How many notifications and answers are kept that the service may not have read. Ours.
pub const BRIDGE_TAIL_MAX: usize = 64;

/// How long a message waits for a service that is away. Ours: a restart that finishes what runs may
/// take [`super::SHUTDOWN_TIMEOUT`], and connect its servers for [`super::PREWARM_TIMEOUT`] then; and
/// below the 60 s after which the SDKs give up.
pub const BRIDGE_PATIENCE: Duration = Duration::from_secs(40);

/// The pauses between attempts to reach a service that is away: the first, and the longest. Ours: a
/// socket of systemd takes connections all the time, any other is there within a moment.
pub const BRIDGE_BACKOFF: (Duration, Duration) =
    (Duration::from_millis(20), Duration::from_secs(1));

/// How long the answers to a client that has closed its end are waited for: those that the service
/// gives it in [`super::PIPE_FAREWELL`], and some slack. Ours.
pub const BRIDGE_FAREWELL: Duration = Duration::from_millis(1500);

/// How much may wait for a client that does not read before no more is taken from the service, in
/// bytes. Ours.
pub const BRIDGE_UNREAD_BYTES: usize = 1 << 20;

/// The longest message of the service, in bytes: an answer of a server with what we put into it. Ours.
pub const BRIDGE_ANSWER_BYTES_MAX: usize = super::MESSAGE_BYTES_MAX + (1 << 20);
