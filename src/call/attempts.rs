//! The attempts to get an answer to one request: connect, send, and retry if that is provably safe.
//!
//! ```text
//!  enter ─┬─ the breaker is open ──▶ tripped ──▶ over
//!         │
//!         ├─ no connection ──▶ connecting ── failed ──▶ a retry, or over
//!         │                     │     ▲
//!         │              leased ▼     ╰ retry ────╮
//!         ╰─ a connection ──▶ leased ── sent ──▶ running ── answer, or error ──▶ over
//!                               ▲                 │
//!                               │                 ▼ questions
//!                               ╰─ answered ── awaiting input ── refused ──▶ over
//! ```
//!
//! A server that requires a login leads to *logging in*, once: with the login, the request connects
//! again.
//!
//! A retry connects again, or takes a connection that another client has made meanwhile.

use std::{borrow::Cow, sync::Arc, time::Duration};

use tokio::time::{self, Instant};

use super::{
    CallError, InputExchange, InputRefusal, InputStep,
    attempt_stage::AttemptStage,
    connecting::{self, RequestConnection},
    era_adapter::{AdaptedAnswer, EraAdapter},
    login_exchange::{LoginExchange, LoginStep},
    observed_attempts::ObservedAttempts,
    retry::{self, FailureClass, RetryBudget, RetryKind},
};
use crate::{
    capacity_holder::Holder,
    connection::{
        CallEvent, ConnectionLimits, ForwardedHeaders, PendingRequest, RequestFailure,
        SessionOwner, SideMessage,
    },
    era::{self, ClientEra},
    pool::{GatePass, ServerSlot},
    protocol::{Era, Message, jsonrpc::MessagePart, payloads::method},
};

/// The attempts of one request, over as many connections as needed.
pub(super) struct Attempts {
    pub(super) slot: Arc<ServerSlot>,
    owner: Option<SessionOwner>,
    /// The holder that the request counts for.
    pub(super) holder: Holder,
    pub(super) request: Message,
    pub(super) adapter: EraAdapter,
    limits: ConnectionLimits,
    ends: Instant,
    stage: AttemptStage,
    /// The breaker's pass, until the final outcome is reported: once, regardless of retries.
    pass: Option<GatePass>,
    /// No connection to the server had been lost when the request came.
    is_fresh: bool,
    pub(super) retries: RetryBudget,
    /// The client was asked to log in.
    has_asked_login: bool,
    /// The client has got a message before the answer, and would get it twice after a retry.
    has_begun: bool,
    /// The headers of the client's request that some server may get.
    pub(super) forwarded: Option<Arc<ForwardedHeaders>>,
    /// The records of the request, and of the client's call that it is a part of.
    pub(super) observed: ObservedAttempts,
}

impl Attempts {
    /// Begins the first attempt: asks the breaker, and takes a lease if a connection is ready.
    /// [`Attempts::next`] continues it.
    pub(super) fn new(
        slot: Arc<ServerSlot>,
        owner: Option<SessionOwner>,
        client: ClientEra,
        holder: Holder,
        request: Message,
        limits: ConnectionLimits,
    ) -> Self {
        let mut attempts = Self {
            slot,
            owner,
            holder,
            request,
            adapter: EraAdapter::new(client),
            limits,
            // One limit for the connection attempt, the request and its retries together.
            ends: Instant::now() + limits.total,
            stage: AttemptStage::Over,
            pass: None,
            is_fresh: false,
            retries: RetryBudget::default(),
            has_asked_login: false,
            has_begun: false,
            forwarded: None,
            observed: ObservedAttempts::default(),
        };
        attempts.enter(limits);
        attempts
    }

    /// Starts another request in place of the completed one. It has the same total time.
    pub(super) fn begin(&mut self, slot: Arc<ServerSlot>, request: Message) {
        let client = std::mem::replace(&mut self.adapter.client, ClientEra::Metamcp);
        let forwarded = self.forwarded.take();
        let observed = std::mem::take(&mut self.observed);
        *self = Self::new(slot, self.owner.take(), client, self.holder, request, self.limits);
        self.forwarded = forwarded;
        self.observed = observed;
        self.observed.begin(&self.slot, &self.request);
    }

    /// Requests a connection, if the breaker admits the request.
    fn enter(&mut self, limits: ConnectionLimits) {
        self.is_fresh = self.slot.n_lost() == 0;
        match self.slot.gate().admit(self.holder) {
            Ok(pass) => {
                self.pass = Some(pass);
                self.stage = self.connecting(Duration::ZERO, limits);
            }
            Err(tripped) => self.stage = AttemptStage::Tripped(tripped),
        }
    }

    /// Returns the first stage of an attempt. A shared connection may be available at once.
    /// Otherwise the wait starts after a `pause`.
    fn connecting(&self, pause: Duration, limits: ConnectionLimits) -> AttemptStage {
        if pause.is_zero()
            && let Some(lease) = self.slot.ready(self.owner.as_ref())
        {
            return AttemptStage::Leased(lease);
        }
        let (slot, owner, holder) = (Arc::clone(&self.slot), self.owner.clone(), self.holder);
        AttemptStage::Connecting(Box::pin(async move {
            time::sleep(pause).await;
            connecting::lease(&slot, holder, owner.as_ref(), limits).await
        }))
    }

    /// Returns the next event: a message, or the server's answer, which [`Attempts::adapt`]
    /// translates. Cancel safe: the next call continues.
    ///
    /// # Errors
    ///
    /// [`CallError`] after the last attempt. Nothing follows it.
    pub(super) async fn next(&mut self) -> Result<CallEvent, CallError> {
        loop {
            let error = match &mut self.stage {
                AttemptStage::Tripped(open) => {
                    CallError::Tripped(self.slot.name().clone(), open.clone())
                }
                AttemptStage::Connecting(connecting) => {
                    let RequestConnection { leased, n_starts } = connecting.await;
                    self.retries.started(n_starts);
                    match leased {
                        Ok(lease) => {
                            self.stage = AttemptStage::Leased(lease);
                            continue;
                        }
                        Err(error) => error,
                    }
                }
                AttemptStage::Leased(_) => match self.send().await {
                    Ok(()) => continue,
                    Err(error) => error,
                },
                AttemptStage::Running { call, .. } => match call.next().await {
                    Ok(event) => {
                        self.note(&event);
                        return Ok(event);
                    }
                    Err(source) => self.failed(source),
                },
                AttemptStage::AwaitingInput(input, _) => match input.next().await {
                    Ok(InputStep::Ask(question)) => {
                        self.has_begun = true;
                        return Ok(CallEvent::Message(SideMessage::Question(*question)));
                    }
                    Ok(InputStep::Done) => {
                        self.resend();
                        continue;
                    }
                    Err(source) => self.unanswered(source),
                },
                AttemptStage::LoggingIn(login) => match login.next().await {
                    LoginStep::Ask(question) => {
                        return Ok(CallEvent::Message(SideMessage::Question(*question)));
                    }
                    // A client of the modern era has no such notification.
                    LoginStep::Notify(_) if self.adapter.client.era() == Some(Era::Modern) => {
                        continue;
                    }
                    LoginStep::Notify(notice) => {
                        return Ok(CallEvent::Message(SideMessage::Notification(notice)));
                    }
                    LoginStep::Done => {
                        self.logged_in();
                        continue;
                    }
                    LoginStep::Refused => {
                        let AttemptStage::LoggingIn(login) = self.take_stage() else { continue };
                        login.into_error()
                    }
                },
                AttemptStage::Over => return std::future::pending().await,
            };
            match self.login(error) {
                Ok(login) => self.stage = AttemptStage::LoggingIn(login),
                Err(error) => self.recover(error)?,
            }
        }
    }

    /// Returns the login that may turn `error` into an answer.
    fn login(&mut self, error: CallError) -> Result<Box<LoginExchange>, CallError> {
        if self.has_asked_login || self.has_begun {
            return Err(error);
        }
        let (server, client) = (self.slot.name(), &self.adapter.client);
        let login = LoginExchange::new(self.slot.logins(), server, client, error)?;
        self.has_asked_login = true;
        // A refusal says nothing to the breaker, and no other request waits for a person.
        self.pass = None;
        Ok(Box::new(login))
    }

    /// Tries again after the login. Its time does not count against the server.
    fn logged_in(&mut self) {
        if let AttemptStage::LoggingIn(login) = self.take_stage() {
            self.ends += login.elapsed();
        }
        self.enter(self.limits_left());
    }

    /// Sends the request on its connection.
    async fn send(&mut self) -> Result<(), CallError> {
        let AttemptStage::Leased(lease) = &self.stage else { return Ok(()) };
        let limits = self.limits_left();
        if limits.total.is_zero() {
            return Err(self.timed_out());
        }
        let (holder, server, connection) = (self.holder, self.slot.name(), &lease.connection);
        let is_internal = matches!(self.adapter.client, ClientEra::Metamcp);
        let forwarded = self.forwarded_to_server()?;
        let mut request = self
            .adapter
            .outgoing(&self.request, &self.slot, connection)
            .map_err(|source| CallError::Untranslatable(server.clone(), source))?;
        if let Some(traced) = self.observed.traced(&request) {
            request = Cow::Owned(traced);
        }
        let sent = match is_internal {
            true => connection.call_internal(holder, &request, limits).await,
            false => connection.call(holder, &request, limits, forwarded).await,
        };
        let call = sent.map_err(|source| self.failed(source))?;
        if let AttemptStage::Leased(lease) = self.take_stage() {
            self.observed.sent(&self.slot, &lease.connection, &self.request);
            self.stage = AttemptStage::Running { call, lease };
        }
        Ok(())
    }

    /// Returns the headers of the client that the server gets.
    fn forwarded_to_server(&self) -> Result<Option<Arc<ForwardedHeaders>>, CallError> {
        let Some(forwarded) = &self.forwarded else { return Ok(None) };
        let names = self.slot.declared().forward_headers();
        forwarded.for_server(names).map_err(|source| self.failed(source))
    }

    /// Records an event of the server. Its answer is a success for the breaker.
    fn note(&mut self, event: &CallEvent) {
        self.has_begun |= matches!(event, CallEvent::Message(_));
        let CallEvent::Answer(answer) = event else { return };
        if self.request.method() == Some(method::TOOLS_LIST)
            // A list that depends on the headers of a client says nothing about other clients.
            && matches!(self.forwarded_to_server(), Ok(None))
            && let Some(page) = answer.part(MessagePart::Result)
        {
            self.slot.hints().learn(page, self.request.part(MessagePart::Cursor).is_none());
        }
        if let Some(pass) = self.pass.take() {
            pass.succeeded();
        }
    }

    /// Translates the server's answer to the client's era. Returns `None` if the client must answer
    /// a question first, or the server has not finished: [`Attempts::next`] continues.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the client cannot be asked, or the time is over. Nothing follows it.
    pub(super) fn adapt(&mut self, answer: Message) -> Result<Option<Message>, CallError> {
        let AttemptStage::Running { call, lease } = self.take_stage() else {
            return Ok(Some(answer));
        };
        // The request has its answer, so that there is nothing to cancel.
        drop(call);
        let (request, connection) = (&self.request, &lease.connection);
        match self.adapter.incoming(answer, request, &self.slot, connection) {
            Ok(AdaptedAnswer::Final(answer)) => Ok(Some(answer)),
            Ok(AdaptedAnswer::Input(input, pause)) => {
                let left = self.limits_left().total;
                if left.is_zero() {
                    return Err(self.timed_out());
                }
                let input = InputExchange::new(input, connection, pause.min(left));
                self.stage = AttemptStage::AwaitingInput(Box::new(input), lease);
                Ok(None)
            }
            Err(source) => Err(self.unanswered(source)),
        }
    }

    /// Sends the request again with the client's answers.
    fn resend(&mut self) {
        let AttemptStage::AwaitingInput(input, lease) = self.take_stage() else { return };
        let (responses, state) = input.answers();
        self.adapter.answer(&self.request, responses, state);
        // The client's time to answer does not count against the server. Polling does.
        if !responses.is_empty() {
            self.ends += input.elapsed();
        }
        // The messages that the client got stay valid if the request is sent twice.
        self.has_begun = false;
        self.stage = AttemptStage::Leased(lease);
    }

    /// Prepares another attempt after a failure, or returns the error after the last one.
    fn recover(&mut self, error: CallError) -> Result<(), CallError> {
        // The part of an answer that the client has seen cannot be withdrawn.
        let class = match self.has_begun || self.limits_left().total.is_zero() {
            true => FailureClass::Final,
            false => FailureClass::of(&error, || self.is_repeatable()),
        };
        let is_unexecuted =
            matches!(error, CallError::NotConnected(..)) || class == FailureClass::Unexecuted;
        if let Some(successor) = self.slot.successor().filter(|_| is_unexecuted).cloned() {
            let name = self.slot.name();
            tracing::debug!(mcp_server = %name, "request continues on the reloaded server `{name}`");
            // The old server's outcome says nothing about the new one.
            self.pass = None;
            self.slot = successor;
            self.enter(self.limits_left());
            return Ok(());
        }
        let again = retry::decide(self.slot.declared().retry, class, self.is_fresh);
        let Some(stage) = again.and_then(|again| self.try_again(again)) else {
            let incident = error.incident(self.slot.attempts(), self.generation());
            if let Some(pass) = self.pass.take() {
                pass.failed(error.fault(), incident, &error, error.cause());
            }
            self.stage = AttemptStage::Over;
            return Err(error);
        };
        let reason = error.to_record().cause;
        let server = self.slot.name();
        tracing::info!(mcp_server = %server, reason, "request sent to server `{server}` again: {reason}");
        self.stage = stage;
        Ok(())
    }

    /// Returns whether a request that may have been executed can be sent again: it only reads, or
    /// its tool declares that a second call has no further effect.
    fn is_repeatable(&self) -> bool {
        match self.request.method().unwrap_or_default() {
            method::TOOLS_CALL => self.request.string(MessagePart::Name).is_some_and(|tool| {
                // The list that clients got last, or else the one that was read on connecting.
                self.slot.hints().is_repeatable(&tool).unwrap_or_else(|| {
                    self.stage.lease().is_some_and(|lease| lease.connection.is_repeatable(&tool))
                })
            }),
            asked => method::READ_ONLY.contains(&asked),
        }
    }

    /// Returns the first stage of another attempt, if the budget allows one.
    fn try_again(&mut self, again: RetryKind) -> Option<AttemptStage> {
        let pause = self.retries.take(again)?;
        if self.retries.may_start() {
            return Some(self.connecting(pause, self.limits_left()));
        }
        // No start is left for this request, but another client may have started the server.
        self.slot.ready(self.owner.as_ref()).map(AttemptStage::Leased)
    }

    fn take_stage(&mut self) -> AttemptStage {
        std::mem::replace(&mut self.stage, AttemptStage::Over)
    }

    /// Returns the limits for the rest of the request.
    fn limits_left(&self) -> ConnectionLimits {
        let total = self.ends.saturating_duration_since(Instant::now());
        ConnectionLimits { total, ..self.limits }
    }

    fn failed(&self, source: RequestFailure) -> CallError {
        CallError::Failed(self.slot.name().clone(), source)
    }

    fn timed_out(&self) -> CallError {
        self.failed(RequestFailure::Timeout(self.limits.total))
    }

    fn unanswered(&self, source: InputRefusal) -> CallError {
        CallError::Unanswered(self.slot.name().clone(), source)
    }

    /// Returns the generation of the request's connection, if it is on one.
    pub(super) fn generation(&self) -> Option<u64> {
        self.stage.lease().map(|lease| lease.connection.generation())
    }

    /// Returns the request that the server works on.
    pub(super) fn running(&self) -> Option<&PendingRequest> {
        if let AttemptStage::Running { call, .. } = &self.stage { Some(call) } else { None }
    }

    /// Continues after a `pause` as the client's request `retry`.
    pub(super) fn resume(&mut self, retry: Message, pause: Duration) {
        self.request = match &self.stage {
            // The question was that of metamcp, and not of the server.
            AttemptStage::LoggingIn(_) => era::without_answers(&retry, &self.request),
            _ => retry,
        };
        self.ends += pause;
        if let AttemptStage::Running { call, .. } = &mut self.stage {
            call.resume(pause);
        }
    }

    /// Cancels the request because the client does not want the answer. Nothing follows.
    pub(super) fn cancel(&mut self) {
        self.pass = None;
        if let AttemptStage::Running { call, .. } = self.take_stage() {
            call.cancel();
        }
    }
}
