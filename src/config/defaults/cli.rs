//! Bounds of the command line: its waits, and the sizes that it accepts.

use std::time::Duration;

/// The time that an operator's command waits for work of a server: the longest
/// `service.max_total_timeout`. The service ends longer calls, and ctrl-c ends any call.
pub const CONTROL_CALL_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest answer that an operator's command accepts, in bytes. A list may be as long as
/// several of the longest messages together.
pub const CONTROL_ANSWER_BYTES_MAX: usize = 256 << 20;

/// The time that `metamcp call` waits after ctrl-c for the service to hang up, or still to answer.
pub const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// The time that `metamcp stop` waits for the end of the service. It is longer than the usual
/// `service.shutdown_timeout` and the steps after it.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// The refresh interval of `metamcp status --watch`, slow enough to read.
pub const WATCH_INTERVAL: Duration = Duration::from_secs(2);

/// The end of a log file that `metamcp logs` reads, in bytes: more than a person reads.
pub const LOG_TAIL_BYTES: u64 = 4 << 20;

/// The poll interval of `metamcp logs --follow`: shorter than a person notices.
pub const LOG_FOLLOW_INTERVAL: Duration = Duration::from_millis(250);
