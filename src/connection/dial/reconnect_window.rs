//! For how long a server that is not there is waited for.

use tokio::time::Instant;

use super::ConnectError;

/// Until when a server that is not there is tried again.
#[derive(Clone, Copy)]
pub struct ReconnectWindow<'a> {
    pub(super) ends: Instant,
    pub(super) is_for_return: bool,
    /// Told of each attempt after which there is another one, and of an upstream that takes no
    /// connections.
    pub(super) absent: &'a (dyn Fn(&ConnectError) + Send + Sync),
}

impl<'a> ReconnectWindow<'a> {
    /// Returns that of who tries once.
    pub fn none() -> Self {
        Self { ends: Instant::now(), is_for_return: false, absent: &|_| {} }
    }

    /// Returns one that ends at `ends`. `is_for_return` is whether the server has been there before:
    /// a unit without its socket is then one that is being changed, as by a switch of the system,
    /// and not one that was never set up. `absent` is told of each attempt after which there is another
    /// one.
    pub fn until(
        ends: Instant,
        is_for_return: bool,
        absent: &'a (dyn Fn(&ConnectError) + Send + Sync),
    ) -> Self {
        Self { ends, is_for_return, absent }
    }
}
