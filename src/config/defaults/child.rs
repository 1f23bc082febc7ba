//! Bounds of the processes of servers: their output and their end.

use std::time::Duration;

/// The longest line of a child's standard error that is logged whole, in bytes.
pub const STDERR_LINE_BYTES_MAX: usize = 8 << 10;

/// The lines of a child's standard error that are kept for error messages, and as many for
/// operators. Node writes 14 lines after the line that names the error.
pub const STDERR_LINES_KEPT: usize = 20;

/// The lines of a child's standard error that are logged per second; a burst may be ten times as
/// many.
pub const STDERR_LINES_PER_SECOND: u32 = 20;

/// The time that the pipes of an ended child are still read.
pub const PIPE_DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

/// The time that a server may take to end after it has closed a pipe, before it counts as alive. A
/// process that ends closes its pipes first, and has ended within milliseconds.
pub const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// The time that the journal may take to return the output of a unit before its end. Requests that
/// wait for an answer wait for that too.
pub const JOURNAL_TIMEOUT: Duration = Duration::from_secs(1);

/// The largest number of lines of the journal that are quoted for an ended unit.
pub const JOURNAL_LINES: usize = 10;

/// The time to wait for a killed process. The kernel needs milliseconds.
pub const AFTER_KILL: Duration = Duration::from_secs(1);
