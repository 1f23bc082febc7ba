//! The handler for ctrl-c.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{FAILED, Failed};

/// Catches ctrl-c from now on. Before this call, and in commands without it, ctrl-c ends the
/// process.
///
/// # Errors
///
/// [`Failed`] when the system does not permit it.
pub(super) fn listen_for_ctrl_c() -> Result<Signal, Failed> {
    signal(SignalKind::interrupt())
        .map_err(|error| Failed::new(FAILED, format!("cannot catch ctrl-c: {error}")))
}
