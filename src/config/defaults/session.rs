//! What is remembered of clients, and what waits for them.

use std::time::Duration;

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

/// How many questions of servers may wait for one client. Ours.
pub const QUESTIONS_MAX: usize = 64;

/// How many calls may be held for clients that are to come back. Ours.
pub const PARKED_MAX: usize = 256;

/// How many resources one client may watch. Ours.
pub const WATCHED_MAX: usize = 1024;

/// How long what a client is to hear of a changed list or an updated resource waits for more of the
/// same, so that a burst is one notice. Source: seed 002, `list_changed_debounce`.
pub const LIST_CHANGED_DEBOUNCE: Duration = Duration::from_millis(150);

/// The longest such time. Ours: a client that waits longer works with tools that are gone.
pub const LIST_CHANGED_DEBOUNCE_MAX: Duration = Duration::from_secs(60);
