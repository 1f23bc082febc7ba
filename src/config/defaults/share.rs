//! Fair shares of what is bounded, and what the bounds on descriptors follow from.

use std::time::Duration;

use super::REQUEST_TIMEOUT;

/// How long a party counts as one that uses a server after it has asked for it. Ours: as long as a
/// request that hangs lasts.
pub const SHARE_RECENT: Duration = REQUEST_TIMEOUT;

/// The time between two looks of a party that waits at a permit that is left for others. Ours.
pub const SHARE_LOOK: Duration = Duration::from_secs(1);

/// For how long a connection is not expected to have proved anything: it has just come. Ours: a
/// request follows its connection within milliseconds, or a few round trips with TLS.
pub const PROOF_GRACE: Duration = Duration::from_secs(1);

/// How long a connection may stay on which nothing acceptable has come. Ours, from the issue of fair
/// shares; as long as a TLS handshake may take.
pub const PROOF_TIMEOUT: Duration = super::HANDSHAKE_TIMEOUT;

/// How long an evicted connection has for what is still being written. Ours.
pub const EVICTION_PATIENCE: Duration = Duration::from_secs(2);

/// One part in so many of the descriptors is for client connections, all of them together. Ours: as
/// many are left for what they cause, and for children.
pub const CLIENT_DESCRIPTORS_PART: usize = 2;

/// One part in so many of the client connections is kept for accounts that hold less than their
/// share, and another one for connections on probation: probes and operators. Ours.
pub const CLIENT_RESERVE_PART: usize = 16;

/// One part in so many of the client connections may be streams, which have no end. Ours: half is
/// left for requests.
pub const STREAMS_PART: usize = 2;

/// One part in so many of the descriptors is for the requests in flight on one connection over HTTP,
/// each of which holds one. Ours.
pub const IN_FLIGHT_DESCRIPTORS_PART: usize = 4;
