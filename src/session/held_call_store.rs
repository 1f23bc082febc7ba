//! Held calls whose servers have asked clients of the modern era a question. A call continues when
//! its client comes back.

use std::{
    convert::Infallible,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::Notify, time::Instant};

use super::{
    Session, SessionRegistry,
    held_calls::{HeldCallError, HeldCalls},
    sleep_until,
};
use crate::{
    call::{CallError, Exchange, InputRefusal},
    config::defaults,
    connection::ServerRequest,
    era::{self, InputRequired, TranslationError},
    protocol::{Message, capability, jsonrpc::MessagePart},
    server_name::ServerName,
};

/// The key of the question. There is only one at a time.
const KEY: &str = "question";

/// A call whose server waits for its client.
struct HeldCall {
    exchange: Box<Exchange>,
    question: ServerRequest,
}

#[derive(Default)]
pub(super) struct HeldCallStore {
    calls: Mutex<HeldCalls<HeldCall>>,
    more: Notify,
}

impl fmt::Debug for HeldCallStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldCallStore")
    }
}

/// The outcome of a request with a state.
pub enum ResumeOutcome {
    /// The state was issued elsewhere, and goes to its issuer.
    Foreign,
    /// The call continues.
    Exchange(Box<Exchange>),
    /// The request lacks the answer to the question. Contains the result that asks again.
    Asked(String),
}

/// The outcome of an attempt to hold a call.
pub enum HoldOutcome {
    /// It is held: the result that asks its client, JSON text.
    Held(String),
    /// It has ended, because too many calls are held.
    Failed(CallError),
    /// It goes on. The question is refused, because the client cannot answer it.
    Refused(Box<Exchange>),
}

impl HeldCallStore {
    fn calls(&self) -> MutexGuard<'_, HeldCalls<HeldCall>> {
        // Held only for statements on plain data.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the calls whose clients do not come back in time. Runs forever.
    pub(super) async fn run_expiry(&self) -> Infallible {
        loop {
            let more = self.more.notified();
            let next = self.calls().next_expiry();
            tokio::select! {
                () = more => continue,
                () = sleep_until(next) => {}
            }
            let expired = self.calls().expired(Instant::now());
            if !expired.is_empty() {
                tracing::info!(
                    n_calls = expired.len(),
                    "{} held calls ended: their clients did not answer the servers' questions within {} s",
                    expired.len(),
                    defaults::INPUT_TIMEOUT.as_secs()
                );
            }
        }
    }

    /// Drops all held calls.
    pub(super) fn clear(&self) {
        let all = self.calls().clear();
        // Without the lock, because the drop notifies the servers.
        drop(all);
    }

    /// Ends the calls to `servers`, because no client can continue them.
    pub(super) fn withdraw(&self, servers: &[ServerName]) {
        let all = self.calls().take_by_server(servers);
        // Without the lock, because this notifies the servers.
        all.into_iter().for_each(|call| call.question.withdraw());
    }

    fn insert(&self, call: HeldCall) -> Result<String, CallError> {
        call.exchange.pause();
        let server = call.exchange.server().clone();
        let digest = call.exchange.digest();
        let question = call.question.message().clone();
        let server_max = call.exchange.held_max();
        let held = self.calls().insert(server.clone(), server_max, digest, call, Instant::now());
        // A call without room ends here: its server gets a refusal and a cancellation.
        let full = |_| CallError::Unanswered(server.clone(), InputRefusal::TooManyHeld);
        let (state, dropped) = held.map_err(full)?;
        if dropped.is_some() {
            tracing::info!(mcp_server = %server, "server `{server}`: its oldest held call was dropped to make room for a new one: the client has not answered the server's question");
        }
        self.more.notify_one();
        let state = Some(serde_json::Value::from(state).to_string());
        Ok(InputRequired { questions: vec![(KEY.to_owned(), question)], state }.to_result())
    }
}

impl SessionRegistry {
    /// Holds a call whose server has asked a question. Returns the result that asks the client.
    ///
    /// # Errors
    ///
    /// [`CallError::Unanswered`] if too many calls are held.
    fn hold(&self, exchange: Box<Exchange>, question: ServerRequest) -> Result<String, CallError> {
        self.held_calls.insert(HeldCall { exchange, question })
    }

    /// Holds a call until its modern client answers `question`, if the client can.
    pub fn try_hold(
        &self,
        session: &Session,
        mut exchange: Box<Exchange>,
        question: ServerRequest,
    ) -> HoldOutcome {
        if !session.can_be_asked(question.message()) || !exchange.can_be_held() {
            exchange.note_missing_capability(capability::of(question.message()));
            question.refuse();
            return HoldOutcome::Refused(exchange);
        }
        match self.hold(exchange, question) {
            Ok(result) => HoldOutcome::Held(result),
            Err(error) => HoldOutcome::Failed(error),
        }
    }

    /// Returns whether a call is held under this state.
    pub fn is_held(&self, state: &str) -> bool {
        self.held_calls.calls().is_held(state, Instant::now())
    }

    /// Continues the held call that a request to `server` refers to.
    ///
    /// # Errors
    ///
    /// [`CallError::Untranslatable`] if this process issued the state, and it is expired or belongs
    /// to another request.
    ///
    /// # Cancel safety
    ///
    /// If dropped halfway, the call is lost.
    pub async fn resume(
        &self,
        server: &ServerName,
        retry: &Message,
    ) -> Result<ResumeOutcome, CallError> {
        let state = retry.string(MessagePart::RequestState);
        let Some(state) = state.filter(|state| self.held_calls.calls().is_known_state(state))
        else {
            return Ok(ResumeOutcome::Foreign);
        };
        let now = Instant::now();
        let taken = self.held_calls.calls().take(&state, server, &era::digest(retry), now);
        let (HeldCall { mut exchange, question }, since) = taken.map_err(|missed| {
            let source = match missed {
                HeldCallError::Unknown => TranslationError::UnknownState,
                HeldCallError::OtherRequest => TranslationError::OtherRequest,
            };
            CallError::Untranslatable(server.clone(), source)
        })?;
        let response = era::response(retry, KEY);
        exchange.resume(retry.clone(), now.duration_since(since));
        let Some(response) = response else {
            return self.hold(exchange, question).map(ResumeOutcome::Asked);
        };
        let answer = Message::parse_own(Message::response("0", &response));
        match answer {
            Ok(answer) => question.answer(&answer).await,
            // Unreachable: this is a part of a parsed message.
            Err(_) => drop(question),
        }
        Ok(ResumeOutcome::Exchange(exchange))
    }
}
