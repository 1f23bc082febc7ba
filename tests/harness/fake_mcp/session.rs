//! A session of the HTTP transport.

use tokio_util::sync::CancellationToken;

use crate::wire::Wire;

/// What is kept for a session.
#[derive(Debug)]
pub(crate) struct Session {
    /// Ends the streams of the session.
    pub(crate) closed: CancellationToken,
    /// The GET stream, while there is one.
    pub(crate) stream: Option<Wire>,
}
