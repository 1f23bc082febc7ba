//! The time for which an absent server is tried again.

use tokio::time::Instant;

use super::ConnectError;

/// The time until which an absent server is tried again.
#[derive(Clone, Copy)]
pub struct ReconnectWindow<'a> {
    pub(super) ends: Instant,
    pub(super) is_for_return: bool,
    /// Called after each failed attempt that is followed by another one, and for an upstream that
    /// accepts no connections.
    pub(super) absent: &'a (dyn Fn(&ConnectError) + Send + Sync),
}

impl<'a> ReconnectWindow<'a> {
    /// Returns the window for a single attempt.
    pub fn none() -> Self {
        Self { ends: Instant::now(), is_for_return: false, absent: &|_| {} }
    }

    /// Returns a window until `ends`. `is_for_return` says that the server was there before. A unit
    /// without its socket is then being changed, as by a switch of the system configuration,
    /// rather than never set up. `absent` is called after each failed attempt that is followed by
    /// another one.
    pub fn until(
        ends: Instant,
        is_for_return: bool,
        absent: &'a (dyn Fn(&ConnectError) + Send + Sync),
    ) -> Self {
        Self { ends, is_for_return, absent }
    }
}
