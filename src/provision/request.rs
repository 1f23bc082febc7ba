//! A provisioning request.

use crate::connection::ConnectionLimits;

/// A provisioning request.
#[derive(Clone, Copy, Debug)]
pub struct ProvisionRequest<'a> {
    /// The task, in words.
    pub intent: &'a str,
    /// More words about the task.
    pub context: Option<&'a str>,
    /// Start the best match if that is allowed.
    pub auto: bool,
    /// The time limits of requests.
    pub limits: ConnectionLimits,
}
