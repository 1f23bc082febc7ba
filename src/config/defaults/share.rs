//! Bounds of fair shares, and the split of descriptors.

use std::time::Duration;

use super::REQUEST_TIMEOUT;

/// The time that a party counts as a user of a server after its request: as long as one that hangs.
pub const SHARE_RECENT: Duration = REQUEST_TIMEOUT;

/// The interval at which a waiting party checks for a permit that was left for others.
pub const SHARE_POLL: Duration = Duration::from_secs(1);

/// The age up to which a new connection need not have sent anything acceptable. A request follows
/// its connection within milliseconds, or a few round trips with TLS.
pub const PROOF_GRACE: Duration = Duration::from_secs(1);

/// The time that a connection may stay without an acceptable request: that of a TLS handshake.
pub const PROOF_TIMEOUT: Duration = super::HANDSHAKE_TIMEOUT;

/// The time that an evicted connection has for data that is still being written.
pub const EVICTION_TIMEOUT: Duration = Duration::from_secs(2);

/// The part of the descriptors for all client connections together, as a divisor. As many are left
/// for what these connections cause, and for children.
pub const CLIENT_DESCRIPTORS_PART: usize = 2;

/// The part of the client connections that is kept for accounts below their share, as a divisor.
/// Another such part is for connections on probation: probes and operators.
pub const CLIENT_RESERVE_PART: usize = 16;

/// The part of the client connections that may be streams, as a divisor. Half is for requests.
pub const STREAMS_PART: usize = 2;

/// The part of the descriptors for the requests in flight on one connection over HTTP, as a
/// divisor. Each of these requests holds one.
pub const IN_FLIGHT_DESCRIPTORS_PART: usize = 4;
