//! Bounds of connections to servers: their start, liveness, end and queues.

use std::time::Duration;

/// The longest time from a server's start to the end of its handshake. `npx` may download a
/// package.
pub const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest time to open a TCP connection to an upstream.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time after which an upstream without a TCP connection counts as absent for a start and for
/// lists, while the attempt continues. It is less than the second that an upstream may delay a
/// start, and longer than a round trip and a look-up of a name.
pub const CONNECT_NOTICED_AFTER: Duration = Duration::from_millis(750);

/// The time after the beginning of an upstream's absence at which requests for it fail. So a
/// restart of the upstream causes a delay and no error. It is longer than a server takes to start
/// again, and shorter than any client waits.
pub const ABSENCE_TIMEOUT: Duration = Duration::from_secs(10);

/// The first and the longest pause between attempts to reach an absent upstream.
pub const CONNECT_PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// The silence on a TCP connection to an upstream after which TCP probes the other end. It is below
/// the minutes after which firewalls forget a connection.
pub const UPSTREAM_TCP_PROBE_AFTER: Duration = Duration::from_secs(30);

/// The interval between probes.
pub const UPSTREAM_TCP_PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// The number of unanswered probes after which the connection is broken.
pub const UPSTREAM_TCP_PROBES: u32 = 3;

/// The time that data sent to an upstream may stay unacknowledged: as long as the probes take.
pub const UPSTREAM_TCP_TIMEOUT: Duration = Duration::from_secs(60);

/// The time that an idle TCP connection to an upstream is kept. It is below the 5 s after which
/// Node, uvicorn and Apache close theirs, with TLS or without: a request on a closing connection
/// would be lost.
pub const UPSTREAM_IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// The time that an HTTP/2 connection without streams is kept. It is below the 60 s after which load
/// balancers close theirs. A request on a closing one is not lost: the peer says that it did not
/// execute it.
pub const HTTP2_IDLE_TIMEOUT: Duration = Duration::from_secs(50);

/// The time that a server may leave `server/discover` unanswered before `initialize` is sent too.
/// It is longer than most servers take to start, and shorter than clients wait for a list. A server
/// that answers only `initialize` delays its clients this long, once.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The time to wait for the answer to `server/discover` after that to `initialize` came first. A
/// server that answers several requests at a time has answered both by then.
pub const PROBE_GRACE: Duration = Duration::from_millis(250);

/// The time after which a server that refused `server/discover` is asked again. So metamcp notices
/// a replacement behind its address or in its package.
pub const LEGACY_ERA_TTL: Duration = Duration::from_secs(60 * 60);

/// The longest time to read all lists of an upstream, which may start servers of its own for that.
pub const WARM_UP_TIMEOUT: Duration = Duration::from_secs(10);

/// The silence of a server after which it is pinged.
pub const HEALTH_INTERVAL: Duration = Duration::from_secs(30);

/// The silence of an upstream after which it is pinged.
pub const HEALTH_INTERVAL_UPSTREAM: Duration = Duration::from_secs(20);

/// The messages without an answer among them that count as signs of life. No tool reports as much
/// progress; pings find a server that floods and answers nothing.
pub const UNANSWERED_MESSAGES_MAX: u32 = 10_000;

/// The time that a server may take to answer a ping.
pub const HEALTH_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of unanswered pings in a row after which a server is given up.
pub const HEALTH_FAILURES: u32 = 3;

/// The largest `failures`. With the default interval, a server has hung for an hour by then.
pub const HEALTH_FAILURES_MAX: u32 = 100;

/// The time that an upstream that refuses a POST may take to name the address for messages. Those
/// of protocol version 2024-11-05 do so at once.
pub const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(5);

/// The first and the longest pause before an upstream's event stream is opened again. A pause that
/// the upstream asks for is kept, up to the longest. The SDKs have 1 s to 30 s.
pub const STREAM_PAUSE: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(30));

/// The time that an event stream must last before the pauses start again at the first one.
pub const STREAM_STABLE_AFTER: Duration = Duration::from_secs(5);

/// The largest number of attempts to resume a broken answer without a further event, and to open a
/// stream of notices that never existed: two to three seconds of pauses.
pub const STREAM_ATTEMPTS_MAX: u32 = 5;

/// The time that a subscription is still read after another one has replaced it. Messages may have
/// been on its TCP connection when the other was acknowledged.
pub const LISTEN_OVERLAP: Duration = Duration::from_millis(250);

/// The largest number of idle TCP connections that are kept to one upstream.
pub const UPSTREAM_IDLE_MAX: usize = 64;

/// The time that an upstream may take to acknowledge the end of a session. A stop must not hang.
pub const SESSION_END_TIMEOUT: Duration = Duration::from_secs(2);

/// The longest line or event from a server, in bytes. Source: the 16 MiB that clients accept.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// The largest number of requests in flight on one connection; twice as many for small accounts.
pub const IN_FLIGHT_MAX: usize = 4096;

/// The largest number of requests that wait for room on one connection. Beyond it, the holder that
/// has the most of them loses its newest. It is a quarter of the requests in flight.
pub const IN_FLIGHT_QUEUE_MAX: usize = IN_FLIGHT_MAX / 4;

/// The largest number of answers on one connection that are awaited although their clients have
/// gone. Over HTTP, each holds a TCP connection, and a process has 1,024 descriptors by default.
pub const DRAINING_MAX: usize = 256;

/// The largest number of messages that wait to be written to one child.
pub const WRITE_QUEUE: usize = 256;

/// The largest number of cancellations and answers that wait to be sent to one server; more are
/// dropped. All requests in flight may be cancelled at once.
pub const SIDE_MESSAGE_QUEUE: usize = IN_FLIGHT_MAX;

/// The largest number of notifications that wait for the client of one request; more are dropped.
pub const NOTIFICATION_QUEUE: usize = 256;

/// The time without a read while a client's queue is full, before its request is given up.
pub const OVERRUN_TIMEOUT: Duration = Duration::from_secs(1);

/// The largest total size of the notifications that wait for the client of one request, in bytes;
/// a single one may be larger.
pub const NOTIFICATION_BYTES_MAX: usize = 1 << 20;

/// The largest number of messages without a request that wait to be handed on; more are dropped.
pub const ANNOUNCEMENT_QUEUE: usize = 1024;

/// The time to wait for the end of an upstream's stream after the answer has come.
pub const STREAM_END: Duration = Duration::from_millis(500);

/// The largest number of headers of a client's request that are passed on to one server.
pub const FORWARDED_HEADERS_MAX: usize = 16;

/// The largest size of the headers of one request that are passed on to one server: their names and
/// values, in bytes. nginx and Apache refuse a longer line, and Node a head of twice the size.
pub const FORWARDED_HEADER_BYTES_MAX: usize = 8 << 10;

/// The shortest wait before a request is sent again that its upstream asked to send later.
pub const RETRY_AFTER_MIN: Duration = Duration::from_millis(200);

/// The largest number of waits of one request that its upstream asks for. One that asks again and
/// again does not serve.
pub const RETRY_AFTER_WAITS_MAX: u32 = 5;

/// The part of such a wait that is added at random at most, so that the requests of many clients
/// do not all come back at once.
pub const RETRY_AFTER_JITTER: f64 = 0.1;

/// The largest number of scopes in one login.
pub const SCOPES_MAX: usize = 64;
