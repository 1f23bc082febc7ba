//! Calls that go on by themselves.

use std::time::Duration;

use super::MESSAGE_BYTES_MAX;

/// How long a finished task and its result are kept. Source: seed 001, one hour.
pub const TASK_EXPIRY: Duration = Duration::from_secs(60 * 60);

/// The shortest expiry that can be declared. Ours: somebody has to read the result.
pub const TASK_EXPIRY_MIN: Duration = Duration::from_secs(60);

/// How many such calls run at a time. Ours: each is a request that nobody waits for, and a shared
/// server has others to answer.
pub const TASKS_RUNNING_MAX: usize = 64;

/// How many of them are known, those that have ended included; the oldest of these make room. Ours:
/// more than anybody reads.
pub const TASKS_MAX: usize = 512;

/// How large the outcomes of those that have ended may be together, in bytes. Ours: as for the results
/// that are kept for clients; one may be as large as a message.
pub const TASKS_BYTES_MAX: usize = 64 << 20;

/// The largest file of one of them, in bytes: an outcome, escaped as a string of JSON, and what is
/// known of the call. Ours: text doubles at most, but for control characters.
pub const TASK_FILE_BYTES_MAX: usize = 2 * MESSAGE_BYTES_MAX + (64 << 10);

/// How many files that cannot be read are set aside; further ones are removed. Ours.
pub const TASK_FILES_BROKEN_MAX: usize = 16;

/// For how long such a call may run when its caller does not say it. Ours: nobody waits, so only one
/// that hangs for ever has to be cut off.
pub const TASK_PATIENCE: Duration = Duration::from_secs(3600);

/// The longest time that its caller may give it. Ours.
pub const TASK_PATIENCE_MAX: Duration = Duration::from_secs(24 * 3600);

/// How long to wait before a server is asked again for a task of its own, where it does not say it.
/// Ours.
pub const TASK_POLL: Duration = Duration::from_secs(1);

/// The shortest and the longest of such waits, whatever the server says. Ours: a task is noticed
/// within a minute of its end.
pub const TASK_POLL_RANGE: (Duration, Duration) =
    (Duration::from_millis(50), Duration::from_secs(60));

/// The first and the longest pause before a server that was lost is looked for again because of a task
/// that it has. Ours.
pub const TASK_LOST_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// How many orders wait for one call to take them. Ours: an operator gives one.
pub const TASK_ORDERS_MAX: usize = 4;

/// How many pages of a server's own list of tasks are read. Ours.
pub const TASK_PAGES_MAX: usize = 10;
