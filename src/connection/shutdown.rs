//! How a connection ends: what runs on it finishes or fails, then the link goes.

use std::{sync::atomic::Ordering, time::Duration};

use super::{Connection, Mux, RequestFailure, Waiter};

impl Connection {
    /// Tells whether a new request may use the connection.
    pub fn is_live(&self) -> bool {
        !self.gone.is_cancelled()
    }

    /// Waits until no new request may use the connection.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn wait_until_gone(&self) {
        self.gone.cancelled().await;
    }

    /// Waits until the link is down: a child is reaped, a session ended.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn down(&self) {
        self.down.cancelled().await;
    }

    /// Returns why the connection went, once that is known.
    pub fn reason(&self) -> Option<&RequestFailure> {
        self.reason.get()
    }

    /// Returns the longest time that any request so far may take: none runs for longer.
    pub fn longest_timeout(&self) -> Duration {
        Duration::from_millis(self.longest_ms.load(Ordering::Relaxed))
    }

    /// Lets running requests finish for at most `patience`, then closes the connection.
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves the connection open for requests that run, and for no new ones.
    pub async fn drain_and_close(&self, patience: Duration) {
        self.gone.cancel();
        let _late = tokio::time::timeout(patience, self.idle(|mux| mux.in_flight() == 0)).await;
        self.closing.cancel();
    }

    /// Waits until the server works on nothing, abandoned requests included.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn quiet(&self) {
        self.idle(Mux::is_empty).await;
    }

    /// Tells whether the server works on nothing.
    pub fn is_idle(&self) -> bool {
        self.mux().is_empty()
    }

    /// Closes the connection; what runs on it fails.
    pub fn close(&self) {
        self.gone.cancel();
        self.closing.cancel();
    }

    async fn idle(&self, is_idle: impl Fn(&Mux<Waiter>) -> bool) {
        loop {
            let told = self.idle.notified();
            if is_idle(&self.mux()) {
                return;
            }
            told.await;
        }
    }

    /// Takes no new requests, for `reason`; those that run may still finish.
    pub(super) fn retire(&self, reason: RequestFailure) {
        if self.reason.set(reason).is_ok() {
            self.counters.heard.lost();
        }
        self.gone.cancel();
    }

    /// No answer will come any more: everything that still waits fails.
    pub(super) fn fail_all(&self, failure: RequestFailure) {
        let _first_counts = self.reason.set(failure.clone());
        self.gone.cancel();
        let waiters = self.mux().drain();
        for waiter in waiters {
            waiter.inbox.settle(Err(failure.clone()));
        }
        self.idle.notify_waiters();
    }
}
