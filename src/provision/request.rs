//! What somebody asks for.

use crate::connection::ConnectionLimits;

/// What somebody asks for.
#[derive(Clone, Copy, Debug)]
pub struct ProvisionRequest<'a> {
    /// What it is to do, in words.
    pub intent: &'a str,
    /// More about it.
    pub context: Option<&'a str>,
    /// Whether the best match is to be started if it may be.
    pub auto: bool,
    /// How long requests may take.
    pub limits: ConnectionLimits,
}
