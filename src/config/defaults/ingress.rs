//! The HTTP edge: how long and how much, of requests and of answers.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use super::{LIST_PATIENCE, MESSAGE_BYTES_MAX};

/// Where clients reach the HTTP edge. Source: design ruling 1.
pub const HTTP_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 12011);

/// How long `initialize` on a server's own path waits for that server.
/// Clients allow 30 s to connect; past this we answer without knowing its capabilities. Ours.
pub const INITIALIZE_PATIENCE: Duration = Duration::from_secs(10);

/// How long `server/discover` on a server's own path waits for a server that is not connected. Claude
/// Code's first request, on whose answer all others wait. Ours: half of the 100 ms that it may take.
pub const DISCOVER_PATIENCE: Duration = Duration::from_millis(50);

/// How long the acknowledgement of a subscription waits for servers to be asked to watch resources.
/// Ours: as long as the merged lists, for the same reason.
pub const SUBSCRIBE_PATIENCE: Duration = LIST_PATIENCE;

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

/// How many characters the token of clients has at least. Ours: 16 random hexadecimal digits are 64
/// bits, half of which take 290,000 years to try at a million a second.
pub const TOKEN_BYTES_MIN: usize = 16;

/// How many characters the token of clients may have. Ours: half of the 8 KiB that servers and proxies
/// allow a header. Source: nginx's `large_client_header_buffers`.
pub const TOKEN_BYTES_MAX: usize = 4 << 10;

/// How much of the body of a request without the token is read for nothing, in bytes, so that its
/// client sees why it is refused. Ours: arguments of tools are smaller, but for whole files.
pub const DENIED_BODY_BYTES_SKIPPED: usize = 256 << 10;

/// How long that may take. Ours: what is on its way comes in a round trip or two.
pub const DENIED_BODY_PATIENCE: Duration = Duration::from_secs(2);

/// How long a browser need not ask again whether a page may send what it has asked for. Ours: a reload
/// that takes an origin away holds for what is sent at once, as each request is checked.
pub const PREFLIGHT_MAX_AGE: Duration = Duration::from_secs(600);

/// How many wrong tokens of one source are answered at once. Ours: several clients with an old one, a
/// few requests of each.
pub const WRONG_TOKENS_BURST: u32 = 20;

/// How long it takes until one more is answered at once. Ours: nobody types a token.
pub const WRONG_TOKEN_PAUSE: Duration = Duration::from_secs(1);

/// How long the answer to a wrong token waits, at most. Those of one source that would wait longer are
/// answered at once with 429. Ours: so few answers wait that they cost nothing.
pub const WRONG_TOKEN_PATIENCE: Duration = Duration::from_secs(5);

/// How often the log says that a source brings wrong tokens. Ours: each attack is seen, and none
/// fills the journal.
pub const WRONG_TOKEN_LOG_PAUSE: Duration = Duration::from_secs(60);

/// How many such lines there are in that time, of all sources together. Ours.
pub const WRONG_TOKEN_LOG_LINES_MAX: u32 = 20;

/// How many sources of wrong tokens are known, those that came last. Ours: 100 bytes each.
pub const WRONG_TOKEN_SOURCES_MAX: usize = 1024;

/// How long a client may take to send the head of a request, and so how long its connection may
/// be idle. Longer than clients keep idle connections: one that we closed at the moment of a call
/// would cost that call. Source: nginx's 75 s, where seed 002 has 10 s.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(75);

/// How long a client that has just connected may take to ask, when the service is told to stop. Ours:
/// one sends its request as soon as it is connected, and a stop is not to wait for one that does not.
pub const FIRST_REQUEST_PATIENCE: Duration = Duration::from_secs(1);

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

/// How many requests of one client of HTTP with SSE may run, and how many more may wait for its
/// stream to take them on. Ours: what waits is memory, and a client waits for what it has asked.
pub const PAIR_REQUESTS_MAX: usize = 256;

/// How many requests of one client on a pipe may run, and how many more may wait for that; one too
/// many is refused. Ours: as those of a client of HTTP with SSE.
pub const PIPE_REQUESTS_MAX: usize = PAIR_REQUESTS_MAX;

/// How many notifications and answers of a client on a pipe may wait for their server before no more
/// is read. Ours.
pub const PIPE_DELIVERIES_MAX: usize = 64;

/// How long requests of a client that has closed its end of a pipe may go on before they are
/// cancelled. It has gone, but for one that was given its lines all at once: `printf … | metamcp stdio`.
/// Ours: half of the 2 s that the SDKs wait before they end the process at the other end.
pub const PIPE_FAREWELL: Duration = Duration::from_secs(1);

/// How many events of an answer may wait to be read before no more are taken from the server. Ours.
pub const UNREAD_EVENTS: usize = 64;

/// How much they may take together, in bytes; one larger event is taken all the same. Ours.
pub const UNREAD_BYTES: usize = 256 << 10;

/// How many client connections are served at a time; more wait in the backlog. Ours: as many as
/// sessions, of which each may hold a stream for good, and a quarter of the descriptors that the
/// unit allows.
pub const CLIENT_CONNECTIONS_MAX: usize = 4096;

/// How many clients may wait to be accepted on a socket that we open. Linux takes the smaller one of it
/// and `net.core.somaxconn`. Source: the default of `somaxconn`, which systemd uses for its sockets.
pub const LISTEN_BACKLOG: i32 = 4096;

/// How long accepting pauses when the system has no descriptor or memory to spare. Ours.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The longest name of a tool or prompt in the merged view, in characters. Clients allow 64 with
/// their own prefix, which for Claude Code is `mcp__metamcp__`.
/// Source: the Claude API's `^[a-zA-Z0-9_-]{1,64}$`.
pub const EXPOSED_NAME_MAX: usize = 64 - "mcp__metamcp__".len();
