//! The end of a connection: its requests finish or fail, then the link closes.

use std::{sync::atomic::Ordering, time::Duration};

use super::{Connection, Mux, RequestFailure, Waiter};

impl Connection {
    /// Returns whether a new request may use the connection.
    pub fn is_live(&self) -> bool {
        !self.gone.is_cancelled()
    }

    /// Waits until no new request may use the connection. Cancel safe.
    pub async fn wait_until_gone(&self) {
        self.gone.cancelled().await;
    }

    /// Waits until the link is down: the child is reaped, or the session has ended. Cancel safe.
    pub async fn down(&self) {
        self.down.cancelled().await;
    }

    /// Returns why the connection ended, once that is known.
    pub fn reason(&self) -> Option<&RequestFailure> {
        self.reason.get()
    }

    /// Returns the longest time that any request so far may take.
    pub fn longest_timeout(&self) -> Duration {
        Duration::from_millis(self.longest_ms.load(Ordering::Relaxed))
    }

    /// Lets running requests finish for at most `timeout`, then closes the connection. Dropping the
    /// future leaves the connection open for running requests, but not for new ones.
    pub async fn drain_and_close(&self, timeout: Duration) {
        self.gone.cancel();
        let _late =
            tokio::time::timeout(timeout, self.wait_until(|mux| mux.in_flight() == 0)).await;
        self.closing.cancel();
    }

    /// Waits until the server has no work left, abandoned requests included. Cancel safe.
    pub async fn quiet(&self) {
        self.wait_until(Mux::is_empty).await;
    }

    /// Returns whether the server has no work.
    pub fn is_idle(&self) -> bool {
        self.mux().is_empty()
    }

    /// Closes the connection; requests that run on it fail.
    pub fn close(&self) {
        self.gone.cancel();
        self.closing.cancel();
    }

    async fn wait_until(&self, is_idle: impl Fn(&Mux<Waiter>) -> bool) {
        loop {
            let notified = self.idle.notified();
            if is_idle(&self.mux()) {
                return;
            }
            notified.await;
        }
    }

    /// Accepts no new requests, for `reason`; running requests may still finish.
    pub(super) fn retire(&self, reason: RequestFailure) {
        if self.reason.set(reason).is_ok() {
            self.counters.heard.note_lost();
        }
        self.gone.cancel();
    }

    /// Fails all waiting requests: no further answer can come.
    pub(super) fn fail_all(&self, failure: RequestFailure) {
        let _first_counts = self.reason.set(failure.clone());
        self.gone.cancel();
        let waiters = self.mux().drain();
        for waiter in waiters {
            waiter.inbox.finish(Err(failure.clone()));
        }
        self.idle.notify_waiters();
    }
}
