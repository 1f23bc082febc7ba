//! The only way from a request to a server: connect, send, and send again if that is provably safe.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::{
    config::defaults,
    connection::{Call, Event, Failure, Limits},
    pool::Slot,
    protocol::{Message, jsonrpc::Part},
    report::chain,
};

mod error;

pub use error::CallError;

/// One request and its answer, over as many connections as that takes.
///
/// Dropping it cancels the request at the server.
pub struct Exchange {
    slot: Arc<Slot>,
    request: Message,
    limits: Limits,
    ends: Instant,
    stage: Stage,
    replays_left: u32,
}

enum Stage {
    /// Kept here, so that a wait that is cut off goes on where it was.
    Sending(BoxFuture<'static, Result<Call, CallError>>),
    Sent(Box<Call>),
}

impl Exchange {
    /// Prepares to send `request` to the server of `slot`; the first [`Exchange::next`] sends it.
    pub fn new(slot: Arc<Slot>, request: Message, limits: Limits) -> Self {
        // One bound for the dial, the request and its replay together.
        let ends = Instant::now() + limits.total;
        let sending = send(Arc::clone(&slot), request.clone(), limits, ends);
        let stage = Stage::Sending(Box::pin(sending));
        Self { slot, request, limits, ends, stage, replays_left: defaults::REPLAYS }
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
            let error = match &mut self.stage {
                Stage::Sending(sending) => match sending.await {
                    Ok(call) => {
                        self.stage = Stage::Sent(Box::new(call));
                        continue;
                    }
                    Err(error) => error,
                },
                Stage::Sent(call) => match call.next().await {
                    Ok(event) => return Ok(event),
                    Err(source) => CallError::Failed { server: self.slot.name().clone(), source },
                },
            };
            if self.replays_left == 0 || !error.is_replayable() {
                return Err(error);
            }
            self.replays_left -= 1;
            tracing::info!(mcp_server = %self.slot.name(), reason = %chain(&error), "request sent again");
            let again = send(Arc::clone(&self.slot), self.request.clone(), self.limits, self.ends);
            self.stage = Stage::Sending(Box::pin(again));
        }
    }

    /// Waits for the answer and lets notifications go by.
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

    /// Returns the client's id of the request, as JSON text.
    pub fn client_id(&self) -> &str {
        self.request.part(Part::Id).unwrap_or("null")
    }

    /// Returns the bytes of `message` as the client is to see them: its own id and token.
    pub fn restore(&self, message: &Message) -> Bytes {
        // A message with a token comes only where the request had one.
        let token = self.request.part(Part::ProgressToken).unwrap_or("null");
        message.edit([(Part::Id, self.client_id()), (Part::ProgressToken, token)])
    }
}

/// Sends a request, connecting first where that is needed. The wait for the connection counts as
/// silence of the server; the dial goes on for whoever asks next.
async fn send(
    slot: Arc<Slot>,
    request: Message,
    limits: Limits,
    ends: Instant,
) -> Result<Call, CallError> {
    let server = slot.name();
    let failed = |source| CallError::Failed { server: server.clone(), source };
    let patience = limits.silence.min(ends.saturating_duration_since(Instant::now()));
    let connection = tokio::time::timeout(patience, slot.connection())
        .await
        .map_err(|_| failed(Failure::NotInTime { after: patience }))?
        .map_err(|source| CallError::NotConnected { server: server.clone(), source })?;
    let total = ends.saturating_duration_since(Instant::now());
    connection.call(&request, Limits { total, ..limits }).await.map_err(failed)
}
