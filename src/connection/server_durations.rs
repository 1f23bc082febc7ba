//! The durations that are measured at one server.

use crate::telemetry::duration_histogram::DurationHistogram;

/// The durations that are measured at one server, over all its connections. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct ServerDurations {
    /// The times that requests waited for their turn: at the bound on requests in flight, or for one
    /// of the connections that the server may have.
    pub queue_waits: DurationHistogram,
    /// The times from the handshake to the end of a connection.
    pub connections: DurationHistogram,
}
