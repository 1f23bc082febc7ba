//! Connections to servers: how they are made, watched and ended, and what may wait on them.

use std::time::Duration;

/// How long a server may take from being started to the end of its handshake.
/// Long, because `npx` and `uvx` may fetch a package first. Ours.
pub const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a TCP connection to an upstream may take to be made. Ours.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// After how long an upstream that has taken no TCP connection counts as not there, for a start and
/// for lists, while the attempt goes on. Ours: less than the second that it may hold up a start;
/// longer than a round trip to anywhere, and than any look-up of a name that is answered.
pub const CONNECT_NOTICED_AFTER: Duration = Duration::from_millis(750);

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

/// How long the answer to `server/discover` is waited for after `initialize` was answered first.
/// Ours: servers that answer several requests at a time are done with both by then.
pub const PROBE_GRACE: Duration = Duration::from_millis(250);

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

/// How many messages without an answer among them show that a server works. Ours: more than any tool
/// reports of its progress; a server that floods and answers nothing is found by pings.
pub const UNANSWERED_MESSAGES_MAX: u32 = 10_000;

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

/// The longest line or event from a server, in bytes. Source: 16 MiB, what clients accept.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// How many requests may be in flight on one connection; twice as many where the rest are of accounts
/// below their share. Ours.
pub const IN_FLIGHT_MAX: usize = 4096;

/// How many requests may wait for room on one connection. Beyond it, the holder that has the most of
/// them loses its newest. Ours: a quarter of what may be in flight.
pub const IN_FLIGHT_QUEUE_MAX: usize = IN_FLIGHT_MAX / 4;

/// How many answers are waited for on one connection whose clients have gone. Ours: over HTTP, each
/// holds a TCP connection, and a process has 1,024 descriptors unless it is given more.
pub const DRAINING_MAX: usize = 256;

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

/// How many messages that belong to no request may wait to be handed on; more are dropped. Ours.
pub const ANNOUNCEMENT_QUEUE: usize = 1024;

/// How long the end of an upstream's stream is waited for once the answer has come. Ours.
pub const STREAM_END: Duration = Duration::from_millis(500);
