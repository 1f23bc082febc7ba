//! The only way from a request to a server: connect, send, and send again if that is provably safe.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use tokio::time::{self, Instant};

use crate::{
    budget::MemoryReservation,
    compute_pool::{ComputeError, ComputePool},
    connection::{CallEvent, ConnectionLimits, PendingRequest, SessionOwner, SideMessage},
    era::ClientEra,
    error_report::chain,
    holder::Holder,
    name::ServerName,
    pool::{BreakerOpen, ConnectionLease, GatePass, OneShotClient, ServerSlot},
    protocol::{ByteChunks, Message, jsonrpc::MessagePart, payloads::method},
};

mod answer_memory;
mod connect;
mod continuation;
mod era_adapter;
mod error;
mod failure_class;
mod input_required;
mod retry;

use connect::RequestConnection;
pub use connect::{connect, connection};
pub use continuation::{AttemptOutcome, CallContinuation, NextAction};
use era_adapter::EraAdapter;
pub use error::CallError;
pub use input_required::InputRefusal;
use input_required::{InputExchange, InputStep};
use retry::{RetryBudget, RetryKind};

/// One request and its answer, over as many connections as that takes.
///
/// Dropping it cancels the request at the server.
pub struct Exchange {
    slot: Arc<ServerSlot>,
    owner: Option<SessionOwner>,
    client: ClientEra,
    /// The party that the request counts for.
    holder: Holder,
    request: Message,
    crossing: EraAdapter,
    limits: ConnectionLimits,
    ends: Instant,
    stage: Stage,
    /// That the server may be asked, until it is reported how that went: once, whatever was tried.
    permit: Option<GatePass>,
    /// No connection to the server had been lost when the request came.
    is_fresh: bool,
    left: RetryBudget,
    /// Something came before the answer, so that the client would see it twice.
    has_begun: bool,
    sieve: Option<Sieve>,
    /// The memory that the sequel takes.
    memory: MemoryReservation,
    /// The bytes of the answers that the sequel may keep: those of the steps of a chain.
    n_kept: usize,
    /// What becomes of its outcome, where that is not simply the client's.
    sequel: Option<Box<dyn CallContinuation>>,
    /// What the sequel computes with where that takes long.
    computer: Option<ComputePool>,
    /// What the client is told before anything else.
    notices: VecDeque<Message>,
    /// The progress token of the client, where it is not in the request.
    token: Option<Box<str>>,
    /// A client whose own connection ends with the request. The last to go.
    guest: Option<OneShotClient>,
}

/// What is done with an answer before the client sees it.
type Sieve = Box<dyn FnOnce(Message) -> Message + Send + Sync>;

/// A sequel that has computed something, with its memory, and what that came to.
type Computed =
    Result<(MemoryReservation, Box<dyn CallContinuation>, AttemptOutcome), ComputeError>;

enum Stage {
    /// The server is left alone.
    Tripped(BreakerOpen),
    /// Kept here, so that a wait that is cut off goes on where it was.
    Connecting(BoxFuture<'static, RequestConnection>),
    /// There is a connection; the request is on its way once there is a call.
    Connected(Connected),
    /// The server wants to know something first.
    Asking(Box<InputExchange>, ConnectionLease),
    /// The sequel computes what becomes of the outcome.
    Computing(BoxFuture<'static, Computed>),
    /// There is an answer, once the client was told what comes before it.
    Concluded(Message),
    /// Nothing comes any more: the client does not want the answer, or was told that there is none.
    Over,
}

struct Connected {
    // Before the lease: what is given back has nothing of ours running on it.
    call: Option<PendingRequest>,
    lease: ConnectionLease,
}

impl Exchange {
    /// Prepares to send a request of `client` to the server of `slot`; the first
    /// [`Exchange::next`] sends it. `owner` is the client as the owner of connections, `holder` the
    /// party that the request counts for.
    pub fn new(
        slot: Arc<ServerSlot>,
        owner: Option<&SessionOwner>,
        client: ClientEra,
        holder: Holder,
        request: Message,
        limits: ConnectionLimits,
    ) -> Self {
        // One bound for the dial, the request and its replay together.
        let ends = Instant::now() + limits.total;
        let mut exchange = Self {
            slot,
            owner: owner.cloned(),
            client,
            holder,
            request,
            crossing: EraAdapter::default(),
            limits,
            ends,
            stage: Stage::Over,
            permit: None,
            is_fresh: false,
            left: RetryBudget::default(),
            has_begun: false,
            sieve: None,
            memory: MemoryReservation::of(Some(holder.account)),
            n_kept: 0,
            sequel: None,
            computer: None,
            notices: VecDeque::new(),
            token: None,
            guest: None,
        };
        exchange.enter(limits);
        exchange
    }

    /// Sees the client off when nothing is left of the request.
    #[must_use]
    pub fn of_guest(mut self, guest: Option<OneShotClient>) -> Self {
        self.guest = guest;
        self
    }

    /// Has `sieve` look at the answer before anybody else does, and change it.
    #[must_use]
    pub fn with_filter(
        mut self,
        sieve: impl FnOnce(Message) -> Message + Send + Sync + 'static,
    ) -> Self {
        self.sieve = Some(Box::new(sieve));
        self
    }

    /// Has `sequel` decide what becomes of the outcome, once nothing more is tried for it. Where that
    /// takes long, `computer` does it.
    #[must_use]
    pub fn with_continuation(
        mut self,
        mut sequel: Box<dyn CallContinuation>,
        computer: ComputePool,
    ) -> Self {
        self.notices = sequel.start().into();
        (self.sequel, self.computer) = (Some(sequel), Some(computer));
        self
    }

    /// Counts a start of the server that was made for the request beforehand.
    #[must_use]
    pub fn after_start(mut self) -> Self {
        self.left.started(1);
        self
    }

    /// Has the client told of progress under `token`, JSON text, which is not in the request.
    #[must_use]
    pub fn reporting(mut self, token: &str) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Has tasks carried between the eras: the client finds those that it has begun again.
    pub fn carry_tasks(&mut self) {
        self.crossing.carries_tasks = true;
    }

    /// Asks for a connection, if the server may be asked for anything.
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

    /// Returns what comes next, as [`PendingRequest::next`] does.
    ///
    /// # Errors
    ///
    /// [`CallError`] when no answer will come; nothing comes after it.
    ///
    /// # Cancel safety
    ///
    /// Safe: the next call goes on.
    pub async fn next(&mut self) -> Result<CallEvent, CallError> {
        loop {
            if let Some(notice) = self.notices.pop_front() {
                return Ok(SideMessage::Notification(notice).into());
            }
            if let Some(answer) = self.take_deferred_answer() {
                return self.counted(answer);
            }
            if matches!(self.stage, Stage::Computing(_)) {
                match self.computed().await {
                    Some(outcome) => return outcome.and_then(|answer| self.counted(answer)),
                    None => continue,
                }
            }
            let error = match self.advance().await {
                Ok(CallEvent::Answer(answer)) => {
                    let received = answer.bytes().as_ptr();
                    self.answered(&answer);
                    let answer = match self.sieve.take() {
                        Some(sieve) => sieve(answer),
                        None => answer,
                    };
                    match self.translated(answer) {
                        Ok(Some(answer)) => {
                            let outcome = self.make_room(answer.bytes().len()).map(|()| answer);
                            match self.resolve_outcome(outcome) {
                                Some(Ok(answer)) if answer.bytes().as_ptr() != received => {
                                    return self.counted(answer);
                                }
                                // It was counted when it came.
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
            let loss = self.classify(&error);
            if let Some(successor) = self.successor(&error, loss) {
                tracing::debug!(mcp_server = %self.slot.name(), "request goes to the changed server");
                // What ran at the old one says nothing about the new one.
                self.permit = None;
                self.slot = successor;
                self.enter(self.limits_left());
                continue;
            }
            let again = retry::decide(self.slot.declared().retry, loss, self.is_fresh);
            let Some(stage) = again.and_then(|again| self.try_again(again)) else {
                self.report(&error);
                self.stage = Stage::Over;
                match self.resolve_outcome(Err(error)) {
                    Some(outcome) => return outcome.map(CallEvent::Answer),
                    None => continue,
                }
            };
            tracing::info!(mcp_server = %self.slot.name(), reason = %chain(&error), "request sent again");
            self.stage = stage;
        }
    }

    /// Returns the first stage of another attempt, if there is one left.
    fn try_again(&mut self, again: RetryKind) -> Option<Stage> {
        let pause = self.left.take(again)?;
        if self.left.may_start() {
            return Some(self.connecting(pause, self.limits_left()));
        }
        // The server is not started once more, but another client may have had it started.
        let lease = self.slot.ready(self.owner.as_ref())?;
        Some(Stage::Connected(Connected { call: None, lease }))
    }

    /// Goes on to what comes next on one connection, or to why nothing will.
    async fn advance(&mut self) -> Result<CallEvent, CallError> {
        loop {
            let Connected { call, lease } = match &mut self.stage {
                Stage::Tripped(BreakerOpen { retry_in }) => {
                    return Err(CallError::Tripped {
                        server: self.slot.name().clone(),
                        retry_in: *retry_in,
                    });
                }
                Stage::Connecting(connecting) => {
                    let RequestConnection { leased, n_starts } = connecting.await;
                    self.left.started(n_starts);
                    let lease = leased?;
                    self.stage = Stage::Connected(Connected { call: None, lease });
                    continue;
                }
                Stage::Connected(connected) => connected,
                Stage::Asking(inquiry, _) => {
                    match inquiry.next().await {
                        Ok(InputStep::Ask(question)) => {
                            self.has_begun = true;
                            return Ok(SideMessage::Question(*question).into());
                        }
                        Ok(InputStep::Done) => self.resend(),
                        Err(source) => {
                            return Err(CallError::Unanswered {
                                server: self.slot.name().clone(),
                                source,
                            });
                        }
                    }
                    continue;
                }
                Stage::Computing(_) | Stage::Concluded(_) | Stage::Over => {
                    return std::future::pending().await;
                }
            };
            let came = match call {
                Some(call) => call.next().await,
                none => {
                    let server = self.slot.name();
                    let total = self.ends.saturating_duration_since(Instant::now());
                    if total.is_zero() {
                        return Err(era_adapter::too_late(server, self.limits));
                    }
                    let request = self
                        .crossing
                        .outgoing(&self.request, &self.client, &self.slot, &lease.connection)
                        .map_err(|source| CallError::Untranslatable {
                            server: server.clone(),
                            source,
                        })?;
                    let limits = ConnectionLimits { total, ..self.limits };
                    let sent = match self.client {
                        ClientEra::Ourselves => {
                            lease.connection.call_internal(self.holder, &request, limits).await
                        }
                        ClientEra::Legacy { .. } | ClientEra::Modern(_) => {
                            lease.connection.call(self.holder, &request, limits).await
                        }
                    };
                    match sent {
                        Ok(sent) => {
                            *none = Some(sent);
                            continue;
                        }
                        Err(failure) => Err(failure),
                    }
                }
            };
            self.has_begun |= matches!(came, Ok(CallEvent::Aside(_)));
            return came
                .map_err(|source| CallError::Failed { server: self.slot.name().clone(), source });
        }
    }

    /// Returns the first stage on a connection, which is there at once where there is one for all.
    /// The wait for another one begins after a `pause`.
    fn connecting(&self, pause: Duration, limits: ConnectionLimits) -> Stage {
        if pause.is_zero()
            && let Some(lease) = self.slot.ready(self.owner.as_ref())
        {
            return Stage::Connected(Connected { call: None, lease });
        }
        let (slot, owner, holder) = (Arc::clone(&self.slot), self.owner.clone(), self.holder);
        Stage::Connecting(Box::pin(async move {
            time::sleep(pause).await;
            connect::lease(&slot, holder, owner.as_ref(), limits).await
        }))
    }

    fn time_left(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }

    /// Returns how long what comes next may take.
    fn limits_left(&self) -> ConnectionLimits {
        ConnectionLimits { total: self.time_left(), ..self.limits }
    }

    /// Takes note of the answer.
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

    /// Reports a failure, once nothing more is tried.
    fn report(&mut self, error: &CallError) {
        let incident = error.incident(self.slot.attempts(), self.generation());
        if let Some(permit) = self.permit.take() {
            permit.failed(error.fault(), incident, error);
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
            if let CallEvent::Answer(answer) = self.next().await? {
                return Ok(answer);
            }
        }
    }

    /// Gives the request up because the client has said that it does not want the answer; see
    /// [`PendingRequest::cancel`]. Nothing comes after it.
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

    /// Returns how many calls of the server may be held while their clients are asked something.
    pub fn held_max(&self) -> usize {
        self.slot.declared().sharing.held_max()
    }

    /// Returns the generation of the connection that the request is on, if it is on one.
    pub fn generation(&self) -> Option<u64> {
        match &self.stage {
            Stage::Connected(Connected { lease, .. }) | Stage::Asking(_, lease) => {
                Some(lease.connection.generation())
            }
            Stage::Tripped(_)
            | Stage::Connecting(_)
            | Stage::Computing(_)
            | Stage::Concluded(_)
            | Stage::Over => None,
        }
    }

    /// Tells whether the server works on the request.
    pub fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Connected(Connected { call: Some(_), .. }))
    }

    /// Returns the progress token that the client gave, as JSON text.
    fn client_token(&self) -> Option<&str> {
        self.token.as_deref().or(self.request.part(MessagePart::ProgressToken))
    }

    /// Tells whether the client has asked for progress.
    pub fn wants_progress(&self) -> bool {
        self.client_token().is_some()
    }

    /// Returns the client's id of the request, as JSON text.
    pub fn client_id(&self) -> &str {
        self.request.part(MessagePart::Id).unwrap_or("null")
    }

    /// Returns the bytes of `message` as the client is to see them: its own id and token.
    pub fn restore(&self, message: &Message) -> ByteChunks {
        // A message with a token comes only where the request had one.
        let token = self.client_token().unwrap_or("null");
        message.edit_in_pieces([
            (MessagePart::Id, self.client_id()),
            (MessagePart::ProgressToken, token),
        ])
    }
}
