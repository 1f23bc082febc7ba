//! Leases of the supervised connection, and the requests that wait for one.

use std::sync::{Arc, Weak};

use tokio::time::{self, Instant};

use super::{
    PermitSource, Supervisor,
    connect::{ConnectRefusal, NewConnection},
};
use crate::{
    capacity_holder::Holder,
    connection::{Connection, ConnectionOwner},
    pool::{
        admission::{ConnectionPermit, Evictable},
        connection_lifecycle::ConnectionLifecycle,
        error::SlotError,
    },
};

/// A lease of a connection. While a lease exists, the connection is in use.
#[derive(Debug)]
pub(in crate::pool) struct ConnectionClaim {
    pub(super) supervisor: Arc<Supervisor>,
    pub(super) generation: u64,
}

/// A request that waits for a connection.
struct WaitingRequest<'a>(&'a Supervisor);

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
        let is_there = matches!(state.life,
            ConnectionLifecycle::Active { generation: there, .. }
            | ConnectionLifecycle::Idle { generation: there, .. } if there == generation);
        if !is_there {
            return None;
        }
        self.transition(&mut state, ConnectionLifecycle::lease)?;
        Some(ConnectionClaim { supervisor: Arc::clone(self), generation })
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
        let _waiting = WaitingRequest::new(self);
        loop {
            if let Some((connection, claim)) = self.claim() {
                return Ok((connection, Some(claim)));
            }
            if self.context.draining.is_cancelled() || self.state().is_closing {
                return Err(closing());
            }
            if let ConnectionOwner::Owned(_) | ConnectionOwner::Exclusive = self.owner {
                self.state().holder = Some(holder);
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
                        error = self.permit_shortage() => return Err(error),
                    },
                },
            };
            match outcome {
                Some(Ok(new)) => {
                    let NewConnection { connection, .. } = &*new;
                    // If the connection has gone already, its user finds out.
                    return Ok((Arc::clone(connection), self.claim_of(connection)));
                }
                Some(Err(ConnectRefusal::Dial { attempt, error })) => {
                    return Err(SlotError::Dial { attempt, error });
                }
                // The attempt was skipped before this request joined. Try again.
                Some(Err(ConnectRefusal::Abandoned)) => {}
                // A shutdown cancelled an attempt that has no outcome.
                Some(Err(ConnectRefusal::Closing)) | None => return Err(closing()),
            }
        }
    }

    /// Waits until the attempt lacks a permit, and returns that as an error.
    async fn permit_shortage(&self) -> SlotError {
        loop {
            let queued = self.queued.notified();
            if let Some(error) = self.shortage() {
                return error;
            }
            queued.await;
        }
    }

    /// Returns the error if the attempt lacks a permit.
    fn shortage(&self) -> Option<SlotError> {
        let waits_for = self.state().attempt.as_ref()?.waits_for?;
        let server = self.name().clone();
        let (pool, own) = (&self.context.admission, &self.context.server_admission);
        Some(match (waits_for, own) {
            (PermitSource::Server, Some(own)) => SlotError::Busy(server, own.size()),
            (PermitSource::Server | PermitSource::Pool, _) => {
                SlotError::Exhausted { server, size: pool.size(), holders: pool.holders() }
            }
        })
    }

    /// Waits for the permits that a connection needs. Returns `None` if no request waits for the
    /// connection, or if the server is closing.
    pub(super) async fn acquire_permits(self: &Arc<Self>) -> Option<Vec<ConnectionPermit>> {
        let holder = self.state().holder.unwrap_or(Holder::SERVICE);
        let permits = async {
            let this: Weak<dyn Evictable> = Arc::<Self>::downgrade(self);
            let mut permits = Vec::new();
            if let Some(own) = &self.context.server_admission {
                self.set_waits_for(Some(PermitSource::Server));
                permits.push(own.acquire(holder, Weak::clone(&this)).await);
            }
            self.set_waits_for(Some(PermitSource::Pool));
            permits.push(self.context.admission.acquire(holder, this).await);
            permits
        };
        let taken = tokio::select! {
            biased;
            permits = permits => Some(permits),
            () = self.closing.cancelled() => None,
            () = self.wait_until_abandoned() => None,
        };
        self.set_waits_for(None);
        taken
    }

    fn set_waits_for(&self, source: Option<PermitSource>) {
        if let Some(attempt) = &mut self.state().attempt {
            attempt.waits_for = source;
        }
        self.queued.notify_waiters();
    }

    /// Waits until no request waits for a connection.
    async fn wait_until_abandoned(&self) {
        loop {
            let abandoned = self.abandoned.notified();
            if self.state().n_waiting_requests == 0 {
                return;
            }
            abandoned.await;
        }
    }
}

impl<'a> WaitingRequest<'a> {
    fn new(supervisor: &'a Supervisor) -> Self {
        supervisor.state().n_waiting_requests += 1;
        Self(supervisor)
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        let is_last = {
            let mut state = self.0.state();
            state.n_waiting_requests -= 1;
            state.n_waiting_requests == 0
        };
        if is_last {
            self.0.abandoned.notify_waiters();
        }
    }
}

impl Drop for ConnectionClaim {
    fn drop(&mut self) {
        let now = Instant::now();
        // A connection that has gone failed under this request, even if its watcher runs later.
        if let Some(live) = &*self.supervisor.live.load() {
            self.supervisor.note_lost(live);
        }
        let is_last = {
            let mut state = self.supervisor.state();
            // The connection may have gone meanwhile, and there may be a new one.
            let is_active = matches!(state.life,
                ConnectionLifecycle::Active { generation, .. } if generation == self.generation);
            if !is_active {
                return;
            }
            self.supervisor.transition(&mut state, |life| life.release(now)) == Some(true)
        };
        if is_last {
            self.supervisor.became_idle(now);
        }
    }
}
