//! Connections that are checked out, one request at a time.
//!
//! ```text
//!  request ──▶ a seat (max_connections) ──▶ the idle connection used last, else a new one
//!                  ▲                                          │ done
//!                  └────────────── idle stack ◀───────────────┘
//! ```

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time,
};

use super::{
    keeper::{Keeper, Origin},
    slot::SlotError,
};
use crate::{
    config::defaults,
    connection::{Connection, Party},
};

/// The connections of a server that serves one request at a time on each.
#[derive(Debug)]
pub(super) struct Exclusive {
    origin: Origin,
    seats: Arc<Semaphore>,
    n_seats: usize,
    /// The one used last is on top.
    idle: Mutex<Vec<Arc<Keeper>>>,
    /// Every connection, those in use included.
    all: Mutex<Vec<Arc<Keeper>>>,
}

/// A connection that was checked out; dropping it gives it back.
#[derive(Debug)]
pub(super) struct Checkout {
    exclusive: Arc<Exclusive>,
    keeper: Arc<Keeper>,
    seat: Option<OwnedSemaphorePermit>,
}

impl Exclusive {
    /// Returns at most `n_seats` connections; nothing is connected yet.
    pub(super) fn new(origin: Origin, n_seats: usize) -> Arc<Self> {
        let seats = Arc::new(Semaphore::new(n_seats));
        Arc::new(Self { origin, seats, n_seats, idle: Mutex::default(), all: Mutex::default() })
    }

    /// Checks a connection out, waiting for one to be given back for at most `patience`.
    ///
    /// # Errors
    ///
    /// [`SlotError`] when all are in use for that long, or the dial fails.
    ///
    /// # Cancel safety
    ///
    /// Safe: whoever leaves gives its place to the next.
    pub(super) async fn check_out(
        self: &Arc<Self>,
        patience: Duration,
    ) -> Result<(Arc<Connection>, Checkout), SlotError> {
        let server = &self.origin.name;
        let seat = match time::timeout(patience, Arc::clone(&self.seats).acquire_owned()).await {
            Ok(Ok(seat)) => seat,
            Ok(Err(_)) => return Err(SlotError::Closing(server.clone())),
            Err(_) => {
                return Err(SlotError::Busy { server: server.clone(), max: self.n_seats });
            }
        };
        let keeper = self.idle().pop().unwrap_or_else(|| self.another());
        let checkout = Checkout { exclusive: Arc::clone(self), keeper, seat: Some(seat) };
        let connection = checkout.keeper.connection().await?;
        Ok((connection, checkout))
    }

    fn another(&self) -> Arc<Keeper> {
        let keeper = Keeper::new(self.origin.clone(), Party::Exclusive);
        self.all().push(Arc::clone(&keeper));
        keeper
    }

    /// Returns every connection's keeper.
    pub(super) fn keepers(&self) -> Vec<Arc<Keeper>> {
        self.all().clone()
    }

    /// Takes no more requests.
    pub(super) fn close(&self) {
        self.seats.close();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Arc<Keeper>>> {
        // Held for single statements on plain data, as is `all`.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Keeper>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        let (exclusive, keeper) = (Arc::clone(&self.exclusive), Arc::clone(&self.keeper));
        let Some(connection) = keeper.live().filter(|connection| !connection.is_quiet()) else {
            // At once: whoever comes next is not to find none and start another.
            exclusive.idle().push(keeper);
            return;
        };
        let seat = self.seat.take();
        self.exclusive.origin.dialer.tasks().spawn(async move {
            // A request that was given up may still ask or tell something: that must not reach the
            // next client.
            if time::timeout(defaults::GOODBYE_TIMEOUT, connection.quiet()).await.is_err() {
                connection.close();
                connection.gone().await;
            }
            exclusive.idle().push(keeper);
            drop(seat);
        });
    }
}
