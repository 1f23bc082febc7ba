//! The requests that a server sends to its client: sampling, elicitation, roots.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::Connection;
use crate::{
    protocol::{
        Message, RpcError,
        jsonrpc::MessagePart,
        rpc_error::{INTERNAL_ERROR, METHOD_NOT_FOUND},
    },
    server_name::ServerName,
};

/// A server's request on its way to the client that caused it.
///
/// Dropping a question refuses it, so that no server waits for a client that has gone.
#[derive(Debug)]
pub struct ServerRequest {
    message: Message,
    server: ServerName,
    generation: u64,
    asker: Option<Asker>,
}

/// The generation of no connection.
const NO_CONNECTION: u64 = 0;

/// The party that waits for the answer.
#[derive(Debug)]
enum Asker {
    /// The server that sent the request.
    Server(Weak<Connection>),
    /// The exchange that the server answered with questions.
    Exchange(oneshot::Sender<ClientReply>),
}

/// The reaction of a client to a question.
#[derive(Debug)]
pub enum ClientReply {
    /// An answer: a result or an error.
    Answered(Message),
    /// The client cannot be asked this.
    Refused,
}

impl ServerRequest {
    pub(super) fn new(message: Message, connection: &Arc<Connection>) -> Self {
        Self::with(message, connection, Asker::Server(Arc::downgrade(connection)))
    }

    /// Returns a question from an answer on `connection`, and the receiver of the client's reply.
    /// It receives nothing if the client disconnects.
    pub fn of_answer(
        message: Message,
        connection: &Connection,
    ) -> (Self, oneshot::Receiver<ClientReply>) {
        let (sender, reply) = oneshot::channel();
        (Self::with(message, connection, Asker::Exchange(sender)), reply)
    }

    /// Returns a question of metamcp itself on behalf of `server`, and the receiver of the client's
    /// reply. It receives nothing if the client disconnects.
    pub fn of_metamcp(
        message: Message,
        server: ServerName,
    ) -> (Self, oneshot::Receiver<ClientReply>) {
        let (sender, reply) = oneshot::channel();
        let asker = Some(Asker::Exchange(sender));
        (Self { message, server, generation: NO_CONNECTION, asker }, reply)
    }

    fn with(message: Message, connection: &Connection, asker: Asker) -> Self {
        let (server, generation) = (connection.server.clone(), connection.generation);
        Self { message, server, generation, asker: Some(asker) }
    }

    /// Returns the server that asks.
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// Returns whether metamcp itself asks, on behalf of the server.
    pub fn is_of_metamcp(&self) -> bool {
        self.generation == NO_CONNECTION
    }

    /// Returns the generation of its connection: each connection numbers its questions anew.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the request, with the id that the server chose.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// Replaces the bytes of the request by equal ones that `wrap` returns.
    ///
    /// # Errors
    ///
    /// Those of `wrap`; the question is refused then.
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

    /// Gives the server the client's answer, a result or an error. Not cancel safe: the answer is
    /// lost.
    pub async fn answer(mut self, answer: &Message) {
        match self.asker.take() {
            Some(Asker::Server(asker)) => {
                if let Some(asker) = asker.upgrade() {
                    asker.deliver(answer.edit([(MessagePart::Id, self.id())])).await;
                }
            }
            Some(Asker::Exchange(asker)) => {
                let _no_waiter = asker.send(ClientReply::Answered(answer.clone()));
            }
            None => {}
        }
    }

    /// Tells the server that the client did not declare the capability that the question needs.
    pub fn refuse(mut self) {
        let is_exchange = |asker: &mut Asker| matches!(asker, Asker::Exchange(_));
        if let Some(Asker::Exchange(asker)) = self.asker.take_if(is_exchange) {
            let _no_waiter = asker.send(ClientReply::Refused);
            return;
        }
        let method = self.message.method().unwrap_or_default();
        self.reject(&RpcError::new(
            METHOD_NOT_FOUND,
            "CAPABILITY_MISSING",
            format!("`{method}`: the client has not declared this capability"),
        ));
    }

    /// Tells the server that no client can answer, because the server is no longer declared.
    pub fn withdraw(mut self) {
        self.reject(&RpcError::new(
            INTERNAL_ERROR,
            "SERVER_REMOVED",
            format!("server `{}` is no longer declared: its clients cannot answer", self.server),
        ));
    }

    /// Drops a question that the server has cancelled.
    pub fn forget(mut self) {
        self.asker = None;
    }

    fn reject(&mut self, error: &RpcError) {
        // An exchange notices it at the end of the channel.
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
