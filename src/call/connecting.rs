//! Connections: for a request, and without one, to read a server's lists or to start it.

use std::{sync::Arc, time::Duration};

use tokio::time::{self, Instant};

use super::CallError;
use crate::{
    capacity_holder::Holder,
    config::TransportConfig,
    connection::{ConnectionLimits, RequestFailure, SessionOwner},
    pool::{ConnectionLease, ServerSlot, SlotError},
};

/// Returns a connection for `owner`, like [`connection`], within the total time of a request. The
/// connection attempt continues for later callers. Cancel safe.
///
/// # Errors
///
/// [`CallError`] if there is none in time, or if the breaker is open.
pub async fn connect(
    slot: &Arc<ServerSlot>,
    owner: Option<&SessionOwner>,
    limits: ConnectionLimits,
) -> Result<ConnectionLease, CallError> {
    let silence = limits.silence.min(limits.total);
    // Boxed, so that callers that rarely need a connection reserve no room for its state.
    within(slot, limits.total, Box::pin(connection(slot, owner, silence))).await
}

/// Returns a connection for `owner`, and connects first if necessary. Waits for a permit for up to
/// `silence`. It waits for a started attempt as long as that takes, because a server takes longer
/// to start than to answer.
///
/// The breaker must admit the attempt. A failed attempt counts against the server; a successful one
/// does not prove that the server works. Cancel safe.
///
/// # Errors
///
/// [`CallError`] if there is none, or if the breaker is open.
pub async fn connection(
    slot: &Arc<ServerSlot>,
    owner: Option<&SessionOwner>,
    silence: Duration,
) -> Result<ConnectionLease, CallError> {
    let until = Instant::now() + silence;
    let mut slot = Arc::clone(slot);
    loop {
        let server = || slot.name().clone();
        let pass = slot
            .gate()
            .admit(Holder::SERVICE)
            .map_err(|open| CallError::Tripped(server(), open))?;
        let error = match slot.lease(owner, until).await {
            Ok(lease) => return Ok(lease),
            Err(error) => error,
        };
        let Some(successor) = slot.successor().cloned() else {
            let error = CallError::NotConnected(server(), error);
            let incident = error.incident(slot.attempts(), None);
            pass.failed(error.fault(), incident, &error, error.cause());
            return Err(error);
        };
        // A reload has changed the server meanwhile.
        slot = successor;
    }
}

/// A connection for a request, or the error.
pub(super) struct RequestConnection {
    pub(super) leased: Result<ConnectionLease, CallError>,
    /// The number of server starts for the request: launched processes or connected units.
    pub(super) n_starts: u32,
}

/// Returns a connection without asking the breaker.
pub(super) async fn lease(
    slot: &ServerSlot,
    holder: Holder,
    owner: Option<&SessionOwner>,
    limits: ConnectionLimits,
) -> RequestConnection {
    let refused = |error: SlotError| CallError::NotConnected(slot.name().clone(), error);
    // An attempt that is in progress already belongs to another request.
    let (generation, attempts) = (slot.generation(), slot.attempts());
    let until = Instant::now() + limits.silence.min(limits.total);
    let leasing = slot.lease_for(holder, owner, until);
    let leased = within(slot, limits.total, async { leasing.await.map_err(refused) }).await;
    let n_starts = match &leased {
        _ if matches!(slot.declared().transport, TransportConfig::Http(_)) => 0,
        Ok(lease) if lease.connection.generation() > generation => lease.connection.n_opened(),
        Err(CallError::NotConnected(_, SlotError::Dial { attempt, .. })) => {
            u32::from(*attempt > attempts)
        }
        Ok(_) | Err(_) => 0,
    };
    RequestConnection { leased, n_starts }
}

/// Limits a wait to `timeout`. If both end at once, the inner, more specific error wins.
async fn within(
    slot: &ServerSlot,
    timeout: Duration,
    leased: impl Future<Output = Result<ConnectionLease, CallError>>,
) -> Result<ConnectionLease, CallError> {
    time::timeout(timeout, leased).await.unwrap_or_else(|_| {
        let (server, source) = (slot.name().clone(), RequestFailure::ConnectTimeout(timeout));
        Err(CallError::Failed(server, source))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{self, Config},
        connection::in_process::{InProcessLauncher, declared},
        fault_class::Fault,
        pool::Pool,
        server_name::ServerName,
    };

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_times_out_waiting_for_room_reports_pool_exhaustion_and_faults_no_server()
    {
        let (dialer, _announced) = InProcessLauncher::new().dialer();
        let server = |name| (ServerName::new(name).expect("a name"), Arc::new(declared(name)));
        let pool = Pool::new(
            dialer,
            &Config {
                pool: config::PoolConfig { size: 1, ..config::PoolConfig::default() },
                servers: ["a", "b"].map(server).into(),
                ..Config::default()
            },
        );
        let [a, b] = ["a", "b"].map(|name| pool.slot(name).expect("declared"));
        let silence = Duration::from_secs(60);
        // For example, the rest of the time for the second attempt of a request.
        let limits = ConnectionLimits { silence, total: silence / 2 };
        let _held = lease(&a, Holder::SERVICE, None, limits).await.leased.expect("a connection");
        for refused in
            [lease(&b, Holder::SERVICE, None, limits).await.leased, connect(&b, None, limits).await]
        {
            let Err(error) = refused else { panic!("there is no room") };
            assert_eq!((error.code(), error.fault()), ("POOL_EXHAUSTED", Fault::Cancelled));
        }
    }
}
