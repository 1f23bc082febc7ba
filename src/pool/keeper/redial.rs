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

    /// Dials again until it succeeds, with growing pauses.
    async fn redial(self: Arc<Self>) {
        loop {
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
        state.backoff.get_or_insert_with(|| Backoff::new(defaults::RECONNECT_PAUSE)).pause()
    }
}
