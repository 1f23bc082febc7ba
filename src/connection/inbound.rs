//! What comes from the server, and to whom it goes.

use std::sync::{Arc, atomic::Ordering};

use super::{Connection, Failure, Link};
use crate::protocol::{
    Message, RpcError, Shape,
    error::METHOD_NOT_FOUND,
    jsonrpc::Part,
    mcp::{List, method},
};

impl Connection {
    /// Takes one message from the server. `via` is the request whose stream it came on, where the
    /// transport has such streams.
    pub(super) fn receive(self: &Arc<Self>, message: Message, via: Option<u64>) {
        self.counters.heard.now();
        match message.shape() {
            Shape::Response => {
                let id = message.integer(Part::Id);
                let waiter = id.and_then(|id| self.mux().remove(id));
                match waiter {
                    Some(waiter) => {
                        self.told_idle();
                        // Fails when the caller has just gone: nobody else wants the answer.
                        let _gone = waiter.answer.send(Ok(message));
                    }
                    None => {
                        self.counters.late.fetch_add(1, Ordering::Relaxed);
                        tracing::debug!(mcp_server = %self.server, ?id, "late answer dropped");
                    }
                }
            }
            Shape::Notification => self.notified(message, via),
            Shape::Request => self.asked(&message),
        }
    }

    fn notified(&self, message: Message, via: Option<u64>) {
        let owner = match message.method() {
            Some(method::PROGRESS) => message.integer(Part::ProgressToken),
            Some(method::TOOLS_CHANGED) => return self.lists.bump(List::Tools),
            Some(method::PROMPTS_CHANGED) => return self.lists.bump(List::Prompts),
            Some(method::RESOURCES_CHANGED) => return self.lists.bump(List::Resources),
            _ => via,
        };
        let mux = self.mux();
        let is_progress = message.method() == Some(method::PROGRESS);
        let waiter = owner.and_then(|id| mux.waiter(id));
        // Progress that nobody asked for has no token to be told under.
        let waiter = waiter.filter(|waiter| waiter.has_token || !is_progress);
        let Some(notifications) = waiter.and_then(|waiter| waiter.notifications.as_ref()) else {
            tracing::debug!(
                mcp_server = %self.server, mcp_method = message.method(), "notification without owner"
            );
            return;
        };
        // A client that does not read must not hold up the others on this connection.
        if notifications.try_send(message).is_err() {
            self.counters.overflow.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Answers a server's request. We offered no capability, so only a ping is in order.
    fn asked(self: &Arc<Self>, request: &Message) {
        let id = request.part(Part::Id).unwrap_or("null");
        let answer = match request.method() {
            Some(method::PING) => Message::response(id, "{}"),
            other => {
                let name = other.unwrap_or_default();
                tracing::debug!(mcp_server = %self.server, mcp_method = name, "server request refused");
                RpcError::new(
                    METHOD_NOT_FOUND,
                    "METHOD_NOT_FOUND",
                    format!("`{name}`: this connection is shared and was opened without client capabilities"),
                )
                .render(Some(id))
            }
        };
        match &self.link {
            // A server that asks faster than it reads loses our answers, nothing else.
            Link::Stdio(link) => link.try_send(answer),
            Link::Http(link) => link.try_notify(answer),
        }
    }

    /// Counts a line that was no message; the first one is worth a warning.
    pub(super) fn noise(&self, what: &str, length: usize) {
        if self.counters.noise.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(
                mcp_server = %self.server, length, reason = what,
                "server writes other things than messages to standard output"
            );
        }
    }

    /// Fails the request `id` alone, if somebody still waits for it.
    pub(super) fn fail(&self, id: u64, failure: Failure) {
        let waiter = self.mux().remove(id);
        if let Some(waiter) = waiter {
            self.told_idle();
            let _gone = waiter.answer.send(Err(failure));
        }
    }

    /// Tells whether somebody waits for the answer to request `id`.
    pub(super) fn is_waiting(&self, id: u64) -> bool {
        self.mux().waiter(id).is_some()
    }

    pub(super) fn forget(&self, id: u64) -> bool {
        let waiter = self.mux().remove(id);
        if let Some(waiter) = &waiter {
            waiter.abandoned.cancel();
            self.told_idle();
        }
        waiter.is_some()
    }
}
