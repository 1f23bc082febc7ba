//! Questions of a modern-era server to a client of the legacy era. Each question becomes a request
//! to the client, and all answers go back together.

use std::{collections::VecDeque, time::Duration};

use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use serde_json::json;
use tokio::time::{self, Instant};

use crate::{
    connection::{ClientReply, Connection, ServerRequest},
    era::InputRequired,
    protocol::{Message, jsonrpc::MessagePart, payloads::method},
};

/// The questions of a server to one client.
pub(super) struct InputExchange {
    unasked: VecDeque<ServerRequest>,
    unanswered: FuturesUnordered<BoxFuture<'static, Answered>>,
    responses: Vec<(String, String)>,
    state: Option<String>,
    /// The earliest time to ask the server again, if it has no question.
    earliest: Instant,
    since: Instant,
}

/// The client's reply to one question.
struct Answered {
    key: String,
    method: String,
    reply: Option<ClientReply>,
}

/// The next step.
pub(super) enum InputStep {
    /// A question to ask the client.
    Ask(Box<ServerRequest>),
    /// All questions are answered.
    Done,
}

/// The reason why a server gets no answer to its question.
#[derive(Debug, thiserror::Error)]
pub enum InputRefusal {
    /// The client has not declared support for the question, or has no stream for it.
    #[error("the client did not declare support for `{0}`, or has no event stream for it")]
    Refused(String),
    /// The server failed because it cannot ask its client.
    #[error("the client did not declare the capability `{0}`, and the server needs it")]
    Undeclared(&'static str),
    /// The client has answered with an error.
    #[error("the client answered `{method}` with {error}")]
    Error {
        /// The method of the question.
        method: String,
        /// The client's error object, as JSON text.
        error: String,
    },
    /// The client has disconnected.
    #[error("the client did not answer `{0}`")]
    Gone(String),
    /// The modern-era client would have to visit a URL, and has not declared support for it.
    #[error("the client did not declare that it can open a URL")]
    UrlNotDeclared,
    /// The server must not ask before it answers this request.
    #[error("the protocol allows no question before the answer to `{0}`")]
    NotAllowed(String),
    /// Too many calls wait for their clients already.
    #[error("too many calls wait for answers of their clients")]
    TooManyHeld,
    /// The server has asked in this maximum number of rounds.
    #[error("the client has answered {0} rounds of questions, the maximum")]
    TooManyRounds(u32),
}

impl InputExchange {
    /// Returns the questions that came over `connection`. Without any, it is done after `pause`.
    pub(super) fn new(input: InputRequired, connection: &Connection, pause: Duration) -> Self {
        let now = Instant::now();
        let (mut unasked, unanswered) = (VecDeque::new(), FuturesUnordered::new());
        for (key, message) in input.questions {
            let method = message.method().unwrap_or_default().to_owned();
            let (question, reply) = ServerRequest::of_answer(message, connection);
            unasked.push_back(question);
            let answered = async move { Answered { key, method, reply: reply.await.ok() } };
            unanswered.push(Box::pin(answered) as BoxFuture<'static, Answered>);
        }
        let earliest = if unasked.is_empty() { now + pause } else { now };
        Self {
            unasked,
            unanswered,
            responses: Vec::new(),
            state: input.state,
            earliest,
            since: now,
        }
    }

    /// Returns the next step. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`InputRefusal`] if a question has no answer in the server's era.
    pub(super) async fn next(&mut self) -> Result<InputStep, InputRefusal> {
        if let Some(question) = self.unasked.pop_front() {
            return Ok(InputStep::Ask(Box::new(question)));
        }
        while let Some(Answered { key, method, reply }) = self.unanswered.next().await {
            self.responses.push((key, response(method, reply)?));
        }
        time::sleep_until(self.earliest).await;
        Ok(InputStep::Done)
    }

    /// Returns the answers by the server's keys, and the state to return to the server.
    pub(super) fn answers(&self) -> (&[(String, String)], Option<&str>) {
        (&self.responses, self.state.as_deref())
    }

    /// Returns the time since the questions came.
    pub(super) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }
}

/// Returns the result for the server, JSON text.
fn response(method: String, reply: Option<ClientReply>) -> Result<String, InputRefusal> {
    let answer: Message = match reply {
        Some(ClientReply::Answered(answer)) => answer,
        Some(ClientReply::Refused) => return Err(InputRefusal::Refused(method)),
        None => return Err(InputRefusal::Gone(method)),
    };
    match (answer.part(MessagePart::Result), answer.part(MessagePart::Error)) {
        (Some(result), _) => Ok(result.to_owned()),
        // A form that was not shown, or was closed, has its own result. Source: MCP 2026-07-28,
        // "Elicitation", response actions.
        _ if method == method::ELICITATION => Ok(json!({ "action": "cancel" }).to_string()),
        (None, error) => Err(InputRefusal::Error { method, error: error.unwrap_or("null").into() }),
    }
}
