//! Bounds of calls that continue without their caller.

use std::time::Duration;

use super::MESSAGE_BYTES_MAX;

/// The time that a finished task and its result are kept.
pub const TASK_EXPIRY: Duration = Duration::from_secs(60 * 60);

/// The shortest expiry that can be declared. The caller needs time to read the result.
pub const TASK_EXPIRY_MIN: Duration = Duration::from_secs(60);

/// The largest number of background calls that run at a time. No client waits for them, and a
/// shared server has other requests to answer.
pub const TASKS_RUNNING_MAX: usize = 64;

/// The largest number of background calls, including ended ones; the oldest ended ones go first.
pub const TASKS_MAX: usize = 512;

/// The largest total size of the outcomes of ended ones, in bytes. It is that of the results kept
/// for clients; one may be as large as a message.
pub const TASKS_BYTES_MAX: usize = 64 << 20;

/// The largest file of one of them, in bytes: an outcome, escaped as a JSON string, and the data
/// about the call. Text doubles at most, except control characters.
pub const TASK_FILE_BYTES_MAX: usize = 2 * MESSAGE_BYTES_MAX + (64 << 10);

/// The largest number of unreadable files that are set aside; further ones are removed.
pub const TASK_FILES_BROKEN_MAX: usize = 16;

/// The time that a background call may run if its caller does not set it. No client waits, so only
/// a call that hangs for ever must be cut off.
pub const TASK_TIMEOUT: Duration = Duration::from_secs(3600);

/// The longest time that the caller of a background call may set.
pub const TASK_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3600);

/// The pause before a server is asked again about its own task, if the server does not set it.
pub const TASK_POLL: Duration = Duration::from_secs(1);

/// The shortest and the longest such pause, whatever the server sets.
pub const TASK_POLL_RANGE: (Duration, Duration) =
    (Duration::from_millis(50), Duration::from_secs(60));

/// The first and the longest pause before a lost server is connected again because of its task.
pub const TASK_LOST_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// The largest number of commands that wait for one task. An operator sends one.
pub const TASK_COMMANDS_MAX: usize = 4;

/// The largest number of pages that are read of a server's own list of tasks.
pub const TASK_PAGES_MAX: usize = 10;
