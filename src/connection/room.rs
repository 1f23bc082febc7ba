//! The wait for room on a connection that is at its bound.

use std::sync::Arc;

use tokio::{sync::oneshot, time};

use super::{Connection, ConnectionLimits, RequestFailure, Waiter};
use crate::{holder::Holder, share::QueueTicket};

/// A request in the queue; dropping it leaves the queue, or gives up the place that it was given.
struct QueuedRequest<'a> {
    connection: &'a Arc<Connection>,
    ticket: QueueTicket,
    admitted: oneshot::Receiver<u64>,
}

impl Connection {
    /// Waits until the request of `waiter` is admitted, and returns its id.
    ///
    /// # Errors
    ///
    /// [`RequestFailure::Saturated`] when its turn does not come while it may be silent, or more requests of
    /// `holder` wait than of any other, and too many in all. [`RequestFailure::Gone`] when the connection
    /// ends meanwhile.
    ///
    /// # Cancel safety
    ///
    /// Safe: a request that leaves gives its place to the next.
    pub(super) async fn queued(
        self: &Arc<Self>,
        holder: Holder,
        mut waiter: Waiter,
        limits: ConnectionLimits,
    ) -> Result<u64, RequestFailure> {
        let (grant, admitted) = oneshot::channel();
        waiter.admitted = Some(grant);
        let (ticket, lost) = self.mux().enqueue(holder, waiter);
        drop(lost);
        let mut queued = QueuedRequest { connection: self, ticket, admitted };
        tokio::select! {
            biased;
            // Another connection may have room.
            () = self.wait_until_gone() => Err(RequestFailure::Gone),
            id = &mut queued.admitted => id.map_err(|_| RequestFailure::Saturated),
            () = time::sleep(limits.silence.min(limits.total)) => Err(RequestFailure::Saturated),
        }
    }
}

impl Drop for QueuedRequest<'_> {
    fn drop(&mut self) {
        let has_left = self.connection.mux().leave_queue(self.ticket).is_some();
        // Received, it is the call that gives it up.
        if !has_left && let Ok(id) = self.admitted.try_recv() {
            self.connection.cancel_request(id, true, false);
        }
    }
}
