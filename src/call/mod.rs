//! The only way from a request to a server: connect, send, and send again if that is provably safe.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::{
    config::defaults,
    connection::{Call, Connection, Event, Failure, Limits, Owner},
    name::ServerName,
    pool::{Lease, Slot},
    protocol::{Message, jsonrpc::Part, mcp::method},
    report::chain,
};

mod error;

pub use error::CallError;

/// One request and its answer, over as many connections as that takes.
///
/// Dropping it cancels the request at the server.
pub struct Exchange {
    slot: Arc<Slot>,
    owner: Option<Owner>,
    request: Message,
    limits: Limits,
    ends: Instant,
    stage: Stage,
    replays_left: u32,
    /// Something came before the answer, so that the client would see it twice.
    has_begun: bool,
}

enum Stage {
    /// Kept here, so that a wait that is cut off goes on where it was.
    Sending(BoxFuture<'static, Result<Sent, CallError>>),
    Sent(Box<Sent>),
    /// The client does not want the answer any more.
    Cancelled,
}

struct Sent {
    // Before the lease: what is given back has nothing of ours running on it.
    call: Call,
    lease: Lease,
}

impl Exchange {
    /// Prepares to send the request of `owner` to the server of `slot`; the first
    /// [`Exchange::next`] sends it.
    pub fn new(slot: Arc<Slot>, owner: Option<&Owner>, request: Message, limits: Limits) -> Self {
        // One bound for the dial, the request and its replay together.
        let ends = Instant::now() + limits.total;
        let owner = owner.cloned();
        let sending = send(Arc::clone(&slot), owner.clone(), request.clone(), limits, ends);
        let stage = Stage::Sending(Box::pin(sending));
        let replays_left = defaults::REPLAYS;
        Self { slot, owner, request, limits, ends, stage, replays_left, has_begun: false }
    }

    /// Returns what comes next, as [`Call::next`] does.
    ///
    /// # Errors
    ///
    /// [`CallError`] when no answer will come; nothing comes after it.
    ///
    /// # Cancel safety
    ///
    /// Safe: the next call goes on.
    pub async fn next(&mut self) -> Result<Event, CallError> {
        loop {
            let (error, is_replayable) = match &mut self.stage {
                Stage::Sending(sending) => match sending.await {
                    Ok(sent) => {
                        self.stage = Stage::Sent(Box::new(sent));
                        continue;
                    }
                    Err(error) => {
                        let is_replayable = error.is_replayable();
                        (error, is_replayable)
                    }
                },
                Stage::Sent(sent) => match sent.call.next().await {
                    Ok(event) => {
                        self.has_begun = true;
                        return Ok(event);
                    }
                    Err(source) => {
                        let may_be_repeated = source.is_interruption()
                            && !self.has_begun
                            && is_repeatable(&self.request, &sent.lease.connection);
                        let is_replayable = source.is_replayable() || may_be_repeated;
                        let server = self.slot.name().clone();
                        (CallError::Failed { server, source }, is_replayable)
                    }
                },
                Stage::Cancelled => return std::future::pending().await,
            };
            if self.replays_left == 0 || !is_replayable {
                return Err(error);
            }
            self.replays_left -= 1;
            tracing::info!(mcp_server = %self.slot.name(), reason = %chain(&error), "request sent again");
            let (slot, owner) = (Arc::clone(&self.slot), self.owner.clone());
            let again = send(slot, owner, self.request.clone(), self.limits, self.ends);
            self.stage = Stage::Sending(Box::pin(again));
        }
    }

    /// Waits for the answer. Notifications go by, questions are refused.
    ///
    /// # Errors
    ///
    /// As [`Exchange::next`].
    ///
    /// # Cancel safety
    ///
    /// Dropping it cancels the request at the server.
    pub async fn finish(mut self) -> Result<Message, CallError> {
        loop {
            if let Event::Answer(answer) = self.next().await? {
                return Ok(answer);
            }
        }
    }

    /// Gives the request up because the client has said that it does not want the answer; see
    /// [`Call::cancel`]. Nothing comes after it.
    pub fn cancel(&mut self) {
        if let Stage::Sent(sent) = std::mem::replace(&mut self.stage, Stage::Cancelled) {
            sent.call.cancel();
        }
    }

    /// Returns the name of the server.
    pub fn server(&self) -> &ServerName {
        self.slot.name()
    }

    /// Tells whether the server works on the request.
    pub fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Sent(_))
    }

    /// Returns the progress token that the client gave, as JSON text.
    pub fn client_token(&self) -> Option<&str> {
        self.request.part(Part::ProgressToken)
    }

    /// Returns the client's id of the request, as JSON text.
    pub fn client_id(&self) -> &str {
        self.request.part(Part::Id).unwrap_or("null")
    }

    /// Returns the bytes of `message` as the client is to see them: its own id and token.
    pub fn restore(&self, message: &Message) -> Bytes {
        // A message with a token comes only where the request had one.
        let token = self.client_token().unwrap_or("null");
        message.edit([(Part::Id, self.client_id()), (Part::ProgressToken, token)])
    }
}

/// Tells whether a request that may have been executed can be sent again: it only reads, or its tool
/// says that calling it twice does no more than calling it once. Source: design ruling 9.
fn is_repeatable(request: &Message, connection: &Connection) -> bool {
    match request.method().unwrap_or_default() {
        method::TOOLS_CALL => {
            request.string(Part::Name).is_some_and(|tool| connection.is_repeatable(&tool))
        }
        asked => method::READING.contains(&asked),
    }
}

/// Returns a connection for a request of `owner`, dialling first where that is needed, within
/// `patience`; the dial goes on for whoever asks next.
///
/// # Errors
///
/// [`CallError`] when there is none in time.
///
/// # Cancel safety
///
/// Safe.
pub async fn connect(
    slot: &Slot,
    owner: Option<&Owner>,
    patience: Duration,
) -> Result<Lease, CallError> {
    let server = || slot.name().clone();
    // A little less for the wait inside, which can say more about what is missing.
    tokio::time::timeout(patience, slot.lease(owner, patience.mul_f64(0.9)))
        .await
        .map_err(|_| CallError::Failed {
            server: server(),
            source: Failure::NotInTime { after: patience },
        })?
        .map_err(|source| CallError::NotConnected { server: server(), source })
}

/// Sends a request, connecting first where that is needed. The wait for the connection counts as
/// silence of the server.
async fn send(
    slot: Arc<Slot>,
    owner: Option<Owner>,
    request: Message,
    limits: Limits,
    ends: Instant,
) -> Result<Sent, CallError> {
    let patience = limits.silence.min(ends.saturating_duration_since(Instant::now()));
    let lease = connect(&slot, owner.as_ref(), patience).await?;
    let total = ends.saturating_duration_since(Instant::now());
    let called = lease.connection.call(&request, Limits { total, ..limits }).await;
    let call =
        called.map_err(|source| CallError::Failed { server: slot.name().clone(), source })?;
    Ok(Sent { call, lease })
}
