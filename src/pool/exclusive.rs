//! Connections that are checked out by one request at a time.
//!
//! ```text
//!  request ──▶ a permit (max_connections) ─▶ the idle connection used last, else a new one
//!                  ▲                                          │ done
//!                  └────────────── idle stack ◀───────────────┘
//! ```

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::FutureExt as _;
use tokio::{
    sync::oneshot,
    time::{self, Instant},
};

use super::{
    error::SlotError,
    supervisor::{ConnectionClaim, ServerContext, Supervisor},
};
use crate::{
    capacity_holder::Holder,
    config::defaults,
    connection::{Connection, ConnectionOwner},
    fair_share::{Admission, AdmissionPermit},
};

/// The connections of a server that serves one request at a time on each connection.
#[derive(Debug)]
pub(super) struct ExclusivePool {
    context: ServerContext,
    permits: Arc<Admission>,
    max_connections: usize,
    /// Idle connections, the most recently used one last.
    idle: Mutex<Vec<Arc<Supervisor>>>,
    /// All connections, including those in use.
    all: Mutex<Vec<Arc<Supervisor>>>,
    /// Requests without a connection. The next returned connection goes to the first of them.
    waiters: Mutex<VecDeque<oneshot::Sender<Checkout>>>,
}

/// A checked-out connection. Dropping it returns the connection.
#[derive(Debug)]
pub(super) struct Checkout {
    exclusive: Arc<ExclusivePool>,
    supervisor: Arc<Supervisor>,
    claim: Option<ConnectionClaim>,
    permit: Option<AdmissionPermit>,
}

impl ExclusivePool {
    /// Returns a pool of at most `max_connections` connections. Connects nothing yet.
    pub(super) fn new(context: ServerContext, max_connections: usize) -> Arc<Self> {
        Arc::new(Self {
            context,
            permits: Admission::new(max_connections),
            max_connections,
            idle: Mutex::default(),
            all: Mutex::default(),
            waiters: Mutex::default(),
        })
    }

    /// Checks out a connection for `holder`. Until `until` it waits for a connection to be
    /// returned, or for a permit for another one. Cancel safe: the next waiter gets the place of a
    /// cancelled one.
    ///
    /// # Errors
    ///
    /// [`SlotError`] if all connections stay in use that long, or if connecting fails.
    pub(super) async fn check_out(
        self: &Arc<Self>,
        holder: Holder,
        until: Instant,
    ) -> Result<(Arc<Connection>, Checkout), SlotError> {
        let server = || self.context.name.clone();
        let mut admitting = pin!(self.permits.admit(holder));
        let admitted = match admitting.as_mut().now_or_never() {
            Some(permit) => Ok(permit),
            None => {
                let _timer = self.context.dialer.durations().queue_waits.start();
                time::timeout_at(until, admitting).await
            }
        };
        let permit = match admitted {
            Ok(Some(permit)) => permit,
            Ok(None) => return Err(SlotError::Closing(server())),
            Err(_) => return Err(SlotError::Busy(server(), self.max_connections)),
        };
        let (exclusive, supervisor) = (Arc::clone(self), self.pop_idle());
        let mut checkout = Checkout { exclusive, supervisor, claim: None, permit: Some(permit) };
        let (connection, claim) = match checkout.supervisor.claim() {
            Some((connection, claim)) => (connection, Some(claim)),
            None => {
                let handed_over = self.join_queue();
                // A connection may have been returned before this request joined the queue.
                if let Some(free) = self.pop_connected() {
                    let unconnected = std::mem::replace(&mut checkout.supervisor, free);
                    self.idle().insert(0, unconnected);
                }
                tokio::select! {
                    biased;
                    leased = checkout.supervisor.lease(holder, Some(until)) => leased?,
                    // A connection may be returned while the pool has no permit for a new one.
                    Ok(mut free) = handed_over => {
                        std::mem::swap(&mut free.supervisor, &mut checkout.supervisor);
                        let claim = free.claim.take();
                        match checkout.supervisor.live() {
                            Some(connection) => (connection, claim),
                            None => checkout.supervisor.lease(holder, Some(until)).await?,
                        }
                    }
                }
            }
        };
        checkout.claim = claim;
        Ok((connection, checkout))
    }

    /// Joins the queue of requests without a connection.
    fn join_queue(&self) -> oneshot::Receiver<Checkout> {
        let (waiter, handed_over) = oneshot::channel();
        let mut waiters = self.waiters();
        waiters.retain(|waiter| !waiter.is_closed());
        waiters.push_back(waiter);
        handed_over
    }

    /// Returns the most recently used idle connection, or a supervisor without one.
    fn pop_idle(&self) -> Arc<Supervisor> {
        if let Some(supervisor) = self.pop_connected() {
            return supervisor;
        }
        let idle = self.idle().pop();
        idle.unwrap_or_else(|| {
            let supervisor = Supervisor::new(self.context.clone(), ConnectionOwner::Exclusive);
            self.all().push(Arc::clone(&supervisor));
            supervisor
        })
    }

    /// Takes the most recently used live connection from the stack.
    fn pop_connected(&self) -> Option<Arc<Supervisor>> {
        let mut idle = self.idle();
        let at = idle.iter().rposition(|supervisor| supervisor.live().is_some())?;
        Some(idle.remove(at))
    }

    /// Gives a connection to the first waiter, or else to the idle stack. Its permit goes with it,
    /// so that there are never more connections than permits.
    fn check_in(
        self: &Arc<Self>,
        supervisor: Arc<Supervisor>,
        claim: Option<ConnectionClaim>,
        permit: Option<AdmissionPermit>,
    ) {
        // A server that has waited longer for a permit goes first: the connection becomes idle and
        // can be evicted.
        let next_server = self.context.admission.next_server();
        let is_next = next_server.is_none_or(|server| server == self.context.name);
        let mut waiters = self.waiters();
        waiters.retain(|waiter| !waiter.is_closed());
        let waiter = if claim.is_some() && is_next { waiters.pop_front() } else { None };
        if let Some(waiter) = waiter {
            drop(waiters);
            let free = Checkout { exclusive: Arc::clone(self), supervisor, claim, permit };
            // If the waiter has left, the rejected checkout is dropped here and so returned again.
            drop(waiter.send(free));
            return;
        }
        // Push before another waiter can join: the next request must find this connection and not
        // start another one.
        self.idle().push(supervisor);
        drop(waiters);
        drop(claim);
        drop(permit);
    }

    /// Returns the connection that the next request would get, or else one that is in use.
    pub(super) fn live(&self) -> Option<Arc<Connection>> {
        let next = self.idle().iter().rev().find_map(|supervisor| supervisor.live());
        next.or_else(|| self.all().iter().find_map(|supervisor| supervisor.live()))
    }

    /// Returns the supervisors of all connections.
    pub(super) fn supervisors(&self) -> Vec<Arc<Supervisor>> {
        self.all().clone()
    }

    /// Stops admitting requests.
    pub(super) fn close(&self) {
        self.permits.close();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Arc<Supervisor>>> {
        // Held only for statements on plain data, like `all`.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiters(&self) -> MutexGuard<'_, VecDeque<oneshot::Sender<Checkout>>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Supervisor>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        let (exclusive, supervisor) = (Arc::clone(&self.exclusive), Arc::clone(&self.supervisor));
        let (claim, permit) = (self.claim.take(), self.permit.take());
        let Some(connection) = supervisor.live().filter(|connection| !connection.is_idle()) else {
            exclusive.check_in(supervisor, claim, permit);
            return;
        };
        self.exclusive.context.dialer.tasks().spawn(async move {
            // The server may still send messages for an abandoned request. The next client must not
            // get them.
            if time::timeout(defaults::SESSION_END_TIMEOUT, connection.quiet()).await.is_err() {
                connection.close();
                connection.wait_until_gone().await;
            }
            exclusive.check_in(supervisor, claim, permit);
        });
    }
}
