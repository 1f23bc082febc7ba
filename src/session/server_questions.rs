//! Questions of servers that the client has not answered yet.

use bytes::Bytes;

use super::Session;
use crate::{
    config::defaults,
    connection::ServerRequest,
    protocol::{Message, capability, jsonrpc::MessagePart},
    server_name::ServerName,
};

/// A server's question that the client has not answered yet.
#[derive(Debug)]
pub(super) struct PendingServerRequest {
    pub(super) question: ServerRequest,
    /// The running request whose stream carries the question, or none for the GET stream.
    pub(super) request: Option<u64>,
}

impl Session {
    /// Registers a server's question. Returns the message for the stream of the client's running
    /// request `request`, with a new id.
    ///
    /// Refuses a question that the client has not declared support for, and any beyond
    /// [`defaults::SERVER_REQUESTS_MAX`].
    pub fn ask(&self, question: ServerRequest, request: Option<u64>) -> Option<Bytes> {
        if !self.can_be_asked(question.message()) {
            question.refuse();
            return None;
        }
        let mut memory = self.memory();
        if memory.questions.len() >= defaults::SERVER_REQUESTS_MAX {
            drop(memory); // Before the question: dropping that notifies the server.
            return None;
        }
        memory.n_numbers += 1;
        let id = memory.n_numbers;
        let message = question.message().edit([(MessagePart::Id, &id.to_string())]);
        memory.questions.insert(id, PendingServerRequest { question, request });
        Some(message)
    }

    /// Returns the cancellation for the client when `server` withdraws a question on its connection
    /// `generation`. Ids are unique only within one connection of one server.
    pub fn cancel_question(
        &self,
        server: &ServerName,
        generation: u64,
        cancelled: &Message,
    ) -> Option<Bytes> {
        let id = cancelled.part(MessagePart::CancelledId)?;
        let (own_id, pending) = {
            let mut memory = self.memory();
            let is_meant = |pending: &PendingServerRequest| {
                let question = &pending.question;
                question.server() == server
                    && question.generation() == generation
                    && question.id() == id
            };
            let own_id = *memory.questions.iter().find(|(_, pending)| is_meant(pending))?.0;
            (own_id, memory.questions.remove(&own_id)?)
        };
        pending.question.forget();
        Some(cancelled.edit([(MessagePart::CancelledId, &own_id.to_string())]))
    }

    /// Forwards a client's answer to the server that asked. Returns `false` if none did.
    ///
    /// # Cancel safety
    ///
    /// If dropped halfway, the answer is lost.
    pub async fn answer(&self, answer: &Message) -> bool {
        let id = answer.integer(MessagePart::Id);
        let pending = id.and_then(|id| self.memory().questions.remove(&id));
        match pending {
            Some(pending) => {
                pending.question.answer(answer).await;
                true
            }
            None => false,
        }
    }

    /// Returns whether the client has declared support for this question.
    pub fn can_be_asked(&self, question: &Message) -> bool {
        let Some(declared) = self.capabilities() else { return false };
        capability::covers(declared, question)
    }

    /// Sends a question that came without any request of the client.
    pub(super) fn receive_question(&self, question: ServerRequest) {
        // Without a stream, the question is dropped, which refuses it.
        if self.outbox.is_read()
            && let Some(message) = self.ask(question, None)
        {
            self.outbox.push(message);
        }
    }
}
