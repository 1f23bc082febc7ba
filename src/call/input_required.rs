//! What a server of the modern era wants to know before it answers, asked of a client that knows no
//! such answers: each question becomes a request to the client, and the answers go back together.

use std::{collections::VecDeque, time::Duration};

use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use serde_json::json;
use tokio::time::{self, Instant};

use crate::{
    connection::{ClientReply, Connection, ServerRequest},
    era::InputRequired,
    protocol::{Message, jsonrpc::MessagePart, payloads::method},
};

/// Questions of a server to one client.
pub(super) struct InputExchange {
    unasked: VecDeque<ServerRequest>,
    unanswered: FuturesUnordered<BoxFuture<'static, Answered>>,
    responses: Vec<(String, String)>,
    state: Option<String>,
    /// When the server is asked again, where it has no question.
    earliest: Instant,
    since: Instant,
}

struct Answered {
    key: String,
    method: String,
    reaction: Option<ClientReply>,
}

/// What comes next.
pub(super) enum InputStep {
    /// The client is to be asked this.
    Ask(Box<ServerRequest>),
    /// All is answered.
    Done,
}

/// Why a server does not get to know what it wants to.
#[derive(Debug, thiserror::Error)]
pub enum InputRefusal {
    /// The client has not declared that it can be asked, or takes no stream on which it could be.
    #[error("the client cannot be asked for `{method}`")]
    Refused {
        /// What the server asks with.
        method: String,
    },
    /// The server has failed because its client cannot be asked.
    #[error("the client has not declared `{capability}`, without which the server fails")]
    Undeclared {
        /// What it would have to declare.
        capability: &'static str,
    },
    /// The client has answered with an error.
    #[error("the client answered `{method}` with {error}")]
    Error {
        /// What the server asks with.
        method: String,
        /// The client's error object, as JSON text.
        error: String,
    },
    /// The client has gone.
    #[error("the client did not answer `{method}`")]
    Gone {
        /// What the server asks with.
        method: String,
    },
    /// A client of the modern era, which would have to visit an address first, does not do that.
    #[error("the client has not declared that it can be sent to an address")]
    NoVisits,
    /// The server must not ask anything before it answers this.
    #[error("no server may ask anything before it answers `{method}`")]
    OutOfPlace {
        /// What the client has asked for.
        method: String,
    },
    /// Too many calls wait for their clients already.
    #[error("too many calls wait for what their clients are to answer")]
    Full,
    /// The server asks on and on.
    #[error("the server has asked {rounds} times and wants to know still more")]
    TooMany {
        /// How often it has asked.
        rounds: u32,
    },
}

impl InputExchange {
    /// Returns the questions that came over `connection`. One without any is done after a `pause`.
    pub(super) fn new(input: InputRequired, connection: &Connection, pause: Duration) -> Self {
        let now = Instant::now();
        let (mut unasked, unanswered) = (VecDeque::new(), FuturesUnordered::new());
        for (key, message) in input.questions {
            let method = message.method().unwrap_or_default().to_owned();
            let (question, reacted) = ServerRequest::of_answer(message, connection);
            unasked.push_back(question);
            let answered = async move { Answered { key, method, reaction: reacted.await.ok() } };
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

    /// Returns what comes next.
    ///
    /// # Errors
    ///
    /// [`InputRefusal`] when a question has no answer that the server's era knows.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(super) async fn next(&mut self) -> Result<InputStep, InputRefusal> {
        if let Some(question) = self.unasked.pop_front() {
            return Ok(InputStep::Ask(Box::new(question)));
        }
        while let Some(Answered { key, method, reaction }) = self.unanswered.next().await {
            self.responses.push((key, response(method, reaction)?));
        }
        time::sleep_until(self.earliest).await;
        Ok(InputStep::Done)
    }

    /// Returns the answers by the server's keys, and the state that it wants to have back.
    pub(super) fn answers(&self) -> (&[(String, String)], Option<&str>) {
        (&self.responses, self.state.as_deref())
    }

    /// Returns how long it has taken so far.
    pub(super) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }
}

/// Returns the result that the server is to get, JSON text.
fn response(method: String, reaction: Option<ClientReply>) -> Result<String, InputRefusal> {
    let answer: Message = match reaction {
        Some(ClientReply::Answered(answer)) => answer,
        Some(ClientReply::Refused) => return Err(InputRefusal::Refused { method }),
        None => return Err(InputRefusal::Gone { method }),
    };
    match (answer.part(MessagePart::Result), answer.part(MessagePart::Error)) {
        (Some(result), _) => Ok(result.to_owned()),
        // A form that was not shown, or was closed, has a result of its own.
        // Source: MCP 2026-07-28, "Elicitation", response actions.
        _ if method == method::ELICITATION => Ok(json!({ "action": "cancel" }).to_string()),
        (None, error) => Err(InputRefusal::Error { method, error: error.unwrap_or("null").into() }),
    }
}
