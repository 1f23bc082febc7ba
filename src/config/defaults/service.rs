//! Bounds of the service as a whole: its start and end, its logs, its control socket, its
//! computations beside the event loops.

use std::time::Duration;

/// The time that running requests may continue after a stop was requested.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval at which the status line names the `prewarm` servers that are waited for.
pub const WARM_UP_STATUS_PERIOD: Duration = Duration::from_millis(500);

/// The time that the service waits for its `prewarm` servers before it accepts clients without
/// them. It is below systemd's start timeout of 90 s.
pub const PREWARM_TIMEOUT: Duration = Duration::from_secs(20);

/// The longest path of a Unix socket, in bytes. Source: unix(7), 108 with the final NUL.
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The longest request line on the control socket, in bytes: as long as an HTTP body may be.
pub const CONTROL_LINE_BYTES_MAX: usize = super::BODY_BYTES_MAX;

/// The longest name of a group, in bytes. Source: groupadd(8).
pub const GROUP_NAME_BYTES_MAX: usize = 32;

/// The time within which a third request to stop ends the service at once, as repeated Ctrl-C does.
pub const STOP_REPEAT_WINDOW: Duration = Duration::from_secs(2);

/// The time that requests may take to end once `service.shutdown_timeout` has passed.
pub const DRAIN_DEADLINE: Duration = Duration::from_secs(1);

/// The time that the servers may take to end. A child needs up to 1,550 ms and the steps after
/// SIGKILL, an upstream the end of its session; the rest is slack.
pub const SERVERS_END_TIMEOUT: Duration = Duration::from_secs(4);

/// The time that an operator's command waits for the service. Most answers come from memory. A
/// search may wait for servers as long as the merged lists do, and then for a snapshot. Only the
/// first snapshot may take longer, with very many tools.
pub const CONTROL_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest number of operators' connections to the control socket. One more replaces one of the
/// user with the most: the one that has had nothing running for longest.
pub const CONTROL_CONNECTIONS_MAX: usize = 48;

/// The further connections for users that have less than their share, such as root.
pub const CONTROL_CONNECTIONS_RESERVE: usize = 16;

/// The largest number of connections to the control socket, including MCP clients and connections
/// that are being refused; more wait in the backlog.
pub const CONTROL_ACCEPTED_MAX: usize = 1024;

/// The largest number of MCP clients that are attached to the control socket. Each is a program on
/// this host, and half of the accepted connections is left to operators.
pub const CONTROL_ATTACHED_MAX: usize = CONTROL_ACCEPTED_MAX / 2;

/// The largest number of requests of one control connection that run at a time.
pub const CONTROL_REQUESTS_MAX: usize = 32;

/// The largest number of lines that wait for the reader of one control connection; then the writers
/// wait. It has room for some progress.
pub const CONTROL_LINES_QUEUE: usize = 16;

/// The time that a control connection may have nothing running and send no request. A program that
/// asks once in a while keeps its connection.
pub const CONTROL_IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// The interval of checks that an operator that sends nothing more is still connected.
pub const CONTROL_HANG_UP_POLL: Duration = Duration::from_millis(100);

/// The longest lookup of the members of a group; the database may be on another host.
pub const GROUP_LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// The largest number of lookups of unknown users' groups at a time. A lookup may wait for another
/// host, and other work must go on.
pub const GROUP_LOOKUPS_MAX: usize = 4;

/// The longest check whether a process that asks for operators' data descends from a server. It
/// takes some ten milliseconds with a thousand processes.
pub const ANCESTRY_TIMEOUT: Duration = Duration::from_secs(2);

/// The least time between two log lines about requests that were refused because a server sent
/// them; those in between are counted.
pub const REFUSAL_LOG_PAUSE: Duration = Duration::from_secs(10);

/// The longest measurement of the servers' memory; what is missing by then is left out. It takes
/// some milliseconds for each process.
pub const MEASURE_TIMEOUT: Duration = Duration::from_secs(2);

/// The largest credential, in bytes. Source: systemd's bound.
pub const CREDENTIAL_BYTES_MAX: u64 = 1 << 20;

/// The longest name of a credential, in bytes. Source: `NAME_MAX` of Linux.
pub const CREDENTIAL_NAME_BYTES_MAX: usize = 255;

/// The largest number of credentials that are checked for readers: more than a host has.
pub const CREDENTIALS_MAX: usize = 1000;

/// The largest unit file that the doctor reads, in bytes. Source: systemd's bound.
pub const UNIT_FILE_BYTES_MAX: u64 = 1 << 20;

/// The largest configuration file, in bytes: thousands of servers.
pub const CONFIG_BYTES_MAX: u64 = 16 << 20;

/// The largest number of operators' commands that wait for the main loop, which runs them in turn.
pub const CONTROL_COMMAND_QUEUE: usize = 8;

/// The time that a running service may take to answer a second one before that reports a hang.
pub const RUNNING_SERVICE_TIMEOUT: Duration = Duration::from_secs(2);

/// The time that a command waits for an answer of the service that it has started. The service
/// answers before its servers do.
pub const LAUNCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval at which a command checks whether the service that it has started answers, and a
/// service whether the one before it has ended.
pub const LAUNCH_POLL: Duration = Duration::from_millis(10);

/// The time after which a service that a command has started exits unused, without
/// `service.idle_exit`.
pub const LAUNCHED_IDLE_EXIT: Duration = Duration::from_secs(300);

/// The largest log that such a service continues, in bytes; a larger one is set aside.
pub const LAUNCHED_LOG_BYTES_MAX: u64 = 4 << 20;

/// The largest number of remembered items that clients are not shown, and of items with the same
/// name. It is more than a person can read.
pub const FINDINGS_MAX: usize = 256;

/// The longest quotation of a server in an error, in bytes.
pub const QUOTE_BYTES_MAX: usize = 500;

/// The longest name for which similar ones are searched, in bytes: the effort grows with its
/// length. No tool's name is longer than 128.
pub const SUGGESTION_BYTES_MAX: usize = crate::similar_names::NAME_BYTES_MAX;

/// The largest number of log lines that are kept in memory for `metamcp logs`.
pub const LOG_RING_LINES: usize = 4096;

/// The largest size of these lines, in bytes.
pub const LOG_RING_BYTES: usize = 2 << 20;

/// The longest text of such a line, in bytes, and the longest of its other fields.
pub const LOG_RING_LINE_BYTES_MAX: usize = 8 << 10;

/// The largest number of log lines in one answer.
pub const LOG_PAGE_LINES_MAX: usize = LOG_RING_LINES;

/// The longest wait of `daemon/logs` for another line. It is below the time after which an unused
/// connection to the control socket is closed.
pub const LOG_WAIT_MAX: Duration = Duration::from_secs(60);

/// The largest number of log lines that wait for the journal or an unread standard error; more are
/// dropped.
pub const LOG_LINES_MAX: usize = 8192;

/// The time for the last log lines to reach the journal when the service ends.
pub const JOURNAL_END_TIMEOUT: Duration = Duration::from_secs(1);

/// The interval at which an idle event loop marks that it is alive.
pub const LIVENESS_INTERVAL: Duration = Duration::from_secs(1);

/// The age of a loop's mark from which the loop counts as stuck: ten intervals.
pub const LIVENESS_AGE_MAX: Duration = Duration::from_secs(10);

/// The part of a web API's error page that is read, in bytes; a larger one is not quoted.
pub const WEB_ERROR_BYTES_MAX: usize = 16 << 10;

/// The largest number of threads that compute at a time, and never more than there are processors.
/// The event loops need processors as well.
pub const COMPUTE_THREADS_MAX: usize = 4;

/// The stack of a compute thread, in bytes: four times the stack of a check, mostly untouched.
pub const COMPUTE_STACK_BYTES: usize = 4 << 20;

/// The largest number of computations that wait for a thread: a few seconds of work. A later answer
/// would come too late to be useful.
pub const COMPUTE_QUEUE_MAX: usize = 256;

/// The largest number of call records in memory. At 10,000 calls in a second, the writer has 0.2 s
/// for them.
pub const CALL_RING_RECORDS: usize = 2048;

/// The largest size of the call records in memory, in bytes: 800 for each one, and for its cause.
pub const CALL_RING_BYTES: usize = 3 * 1024 * 1024;

/// The longest name of a tool or prompt in a call record, in bytes. Clients allow 64.
pub const CALL_RECORD_ITEM_BYTES_MAX: usize = 256;

/// The longest cause in a call record, in bytes.
pub const CALL_RECORD_CAUSE_BYTES_MAX: usize = 2048;

/// The number of successful calls in a second that have entries of their own in the journal. With a
/// third of its entries left for failures, the service stays below the rate limit of its unit.
pub const CALL_ENTRIES_PER_SECOND: usize = 200;

/// The number of sums of further successful calls in a second; then they are summed by client.
pub const CALL_SUMS_MAX: usize = 256;

/// The number of sums by client in a second; then all calls are summed together. A client chooses
/// its name anew for each call.
pub const CALL_CLIENT_SUMS_MAX: usize = 128;

/// The time after which the sums of a second are written.
pub const CALL_SUM_PERIOD: Duration = Duration::from_secs(1);

/// The time in which the records of calls are collected before they are written together.
pub const CALL_WRITE_PERIOD: Duration = Duration::from_millis(50);

/// The time that the journal may take for one entry.
pub const JOURNAL_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// The time between two warnings about records that could not be written.
pub const CALL_WARNING_PERIOD: Duration = Duration::from_secs(60);

/// The largest size of a file of call records, in bytes.
pub const CALL_FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The number of full files of call records that are kept.
pub const CALL_FILES_KEPT: usize = 4;

/// The time that the last records may take to be written, once the service has ended its servers.
pub const CALL_WRITE_END_TIMEOUT: Duration = Duration::from_secs(1);

/// The largest number of combinations of method, server, tool and error in the metrics of calls.
/// Further ones are counted as the tool `other`.
pub const METRIC_SERIES_MAX: usize = 1000;

/// The largest number of these combinations whose tool has never given a result, such as a name that
/// a client has invented.
pub const METRIC_UNPROVEN_MAX: usize = 100;

/// The time in which spans are collected before they are sent together.
pub const SPAN_EXPORT_PERIOD: Duration = Duration::from_secs(1);

/// The longest id of a client's request in a span, in bytes. Clients count, or use UUIDs.
pub const SPAN_REQUEST_ID_BYTES_MAX: usize = 64;

/// The number of calls whose spans are sent in one request, of about 1 KiB each.
pub const SPAN_BATCH_CALLS: usize = 512;

/// The largest number of pairs of a tool and a client whose calls of the last minute are kept apart.
pub const RECENT_SUBJECTS_MAX: usize = 500;

/// The largest number of clients whose token costs are kept. The one that was seen longest ago is
/// forgotten first.
pub const COST_CLIENTS_MAX: usize = 256;

/// The number of sessions of one client that begin no further conversation when they read their tool
/// list again.
pub const COST_SESSIONS_MAX: usize = 64;

/// The bytes of ten tokens of tool lists and search replies. Measured: 4.0 to 4.3 bytes for a token
/// of `o200k_base`, in the lists of both views and in replies to `mcp_discover`.
pub const BYTES_PER_TEN_TOKENS: u64 = 42;

/// The number of tools in a reply to a search, as long as none was measured: the default of
/// `mcp_discover`.
pub const COST_SEARCH_TOOLS: u64 = 5;

/// The longest text of arguments or of a result in a call record, in bytes, where the operator asks
/// for them.
pub const CALL_TEXT_BYTES_MAX: usize = 4096;
