//! Bounds of the state of clients, and of the messages that wait for them.

use std::time::Duration;

/// The largest number of client sessions. One more ends the session that was used longest ago: some
/// clients open a session per call and never end it.
pub const SESSIONS_MAX: usize = 4096;

/// The time after which a session that has no stream and no request is forgotten. A client that
/// returns later loses its own connections, log level and subscriptions.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The age up to which a process accepts a session id that it does not know, from before a restart
/// or from a replica. It is longer than clients run, and an id in the wrong hands expires.
pub const SESSION_ID_AGE_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The largest number of ended sessions that are remembered. Their ids are still signed, and must
/// be refused if sessions are strict. It is four times the number of sessions.
pub const SESSIONS_ENDED_MAX: usize = 4 * SESSIONS_MAX;

/// The bounds on the interval of checks for unused sessions, a quarter of `session_timeout`.
pub const SESSION_SWEEP: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The longest session id of a client, in bytes. Those of SDKs have 36, those of metamcp up to 605.
pub const SESSION_ID_BYTES_MAX: usize = 1024;

/// The longest capabilities that a session id carries as the client wrote them, in bytes. The
/// longest id then has 605 bytes, and proxies accept at least 4 KiB of headers.
pub const SESSION_CAPABILITIES_BYTES_MAX: usize = 384;

/// The length of metamcp's own key for session ids, and the shortest of an operator, in bytes.
/// Source: RFC 2104, section 3, at least the length of the hash.
pub const SESSION_KEY_BYTES: usize = 32;

/// The time for which a client without a stream counts as present after its last request. It is
/// longer than the pauses of a person at work, and shorter than a break.
pub const CLIENT_PRESENT_WINDOW: Duration = Duration::from_secs(5 * 60);

/// The largest number of clients without a session that are remembered for status output. One more
/// replaces the one that was seen longest ago.
pub const CLIENTS_SEEN_MAX: usize = 256;

/// The largest number of client names in status output: more than a person reads.
pub const CLIENTS_SHOWN_MAX: usize = 32;

/// The longest name of a client that is kept, in bytes. Those of known clients have at most 30.
pub const CLIENT_NAME_BYTES_MAX: usize = 64;

/// The longest version of a client that is kept, in bytes.
pub const CLIENT_VERSION_BYTES_MAX: usize = 32;

/// The largest number of events that are kept for a client with a broken GET stream.
pub const OUTBOX_EVENTS: usize = 256;

/// The largest total size of these events, in bytes.
pub const OUTBOX_BYTES: usize = 1 << 20;

/// The largest number of answers on resumable streams, of all clients together. One more is on a
/// stream that cannot be resumed.
pub const RESUMABLE_MAX: usize = 256;

/// The largest total size of answers that are kept although they were sent, in bytes, for all
/// clients together; more are not kept. It has room for thousands of small ones.
pub const SENT_BYTES_KEPT: usize = 16 << 20;

/// The least size that such an answer counts for, in bytes, for the data kept with it.
pub const SENT_BYTES_UNIT: usize = 4 << 10;

/// The time that a client may take to resume a broken stream. Then its request is cancelled, or a
/// sent answer is dropped. A host can wake up in this time, and a proxy restart.
pub const RESUME_WITHIN: Duration = Duration::from_secs(30);

/// The time after which a client is to resume a broken stream: soon, and not all at once.
pub const RESUME_AFTER: Duration = Duration::from_secs(1);

/// The largest number of requests of servers that wait for one client.
pub const SERVER_REQUESTS_MAX: usize = 64;

/// The largest number of calls held for clients that are to return.
pub const HELD_CALLS_MAX: usize = 256;

/// The largest number of resources that one client may subscribe to.
pub const SUBSCRIPTIONS_MAX: usize = 1024;

/// The time that a notice waits for more of the same, so that a burst is one notice.
pub const LIST_CHANGED_DEBOUNCE: Duration = Duration::from_millis(150);

/// The longest such time. A client that waits longer works with tools that are gone.
pub const LIST_CHANGED_DEBOUNCE_MAX: Duration = Duration::from_secs(60);
