//! Every default and every bound, with its unit and where the number comes from.
//!
//! A bound that is not in the configuration file yet still has its name here.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

/// Where clients reach the HTTP edge. Source: design ruling 1.
pub const HTTP_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 12011);

/// How long a request may stay silent; progress starts the time anew.
/// Source: seed 001, `requestTimeout`.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a request may take in all. Source: seed 001, `maxTotalTimeout`.
pub const MAX_TOTAL_TIMEOUT: Duration = Duration::from_secs(300);

/// How long running requests may go on after a stop was asked for.
/// Source: seed 001, `shutdownTimeout`.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a server may take from being started to the end of its handshake.
/// Long, because `npx` and `uvx` may fetch a package first. Ours.
pub const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How long the service waits for its `prewarm` servers before it accepts clients without them.
/// Below systemd's 90 s start time-out. Source: design ruling 11; the number is ours.
pub const PREWARM_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a TCP connection to an upstream may take to be made. Ours.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an upstream that is not there is waited for before requests for it fail, counted from
/// the beginning of its absence: a restart costs patience and no error. Ours: longer than a
/// server takes to start again, shorter than any client waits.
pub const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// The first and the longest pause between attempts while there is patience. Ours.
pub const CONNECT_PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// How long a TCP connection to an upstream may be silent before TCP asks whether anybody is
/// there. Ours: below the minutes after which firewalls forget a connection.
pub const UPSTREAM_TCP_PROBE_AFTER: Duration = Duration::from_secs(30);

/// How often TCP asks again. Ours.
pub const UPSTREAM_TCP_PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// How often TCP asks in vain before the connection is broken. Ours.
pub const UPSTREAM_TCP_PROBES: u32 = 3;

/// How long what was sent to an upstream may stay unacknowledged by its system before the
/// connection is broken. Ours: as long as the probes take.
pub const UPSTREAM_TCP_TIMEOUT: Duration = Duration::from_secs(60);

/// How long an idle TCP connection to an upstream is kept. Below the 5 s after which Node and
/// uvicorn close theirs: a request on one that is being closed would be lost.
pub const UPSTREAM_IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// How long a server may leave `server/discover` unanswered until `initialize` is sent as well.
/// Ours: longer than most take to start, of which nothing is lost for those that take longer, and
/// shorter than clients wait for a list. One that answers to nothing but `initialize` costs its
/// clients this much, once.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a server that refused `server/discover` is believed to know nothing of it, so that one
/// that has been replaced behind its address, or by its package, is seen. Ours.
pub const LEGACY_BELIEVED: Duration = Duration::from_secs(60 * 60);

/// How long all lists of an upstream together may take that are read before its first request.
/// Bounded, because some start their own servers only then. Source: seed 003, "pre-warm"; the
/// number is ours.
pub const WARM_UP_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a server may be silent before it is pinged. Source: seed 001, `healthCheckInterval`.
pub const HEALTH_INTERVAL: Duration = Duration::from_secs(30);

/// The same for an upstream. Source: seed 003, PIN-14.
pub const HEALTH_INTERVAL_UPSTREAM: Duration = Duration::from_secs(20);

/// How long a server may take to answer a ping. Source: seed 001, `healthCheckTimeout`.
pub const HEALTH_TIMEOUT: Duration = Duration::from_secs(10);

/// How many pings in a row a server leaves unanswered before it is given up. Source: seed 001,
/// "threshold 3".
pub const HEALTH_FAILURES: u32 = 3;

/// The largest `failures`: with the default interval, a server hangs for an hour by then. Ours.
pub const HEALTH_FAILURES_MAX: u32 = 100;

/// How long an upstream that refuses a POST may take to name the address for messages, as those
/// of protocol version 2024-11-05 do at once. Ours.
pub const ENDPOINT_PATIENCE: Duration = Duration::from_secs(5);

/// The first and the longest pause before an upstream's event stream is opened again; one that
/// the upstream asks for is kept up to the longest. Ours: the SDKs have 1 s to 30 s.
pub const STREAM_PAUSE: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(30));

/// How long an event stream must have lasted for the pauses to begin at the first one again. Ours.
pub const STREAM_STABLE_AFTER: Duration = Duration::from_secs(5);

/// How often it is tried to go on with an answer that broke off, without an event more of it; and
/// how often to open a stream of notices that never was there. Ours: two to three seconds of pauses.
pub const STREAM_ATTEMPTS_MAX: u32 = 5;

/// How long a subscription is read on after another one has taken its place. Ours: what was on its
/// way on the TCP connection of the one when the other was acknowledged.
pub const LISTEN_OVERLAP: Duration = Duration::from_millis(250);

/// How many idle TCP connections to one upstream are kept. Ours.
pub const UPSTREAM_IDLE_MAX: usize = 64;

/// How long an upstream may take to acknowledge the end of a session. Ours: stop must not hang.
pub const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);

/// The first and the longest pause before a `keep-alive` server that failed is tried again.
/// Source: seed 001, "1, 2, 4, 8, 16 … 60 s".
pub const RECONNECT_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How long a connection must have lasted for the pauses to begin at the first one again: a server
/// that ends right after its handshake must not be started every second. Ours.
pub const STABLE_AFTER: Duration = Duration::from_secs(60);

/// How long `initialize` on a server's own path waits for that server.
/// Clients allow 30 s to connect; past this we answer without knowing its capabilities. Ours.
pub const INITIALIZE_PATIENCE: Duration = Duration::from_secs(10);

/// How long `server/discover` on a server's own path waits for a server that is not connected. Claude
/// Code's first request, on whose answer all others wait. Ours: half of the 100 ms that it may take.
pub const DISCOVER_PATIENCE: Duration = Duration::from_millis(50);

/// How long the acknowledgement of a subscription waits for servers to be asked to watch resources.
/// Ours: as long as the merged lists, for the same reason.
pub const SUBSCRIBE_PATIENCE: Duration = LIST_PATIENCE;

/// For how long a list is good at least whose server says for how long, and does not say when it
/// changes: one that names no time at all would be asked at every step of every client. Ours.
pub const LIST_TTL_MIN: Duration = Duration::from_secs(10);

/// How long the merged lists wait for servers that are still starting; clients are told to read them
/// again when one comes later. Below the 5 s after which Claude Code gives a list up. Ours.
pub const LIST_PATIENCE: Duration = Duration::from_secs(4);

/// How long an answer may take before it is sent as a stream instead of plain JSON, so that
/// comments can keep the connection alive. Ours: most answers come sooner, and JSON costs less.
pub const STREAM_AFTER: Duration = Duration::from_secs(2);

/// How often a silent stream gets a comment. Ours: below the 30 s after which proxies cut idle streams.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How long a client may take nothing of what is written to it before its connection is cut. Ours:
/// what waits for it is memory.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a tool may be silent before its client is sent progress of ours. Below the 300 s after
/// which Claude Code gives a silent call up, and the 60 s of the SDKs.
pub const PROGRESS_BEAT: Duration = Duration::from_secs(30);

/// How long a client may take for the TLS handshake, and so how long one that says nothing holds a
/// seat. Ours: it is two round trips and some arithmetic.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest file of a certificate or a key, in bytes. Source: systemd's bound for a credential.
pub const PEM_BYTES_MAX: u64 = 1 << 20;

/// How long a client may take to send the head of a request, and so how long its connection may
/// be idle. Longer than clients keep idle connections: one that we closed at the moment of a call
/// would cost that call. Source: nginx's 75 s, where seed 002 has 10 s.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(75);

/// How long a client may take to send a request's body. Ours.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest request body, in bytes. Source: the MCP SDKs' 4 MiB.
pub const BODY_BYTES_MAX: usize = 4 << 20;

/// How much more of a body that is too large is read before it is refused, in bytes. Ours.
pub const BODY_BYTES_SKIPPED: usize = 64 << 20;

/// How many messages a batch may have. Ours: as many requests of one client run at a time.
pub const BATCH_MESSAGES_MAX: usize = 128;

/// How large the answers of a batch may be that wait for the last of them, in bytes; beyond it they
/// are sent as a stream, one by one. Ours: as large as one answer may be.
pub const BATCH_ANSWER_BYTES_MAX: usize = MESSAGE_BYTES_MAX;

/// The longest line or event from a server, in bytes. Source: 16 MiB, what clients accept.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// The longest path of a Unix socket, in bytes. Source: unix(7), 108 with the final NUL.
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The longest request line on the control socket, in bytes. Ours.
pub const CONTROL_LINE_BYTES_MAX: usize = 1 << 20;

/// The longest line of a child's standard error that is logged whole, in bytes. Ours.
pub const STDERR_LINE_BYTES_MAX: usize = 8 << 10;

/// How many lines of a child's standard error are kept for error messages. Ours: what Node writes
/// after the line that says what is wrong is 14 lines long.
pub const STDERR_LINES_KEPT: usize = 20;

/// How many lines of a child's standard error are logged per second, after a burst of ten times
/// as many; the rest is counted. Ours.
pub const STDERR_LINES_PER_SECOND: u32 = 20;

/// How many requests may be in flight on one connection. Ours.
pub const IN_FLIGHT_MAX: usize = 4096;

/// How many answers are waited for on one connection whose clients have gone. Ours: over HTTP, each
/// holds a TCP connection, and a process has 1,024 descriptors unless it is given more.
pub const DRAINING_MAX: usize = 256;

/// How many connections to servers there may be, all servers together.
/// Source: seed 000, `poolSize`.
pub const POOL_SIZE: usize = 20;

/// How many more there may be for those who have waited. Source: seed 000, `resPoolSize`.
pub const POOL_RESERVE_SIZE: usize = 0;

/// How long a request waits before it may have one of the reserve. Source: seed 000,
/// `resPoolTimeout`.
pub const POOL_RESERVE_TIMEOUT: Duration = Duration::from_secs(5);

/// How many connections are kept although nobody uses them. Source: seed 000, `minPoolSize`.
pub const POOL_MIN_SIZE: usize = 0;

/// How long a connection is kept that nobody uses. Source: seed 000, `idleTimeoutMs`.
pub const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The largest `pool.size`, and the largest `pool.reserve_size`. Source: seed 000, `MAX_CHILDREN`.
pub const POOL_SIZE_MAX: usize = 1024;

/// How long an `ephemeral` connection waits for another request after its last answer: clients list
/// tools right after the handshake. Ours: a quarter of the 100 ms in which it is to be closed.
pub const EPHEMERAL_LINGER: Duration = Duration::from_millis(25);

/// How many connections an `exclusive` server has at most. Ours: each may be a process.
pub const EXCLUSIVE_CONNECTIONS: usize = 4;

/// How many connections a `session` server has at most. Ours: each may be a browser.
pub const SESSION_CONNECTIONS: usize = 16;

/// The largest `max_connections`: beyond it, a host runs out of processes. Ours.
pub const MAX_CONNECTIONS_MAX: usize = 1024;

/// How long a server may take to set a log level, to have a resource watched, or to acknowledge a
/// subscription. Ours.
pub const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);

/// How often what clients want of a session is compared with what it has, before it is left to the
/// next change. Ours: one round is enough unless others change it meanwhile.
pub const SETTLE_ROUNDS: usize = 8;

/// How many messages may wait to be written to one child. Ours.
pub const WRITE_QUEUE: usize = 256;

/// How many cancellations and answers may wait to be sent to one server; more are dropped. Ours: all
/// requests in flight may be cancelled at once.
pub const ASIDE_QUEUE: usize = IN_FLIGHT_MAX;

/// How many notifications may wait for the client of one request; more are dropped. Ours.
pub const NOTIFICATION_QUEUE: usize = 256;

/// How long a client may pick nothing up while there is no room for more, before its request is
/// given up. Ours: a burst is over sooner.
pub const OVERRUN_PATIENCE: Duration = Duration::from_secs(1);

/// How much they may take together, in bytes; one alone may take more. Ours.
pub const NOTIFICATION_BYTES_MAX: usize = 1 << 20;

/// How many requests of one client of HTTP with SSE may run, and how many more may wait for its
/// stream to take them on. Ours: what waits is memory, and a client waits for what it has asked.
pub const PAIR_REQUESTS_MAX: usize = 256;

/// How many sessions of clients are known; with one more, the one that was used longest ago is
/// ended. Ours: some clients open a session per call and never end it.
pub const SESSIONS_MAX: usize = 4096;

/// How long a session is known that has no stream and no request. Source: seed 002, session
/// timeout. A client that comes back later loses its own connections, log level and subscriptions,
/// and is served all the same unless sessions are strict.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How long after it was issued a session id is taken by a process that does not know it, from
/// before a restart or from a replica. Ours: longer than clients run; one that got into the wrong
/// hands is of no use for ever.
pub const SESSION_ID_AGE_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How many sessions that have ended are remembered, so that their ids, which are still signed, are
/// refused where sessions are strict. Ours: four times as many as there may be at a time.
pub const SESSIONS_ENDED_MAX: usize = 4 * SESSIONS_MAX;

/// How often sessions that nobody uses are looked for, four times per `session_timeout` and within
/// these bounds. Ours.
pub const SESSION_SWEEP: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How long a session id of a client may be, in bytes. Ours: those of SDKs have 36, and those of a
/// replica with another key up to 605.
pub const SESSION_ID_BYTES_MAX: usize = 1024;

/// How many bytes of capabilities a session id of ours carries as the client wrote them. Ours: the
/// longest id has 605 bytes then, and proxies take 4 KiB of headers and more.
pub const SESSION_CAPABILITIES_BYTES_MAX: usize = 384;

/// How long the key is that we sign session ids with, and the shortest of an operator, in bytes.
/// Source: RFC 2104, section 3, at least the length of the hash.
pub const SESSION_KEY_BYTES: usize = 32;

/// How many events are kept for a client whose GET stream broke. Ours.
pub const OUTBOX_EVENTS: usize = 256;

/// How much they may take together, in bytes. Ours.
pub const OUTBOX_BYTES: usize = 1 << 20;

/// How many answers may be on streams that can be resumed, of all clients together. Ours: one more
/// is a stream that cannot.
pub const RESUMABLE_MAX: usize = 256;

/// How much answers may take that are kept although they were sent, in bytes, those of all clients
/// together; more are not kept. Ours: thousands of small ones.
pub const SENT_BYTES_KEPT: usize = 16 << 20;

/// The least that such an answer counts for, in bytes. Ours: what else is kept with it.
pub const SENT_BYTES_UNIT: usize = 4 << 10;

/// How long a client whose stream broke may take to resume it, until its request is cancelled, or
/// its answer is given up that was sent and may be lost with a broken socket.
/// Ours: time for a host to wake up, or a proxy to be restarted.
pub const RESUME_WITHIN: Duration = Duration::from_secs(30);

/// After how long a client is to resume a stream that broke. Ours: soon, and not all at once.
pub const RESUME_AFTER: Duration = Duration::from_secs(1);

/// How many events of an answer may wait to be read before no more are taken from the server. Ours.
pub const UNREAD_EVENTS: usize = 64;

/// How much they may take together, in bytes; one larger event is taken all the same. Ours.
pub const UNREAD_BYTES: usize = 256 << 10;

/// How many questions of servers may wait for one client. Ours.
pub const QUESTIONS_MAX: usize = 64;

/// How long a client of the modern era may take to come back with what a server wants to know. Until
/// then the server's call is held. Ours: a person is asked, and goes on a round of the page in between.
pub const INPUT_TIMEOUT: Duration = Duration::from_secs(300);

/// How many calls may be held for clients that are to come back. Ours.
pub const PARKED_MAX: usize = 256;

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

/// How many resources one client may watch. Ours.
pub const WATCHED_MAX: usize = 1024;

/// How many messages that belong to no request may wait to be handed on; more are dropped. Ours.
pub const ANNOUNCEMENT_QUEUE: usize = 1024;

/// How long a notice of a server that its list has changed waits for more of the same, until the list
/// is read, so that a burst of them costs one look. Ours.
pub const NOTICE_WINDOW: Duration = Duration::from_millis(100);

/// How many client connections are served at a time; more wait in the backlog. Ours: as many as
/// sessions, of which each may hold a stream for good, and a quarter of the descriptors that the
/// unit allows.
pub const CLIENT_CONNECTIONS_MAX: usize = 4096;

/// How long accepting pauses when the system has no descriptor or memory to spare. Ours.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long requests may take to end when they were told to hurry. Ours.
pub const HURRY: Duration = Duration::from_secs(1);

/// How long the servers may take to leave: the ladder's 1,550 ms and what follows a SIGKILL, or an
/// upstream's goodbye, and some slack. Ours.
pub const FAREWELL: Duration = Duration::from_secs(4);

/// How long the pipes of a child that has ended are read on. Ours.
pub const LAST_WORDS: Duration = Duration::from_millis(100);

/// How long a server may take to end once it has closed a pipe, before it counts as one that lives
/// on. Ours: what ends closes its pipes first, and is seen to end within milliseconds.
pub const END_PATIENCE: Duration = Duration::from_millis(500);

/// How long the journal may take to tell what a unit wrote before it ended. Ours: those who wait for
/// an answer wait for that too.
pub const JOURNAL_PATIENCE: Duration = Duration::from_secs(1);

/// The longest name of a tool or prompt in the merged view, in characters. Clients allow 64 with
/// their own prefix, which for Claude Code is `mcp__metamcp__`.
/// Source: the Claude API's `^[a-zA-Z0-9_-]{1,64}$`.
pub const EXPOSED_NAME_MAX: usize = 64 - "mcp__metamcp__".len();

/// How many lines of the journal are kept of a unit that has ended. Ours.
pub const JOURNAL_LINES: usize = 10;

/// How long a killed process is waited for. Ours: the kernel needs milliseconds.
pub const AFTER_KILL: Duration = Duration::from_secs(1);

/// How long the end of an upstream's stream is waited for once the answer has come. Ours.
pub const STREAM_END: Duration = Duration::from_millis(500);

/// How long `metamcp status` waits for the service, which answers from memory. Ours.
pub const CONTROL_PATIENCE: Duration = Duration::from_secs(5);

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

/// How many connections the control socket serves at a time. Ours.
pub const CONTROL_CONNECTIONS_MAX: usize = 64;

/// How many pages of one list are read. Ours: a server that echoes the cursor would loop.
pub const LIST_PAGES_MAX: usize = 200;

/// How many items a page of a merged list has at most. Ours: some clients read the first page alone,
/// and none can do with more tools than that.
pub const LIST_PAGE_ITEMS: usize = 1000;

/// How many items a list may have that is read from the disk cache. Ours: ten times the tools of the
/// largest server that was seen, and no more than the pages of a list that is read.
pub const CACHED_ITEMS_MAX: usize = 10_000;

/// How large the file of one server in the disk cache may be, in bytes. Ours: a tool takes about a
/// kilobyte, so this is thousands of them; a file that is larger was not written by us.
pub const CACHE_FILE_BYTES_MAX: usize = 16 << 20;

/// How long a change waits for more of the same server before it is written to the disk cache. Ours:
/// the lists of a server are read one after the other, and nobody waits for the disk.
pub const CACHE_WRITE_WINDOW: Duration = Duration::from_millis(250);

/// How long the start waits for the disk cache. Ours: reading hundreds of files takes a few
/// milliseconds, and a disk that hangs must not keep the service from starting.
pub const CACHE_READ_PATIENCE: Duration = Duration::from_secs(2);

/// How old a draft in the disk cache is that nobody finishes any more. Ours: one takes milliseconds.
pub const CACHE_DRAFT_AGE: Duration = Duration::from_secs(60 * 60);

/// How much of what a server says of itself belongs to what is searched, in bytes. Ours: clients cut
/// instructions at 2 KB.
pub const ABOUT_BYTES_MAX: usize = 4096;

/// How long a search waits for a snapshot with the last change in it before it makes do with the one
/// before. Ours: one of 10,000 tools takes less than a second.
pub const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(2);

/// How long a request waits for the first snapshot of the catalog. Ours: without it nothing is found,
/// and 10,000 tools are indexed within it on the slowest host.
pub const FIRST_SNAPSHOT_PATIENCE: Duration = Duration::from_secs(20);

/// How old a list may be that is not read with each connection, where each request may have one of
/// its own. Source: the `stale_after` of the metatools.
pub const REFRESH_AFTER: Duration = Duration::from_secs(15 * 60);

/// How long a server is left alone after a list could not be read that nobody had asked for. Ours.
pub const REFRESH_PAUSE: Duration = Duration::from_secs(60);

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

/// How long what a client is to hear of a changed list or an updated resource waits for more of the
/// same, so that a burst is one notice. Source: seed 002, `list_changed_debounce`.
pub const LIST_CHANGED_DEBOUNCE: Duration = Duration::from_millis(150);

/// The longest such time. Ours: a client that waits longer works with tools that are gone.
pub const LIST_CHANGED_DEBOUNCE_MAX: Duration = Duration::from_secs(60);

/// The largest result of a call through a meta-tool that is returned whole, in bytes. Ours: about
/// 16,000 tokens, more than a model reads with profit.
pub const RESULT_BYTES_MAX: usize = 64 << 10;

/// The least and the largest such size that can be declared, in bytes. Ours: a preview is to be
/// smaller than what it is a preview of, and no message is larger.
pub const RESULT_BYTES_RANGE: (usize, usize) = (1 << 10, MESSAGE_BYTES_MAX);

/// How many steps a chain may have. Source: seed 002, `max_chain_steps`.
pub const CHAIN_STEPS_MAX: usize = 8;

/// The largest such number that can be declared. Source: seed 000, a method's 64 steps.
pub const CHAIN_STEPS_LIMIT: usize = 64;

/// How many groups of synonyms can be declared. Ours: more than one can review.
pub const SYNONYM_GROUPS_MAX: usize = 256;

/// How many words or phrases such a group may have. Ours: each finds all others.
pub const SYNONYMS_IN_GROUP_MAX: usize = 16;

/// The longest of them, in bytes. Ours: a phrase, and no sentence.
pub const SYNONYM_BYTES_MAX: usize = 64;

/// How likely it must be that a server is the one that was meant, from 0 to 1, for it to be started
/// unseen. Ours: seed 000 has 0.9 on a scale on which a sentence never gets there.
pub const PROVISION_CONFIDENCE_MIN: f64 = 0.6;

/// How many servers can be declared that may be provisioned. Ours: each is searched.
pub const PROVISIONABLE_MAX: usize = 1024;

/// How many keywords such a server may have. Ours: more would match anything.
pub const KEYWORDS_MAX: usize = 32;

/// The longest namespace or keyword, in bytes. Ours: a package's name, or a phrase.
pub const NAMESPACE_BYTES_MAX: usize = 128;

/// The longest description of a server that may be provisioned, in bytes. Ours: a paragraph.
pub const DESCRIPTION_BYTES_MAX: usize = 1 << 10;

/// How many namespaces can be trusted. Ours.
pub const TRUSTED_MAX: usize = 256;

/// How long an answer of the registry is good. Source: seed 000, 24 h.
pub const REGISTRY_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// How many words of a request for a server are looked for. Ours: a sentence or two.
pub const WANTED_WORDS_MAX: usize = 24;

/// How much of a request must be covered for a match to be mentioned, from 0 to 1. Ours: one word
/// of four.
pub const MATCH_CONFIDENCE_MIN: f64 = 0.25;

/// How much must be covered for a match to be worth no look elsewhere. Source: seed 000, 0.5.
pub const MATCH_CONFIDENCE_GOOD: f64 = 0.5;

/// How many tools, and how many servers, are suggested for a request. Ours: as many as one compares.
pub const MATCHES_MAX: usize = 5;

/// How many tools a search finds of which it is then told how much of a request they cover. Ours: ten
/// times those that are suggested.
pub const SHORTLIST_MAX: usize = 50;

/// How many tools of a server that was started are told at once. Ours: the others are found by a
/// search.
pub const STARTED_TOOLS_MAX: usize = 20;

/// How much of a description stands in a suggestion, in bytes. Ours: a sentence or two.
pub const SUGGESTION_TEXT_BYTES_MAX: usize = 300;

/// How many bytes of the names of servers the instructions of the view `meta` have. Ours: clients cut
/// instructions at 2 KB.
pub const INSTRUCTIONS_BYTES_MAX: usize = 1 << 10;

/// How many words of a request a registry is asked for, each by itself: it looks for a word in names.
/// Ours.
pub const REGISTRY_WORDS_MAX: usize = 4;

/// How many servers a page of a registry is to have. Source: its API allows 100.
pub const REGISTRY_PAGE_ITEMS: usize = 100;

/// How many pages of an answer of a registry are read. Ours: who finds nothing among 300 says it in
/// other words.
pub const REGISTRY_PAGES_MAX: usize = 3;

/// The largest page of a registry, in bytes. Ours: an entry has some kilobytes.
pub const REGISTRY_PAGE_BYTES_MAX: usize = 2 << 20;

/// How long a registry may take for a page. Ours: somebody waits.
pub const REGISTRY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a registry is left alone that has failed. Ours.
pub const REGISTRY_PAUSE: Duration = Duration::from_secs(60);

/// For how many words the answers of a registry are kept. Ours: 300 servers each at the most.
pub const REGISTRY_WORDS_KEPT: usize = 128;

/// How many idle TCP connections to one web API are kept. Ours: one for what is learned in the
/// background, and some for those who wait.
pub const WEB_IDLE_MAX: usize = 4;

/// How much of a web API's error page is looked at, in bytes; a larger one is not quoted. Ours.
pub const WEB_ERROR_BYTES_MAX: usize = 16 << 10;

/// How many paths a caller may ask for of one result. Ours: more than one writes by hand.
pub const FIELDS_MAX: usize = 64;

/// How many names a path has at most. Ours: deeper than any result that people read.
pub const FIELD_DEPTH_MAX: usize = 32;

/// How many entries a search or a list of tools has, if nobody asks for another number, and how many
/// at most. Source: seeds 000 and 002.
pub const DISCOVER_LIMIT: usize = 20;
/// See [`DISCOVER_LIMIT`].
pub const DISCOVER_LIMIT_MAX: usize = 100;

/// How many examples of a tool are shown. Source: seed 002.
pub const EXAMPLES_MAX: usize = 5;

/// How long a caller may have a tool take. Source: seed 000 (1.0), `timeoutMs`.
pub const META_CALL_TIMEOUT_MAX: Duration = Duration::from_millis(600_000);

/// How long a caller may have a program take. Source: seed 002, `timeout_ms`.
pub const EXECUTE_TIMEOUT_MAX: Duration = Duration::from_millis(60_000);

/// How many tools a caller may have a program call. Source: seed 002, `max_tool_calls`.
pub const EXECUTE_CALLS_MAX: usize = 1000;

/// How much of an error of a server is passed on as an object, in bytes. Ours: an error that is
/// longer says nothing more to a model.
pub const ERROR_DETAIL_BYTES_MAX: usize = 8 * 1024;

/// How large the images and sounds of a result may be together that is shown whole, in bytes of JSON
/// text. Ours: a picture of a whole screen.
pub const PREVIEW_MEDIA_BYTES_MAX: usize = 1024 * 1024;

/// How many blocks of a large result are shown. Ours.
pub const PREVIEW_BLOCKS_MAX: usize = 50;

/// How many bytes of large results are kept to be read on in, how many results, and for how long.
/// Ours: what a few clients read at a time.
pub const RESULTS_BYTES_MAX: usize = 32 * 1024 * 1024;
/// See [`RESULTS_BYTES_MAX`].
pub const RESULTS_KEPT_MAX: usize = 64;
/// See [`RESULTS_BYTES_MAX`].
pub const RESULTS_AGE_MAX: Duration = Duration::from_secs(10 * 60);

/// How large the schema of a tool is that arguments are held against, in bytes. Ours: the largest
/// that were seen are a tenth of it.
pub const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// How often a pattern of a schema that looks around may try another way before it is given up. Ours:
/// some milliseconds; a pattern of an address takes a few hundred.
pub const PATTERN_BACKTRACKS_MAX: usize = 100_000;

/// How many schemas are kept as they were understood, and how many bytes of their texts. Ours: the
/// tools that a few clients use at a time.
pub const VALIDATORS_MAX: usize = 256;
/// See [`VALIDATORS_MAX`].
pub const VALIDATORS_BYTES_MAX: usize = 1024 * 1024;

/// How many problems with its arguments a caller is told at a time. Ours: more than one mends.
pub const PROBLEMS_MAX: usize = 8;

/// How much of a tool's description is shown of one that is looked at closely, in bytes. Source: seed
/// 002, `notes`.
pub const NOTES_BYTES_MAX: usize = 2000;

/// How long the summary of a tool is, in characters. Source: seed 002, as are the next five, the number of values aside.
pub const SUMMARY_CHARS_MAX: usize = 200;

/// How long the notes about a tool are, in characters.
pub const NOTES_CHARS_MAX: usize = 2000;

/// How long a text in an example is, in characters.
pub const EXAMPLE_CHARS_MAX: usize = 300;

/// How long the hint at a result is, in characters.
pub const HINT_CHARS_MAX: usize = 200;

/// How deep the arguments of an example are.
pub const EXAMPLE_DEPTH_MAX: usize = 5;

/// How many fields an object of an example has.
pub const EXAMPLE_KEYS_MAX: usize = 50;
/// How many values an example has in all. Ours: five levels of 50 fields would be 300 million.
pub const EXAMPLE_VALUES_MAX: usize = 250;

/// How many words a tool is tagged with. Ours: there are as many hints.
pub const TAGS_MAX: usize = 4;

/// How large a schema is that is shown whole, in bytes. Source: seed 001, `schemaBudget`.
pub const SCHEMA_SHOWN_BYTES_MAX: usize = 48_000;

/// How much of a text a model is asked to take in, in bytes. Ours: some 500 tokens, which is what
/// small models take; most of what a tool does is said in its first sentences.
pub const EMBEDDING_TEXT_BYTES_MAX: usize = 2 << 10;

/// How many texts one request for vectors has at most. Ours: common servers take 32 and more.
pub const EMBEDDING_BATCH_TEXTS_MAX: usize = 32;

/// How many bytes they have together. Ours: half of what 32 texts may have, so that a request on a
/// CPU is a matter of seconds.
pub const EMBEDDING_BATCH_BYTES_MAX: usize = 32 << 10;

/// How long such a request may take. Ours: some servers load the model when they are asked.
pub const EMBEDDING_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a search waits for the vector of its query, before it is made without.
/// Ours: a small model takes 20 ms on a CPU, and a person notices a second.
pub const EMBEDDING_QUERY_PATIENCE: Duration = Duration::from_millis(300);

/// How many requests for vectors of queries may run at a time. Ours.
pub const EMBEDDING_QUERIES_MAX: usize = 4;

/// How many vectors of queries are kept. Ours: a model asks the same again in other words at most
/// a few times.
pub const EMBEDDING_QUERIES_KEPT: usize = 128;

/// How many numbers a vector has at most. Ours: the largest models in use have 4,096.
pub const EMBEDDING_DIMENSION_MAX: usize = 8 << 10;

/// The longest answer, in bytes: as many numbers as there may be, in 24 bytes each. Ours.
pub const EMBEDDING_ANSWER_BYTES_MAX: usize =
    EMBEDDING_BATCH_TEXTS_MAX * EMBEDDING_DIMENSION_MAX * 24;

/// How much the vectors of texts may take together, in memory and on the disk, in bytes. Ours:
/// 40,000 tools with a small model, 4,000 with a large one.
pub const EMBEDDING_BYTES_MAX: usize = 64 << 20;

/// After how many batches what was learned is written to the disk. Ours: that of minutes.
pub const EMBEDDING_BATCHES_UNSAVED: u32 = 16;

/// How many requests in a row an endpoint fails until it is left alone, and for how long. Ours:
/// as a server, but sooner: search does without.
pub const EMBEDDING_FAILURES: u32 = 3;

/// For how long it is left alone then. Ours: as a server.
pub const EMBEDDING_COOLDOWN: Duration = BREAKER_COOLDOWN;

/// The first and the longest pause before texts are asked for again. Ours.
pub const EMBEDDING_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
