//! Connections that are checked out, one request at a time.
//!
//! ```text
//!  request ──▶ a permit (max_connections) ─▶ the idle connection used last, else a new one
//!                  ▲                                          │ done
//!                  └────────────── idle stack ◀───────────────┘
//! ```

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

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
    origin: ServerContext,
    admission: Arc<Admission>,
    n_seats: usize,
    /// Idle connections, the most recently used one last.
    idle: Mutex<Vec<Arc<Supervisor>>>,
    /// All connections, including those in use.
    all: Mutex<Vec<Arc<Supervisor>>>,
    /// Requests without a connection. The next returned connection goes to the first of them.
    heirs: Mutex<VecDeque<oneshot::Sender<Checkout>>>,
}

/// A checked-out connection. Dropping it returns the connection.
#[derive(Debug)]
pub(super) struct Checkout {
    exclusive: Arc<ExclusivePool>,
    keeper: Arc<Supervisor>,
    claim: Option<ConnectionClaim>,
    permit: Option<AdmissionPermit>,
}

impl ExclusivePool {
    /// Returns a pool of at most `n_seats` connections. Connects nothing yet.
    pub(super) fn new(origin: ServerContext, n_seats: usize) -> Arc<Self> {
        Arc::new(Self {
            origin,
            admission: Admission::new(n_seats),
            n_seats,
            idle: Mutex::default(),
            all: Mutex::default(),
            heirs: Mutex::default(),
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
        let server = || self.origin.name.clone();
        let permit = match time::timeout_at(until, self.admission.admit(holder)).await {
            Ok(Some(permit)) => permit,
            Ok(None) => return Err(SlotError::Closing(server())),
            Err(_) => return Err(SlotError::Busy { server: server(), max: self.n_seats }),
        };
        let mut checkout = self.checkout(self.next(), permit);
        let (connection, claim) = match checkout.keeper.claim() {
            Some((connection, claim)) => (connection, Some(claim)),
            None => {
                let inherited = self.heir();
                // A connection may have been returned before this request joined the queue.
                if let Some(free) = self.connected() {
                    let place = std::mem::replace(&mut checkout.keeper, free);
                    self.idle().insert(0, place);
                }
                tokio::select! {
                    biased;
                    leased = checkout.keeper.lease(holder, Some(until)) => leased?,
                    // A connection may be returned while the pool has no permit for a new one.
                    Ok(mut free) = inherited => {
                        std::mem::swap(&mut free.keeper, &mut checkout.keeper);
                        let claim = free.claim.take();
                        match checkout.keeper.live() {
                            Some(connection) => (connection, claim),
                            None => checkout.keeper.lease(holder, Some(until)).await?,
                        }
                    }
                }
            }
        };
        checkout.claim = claim;
        Ok((connection, checkout))
    }

    fn checkout(self: &Arc<Self>, keeper: Arc<Supervisor>, permit: AdmissionPermit) -> Checkout {
        Checkout { exclusive: Arc::clone(self), keeper, claim: None, permit: Some(permit) }
    }

    /// Joins the queue of requests without a connection.
    fn heir(&self) -> oneshot::Receiver<Checkout> {
        let (heir, inherited) = oneshot::channel();
        let mut heirs = self.heirs();
        heirs.retain(|heir| !heir.is_closed());
        heirs.push_back(heir);
        inherited
    }

    /// Returns the most recently used idle connection, or a supervisor without one.
    fn next(&self) -> Arc<Supervisor> {
        if let Some(keeper) = self.connected() {
            return keeper;
        }
        let idle = self.idle().pop();
        idle.unwrap_or_else(|| {
            let keeper = Supervisor::new(self.origin.clone(), ConnectionOwner::Exclusive);
            self.all().push(Arc::clone(&keeper));
            keeper
        })
    }

    /// Takes the most recently used live connection from the stack.
    fn connected(&self) -> Option<Arc<Supervisor>> {
        let mut idle = self.idle();
        let at = idle.iter().rposition(|keeper| keeper.live().is_some())?;
        Some(idle.remove(at))
    }

    /// Returns a connection to the first waiter, or else to the idle stack. Its permit goes with
    /// it, so that there are never more connections than permits.
    fn give_back(
        self: &Arc<Self>,
        keeper: Arc<Supervisor>,
        claim: Option<ConnectionClaim>,
        permit: Option<AdmissionPermit>,
    ) {
        // A server that has waited longer for a permit goes first: the connection becomes idle and
        // can be evicted.
        let is_next = self.origin.roster.next().is_none_or(|next| next == self.origin.name);
        let mut heirs = self.heirs();
        heirs.retain(|heir| !heir.is_closed());
        let heir = if claim.is_some() && is_next { heirs.pop_front() } else { None };
        if let Some(heir) = heir {
            drop(heirs);
            let free = Checkout { exclusive: Arc::clone(self), keeper, claim, permit };
            // If the waiter has left, the rejected checkout is dropped here and so returned again.
            drop(heir.send(free));
            return;
        }
        // Push before another waiter can join: the next request must find this connection and not
        // start another one.
        self.idle().push(keeper);
        drop(heirs);
        drop(claim);
        drop(permit);
    }

    /// Returns the connection that the next request would get, or else one that is in use.
    pub(super) fn live(&self) -> Option<Arc<Connection>> {
        let next = self.idle().iter().rev().find_map(|keeper| keeper.live());
        next.or_else(|| self.all().iter().find_map(|keeper| keeper.live()))
    }

    /// Returns the supervisors of all connections.
    pub(super) fn supervisors(&self) -> Vec<Arc<Supervisor>> {
        self.all().clone()
    }

    /// Stops admitting requests.
    pub(super) fn close(&self) {
        self.admission.close();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Arc<Supervisor>>> {
        // Held only for statements on plain data, like `all`.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heirs(&self) -> MutexGuard<'_, VecDeque<oneshot::Sender<Checkout>>> {
        self.heirs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Supervisor>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        let (exclusive, keeper) = (Arc::clone(&self.exclusive), Arc::clone(&self.keeper));
        let (claim, permit) = (self.claim.take(), self.permit.take());
        let Some(connection) = keeper.live().filter(|connection| !connection.is_idle()) else {
            exclusive.give_back(keeper, claim, permit);
            return;
        };
        self.exclusive.origin.dialer.tasks().spawn(async move {
            // The server may still send messages for an abandoned request. The next client must not
            // get them.
            if time::timeout(defaults::GOODBYE_TIMEOUT, connection.quiet()).await.is_err() {
                connection.close();
                connection.wait_until_gone().await;
            }
            exclusive.give_back(keeper, claim, permit);
        });
    }
}
