//! Held calls whose servers have asked clients of the modern era a question. A call continues when
//! its client comes back.

use std::{
    convert::Infallible,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::{
    sync::Notify,
    time::{self, Instant},
};

use super::{
    SessionRegistry,
    held_calls::{HeldCallError, HeldCalls},
};
use crate::{
    call::{CallError, Exchange, InputRefusal},
    connection::ServerRequest,
    era::{self, InputRequired, TranslationError},
    protocol::{Message, jsonrpc::MessagePart},
    server_name::ServerName,
};

/// The key of the question. There is only one at a time.
const KEY: &str = "question";

/// A call whose server waits for its client.
struct Held {
    exchange: Box<Exchange>,
    question: ServerRequest,
}

/// All held calls.
#[derive(Default)]
pub(super) struct HeldCallStore {
    parked: Mutex<HeldCalls<Held>>,
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

impl HeldCallStore {
    fn parked(&self) -> MutexGuard<'_, HeldCalls<Held>> {
        // Held only for statements on plain data.
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the calls whose clients do not come back in time. Runs forever.
    pub(super) async fn run_expiry(&self) -> Infallible {
        loop {
            let more = self.more.notified();
            let next = self.parked().next_expiry();
            let expiry = async {
                match next {
                    Some(next) => time::sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = more => continue,
                () = expiry => {}
            }
            let expired = self.parked().expired(Instant::now());
            if !expired.is_empty() {
                tracing::info!(
                    n_calls = expired.len(),
                    "calls whose clients did not come back are given up"
                );
            }
        }
    }

    /// Drops all held calls.
    pub(super) fn clear(&self) {
        let all = self.parked().clear();
        // Without the lock, because the drop notifies the servers.
        drop(all);
    }

    /// Ends the calls to `servers`, because no client can continue them.
    pub(super) fn withdraw(&self, servers: &[ServerName]) {
        let all = self.parked().take_by_server(servers);
        // Without the lock, because this notifies the servers.
        all.into_iter().for_each(|held| held.question.withdraw());
    }

    fn put(&self, held: Held) -> Result<String, CallError> {
        held.exchange.pause();
        let server = held.exchange.server().clone();
        let digest = held.exchange.digest();
        let question = held.question.message().clone();
        let server_max = held.exchange.held_max();
        let put = self.parked().insert(server.clone(), server_max, digest, held, Instant::now());
        // A call without room ends here: its server gets a refusal and a cancellation.
        let full = |_| CallError::Unanswered { server: server.clone(), source: InputRefusal::Full };
        let (state, gone) = put.map_err(full)?;
        if gone.is_some() {
            tracing::info!(mcp_server = %server, "a call whose client did not come back made room");
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
    pub fn hold(
        &self,
        exchange: Box<Exchange>,
        question: ServerRequest,
    ) -> Result<String, CallError> {
        self.shelf.put(Held { exchange, question })
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
        let Some(state) = state.filter(|state| self.shelf.parked().is_known_state(state)) else {
            return Ok(ResumeOutcome::Foreign);
        };
        let now = Instant::now();
        let taken = self.shelf.parked().take(&state, server, &era::digest(retry), now);
        let (Held { mut exchange, question }, since) = taken.map_err(|missed| {
            let source = match missed {
                HeldCallError::Unknown => TranslationError::UnknownState,
                HeldCallError::OtherRequest => TranslationError::OtherRequest,
            };
            CallError::Untranslatable { server: server.clone(), source }
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
