//! For how long a server that is not there is waited for.

use tokio::time::Instant;

/// Until when a server that is not there is tried again.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub(super) ends: Instant,
    pub(super) is_for_return: bool,
}

impl Patience {
    /// Returns that of who tries once.
    pub fn none() -> Self {
        Self { ends: Instant::now(), is_for_return: false }
    }

    /// Returns one that ends at `ends`. `is_for_return` is whether the server has been there before:
    /// a unit without its socket is then one that is being changed, as by a switch of the system,
    /// and not one that was never set up.
    pub fn until(ends: Instant, is_for_return: bool) -> Self {
        Self { ends, is_for_return }
    }
}
