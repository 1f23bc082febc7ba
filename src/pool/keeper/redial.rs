//! Dials that nobody asked for: of a server that is to be there always, or that clients watch
//! something of.

use std::{sync::Arc, time::Duration};

use super::{Keeper, KeeperState};
use crate::{backoff::Backoff, config::defaults, connection::Party, pool::slot::SlotError};

impl Keeper {
    /// Has the server dialled again in the background if it is to be there.
    pub(super) fn redial_later(self: &Arc<Self>, state: &mut KeeperState) {
        let is_wanted = self.origin.declared.is_kept()
            || (matches!(self.party, Party::Shared) && self.is_watched());
        if is_wanted && !state.is_redialling && !state.is_closing {
            state.is_redialling = true;
            self.origin.dialer.tasks().spawn(Arc::clone(self).redial());
        }
    }

    /// Dials again until it succeeds, with growing pauses, or until it was tried often enough: then
    /// the server is left to whoever asks for it.
    async fn redial(self: Arc<Self>) {
        for n_attempts in 0_u64.. {
            if self
                .origin
                .declared
                .health
                .max_reconnects
                .is_some_and(|max| u64::from(max) <= n_attempts)
            {
                tracing::warn!(mcp_server = %self.name(), n_attempts, "server not dialled again until it is needed");
                self.state().is_redialling = false;
                return;
            }
            let pause = self.pause();
            tokio::select! {
                () = self.closing.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            let outcome = self.lease(None).await;
            // Decided under the lock, so that an end which comes at this moment is not missed.
            let mut state = self.state();
            if matches!(outcome, Err(SlotError::Closing(_))) || self.live().is_some() {
                state.is_redialling = false;
                return;
            }
        }
    }

    /// Returns how long to wait before the next dial that nobody asked for.
    fn pause(&self) -> Duration {
        let mut state = self.state();
        let backoff = state.backoff.get_or_insert_with(|| Backoff::new(defaults::RECONNECT_PAUSE));
        backoff.pause(fastrand::f64())
    }
}
