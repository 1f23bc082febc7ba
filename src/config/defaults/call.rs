//! Bounds of requests: their times, their retries, the breaker, and calls that continue without their
//! callers.

use std::time::Duration;

use super::MESSAGE_BYTES_MAX;

/// The longest silence of a request. Progress restarts the time.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest total time of a request.
pub const MAX_TOTAL_TIMEOUT: Duration = Duration::from_secs(300);

/// The time that a client of the modern era may take to return with the input that a server asked
/// for. Until then metamcp holds the server's call. A person has to answer.
pub const INPUT_TIMEOUT: Duration = Duration::from_secs(300);

/// The largest number of times that a server may ask for input for one request, against a loop.
pub const INPUT_ROUNDS_MAX: u32 = 32;

/// The largest number of results of one server that are kept for clients that asked for a task.
pub const FINISHED_TASKS_MAX: usize = 256;

/// The largest total size of kept task results, in bytes. One may be as large as a message.
pub const FINISHED_TASKS_BYTES_MAX: usize = 64 << 20;

/// The time that a task result is kept if the client does not set it.
pub const FINISHED_TASK_TTL: Duration = Duration::from_secs(300);

/// The shortest time that a task result is kept, whatever the client sets. The client has to return
/// for the result.
pub const FINISHED_TASK_TTL_MIN: Duration = Duration::from_secs(1);

/// The longest time that a task result is kept, whatever the client sets.
pub const FINISHED_TASK_TTL_MAX: Duration = Duration::from_secs(3600);

/// The first and the longest pause before a request is sent again to a server of the modern era. It
/// applies if the server asks for no input, only for the repetition.
pub const INPUT_POLL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The largest number of times that a request is sent again that provably was not executed. The new
/// connection removes the cause.
pub const REPLAYS: u32 = 1;

/// The largest number of times that an interrupted request is sent again that may be executed
/// twice. One request may meet two of the TCP connections that a stopping upstream closes.
pub const REPEATS: u32 = 2;

/// The pause before an interrupted request is sent again. By then, the connections that the
/// upstream closes are closed.
pub const REPEAT_PAUSE: Duration = Duration::from_millis(50);

/// The largest number of further attempts to connect within one request, after one that failed.
pub const RECONNECTS_MAX: u32 = 1;

/// The largest number of repetitions of a request that may have been executed and may not be
/// executed twice. The server's `retry` must permit it.
pub const BLIND_RETRIES: u32 = 1;

/// The largest number of starts of a server's process or unit for one request. The sum of the
/// attempts above may be larger. A server that dies at its start is started once more. One that
/// dies of a request would die of it again.
pub const STARTS_MAX: u32 = 2;

/// The number of failures in a row that opens the breaker of a server.
pub const FAILURE_THRESHOLD: u32 = 5;

/// The largest `failure_threshold`. Beyond it no breaker would ever open, which 0 means too.
pub const FAILURE_THRESHOLD_MAX: u32 = 1000;

/// The time that a breaker stays open before the server is probed.
pub const BREAKER_COOLDOWN: Duration = Duration::from_secs(30);

/// The largest number of incidents that are remembered because several requests may report them.
/// Fewer happen while the requests that met one are answered.
pub const INCIDENTS_KEPT: usize = 16;

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
