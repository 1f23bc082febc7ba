//! The command line: how long it waits, and how much it takes.

use std::time::Duration;

/// How long an operator's command waits for what a server has to do. Ours: as long as the longest
/// `service.max_total_timeout`; before that, the service ends what takes too long, or ctrl-c.
pub const CONTROL_CALL_PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest answer that an operator's command takes, in bytes. Ours: a list may be as long as some
/// of the longest messages together.
pub const CONTROL_ANSWER_BYTES_MAX: usize = 256 << 20;

/// How long `metamcp call` waits after ctrl-c for the service to say that it has heard of it. Ours.
pub const CANCEL_PATIENCE: Duration = Duration::from_secs(2);

/// How long `metamcp stop` waits for the end of the service. Ours: longer than the usual
/// `service.shutdown_timeout` and what follows it.
pub const STOP_PATIENCE: Duration = Duration::from_secs(60);

/// How often `metamcp status --watch` looks again. Ours: slow enough to read.
pub const WATCH_INTERVAL: Duration = Duration::from_secs(2);

/// How much of the end of a log file `metamcp logs` reads, in bytes. Ours: more than one reads.
pub const LOG_TAIL_BYTES: u64 = 4 << 20;

/// How often `metamcp logs --follow` looks at a log file for more. Ours: sooner than one notices.
pub const LOG_FOLLOW_INTERVAL: Duration = Duration::from_millis(250);
