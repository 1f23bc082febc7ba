//! The time in which an absent server is tried again.

use tokio::time::Instant;

use super::ConnectError;

/// The time until which an absent server is tried again.
#[derive(Clone, Copy)]
pub struct ReconnectWindow<'a> {
    /// The end of the window.
    pub ends: Instant,
    /// `true` if the server was connected before: a unit without its socket is being changed then,
    /// as by a switch of the system configuration, rather than never set up.
    pub was_connected: bool,
    /// Called after each failed attempt that is followed by another one, and for an upstream that
    /// accepts no connections.
    pub on_absence: &'a (dyn Fn(&ConnectError) + Send + Sync),
}

impl ReconnectWindow<'_> {
    /// Returns the window for a single attempt.
    pub fn none() -> Self {
        Self { ends: Instant::now(), was_connected: false, on_absence: &|_| {} }
    }
}
