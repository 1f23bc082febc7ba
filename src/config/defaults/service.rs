//! The service as a whole: its start and end, its logs, its control socket, what it shows and asks.

use std::time::Duration;

/// How long running requests may go on after a stop was asked for.
/// Source: seed 001, `shutdownTimeout`.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// How often the status line says which `prewarm` servers are waited for. Ours.
pub const WARM_UP_STATUS_PERIOD: Duration = Duration::from_millis(500);

/// How long the service waits for its `prewarm` servers before it accepts clients without them.
/// Below systemd's 90 s start time-out. Source: design ruling 11; the number is ours.
pub const PREWARM_TIMEOUT: Duration = Duration::from_secs(20);

/// The longest path of a Unix socket, in bytes. Source: unix(7), 108 with the final NUL.
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The longest request line on the control socket, in bytes. Ours: what a body at the edge may have.
pub const CONTROL_LINE_BYTES_MAX: usize = super::BODY_BYTES_MAX;

/// The longest name of a group, in bytes. Source: groupadd(8).
pub const GROUP_NAME_BYTES_MAX: usize = 32;

/// Within what time a third request to stop ends the service at once. Ours: a person who presses
/// Ctrl-C again and again.
pub const IMPATIENCE: Duration = Duration::from_secs(2);

/// How long requests may take to end when they were told to hurry. Ours.
pub const HURRY: Duration = Duration::from_secs(1);

/// How long the servers may take to leave: the ladder's 1,550 ms and what follows a SIGKILL, or an
/// upstream's goodbye, and some slack. Ours.
pub const FAREWELL: Duration = Duration::from_secs(4);

/// How long an operator's command waits for the service. Ours: most is answered from memory; a search
/// may wait for servers, as long as the merged lists, and then for a snapshot, but for the first one,
/// which may take longer where there are very many tools.
pub const CONTROL_PATIENCE: Duration = Duration::from_secs(10);

/// How many operators' connections the control socket serves at a time. One more takes the place of
/// the one of the user with the most that has had nothing running for the longest. Ours.
pub const CONTROL_CONNECTIONS_MAX: usize = 48;

/// How many more there may be of users that have less than their share, such as root. Ours.
pub const CONTROL_CONNECTIONS_RESERVE: usize = 16;

/// How many connections the control socket holds in all, those included that are turned away just
/// now and those of clients of MCP; more wait in the backlog. Ours.
pub const CONTROL_ACCEPTED_MAX: usize = 1024;

/// How many clients of MCP may be attached to the control socket. Ours: each is a program on this host,
/// and half of what is accepted is left to operators.
pub const CONTROL_ATTACHED_MAX: usize = CONTROL_ACCEPTED_MAX / 2;

/// How many requests of one connection to the control socket run at a time; then its lines wait
/// unread. Ours.
pub const CONTROL_REQUESTS_MAX: usize = 32;

/// How many lines wait for the reader of one connection to the control socket; then who has more to
/// say waits. Ours: some progress.
pub const CONTROL_LINES_QUEUE: usize = 16;

/// How long a connection to the control socket may have nothing running and send no request. Ours: a
/// program that asks once in a while keeps its connection.
pub const CONTROL_IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// How often it is looked whether an operator who sends nothing more is still there for the answers.
/// Ours.
pub const CONTROL_HANG_UP_POLL: Duration = Duration::from_millis(100);

/// How long it is looked up who belongs to a group; the database may be on another host. Ours.
pub const GROUP_LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// Of how many strangers at a time it is looked up which groups they are in. Ours: a lookup may wait for
/// another host, and others have work to do as well.
pub const GROUP_LOOKUPS_MAX: usize = 4;

/// How long it is looked up whether a process that asks for what belongs to the operator comes from a
/// server. Ours: some ten milliseconds with a thousand processes.
pub const KINSHIP_TIMEOUT: Duration = Duration::from_secs(2);

/// The least time between two log lines about requests that were refused because a server sent them;
/// those in between are counted. Ours.
pub const REFUSAL_LOG_PAUSE: Duration = Duration::from_secs(10);

/// How long it is found out how much memory the servers take; what is not known by then is left out.
/// Ours: some milliseconds for each process.
pub const MEMORY_PATIENCE: Duration = Duration::from_secs(2);

/// How large a credential may be, in bytes. Source: systemd's bound.
pub const CREDENTIAL_BYTES_MAX: u64 = 1 << 20;

/// How many credentials are looked at for whether others can read them. Ours: more than a host has.
pub const CREDENTIALS_MAX: usize = 1000;

/// How large the file of a unit may be that the doctor reads, in bytes. Source: systemd's bound.
pub const UNIT_FILE_BYTES_MAX: u64 = 1 << 20;

/// How large a configuration file may be, in bytes. Ours: thousands of servers.
pub const CONFIG_BYTES_MAX: u64 = 16 << 20;

/// How many operators' orders wait for the main loop. Ours: they are carried out one by one.
pub const CONTROL_ORDERS_QUEUE: usize = 8;

/// How long a service that is there already may take for a sign of life, before one that is started
/// beside it says that it hangs. Source: seed 001, the connect test.
pub const PROBE_PATIENCE: Duration = Duration::from_secs(2);

/// How long a command waits for the service that it has started to answer. It answers before its
/// servers do. Source: seed 001, the parent's 10 s.
pub const LAUNCH_PATIENCE: Duration = Duration::from_secs(10);

/// How often a command looks whether the service that it has started answers, and a service whether
/// the one before it has ended. Ours.
pub const LAUNCH_POLL: Duration = Duration::from_millis(10);

/// After how long a service that a command has started exits when nobody uses it, where
/// `service.idle_exit` does not say. Source: seed 001, `idleTimeout`.
pub const LAUNCHED_IDLE_EXIT: Duration = Duration::from_secs(300);

/// How large the log of such a service may be when it starts, in bytes; a larger one is put aside. Ours.
pub const LAUNCHED_LOG_BYTES_MAX: u64 = 4 << 20;

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
