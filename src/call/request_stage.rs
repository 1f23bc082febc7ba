//! The stages of a request, and the steps from one to the next.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use tokio::time::{self, Instant};

use super::{
    AttemptOutcome, CallContinuation, CallError, Exchange, InputExchange, InputStep,
    connect_only::{self, RequestConnection},
    era_adapter,
};
use crate::{
    compute_pool::ComputeError,
    connection::{CallEvent, ConnectionLimits, PendingRequest, SideMessage},
    era::ClientEra,
    memory_budget::MemoryReservation,
    pool::{BreakerOpen, ConnectionLease},
    protocol::Message,
};

/// The result of a computation, with its continuation and memory.
type Computed =
    Result<(MemoryReservation, Box<dyn CallContinuation>, AttemptOutcome), ComputeError>;

pub(super) enum Stage {
    /// The breaker is open.
    Tripped(BreakerOpen),
    /// The attempt is stored here, so that a cancelled wait can continue.
    Connecting(BoxFuture<'static, RequestConnection>),
    /// There is a connection. The request is on its way once there is a call.
    Connected(Connected),
    /// The client must answer the server's questions first.
    AwaitingInput(Box<InputExchange>, ConnectionLease),
    /// The continuation processes the outcome.
    Computing(BoxFuture<'static, Computed>),
    /// The answer, which the client gets after its notifications.
    Concluded(Message),
    /// Nothing follows: the client has cancelled the request, or has got an error.
    Over,
}

pub(super) struct Connected {
    // Before the lease, so that no request runs on a returned connection.
    pub(super) call: Option<PendingRequest>,
    pub(super) lease: ConnectionLease,
}

impl Exchange {
    /// Continues to the next event on one connection, or to the error.
    pub(super) async fn advance(&mut self) -> Result<CallEvent, CallError> {
        loop {
            match &mut self.stage {
                Stage::Tripped(BreakerOpen { retry_in }) => {
                    let (server, retry_in) = (self.slot.name().clone(), *retry_in);
                    return Err(CallError::Tripped { server, retry_in });
                }
                Stage::Connecting(connecting) => {
                    let RequestConnection { leased, n_starts } = connecting.await;
                    self.retries.started(n_starts);
                    let lease = leased?;
                    self.stage = Stage::Connected(Connected { call: None, lease });
                }
                Stage::Connected(Connected { call: Some(call), .. }) => {
                    let event = call.next().await;
                    self.has_begun |= matches!(event, Ok(CallEvent::Message(_)));
                    let server = || self.slot.name().clone();
                    return event.map_err(|source| CallError::Failed { server: server(), source });
                }
                Stage::Connected(_) => self.send().await?,
                Stage::AwaitingInput(input, _) => match input.next().await {
                    Ok(InputStep::Ask(question)) => {
                        self.has_begun = true;
                        return Ok(CallEvent::Message(SideMessage::Question(*question)));
                    }
                    Ok(InputStep::Done) => self.resend(),
                    Err(source) => return Err(self.unanswered(source)),
                },
                Stage::Computing(_) | Stage::Concluded(_) | Stage::Over => {
                    return std::future::pending().await;
                }
            }
        }
    }

    /// Sends the request on its connection.
    async fn send(&mut self) -> Result<(), CallError> {
        let Stage::Connected(Connected { call, lease }) = &mut self.stage else { return Ok(()) };
        let server = self.slot.name();
        let total = self.ends.saturating_duration_since(Instant::now());
        if total.is_zero() {
            return Err(era_adapter::timed_out(server, self.limits));
        }
        let request = self
            .adapter
            .outgoing(&self.request, &self.client, &self.slot, &lease.connection)
            .map_err(|source| CallError::Untranslatable { server: server.clone(), source })?;
        let limits = ConnectionLimits { total, ..self.limits };
        let sent = match self.client {
            ClientEra::Metamcp => {
                lease.connection.call_internal(self.holder, &request, limits).await
            }
            ClientEra::Legacy { .. } | ClientEra::Modern(_) => {
                lease.connection.call(self.holder, &request, limits).await
            }
        };
        let sent = sent.map_err(|source| CallError::Failed { server: server.clone(), source })?;
        *call = Some(sent);
        Ok(())
    }

    /// Returns the first stage of a connection. A shared connection may be available at once.
    /// Otherwise the wait starts after a `pause`.
    pub(super) fn connecting(&self, pause: Duration, limits: ConnectionLimits) -> Stage {
        if pause.is_zero()
            && let Some(lease) = self.slot.ready(self.owner.as_ref())
        {
            return Stage::Connected(Connected { call: None, lease });
        }
        let (slot, owner, holder) = (Arc::clone(&self.slot), self.owner.clone(), self.holder);
        Stage::Connecting(Box::pin(async move {
            time::sleep(pause).await;
            connect_only::lease(&slot, holder, owner.as_ref(), limits).await
        }))
    }
}
