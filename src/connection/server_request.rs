//! A request that a server sends to its client: to sample, to ask the user, to list roots.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::Connection;
use crate::{
    name::ServerName,
    protocol::{
        Message, RpcError,
        jsonrpc::MessagePart,
        rpc_error::{INTERNAL_ERROR, METHOD_NOT_FOUND},
    },
};

/// A server's request on its way to the client whose request caused it.
///
/// A question that is dropped is refused, so that no server waits for somebody who has gone.
#[derive(Debug)]
pub struct ServerRequest {
    message: Message,
    server: ServerName,
    generation: u64,
    asker: Option<Asker>,
}

/// Who waits for the answer.
#[derive(Debug)]
enum Asker {
    /// A server that has sent a request.
    Server(Weak<Connection>),
    /// The exchange whose server has answered with questions.
    Exchange(oneshot::Sender<ClientReply>),
}

/// What a client does with a question.
#[derive(Debug)]
pub enum ClientReply {
    /// It answers, with a result or an error.
    Answered(Message),
    /// It cannot be asked this.
    Refused,
}

impl ServerRequest {
    pub(super) fn new(message: Message, asker: &Arc<Connection>) -> Self {
        let (server, generation) = (asker.server.clone(), asker.generation);
        let asker = Some(Asker::Server(Arc::downgrade(asker)));
        Self { message, server, generation, asker }
    }

    /// Returns a question that came in an answer of `asker`'s server, and where the client's reaction
    /// to it will be; nothing, if the client goes away.
    pub fn of_answer(
        message: Message,
        asker: &Connection,
    ) -> (Self, oneshot::Receiver<ClientReply>) {
        let (reaction, reacted) = oneshot::channel();
        let (server, generation) = (asker.server.clone(), asker.generation);
        let asker = Some(Asker::Exchange(reaction));
        (Self { message, server, generation, asker }, reacted)
    }

    /// Returns the server that asks.
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// Returns the generation of the connection that it came on: each numbers its questions anew.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the request, with the id that the server chose.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// Has `wrap` take the bytes of the request for others that are equal to them.
    ///
    /// # Errors
    ///
    /// As `wrap`; it is refused then.
    pub(super) fn wrapped<E>(
        mut self,
        wrap: impl FnOnce(Bytes) -> Result<Bytes, E>,
    ) -> Result<Self, E> {
        self.message = self.message.clone().wrapped(wrap)?;
        Ok(self)
    }

    /// Returns the id that the server chose, as JSON text.
    pub fn id(&self) -> &str {
        self.message.part(MessagePart::Id).unwrap_or("null")
    }

    /// Gives the server the client's answer, a result or an error.
    ///
    /// # Cancel safety
    ///
    /// Dropped halfway, the answer is lost.
    pub async fn answer(mut self, answer: &Message) {
        match self.asker.take() {
            Some(Asker::Server(asker)) => {
                if let Some(asker) = asker.upgrade() {
                    asker.deliver(answer.edit([(MessagePart::Id, self.id())])).await;
                }
            }
            Some(Asker::Exchange(asker)) => {
                let _nobody_waits = asker.send(ClientReply::Answered(answer.clone()));
            }
            None => {}
        }
    }

    /// Tells the server that the client did not declare the capability that this takes.
    pub fn refuse(mut self) {
        if let Some(Asker::Exchange(_)) = &self.asker
            && let Some(Asker::Exchange(asker)) = self.asker.take()
        {
            let _nobody_waits = asker.send(ClientReply::Refused);
            return;
        }
        let method = self.message.method().unwrap_or_default();
        self.reject(&RpcError::new(
            METHOD_NOT_FOUND,
            "CAPABILITY_MISSING",
            format!("`{method}`: the client has not declared that it can do this"),
        ));
    }

    /// Tells the server that nobody can answer any more, because it is no longer declared.
    pub fn withdraw(mut self) {
        self.reject(&RpcError::new(
            INTERNAL_ERROR,
            "SERVER_REMOVED",
            format!("`{}` is no longer declared: its clients cannot answer", self.server),
        ));
    }

    /// Lets go of a question that the server has taken back.
    pub fn forget(mut self) {
        self.asker = None;
    }

    fn reject(&mut self, error: &RpcError) {
        // To an exchange, the end of the question says it.
        if let Some(Asker::Server(asker)) = self.asker.take()
            && let Some(asker) = asker.upgrade()
        {
            asker.deliver_soon(error.render(Some(self.id())));
        }
    }
}

impl Drop for ServerRequest {
    fn drop(&mut self) {
        let error = RpcError::new(INTERNAL_ERROR, "CLIENT_GONE", "the client did not answer");
        self.reject(&error);
    }
}
