//! The wait for room on a connection that is at its limit.

use std::sync::Arc;

use tokio::{sync::oneshot, time};

use super::{Connection, ConnectionLimits, RequestFailure, Waiter};
use crate::{capacity_holder::Holder, fair_share::QueueTicket};

/// A request in the queue; dropping it leaves the queue, or gives back the place that it got.
struct QueuedRequest<'a> {
    connection: &'a Arc<Connection>,
    ticket: QueueTicket,
    admitted: oneshot::Receiver<u64>,
}

impl Connection {
    /// Waits until the request of `waiter` is admitted, and returns its id. Cancel safe: a request
    /// that leaves gives its place to the next.
    ///
    /// # Errors
    ///
    /// [`RequestFailure::Saturated`] when its turn does not come within its time limits, or when
    /// too many requests wait and `holder` has the most of them. [`RequestFailure::Gone`] when the
    /// connection ends meanwhile.
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
        // If the id was already received, the call gives it back.
        if !has_left && let Ok(id) = self.admitted.try_recv() {
            self.connection.cancel_request(id, true, false);
        }
    }
}
