//! Ctrl-c, caught.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{FAILED, Failed};

/// Catches ctrl-c from now on; until then, and in every command that does not ask for it, it ends the
/// process.
///
/// # Errors
///
/// [`Failed`] when the system does not allow it.
pub(super) fn listen_for_ctrl_c() -> Result<Signal, Failed> {
    signal(SignalKind::interrupt())
        .map_err(|error| Failed::new(FAILED, format!("catch ctrl-c: {error}")))
}
