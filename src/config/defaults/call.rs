//! Requests: how long they may take, what is sent again, and when a server is left alone.

use std::time::Duration;

/// How long a request may stay silent; progress starts the time anew.
/// Source: seed 001, `requestTimeout`.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a request may take in all. Source: seed 001, `maxTotalTimeout`.
pub const MAX_TOTAL_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a client of the modern era may take to come back with what a server wants to know. Until
/// then the server's call is held. Ours: a person is asked, and goes on a round of the page in between.
pub const INPUT_TIMEOUT: Duration = Duration::from_secs(300);

/// How often a server may ask on for one request. Ours: a server that always asks once more would go
/// on for ever.
pub const INPUT_ROUNDS_MAX: u32 = 32;

/// How many results of one server are kept for clients that wanted a task and got an answer at once.
/// Ours.
pub const FINISHED_TASKS_MAX: usize = 256;

/// How large all of these may be together, in bytes. Ours: one may be as large as a message.
pub const FINISHED_TASKS_BYTES_MAX: usize = 64 << 20;

/// For how long such a result is kept whose client does not say it. Ours.
pub const FINISHED_TASK_TTL: Duration = Duration::from_secs(300);

/// The shortest of such times, whatever the client says. Ours: it has to come back for it.
pub const FINISHED_TASK_TTL_MIN: Duration = Duration::from_secs(1);

/// The longest of such times, whatever the client says. Ours.
pub const FINISHED_TASK_TTL_MAX: Duration = Duration::from_secs(3600);

/// The first and the longest pause before a request is sent again to a server of the modern era that
/// wants nothing but to be asked again. Ours.
pub const INPUT_POLL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How often a request is sent anew when it provably was not executed: the reason is gone with the
/// new connection. Source: design ruling 9.
pub const REPLAYS: u32 = 1;

/// How often a request is sent anew that was interrupted and may be executed twice. Ours: an
/// upstream that leaves closes all its TCP connections, and one request may meet two of them.
pub const REPEATS: u32 = 2;

/// How long such a request waits first. Ours: until those that close are known to be closed.
pub const REPEAT_PAUSE: Duration = Duration::from_millis(50);

/// How often a dial that failed is made anew within one request. Source: seed 004, "fail, respawn,
/// second attempt".
pub const REDIALS: u32 = 1;

/// How often a request is sent anew that may have been executed and may not be executed twice, where
/// its server is declared so. Source: seed 004, one automatic retry.
pub const BLIND_RETRIES: u32 = 1;

/// How often one request has its server started, for whatever reasons: the sum of the attempts above
/// may be larger. What is started is a process or a unit. Ours: a server that dies at its start is
/// started once more, and one that dies of a request dies of it a second time.
pub const STARTS_MAX: u32 = 2;

/// How many failures in a row it takes until a server is left alone. Source: seed 004,
/// `failureThreshold`.
pub const FAILURE_THRESHOLD: u32 = 5;

/// The largest `failure_threshold`. Ours: beyond it nothing is ever left alone, which is said with 0.
pub const FAILURE_THRESHOLD_MAX: u32 = 1000;

/// How long a server is left alone before it is probed. Source: seed 004, `cooldownMs`.
pub const BREAKER_COOLDOWN: Duration = Duration::from_secs(30);

/// How many incidents are remembered that several requests may report. Ours: more than happen while
/// those who met one of them are told.
pub const INCIDENTS_KEPT: usize = 16;
