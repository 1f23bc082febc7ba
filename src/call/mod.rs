//! The only path from a client's request to a server: connect, send, and retry if that is provably
//! safe.
//!
//! `Attempts` get the answer of the server. The [`Exchange`] makes the client's answer of it: a
//! filter, then the translation between the eras, then a [`CallContinuation`].

use std::{sync::Arc, time::Duration};

use serde_json::json;

use attempts::Attempts;
use continuation::{ContinuationDriver, out_of_memory};
use input_required::{InputExchange, InputStep};
use observed_attempts::ObservedAttempts;

use crate::{
    call_record::ObservedCall,
    capacity_holder::Holder,
    compute_pool::ComputePool,
    connection::{CallEvent, ConnectionLimits, ForwardedHeaders, SessionOwner, with_client_ids},
    era::{self, ClientEra},
    error_report::chain,
    memory_budget::MemoryReservation,
    pool::{OneShotClient, ServerSlot},
    protocol::{ByteChunks, Era, Message, RpcError, jsonrpc::MessagePart, payloads::method},
    server_name::ServerName,
};

mod attempt_stage;
mod attempts;
mod connecting;
mod continuation;
mod era_adapter;
mod error;
mod input_required;
mod login_exchange;
mod observed_attempts;
mod retry;

pub use connecting::{connect, connection};
pub use continuation::{AttemptOutcome, CallContinuation, NextAction};
pub use error::CallError;
pub use input_required::InputRefusal;

/// One request and its answer, over as many connections as needed.
///
/// Dropping it cancels the request at the server.
pub struct Exchange {
    attempts: Attempts,
    filter: Option<AnswerFilter>,
    /// The processing of the outcome, if any.
    continuation: Option<ContinuationDriver>,
    /// The client's progress token, if it is not in the request.
    token: Option<Box<str>>,
    /// A client whose own connection ends with the request. Dropped last.
    one_shot: Option<OneShotClient>,
}

/// A filter that changes an answer before the client gets it.
type AnswerFilter = Box<dyn FnOnce(Message) -> Message + Send + Sync>;

impl Exchange {
    /// Returns the exchange of a request of `client` with the server of `slot`. Asks the breaker,
    /// and takes a lease if a connection is ready. The first [`Exchange::next`] sends the request.
    /// `owner` is the client as the owner of connections; the request counts for `holder`.
    pub fn new(
        slot: Arc<ServerSlot>,
        owner: Option<&SessionOwner>,
        client: ClientEra,
        holder: Holder,
        request: Message,
        limits: ConnectionLimits,
    ) -> Self {
        Self {
            attempts: Attempts::new(slot, owner.cloned(), client, holder, request, limits),
            filter: None,
            continuation: None,
            token: None,
            one_shot: None,
        }
    }

    /// Keeps the one-shot client until the request has ended.
    #[must_use]
    pub fn with_one_shot(mut self, one_shot: Option<OneShotClient>) -> Self {
        self.one_shot = one_shot;
        self
    }

    /// Applies `filter` to the answer before any other processing.
    #[must_use]
    pub fn with_filter(
        mut self,
        filter: impl FnOnce(Message) -> Message + Send + Sync + 'static,
    ) -> Self {
        self.filter = Some(Box::new(filter));
        self
    }

    /// Processes the final outcome with `continuation`, on `compute_pool` if that takes long.
    #[must_use]
    pub fn with_continuation(
        mut self,
        continuation: Box<dyn CallContinuation>,
        compute_pool: ComputePool,
    ) -> Self {
        let driver = ContinuationDriver::new(continuation, compute_pool, &self.attempts);
        self.continuation = Some(driver);
        self
    }

    /// Counts a server start that was made for the request beforehand.
    #[must_use]
    pub fn after_start(mut self) -> Self {
        self.attempts.retries.started(1);
        self
    }

    /// Sends progress notifications under `token`, JSON text, which is not in the request.
    #[must_use]
    pub fn with_progress_token(mut self, token: &str) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Passes these headers of the client's request on to the servers that get them.
    pub fn forward_headers(&mut self, headers: Arc<ForwardedHeaders>) {
        self.attempts.forwarded = Some(headers);
    }

    /// Records the exchange as `call` of a client. A request that continues an earlier one is a part
    /// of that one's record.
    pub fn observe(&mut self, call: ObservedCall) {
        let Attempts { observed, slot, request, .. } = &mut self.attempts;
        if observed.is_begun() {
            return call.discard();
        }
        let is_chain = !self.continuation.as_ref().is_none_or(ContinuationDriver::is_last);
        *observed = ObservedAttempts::of(call, is_chain, slot, request);
    }

    /// Translates tasks between the eras: the client can find its tasks again.
    pub fn carry_tasks(&mut self) {
        self.attempts.adapter.carries_tasks = true;
    }

    /// Records a capability that the server needs and the modern-era client has not declared. If
    /// the server fails, the error names it. Source: MCP 2026-07-28, "Base Protocol", `_meta`.
    pub fn note_missing_capability(&mut self, capability: Option<&'static str>) {
        let undeclared = &mut self.attempts.adapter.undeclared;
        *undeclared = undeclared.or(capability);
    }

    /// Returns the next event, like
    /// [`PendingRequest::next`](crate::connection::PendingRequest::next). Cancel safe: the next
    /// call continues.
    ///
    /// # Errors
    ///
    /// [`CallError`] if no answer will come. Nothing follows it.
    pub async fn next(&mut self) -> Result<CallEvent, CallError> {
        let event = self.advance().await;
        let outcome = match &event {
            Ok(CallEvent::Answer(answer)) => Ok(answer),
            Ok(_) => return event,
            Err(error) => Err(error),
        };
        let Attempts { observed, adapter, request, .. } = &mut self.attempts;
        observed.ended(outcome, |error| {
            // metamcp itself gets no bytes.
            let Some(era) = adapter.client.era() else { return 0 };
            error.to_rpc().for_era(era).render(request.part(MessagePart::Id)).len()
        });
        event
    }

    /// Records that the client gets this error of metamcp in place of an answer, in an answer of
    /// `answer_bytes`.
    pub fn ends_by(&mut self, error: &RpcError, answer_bytes: usize) {
        self.attempts.observed.ended_by(error, answer_bytes);
    }

    async fn advance(&mut self) -> Result<CallEvent, CallError> {
        loop {
            if let Some(continuation) = &mut self.continuation
                && let Some(event) = continuation.next(&mut self.attempts).await
            {
                return match event? {
                    CallEvent::Answer(answer) => self.counted(answer),
                    aside => Ok(aside),
                };
            }
            // An answer with other bytes than those received was not counted on arrival.
            let (outcome, received) = match self.attempts.next().await {
                Ok(CallEvent::Answer(answer)) => {
                    let received = answer.bytes().as_ptr();
                    let answer = match self.filter.take() {
                        Some(filter) => filter(answer),
                        None => answer,
                    };
                    match self.attempts.adapt(answer) {
                        Ok(Some(answer)) => (Ok(answer), Some(received)),
                        Ok(None) => continue,
                        Err(error) => (Err(error), None),
                    }
                }
                Ok(aside) => {
                    if let Some(continuation) = &mut self.continuation
                        && continuation.suppresses(&aside)
                    {
                        continue;
                    }
                    return Ok(aside);
                }
                Err(error) => (Err(error), None),
            };
            self.attempts.observed.request_ended(outcome.as_ref());
            let outcome = match &mut self.continuation {
                Some(continuation) => continuation.resolve(outcome, &mut self.attempts),
                None => Some(outcome),
            };
            match (outcome, received) {
                (Some(Ok(answer)), Some(received)) if answer.bytes().as_ptr() != received => {
                    return self.counted(answer);
                }
                (Some(outcome), _) => return self.readable(outcome).map(CallEvent::Answer),
                (None, _) => {}
            }
        }
    }

    /// Returns the outcome for the client. The model reads the result of a tool, and not the error of
    /// a protocol: it learns so which login its call needs.
    fn readable(&self, outcome: Result<Message, CallError>) -> Result<Message, CallError> {
        let client = &self.attempts.adapter.client;
        let error = match outcome {
            Err(error)
                if error.is_login_required()
                    && client.era().is_some()
                    && self.attempts.request.method() == Some(method::TOOLS_CALL) =>
            {
                error
            }
            outcome => return outcome,
        };
        let text = format!("{}. {}", chain(&error), error.hint());
        let mut result = json!({ "content": [{ "type": "text", "text": text }], "isError": true });
        if client.era() == Some(Era::Modern) {
            result["resultType"] = json!("complete");
        }
        let id = self.attempts.request.part(MessagePart::Id).unwrap_or("null");
        Message::parse_own(Message::response(id, &result.to_string())).map_err(|_| error)
    }

    /// Counts a new answer against the memory budget, in place of the answer that it was made from.
    fn counted(&mut self, answer: Message) -> Result<CallEvent, CallError> {
        let mut memory = match &mut self.continuation {
            // Uses the existing reservation, because other requests may wait for memory.
            Some(continuation) => std::mem::take(&mut continuation.memory),
            None => MemoryReservation::of(Some(self.attempts.holder.account)),
        };
        let counted = answer.wrapped(|bytes| memory.count(bytes));
        counted.map(CallEvent::Answer).map_err(|exhausted| out_of_memory(self.server(), exhausted))
    }

    /// Waits for the answer. Ignores notifications and refuses questions. Dropping it cancels the
    /// request at the server.
    ///
    /// # Errors
    ///
    /// Those of [`Exchange::next`].
    pub async fn finish(mut self) -> Result<Message, CallError> {
        loop {
            if let CallEvent::Answer(answer) = self.next().await? {
                return Ok(answer);
            }
        }
    }

    /// Cancels the request because the client does not want the answer: see
    /// [`PendingRequest::cancel`](crate::connection::PendingRequest::cancel). Nothing follows.
    pub fn cancel(&mut self) {
        // Also stops its computation.
        self.continuation = None;
        self.attempts.cancel();
    }

    /// Pauses the request until [`Exchange::resume`], while its client answers a question.
    pub fn pause(&self) {
        if let Some(call) = self.attempts.running() {
            call.pause();
        }
    }

    /// Continues after a `pause` as the client's request `retry`, which has the answer to the
    /// server's question.
    pub fn resume(&mut self, retry: Message, pause: Duration) {
        self.attempts.resume(retry, pause);
    }

    /// Returns whether the request can be held until its client sends another one. Requests that
    /// may lead to others cannot.
    pub fn can_be_held(&self) -> bool {
        self.continuation.as_ref().is_none_or(ContinuationDriver::is_last)
    }

    /// Returns the digest that identifies a repetition of this request.
    pub fn digest(&self) -> [u8; 32] {
        era::digest(&self.attempts.request)
    }

    /// Returns the name of the server.
    pub fn server(&self) -> &ServerName {
        self.attempts.slot.name()
    }

    /// Returns the maximum number of the server's calls to hold while their clients answer
    /// questions.
    pub fn held_max(&self) -> usize {
        self.attempts.slot.declared().sharing.held_max()
    }

    /// Returns the generation of the request's connection, if it is on one.
    pub fn generation(&self) -> Option<u64> {
        self.attempts.generation()
    }

    /// Returns whether the server is working on the request.
    pub fn is_running(&self) -> bool {
        self.attempts.running().is_some()
    }

    /// Returns the client's progress token, as JSON text.
    fn client_token(&self) -> Option<&str> {
        self.token.as_deref().or(self.attempts.request.part(MessagePart::ProgressToken))
    }

    /// Returns whether the client has asked for progress.
    pub fn wants_progress(&self) -> bool {
        self.client_token().is_some()
    }

    /// Returns the client's id of the request, as JSON text.
    pub fn client_id(&self) -> &str {
        self.attempts.request.part(MessagePart::Id).unwrap_or("null")
    }

    /// Returns the bytes of `message` for the client, with the client's id and token.
    pub fn restore(&self, message: &Message) -> ByteChunks {
        // A message has a token only if the request had one.
        let token = self.client_token().unwrap_or("null");
        with_client_ids(message, self.client_id(), token)
    }
}
