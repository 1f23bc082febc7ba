//! The only path from a request to a server: connect, send, and retry if that is provably safe.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    capacity_holder::Holder,
    compute_pool::ComputePool,
    connection::{CallEvent, ConnectionLimits, SessionOwner, SideMessage, with_client_ids},
    era::ClientEra,
    error_report::chain,
    memory_budget::MemoryReservation,
    pool::{GatePass, OneShotClient, ServerSlot},
    protocol::{ByteChunks, Message, jsonrpc::MessagePart, payloads::method},
    server_name::ServerName,
};

mod answer_reservation;
mod connect_only;
mod continuation;
mod era_adapter;
mod error;
mod failure_class;
mod input_required;
mod request_stage;
mod retry;

pub use connect_only::{connect, connection};
pub use continuation::{AttemptOutcome, CallContinuation, NextAction};
use era_adapter::EraAdapter;
pub use error::CallError;
pub use input_required::InputRefusal;
use input_required::{InputExchange, InputStep};
use request_stage::{Connected, Stage};
use retry::{RetryBudget, RetryKind};

/// One request and its answer, over as many connections as needed.
///
/// Dropping it cancels the request at the server.
pub struct Exchange {
    slot: Arc<ServerSlot>,
    owner: Option<SessionOwner>,
    client: ClientEra,
    /// The holder that the request counts for.
    holder: Holder,
    request: Message,
    adapter: EraAdapter,
    limits: ConnectionLimits,
    ends: Instant,
    stage: Stage,
    /// The breaker's pass, until the final outcome is reported: once, regardless of retries.
    permit: Option<GatePass>,
    /// No connection to the server had been lost when the request came.
    is_fresh: bool,
    retries: RetryBudget,
    /// The client has got a message before the answer, and would get it twice after a retry.
    has_begun: bool,
    filter: Option<AnswerFilter>,
    /// The memory for the continuation.
    memory: MemoryReservation,
    /// The size of the answers that the continuation may keep: those of the steps of a chain.
    n_kept: usize,
    /// The processing of the outcome, if any.
    continuation: Option<Box<dyn CallContinuation>>,
    /// The pool for long computations of the continuation.
    compute_pool: Option<ComputePool>,
    /// The notifications to send to the client before anything else.
    notices: VecDeque<Message>,
    /// The client's progress token, if it is not in the request.
    token: Option<Box<str>>,
    /// A client whose own connection ends with the request. Dropped last.
    one_shot: Option<OneShotClient>,
}

/// A filter that changes an answer before the client gets it.
type AnswerFilter = Box<dyn FnOnce(Message) -> Message + Send + Sync>;

impl Exchange {
    /// Prepares to send a request of `client` to the server of `slot`. The first [`Exchange::next`]
    /// sends it. `owner` is the client as the owner of connections. `holder` is the holder that the
    /// request counts for.
    pub fn new(
        slot: Arc<ServerSlot>,
        owner: Option<&SessionOwner>,
        client: ClientEra,
        holder: Holder,
        request: Message,
        limits: ConnectionLimits,
    ) -> Self {
        // One limit for the connection attempt, the request and its retries together.
        let ends = Instant::now() + limits.total;
        let mut exchange = Self {
            slot,
            owner: owner.cloned(),
            client,
            holder,
            request,
            adapter: EraAdapter::default(),
            limits,
            ends,
            stage: Stage::Over,
            permit: None,
            is_fresh: false,
            retries: RetryBudget::default(),
            has_begun: false,
            filter: None,
            memory: MemoryReservation::of(Some(holder.account)),
            n_kept: 0,
            continuation: None,
            compute_pool: None,
            notices: VecDeque::new(),
            token: None,
            one_shot: None,
        };
        exchange.enter(limits);
        exchange
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
        mut continuation: Box<dyn CallContinuation>,
        compute_pool: ComputePool,
    ) -> Self {
        self.notices = continuation.start().into();
        (self.continuation, self.compute_pool) = (Some(continuation), Some(compute_pool));
        self
    }

    /// Counts a server start that was made for the request beforehand.
    #[must_use]
    pub fn after_start(mut self) -> Self {
        self.retries.started(1);
        self
    }

    /// Sends progress notifications under `token`, JSON text, which is not in the request.
    #[must_use]
    pub fn with_progress_token(mut self, token: &str) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Translates tasks between the eras: the client can find its tasks again.
    pub fn carry_tasks(&mut self) {
        self.adapter.carries_tasks = true;
    }

    /// Requests a connection, if the breaker admits the request.
    fn enter(&mut self, limits: ConnectionLimits) {
        self.is_fresh = self.slot.n_lost() == 0;
        match self.slot.gate().admit(self.holder) {
            Ok(permit) => {
                self.permit = Some(permit);
                self.stage = self.connecting(Duration::ZERO, limits);
            }
            Err(tripped) => self.stage = Stage::Tripped(tripped),
        }
    }

    /// Returns the next event, like
    /// [`PendingRequest::next`](crate::connection::PendingRequest::next). Cancel safe: the next
    /// call continues.
    ///
    /// # Errors
    ///
    /// [`CallError`] if no answer will come. Nothing follows it.
    pub async fn next(&mut self) -> Result<CallEvent, CallError> {
        loop {
            if let Some(notice) = self.notices.pop_front() {
                return Ok(CallEvent::Message(SideMessage::Notification(notice)));
            }
            if let Some(answer) = self.take_deferred_answer() {
                return self.counted(answer);
            }
            if matches!(self.stage, Stage::Computing(_)) {
                match self.wait_for_computation().await {
                    Some(outcome) => return outcome.and_then(|answer| self.counted(answer)),
                    None => continue,
                }
            }
            let error = match self.advance().await {
                Ok(CallEvent::Answer(answer)) => {
                    let received = answer.bytes().as_ptr();
                    self.answered(&answer);
                    let answer = match self.filter.take() {
                        Some(filter) => filter(answer),
                        None => answer,
                    };
                    match self.translated(answer) {
                        Ok(Some(answer)) => {
                            let outcome = self.make_room(answer.bytes().len()).map(|()| answer);
                            match self.resolve_outcome(outcome) {
                                Some(Ok(answer)) if answer.bytes().as_ptr() != received => {
                                    return self.counted(answer);
                                }
                                // It was counted on arrival.
                                Some(outcome) => return outcome.map(CallEvent::Answer),
                                None => continue,
                            }
                        }
                        Ok(None) => continue,
                        Err(error) => error,
                    }
                }
                Ok(aside) if self.is_suppressed_progress(&aside) => continue,
                Ok(aside) => return Ok(aside),
                Err(error) => error,
            };
            if let Some(outcome) = self.recover(error) {
                return outcome.map(CallEvent::Answer);
            }
        }
    }

    /// Prepares another attempt after a failure. Without one, returns the outcome for the client,
    /// or `None` if another step comes first.
    fn recover(&mut self, error: CallError) -> Option<Result<Message, CallError>> {
        let class = self.classify(&error);
        if let Some(successor) = self.successor(&error, class) {
            let name = self.slot.name();
            tracing::debug!(mcp_server = %name, "request continues on the reloaded server `{name}`");
            // The old server's outcome says nothing about the new one.
            self.permit = None;
            self.slot = successor;
            self.enter(self.limits_left());
            return None;
        }
        let again = retry::decide(self.slot.declared().retry, class, self.is_fresh);
        let Some(stage) = again.and_then(|again| self.try_again(again)) else {
            self.report(&error);
            self.stage = Stage::Over;
            return self.resolve_outcome(Err(error));
        };
        let reason = chain(&error);
        tracing::info!(mcp_server = %self.slot.name(), reason, "request sent again: {reason}");
        self.stage = stage;
        None
    }

    /// Returns the first stage of another attempt, if the budget allows one.
    fn try_again(&mut self, again: RetryKind) -> Option<Stage> {
        let pause = self.retries.take(again)?;
        if self.retries.may_start() {
            return Some(self.connecting(pause, self.limits_left()));
        }
        // No start is left for this request, but another client may have started the server.
        let lease = self.slot.ready(self.owner.as_ref())?;
        Some(Stage::Connected(Connected { call: None, lease }))
    }

    fn time_left(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }

    /// Returns the limits for the rest of the request.
    fn limits_left(&self) -> ConnectionLimits {
        ConnectionLimits { total: self.time_left(), ..self.limits }
    }

    /// Records the answer.
    fn answered(&mut self, answer: &Message) {
        if self.request.method() == Some(method::TOOLS_LIST)
            && let Some(page) = answer.part(MessagePart::Result)
        {
            self.slot.hints().learn(page, self.request.part(MessagePart::Cursor).is_none());
        }
        if let Some(permit) = self.permit.take() {
            permit.succeeded();
        }
    }

    /// Reports the failure to the breaker, after all retries.
    fn report(&mut self, error: &CallError) {
        let incident = error.incident(self.slot.attempts(), self.generation());
        if let Some(permit) = self.permit.take() {
            permit.failed(error.fault(), incident, error);
        }
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
        self.permit = None;
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        if let Stage::Connected(Connected { call: Some(call), .. }) = stage {
            call.cancel();
        }
    }

    /// Returns the name of the server.
    pub fn server(&self) -> &ServerName {
        self.slot.name()
    }

    /// Returns the maximum number of the server's calls to hold while their clients answer
    /// questions.
    pub fn held_max(&self) -> usize {
        self.slot.declared().sharing.held_max()
    }

    /// Returns the generation of the request's connection, if it is on one.
    pub fn generation(&self) -> Option<u64> {
        match &self.stage {
            Stage::Connected(Connected { lease, .. }) | Stage::AwaitingInput(_, lease) => {
                Some(lease.connection.generation())
            }
            Stage::Tripped(_)
            | Stage::Connecting(_)
            | Stage::Computing(_)
            | Stage::Concluded(_)
            | Stage::Over => None,
        }
    }

    /// Returns whether the server is working on the request.
    pub fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Connected(Connected { call: Some(_), .. }))
    }

    /// Returns the client's progress token, as JSON text.
    fn client_token(&self) -> Option<&str> {
        self.token.as_deref().or(self.request.part(MessagePart::ProgressToken))
    }

    /// Returns whether the client has asked for progress.
    pub fn wants_progress(&self) -> bool {
        self.client_token().is_some()
    }

    /// Returns the client's id of the request, as JSON text.
    pub fn client_id(&self) -> &str {
        self.request.part(MessagePart::Id).unwrap_or("null")
    }

    /// Returns the bytes of `message` for the client, with the client's id and token.
    pub fn restore(&self, message: &Message) -> ByteChunks {
        // A message has a token only if the request had one.
        let token = self.client_token().unwrap_or("null");
        with_client_ids(message, self.client_id(), token)
    }
}
