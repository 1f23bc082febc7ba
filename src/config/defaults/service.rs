//! The service as a whole: its start and end, its logs, its control socket, what it shows and asks.

use std::time::Duration;

/// How long running requests may go on after a stop was asked for.
/// Source: seed 001, `shutdownTimeout`.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the service waits for its `prewarm` servers before it accepts clients without them.
/// Below systemd's 90 s start time-out. Source: design ruling 11; the number is ours.
pub const PREWARM_TIMEOUT: Duration = Duration::from_secs(20);

/// The longest path of a Unix socket, in bytes. Source: unix(7), 108 with the final NUL.
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The longest name of a group, in bytes. Source: groupadd(8).
pub const GROUP_NAME_BYTES_MAX: usize = 32;

/// The longest request line on the control socket, in bytes. Ours.
pub const CONTROL_LINE_BYTES_MAX: usize = 1 << 20;

/// How long requests may take to end when they were told to hurry. Ours.
pub const HURRY: Duration = Duration::from_secs(1);

/// How long the servers may take to leave: the ladder's 1,550 ms and what follows a SIGKILL, or an
/// upstream's goodbye, and some slack. Ours.
pub const FAREWELL: Duration = Duration::from_secs(4);

/// How long an operator's command waits for the service. Ours: most is answered from memory; a search
/// may wait for servers, as long as the merged lists, and then for a snapshot, but for the first one,
/// which may take longer where there are very many tools.
pub const CONTROL_PATIENCE: Duration = Duration::from_secs(10);

/// How many connections the control socket serves at a time. Ours.
pub const CONTROL_CONNECTIONS_MAX: usize = 64;

/// How many items that clients are not shown are remembered for operators, and how many that are
/// called the same. Ours: more than one can read.
pub const FINDINGS_MAX: usize = 256;

/// How much of a server's own words an error shows, in bytes. Ours.
pub const QUOTE_BYTES_MAX: usize = 500;

/// How long a name may be for which similar ones are looked for, in bytes: the effort grows with
/// its length. Ours: no tool's name is longer than 128.
pub const SUGGESTION_BYTES_MAX: usize = 128;

/// How many log lines may wait for a standard error that nobody reads; more are dropped. Ours.
pub const LOG_LINES_MAX: usize = 8192;

/// How often an idle loop marks that it still turns. Ours.
pub const PULSE: Duration = Duration::from_secs(1);

/// How old a loop's mark may be before the loop counts as stuck. Ours: ten pulses.
pub const PULSE_AGE_MAX: Duration = Duration::from_secs(10);

/// How many idle TCP connections to one web API are kept. Ours: one for what is learned in the
/// background, and some for those who wait.
pub const WEB_IDLE_MAX: usize = 4;

/// How much of a web API's error page is looked at, in bytes; a larger one is not quoted. Ours.
pub const WEB_ERROR_BYTES_MAX: usize = 16 << 10;
