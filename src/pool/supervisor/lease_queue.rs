//! Leases of the supervised connection, and the requests that wait for one.

use std::sync::Arc;

use tokio::time::{self, Instant};

use super::{
    Supervisor, WaitsFor,
    connect::{ConnectRefusal, NewConnection},
};
use crate::{
    capacity_holder::Holder,
    connection::{Connection, ConnectionOwner},
    pool::{
        admission::ConnectionPermit,
        connection_lifecycle::{ConnectionLifecycle, LifecycleState},
        error::SlotError,
    },
};

/// A lease of a connection. While a lease exists, the connection is in use.
#[derive(Debug)]
pub(in crate::pool) struct ConnectionClaim {
    keeper: Arc<Supervisor>,
    generation: u64,
}

/// A request that waits for a connection.
struct Asking<'a>(&'a Supervisor);

impl Supervisor {
    /// Leases the connection if it exists and takes requests.
    pub(in crate::pool) fn claim(self: &Arc<Self>) -> Option<(Arc<Connection>, ConnectionClaim)> {
        let connection = self.live()?;
        let claim = self.claim_of(&connection)?;
        Some((connection, claim))
    }

    fn claim_of(self: &Arc<Self>, connection: &Connection) -> Option<ConnectionClaim> {
        let generation = connection.generation();
        let mut state = self.state();
        let is_there = matches!(state.life.state(), LifecycleState::Idle | LifecycleState::Active);
        if !is_there || state.generation != generation {
            return None;
        }
        self.note(&mut state, ConnectionLifecycle::lease)?;
        Some(ConnectionClaim { keeper: Arc::clone(self), generation })
    }

    /// Leases the connection, and connects first if there is none. Concurrent callers cause one
    /// attempt. Waits for a permit for `holder` until `until`, or indefinitely. It waits for a
    /// started attempt as long as that takes. Cancel safe: the connection attempt continues for the
    /// other waiters.
    ///
    /// # Errors
    ///
    /// [`SlotError`] if there is no permit in time, or if connecting fails, for every waiter.
    pub(in crate::pool) async fn lease(
        self: &Arc<Self>,
        holder: Holder,
        until: Option<Instant>,
    ) -> Result<(Arc<Connection>, Option<ConnectionClaim>), SlotError> {
        let closing = || SlotError::Closing(self.name().clone());
        let _asking = Asking::new(self);
        loop {
            if let Some((connection, claim)) = self.claim() {
                return Ok((connection, Some(claim)));
            }
            if self.origin.leaving.is_cancelled() || self.state().is_closing {
                return Err(closing());
            }
            if let ConnectionOwner::Owned(_) | ConnectionOwner::Exclusive = self.party {
                self.state().holder = holder;
            }
            let mut outcome = std::pin::pin!(self.join_dial().outcome());
            let outcome = match until {
                None => outcome.await,
                Some(until) => match time::timeout_at(until, &mut outcome).await {
                    Ok(outcome) => outcome,
                    // `until` limits the wait for a permit, and not a started connection attempt.
                    Err(_) => tokio::select! {
                        biased;
                        outcome = &mut outcome => outcome,
                        error = self.lack_of_seat() => return Err(error),
                    },
                },
            };
            match outcome {
                Some(Ok(dialled)) => {
                    let NewConnection { connection, .. } = &*dialled;
                    // If the connection has gone already, its user finds out.
                    return Ok((Arc::clone(connection), self.claim_of(connection)));
                }
                Some(Err(ConnectRefusal::Dial { attempt, error })) => {
                    return Err(SlotError::Dial { attempt, error });
                }
                // The attempt was skipped before this request joined. Try again.
                Some(Err(ConnectRefusal::Deserted)) => {}
                // A shutdown cancelled an attempt that has no outcome.
                Some(Err(ConnectRefusal::Closing)) | None => return Err(closing()),
            }
        }
    }

    /// Waits until the attempt lacks a permit, and returns that as an error.
    async fn lack_of_seat(&self) -> SlotError {
        loop {
            let told = self.queued.notified();
            if let Some(error) = self.no_seat() {
                return error;
            }
            told.await;
        }
    }

    /// Returns the error if the attempt lacks a permit.
    fn no_seat(&self) -> Option<SlotError> {
        let waits_for = self.state().waits_for?;
        let server = self.name().clone();
        Some(match (waits_for, &self.origin.own) {
            (WaitsFor::Own, Some(own)) => SlotError::Busy { server, max: own.size() },
            (WaitsFor::Own | WaitsFor::Pool, _) => {
                let roster = &self.origin.roster;
                SlotError::Exhausted { server, size: roster.size(), holders: roster.holders() }
            }
        })
    }

    /// Waits for the permits that a connection needs. Returns `None` if no request waits for the
    /// connection any more, or if the server is closing.
    pub(super) async fn acquire_permits(self: &Arc<Self>) -> Option<Vec<ConnectionPermit>> {
        let holder = self.state().holder;
        let seats = async {
            let this = || {
                let this: std::sync::Weak<Self> = Arc::downgrade(self);
                this
            };
            let mut seats = Vec::new();
            if let Some(own) = &self.origin.own {
                self.waits_for(WaitsFor::Own);
                seats.push(own.seat(holder, this()).await);
            }
            self.waits_for(WaitsFor::Pool);
            seats.push(self.origin.roster.seat(holder, this()).await);
            seats
        };
        let taken = tokio::select! {
            biased;
            seats = seats => Some(seats),
            () = self.closing.cancelled() => None,
            () = self.is_deserted() => None,
        };
        self.state().waits_for = None;
        taken
    }

    fn waits_for(&self, what: WaitsFor) {
        self.state().waits_for = Some(what);
        self.queued.notify_waiters();
    }

    /// Waits until no request waits for a connection.
    async fn is_deserted(&self) {
        loop {
            let told = self.deserted.notified();
            if self.state().n_asking == 0 {
                return;
            }
            told.await;
        }
    }
}

impl<'a> Asking<'a> {
    fn new(keeper: &'a Supervisor) -> Self {
        keeper.state().n_asking += 1;
        Self(keeper)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let is_last = {
            let mut state = self.0.state();
            state.n_asking -= 1;
            state.n_asking == 0
        };
        if is_last {
            self.0.deserted.notify_waiters();
        }
    }
}

impl ConnectionClaim {
    /// Takes over the lease that a connection attempt holds of its new connection.
    pub(super) fn of_dial(keeper: &Arc<Supervisor>, generation: u64) -> Self {
        Self { keeper: Arc::clone(keeper), generation }
    }
}

impl Drop for ConnectionClaim {
    fn drop(&mut self) {
        let now = Instant::now();
        // A connection that has gone failed under this request, even if its watcher runs later.
        if let Some(live) = &*self.keeper.live.load() {
            self.keeper.lost(live);
        }
        let is_last = {
            let mut state = self.keeper.state();
            // The connection may have gone meanwhile, and there may be a new one.
            if state.generation != self.generation || state.life.state() != LifecycleState::Active {
                return;
            }
            state.used = now;
            self.keeper.note(&mut state, ConnectionLifecycle::release) == Some(true)
        };
        if is_last {
            self.keeper.became_idle(now);
        }
    }
}
