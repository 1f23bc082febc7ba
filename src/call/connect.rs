//! A connection without a request: for who wants to know a server, or to have it there.

use std::{sync::Arc, time::Duration};

use tokio::time;

use super::CallError;
use crate::{
    connection::{Failure, Owner},
    pool::{Lease, Slot, SlotError, Tripped},
};

/// Returns a connection for `owner` within `patience`, as [`connection`] does; the dial goes on for
/// whoever asks next.
///
/// # Errors
///
/// [`CallError`] when there is none in time, or the server is left alone.
///
/// # Cancel safety
///
/// Safe.
pub async fn connect(
    slot: &Arc<Slot>,
    owner: Option<&Owner>,
    patience: Duration,
) -> Result<Lease, CallError> {
    within(slot, patience, connection(slot, owner, inner(patience))).await
}

/// Returns a connection for `owner`, dialling first where that is needed. One that is given back is
/// waited for, for at most `patience`.
///
/// The breaker is asked first. A dial that fails speaks against the server; one that succeeds does
/// not say that the server works.
///
/// # Errors
///
/// [`CallError`] when there is none, or the server is left alone.
///
/// # Cancel safety
///
/// Safe.
pub async fn connection(
    slot: &Arc<Slot>,
    owner: Option<&Owner>,
    patience: Duration,
) -> Result<Lease, CallError> {
    let mut slot = Arc::clone(slot);
    loop {
        let server = || slot.name().clone();
        let permit = slot
            .gate()
            .admit()
            .map_err(|Tripped { retry_in }| CallError::Tripped { server: server(), retry_in })?;
        let source = match slot.lease(owner, patience).await {
            Ok(lease) => return Ok(lease),
            Err(source) => source,
        };
        let Some(successor) = slot.successor().cloned() else {
            let error = CallError::NotConnected { server: server(), source };
            permit.failed(error.fault(), error.incident(slot.attempts(), None), &error);
            return Err(error);
        };
        // A reload has changed the server meanwhile.
        slot = successor;
    }
}

/// Returns a connection within `patience`, whatever the breaker says.
pub(super) async fn lease(
    slot: &Slot,
    owner: Option<&Owner>,
    patience: Duration,
) -> Result<Lease, CallError> {
    let refused =
        |source: SlotError| CallError::NotConnected { server: slot.name().clone(), source };
    let leased = slot.lease(owner, inner(patience));
    within(slot, patience, async { leased.await.map_err(refused) }).await
}

async fn within(
    slot: &Slot,
    patience: Duration,
    leased: impl Future<Output = Result<Lease, CallError>>,
) -> Result<Lease, CallError> {
    time::timeout(patience, leased).await.unwrap_or_else(|_| {
        let (server, source) = (slot.name().clone(), Failure::NotInTime { after: patience });
        Err(CallError::Failed { server, source })
    })
}

/// A little less for the wait inside, which can say more about what is missing.
fn inner(patience: Duration) -> Duration {
    patience.mul_f64(0.9)
}
