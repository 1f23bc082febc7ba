//! Processes of servers: what they write, and how they end.

use std::time::Duration;

/// The longest line of a child's standard error that is logged whole, in bytes. Ours.
pub const STDERR_LINE_BYTES_MAX: usize = 8 << 10;

/// How many lines of a child's standard error are kept for error messages, and as many for operators. Ours: what Node writes
/// after the line that says what is wrong is 14 lines long.
pub const STDERR_LINES_KEPT: usize = 20;

/// How many lines of a child's standard error are logged per second, after a burst of ten times
/// as many; the rest is counted. Ours.
pub const STDERR_LINES_PER_SECOND: u32 = 20;

/// How long the pipes of a child that has ended are read on. Ours.
pub const LAST_WORDS: Duration = Duration::from_millis(100);

/// How long a server may take to end once it has closed a pipe, before it counts as one that lives
/// on. Ours: what ends closes its pipes first, and is seen to end within milliseconds.
pub const END_PATIENCE: Duration = Duration::from_millis(500);

/// How long the journal may take to tell what a unit wrote before it ended. Ours: those who wait for
/// an answer wait for that too.
pub const JOURNAL_PATIENCE: Duration = Duration::from_secs(1);

/// How many lines of the journal are quoted of a unit that has ended. Ours.
pub const JOURNAL_LINES: usize = 10;

/// How long a killed process is waited for. Ours: the kernel needs milliseconds.
pub const AFTER_KILL: Duration = Duration::from_secs(1);
