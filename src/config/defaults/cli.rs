//! Bounds of the command line: its waits, the sizes that it accepts, the configurations of other
//! clients that it imports, and the declarations of tools in TypeScript.

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

/// The largest file that is read, in bytes. Claude Code keeps its servers in a file with much else,
/// which has tens of megabytes after some years.
pub const IMPORT_BYTES_MAX: usize = 64 << 20;

/// The largest number of servers that are taken from all files together: more than a person
/// declares by hand, and few enough to check each on its own.
pub const IMPORT_SERVERS_MAX: usize = 1000;

/// The depth to which a schema is followed; deeper parts are `unknown`. Requests to the control
/// socket have this bound, and compilers follow far deeper.
pub const TYPEGEN_DEPTH_MAX: usize = 64;

/// The largest number of parts of types for one schema, including named ones; the rest is
/// `unknown`. It is a hundred times the largest schema of real servers.
pub const TYPEGEN_PARTS_MAX: usize = 20_000;

/// The largest number of alternatives of an intersection of unions; the rest is left out. The
/// compiler refuses a type of 100,000.
pub const TYPEGEN_ALTERNATIVES_MAX: usize = 1_000;

/// The largest number of elements of a tuple with types of their own; the rest is `unknown`.
pub const TYPEGEN_TUPLE_MAX: usize = 256;

/// The longest description in a comment, in bytes: a screen of text.
pub const TYPEGEN_COMMENT_BYTES_MAX: usize = 4 << 10;
