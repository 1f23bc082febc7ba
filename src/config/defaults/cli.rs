//! Bounds of the commands: their waits, the sizes that they accept, imports, declarations of tools in
//! TypeScript, the examination of a host, and the bridge of a client on standard input and output.

use std::time::Duration;

/// The time that an operator's command waits for work of a server: the longest
/// `service.max_total_timeout`. The service ends longer calls, and ctrl-c ends any call.
pub const CONTROL_CALL_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The time that the service may take to answer a ping after the `--timeout` of a call. A service
/// that is alive answers at once.
pub const CALL_PING_TIMEOUT: Duration = Duration::from_secs(5);

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

/// The refresh interval of `metamcp top`.
pub const TOP_INTERVAL: Duration = Duration::from_secs(1);

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

/// The time that a socket may take to answer.
pub const DOCTOR_TIMEOUT: Duration = Duration::from_secs(2);

/// The time that a service may take to name its configuration file. The first finding waits for it,
/// and a person waits for the first finding.
pub const DOCTOR_FILE_TIMEOUT: Duration = Duration::from_millis(500);

/// The time that a program may take to print a word such as its version.
pub const DOCTOR_PROGRAM_TIMEOUT: Duration = Duration::from_secs(5);

/// The part of a program's or socket's answer that is read, in bytes. It is one line.
pub const DOCTOR_ANSWER_BYTES_MAX: usize = 4 << 10;

/// The largest number of servers that are probed at a time. Remote ones mostly wait for the network.
pub const DOCTOR_PROBES_MAX: usize = 32;

/// The largest number of these that are children in the first quarter of their time. More would
/// distort the reported times.
pub const DOCTOR_CHILDREN_MAX: usize = 8;

/// The time in which probes begin, in times of one probe. With the default time of a probe, all of
/// them together take about a minute at most.
pub const DOCTOR_BEGINS: u32 = 5;

/// The time that the probe of one server may take, unless `--timeout` sets another. With the end of
/// its processes, a run with a hanging server takes less than 12 s.
pub const DOCTOR_PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The time that the completion of a word may take: a person waits for it.
pub const COMPLETION_TIMEOUT: Duration = Duration::from_millis(300);

/// The last lines that are shown of standard error, after the first ones.
pub const DOCTOR_LAST_LINES_MAX: usize = 5;

/// The largest number of paths among the arguments of a server that are examined.
pub const ENVIRONMENT_FILES_MAX: usize = 32;

/// The time before the expiry of a certificate from which the doctor reports it. Authorities renew
/// their certificates 30 days before.
pub const DOCTOR_CERTIFICATE_MIN: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// The first lines that are shown of standard error, and of standard output without messages.
pub const DOCTOR_LINES_MAX: usize = 10;

/// The part of a shown line that is read, in bytes. The beginning identifies a message.
pub const DOCTOR_LINE_BYTES_MAX: usize = 4 << 10;

/// The largest number of pages of tools that are read. Servers with a hundred tools have two.
pub const DOCTOR_PAGES_MAX: usize = 50;

/// The time from a server's start to its tools above which the doctor reports it. Some clients give
/// up at five seconds.
pub const DOCTOR_SLOW: Duration = Duration::from_secs(3);

/// The number of tools that clients accept. Source: VS Code refuses more in one request.
pub const DOCTOR_TOOLS_MAX: usize = 128;

/// The memory that should be free, in bytes: enough for two servers in Node.
pub const DOCTOR_MEMORY_MIN: u64 = 256 << 20;

/// The largest number of client messages that wait for an absent service: as many as requests run.
pub const BRIDGE_LINES_MAX: usize = super::PIPE_REQUESTS_MAX;

/// The largest size of kept client messages, in bytes: those that wait, and requests that may have
/// to be sent again. It is four of the largest.
pub const BRIDGE_BYTES_MAX: usize = 16 << 20;

/// The largest number of notifications and answers kept in case the service has not read them.
pub const BRIDGE_TAIL_MAX: usize = 64;

/// The time that a message waits for a service that is away. A restart may take
/// [`super::SHUTDOWN_TIMEOUT`] to finish requests, then [`super::PREWARM_TIMEOUT`] to connect
/// servers. It is below the 60 s after which the SDKs give up.
pub const BRIDGE_TIMEOUT: Duration = Duration::from_secs(40);

/// The first and the longest pause between attempts to reach a service that is away. A socket of
/// systemd always accepts connections; any other exists again within a moment.
pub const BRIDGE_BACKOFF: (Duration, Duration) =
    (Duration::from_millis(20), Duration::from_secs(1));

/// The time to wait for answers after the client has closed its end: [`super::PIPE_CLOSE_TIMEOUT`],
/// in which the service gives them, and some slack.
pub const BRIDGE_CLOSE_TIMEOUT: Duration = Duration::from_millis(1500);

/// The unread data for a client, in bytes, above which the bridge reads no more of the service.
pub const BRIDGE_UNREAD_BYTES: usize = 1 << 20;

/// The longest message of the service, in bytes: a server's answer, and what metamcp adds to it.
pub const BRIDGE_ANSWER_BYTES_MAX: usize = super::MESSAGE_BYTES_MAX + (1 << 20);
