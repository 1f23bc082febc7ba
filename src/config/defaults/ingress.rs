//! Bounds of the HTTP ingress: times and sizes of requests and answers.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use super::{LIST_TIMEOUT, MESSAGE_BYTES_MAX};

/// The address for clients.
pub const HTTP_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 12011);

/// The time that `initialize` on a server's own path waits for that server. After it, metamcp
/// answers without knowing its capabilities. Clients allow 30 s to connect.
pub const INITIALIZE_TIMEOUT: Duration = Duration::from_secs(10);

/// The time that `server/discover` on a server's own path waits for a server without a connection.
/// All other requests of Claude Code wait for it. Half of the 100 ms that it may take.
pub const DISCOVER_TIMEOUT: Duration = Duration::from_millis(50);

/// The time that the acknowledgement of a subscription waits for servers: as long as merged lists.
pub const SUBSCRIBE_TIMEOUT: Duration = LIST_TIMEOUT;

/// The time after which an answer is sent as a stream instead of plain JSON, so that comments can
/// keep the connection alive. Most answers come sooner, and JSON costs less.
pub const STREAM_AFTER: Duration = Duration::from_secs(2);

/// The silence on a stream before a comment: below the 30 s after which proxies cut idle streams.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The longest time without a read of a client, for which data waits in memory.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The silence of a tool after which metamcp sends its client progress. It is below the 300 s after
/// which Claude Code gives up a silent call, and the 60 s of the SDKs.
pub const PROGRESS_BEAT: Duration = Duration::from_secs(30);

/// The longest TLS handshake, and so the time that a silent client holds a permit. A handshake is
/// two round trips and some arithmetic.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest file of a certificate or a key, in bytes. Source: systemd's bound for a credential.
pub const PEM_BYTES_MAX: u64 = 1 << 20;

/// The shortest token of clients, in characters. 16 random hexadecimal digits are 64 bits; half of
/// the values take 290,000 years to try at a million a second.
pub const TOKEN_BYTES_MIN: usize = 16;

/// The longest token of clients, in characters. It is half of the 8 KiB that servers and proxies
/// allow a header. Source: nginx's `large_client_header_buffers`.
pub const TOKEN_BYTES_MAX: usize = 4 << 10;

/// The part of a refused request's body that is read and discarded, in bytes, so that a client
/// without the token sees the reason. Arguments of tools are smaller, except whole files.
pub const DENIED_BODY_BYTES_SKIPPED: usize = 256 << 10;

/// The longest time to read the body of a refused request. Data that is under way arrives in a
/// round trip or two.
pub const DENIED_BODY_TIMEOUT: Duration = Duration::from_secs(2);

/// The time that a browser may reuse the answer to a CORS preflight. A reload that removes an
/// origin still takes effect at once, because each request is checked.
pub const PREFLIGHT_MAX_AGE: Duration = Duration::from_secs(600);

/// The number of wrong tokens of one source that are answered at once: a few requests each of
/// several clients with an old token.
pub const WRONG_TOKENS_BURST: u32 = 20;

/// The time after which one more wrong token is answered at once. Tokens are not typed by hand.
pub const WRONG_TOKEN_PAUSE: Duration = Duration::from_secs(1);

/// The longest wait of the answer to a wrong token. Those of one source that would wait longer get
/// 429 at once. So few answers wait that they cost nothing.
pub const WRONG_TOKEN_DELAY_MAX: Duration = Duration::from_secs(5);

/// The interval of log lines about wrong tokens of one source, so that none fills the journal.
pub const WRONG_TOKEN_LOG_PAUSE: Duration = Duration::from_secs(60);

/// The largest number of log lines about wrong tokens in that interval, of all sources together.
pub const WRONG_TOKEN_LOG_LINES_MAX: u32 = 20;

/// The largest number of remembered sources of wrong tokens, the latest ones: 100 bytes each.
pub const WRONG_TOKEN_SOURCES_MAX: usize = 1024;

/// The longest time to send the head of a request, and so the longest idle time of a client
/// connection. Clients keep idle connections for less: closing one at the moment of a call would
/// fail that call. Source: nginx's 75 s.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(75);

/// The time that a newly connected client may take to send a request when the service stops. A
/// client sends one as soon as it is connected, and a stop must not wait for one that does not.
pub const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest time to send the body of a request.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest request body, in bytes. Source: the MCP SDKs' 4 MiB.
pub const BODY_BYTES_MAX: usize = 4 << 20;

/// The part of a too large body beyond the bound that is read before the refusal, in bytes.
pub const BODY_BYTES_SKIPPED: usize = 64 << 20;

/// The largest number of messages of a batch: as many as one client's requests that run at a time.
pub const BATCH_MESSAGES_MAX: usize = 128;

/// The largest total size of a batch's answers that wait for the last of them, in bytes. Beyond it
/// they are sent one by one as a stream. It is as large as one answer may be.
pub const BATCH_ANSWER_BYTES_MAX: usize = MESSAGE_BYTES_MAX;

/// The largest number of requests of one client of HTTP with SSE that run, and of further ones that
/// wait. Waiting requests take memory, and a client waits for its answers.
pub const LEGACY_SSE_REQUESTS_MAX: usize = 256;

/// The largest number of requests of one client on a pipe; one request too many is refused.
pub const PIPE_REQUESTS_MAX: usize = LEGACY_SSE_REQUESTS_MAX;

/// The largest number of a pipe client's notifications and answers that wait for their server.
pub const PIPE_DELIVERIES_MAX: usize = 64;

/// The time before requests of a client that has closed its end of a pipe are cancelled. The client
/// has gone, or its input came all at once: `printf … | metamcp stdio`. It is half of the 2 s that
/// the SDKs wait before they end the process at the other end.
pub const PIPE_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The number of unread events of an answer at which no more are taken from the server.
pub const UNREAD_EVENTS: usize = 64;

/// The largest total size of unread events, in bytes; one larger event is taken all the same.
pub const UNREAD_BYTES: usize = 256 << 10;

/// The largest number of client connections at a time; more wait in the backlog. As many as
/// sessions, each of which may hold a stream, and a quarter of the descriptors that the unit
/// allows.
pub const CLIENT_CONNECTIONS_MAX: usize = 4096;

/// The largest number of connections at a time to the listener for metrics.
pub const METRICS_CONNECTIONS_MAX: usize = 16;

/// The largest number of clients that wait to be accepted on a socket that metamcp opens. Linux
/// takes the smaller of it and `net.core.somaxconn`. Source: the default of `somaxconn`, which
/// systemd uses for its sockets.
pub const LISTEN_BACKLOG: i32 = 4096;

/// The pause in accepting when the system has no descriptor or memory to spare.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The longest name of a tool or prompt in the merged view, in characters. Clients allow 64 with
/// their own prefix, which for Claude Code is `mcp__metamcp__`.
/// Source: the Claude API's `^[a-zA-Z0-9_-]{1,64}$`.
pub const EXPOSED_NAME_MAX: usize = 64 - "mcp__metamcp__".len();

/// The interval at which an open page of the service gets its changes.
pub const PAGE_INTERVAL: Duration = Duration::from_secs(3);

/// The largest number of pages that follow the service at once. Each reads its state.
pub const PAGES_MAX: usize = 16;

/// The largest body that a login to the page may have: the longest token, with each byte encoded in
/// three.
pub const PAGE_LOGIN_BYTES_MAX: usize = 3 * TOKEN_BYTES_MAX + 64;

/// The number of calls that the page shows.
pub const PAGE_CALLS: usize = 30;

/// The number of tools that a search of the page shows.
pub const PAGE_TOOLS: usize = 10;

/// The longest name of a tool with its server's that a link of the page has, in bytes. A byte is up to
/// three in an address. MCP advises 128 characters for a tool.
pub const PAGE_LINK_BYTES_MAX: usize = 640;

/// The longest words of a search that the link of each found tool repeats, in bytes.
pub const PAGE_LINK_WORDS_BYTES_MAX: usize = 120;

/// The longest words of a search that the link to the next tools repeats, in bytes: those of 500
/// characters, which the form takes.
pub const PAGE_WORDS_BYTES_MAX: usize = 1500;

/// The longest header of a trace that is passed on, in bytes. Source: W3C, "Baggage", limits.
pub const TRACE_HEADER_BYTES_MAX: usize = 8192;
