//! The dispatch of messages from a server to their receivers.
//!
//! | from the server | goes to |
//! |---|---|
//! | an answer | the waiter for its id |
//! | progress | the waiter for the request with its token |
//! | a message on the stream of a request | the waiter for that request |
//! | a log message on a stream that all share | the only client that waits; else it is announced |
//! | a message of metamcp's subscription | is announced, without the subscription id |
//! | a request, on a connection with an owner | a client that waits; else it is announced |
//! | anything else | is announced |

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;

use super::{
    Connection, ConnectionOwner, Link, RequestFailure, ServerRequest, SideMessage, Waiter,
    inbox::InboxFull, mux::SettledRequest,
};
use crate::{
    compute_pool::read_in_place,
    era::server_subscription,
    memory_budget,
    protocol::{
        Era, LoggingLevel, Message, MessageKind, ParseError, RpcError,
        jsonrpc::MessagePart,
        list_page::ListKind,
        ndjson::OversizedLine,
        nesting_depth::DEPTH_MAX,
        payloads::method,
        rpc_error::{INVALID_REQUEST, METHOD_NOT_FOUND},
        version,
    },
};

impl Connection {
    /// Handles bytes that should be one message from the server. `via` is as in [`Self::receive`].
    pub(super) fn receive_message(self: &Arc<Self>, bytes: Bytes, via: Option<u64>) {
        let length = bytes.len();
        let start = bytes.as_ptr();
        let text = bytes.clone();
        match read_in_place(bytes.len(), || Message::parse_lossy(bytes)) {
            // A copy, because the bytes were not UTF-8.
            Ok(message) if message.bytes().as_ptr() != start => {
                let id = message.integer(MessagePart::Id);
                let account = via.and_then(|via| self.account_of(via));
                match message.wrapped(|bytes| memory_budget::counted(account, bytes)) {
                    Ok(message) => self.receive(message, via),
                    Err(exhausted) => {
                        if let Some(id) = id {
                            self.fail(id, RequestFailure::NoMemory(exhausted));
                        }
                    }
                }
            }
            Ok(message) => self.receive(message, via),
            Err(error) => {
                self.note_non_message(&error.to_string(), length);
                if let Link::Stdio(link) = &self.link {
                    link.stderr_tail.keep_stdout(self.quote(&String::from_utf8_lossy(&text)));
                }
                if let ParseError::TooDeep { kind, id } = error {
                    self.refuse_depth(kind, id.as_deref(), via);
                }
            }
        }
    }

    /// Refuses a message of the server that is nested too deep: an answer fails its request, and a
    /// question is answered with an error.
    fn refuse_depth(&self, kind: MessageKind, id: Option<&str>, via: Option<u64>) {
        self.counters.heard.note_unanswering();
        match kind {
            MessageKind::Response => {
                if let Some(id) = id.and_then(|id| id.parse().ok()).or(via) {
                    self.fail(id, RequestFailure::AnswerTooDeep);
                }
            }
            MessageKind::Request => {
                let text = format!("arrays and objects are nested deeper than {DEPTH_MAX} levels");
                let error = RpcError::new(INVALID_REQUEST, "TOO_DEEP", text);
                self.deliver_soon(error.render(id));
            }
            MessageKind::Notification => {}
        }
    }

    /// Handles one message from the server. `via` is the request that owns the stream that it came
    /// on, if the transport has such streams.
    pub(super) fn receive(self: &Arc<Self>, message: Message, via: Option<u64>) {
        match message.kind() {
            MessageKind::Response => return self.receive_answer(message, via),
            MessageKind::Notification => self.receive_notification(message, via),
            MessageKind::Request => self.receive_question(message, via),
        }
        self.counters.heard.note_unanswering();
    }

    fn receive_answer(&self, message: Message, via: Option<u64>) {
        let id = message.integer(MessagePart::Id);
        match self.settle(id) {
            SettledRequest::Wanted(waiter) => {
                self.counters.heard.note_answer();
                let start = message.bytes().as_ptr();
                let message = match waiter.lists_tools {
                    Some(is_first) => self.without_invalid_tools(message, is_first),
                    None => message,
                };
                let is_copy = message.bytes().as_ptr() != start;
                let account = waiter.account;
                let counted = match via {
                    _ if is_copy => {
                        message.wrapped(|bytes| memory_budget::counted(Some(account), bytes))
                    }
                    // It has counted for the caller since its first byte.
                    Some(_) => Ok(message),
                    None => {
                        message.wrapped(|bytes| memory_budget::global().attributed(account, bytes))
                    }
                };
                waiter.inbox.finish(counted.map_err(RequestFailure::NoMemory));
            }
            // The client has gone, and its request was draining.
            SettledRequest::Drained(_) => {
                self.counters.heard.note_answer();
                self.counters.late.fetch_add(1, Ordering::Relaxed);
            }
            SettledRequest::Unknown => {
                self.counters.heard.note_unanswering();
                self.counters.late.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(
                    mcp_server = %self.server, ?id,
                    "server `{}` has answered a request that is over", self.server
                );
            }
        }
    }

    fn receive_notification(&self, message: Message, via: Option<u64>) {
        let (message, via) = match self.era() {
            Era::Legacy => (message, via),
            Era::Modern => match self.receive_subscribed(message, via) {
                Some(rest) => rest,
                None => return,
            },
        };
        match message.method() {
            Some(method::PROGRESS) => {
                let token = message.integer(MessagePart::ProgressToken);
                // A request without a progress token gets no progress.
                let message = SideMessage::Notification(message);
                return self.pass_to_request(message, via, token, |waiter| waiter.has_token);
            }
            Some(method::TOOLS_CHANGED) => self.lists.increment(ListKind::Tools),
            Some(method::PROMPTS_CHANGED) => self.lists.increment(ListKind::Prompts),
            Some(method::RESOURCES_CHANGED) => self.lists.increment(ListKind::Resources),
            Some(method::RESOURCE_UPDATED) => {}
            // The server cancels its question: the notification goes where the question went.
            Some(method::CANCELLED) => {
                if !matches!(self.owner, ConnectionOwner::Shared) {
                    self.pass_to_client(SideMessage::Notification(message), via);
                }
                return;
            }
            Some(method::LOG_MESSAGE) if self.has_one_stream() => {
                // A server without sessions logs only for requests that asked for it. Requests of
                // metamcp itself are ignored, so that they take nothing from a client.
                let is_modern = self.era() == Era::Modern;
                let level = LoggingLevel::of(&message);
                let may_be = |waiter: &Waiter| {
                    !waiter.is_internal
                        && (!is_modern || waiter.level.is_some_and(|least| level >= least))
                };
                let sole = self.mux().sole_request(may_be);
                if sole.is_some() {
                    let message = SideMessage::Notification(message);
                    return self.pass_to_request(message, via, sole, |_| true);
                }
            }
            _ if via.is_some() => {
                let message = SideMessage::Notification(message);
                return self.pass_to_request(message, via, via, |_| true);
            }
            _ => {}
        }
        self.announce(SideMessage::Notification(message));
    }

    /// Handles the messages about metamcp's subscription. Returns those for clients, without the
    /// subscription id, with the request that owns their stream, unless that is the subscription.
    fn receive_subscribed(
        &self,
        message: Message,
        via: Option<u64>,
    ) -> Option<(Message, Option<u64>)> {
        let subscription = server_subscription::subscription(&message);
        match message.method() {
            Some(method::SUBSCRIPTIONS_ACKNOWLEDGED) => {
                let message = SideMessage::Notification(message);
                self.pass_to_request(message, via, subscription.or(via), |_| true);
                None
            }
            // It can only end a subscription. Source: MCP 2026-07-28, "Cancellation".
            Some(method::CANCELLED) => {
                let id = message.integer(MessagePart::CancelledId);
                if let Some(id) = id.filter(|id| self.mux().is_probe(*id)) {
                    self.fail(id, RequestFailure::BrokenOff("the server has ended it".into()));
                }
                None
            }
            _ => match subscription {
                // A subscription that was closed; the next one brings the same notices.
                Some(id) if !self.is_waiting(id) => None,
                Some(_) => Some((server_subscription::untagged(&message), None)),
                None => Some((message, via)),
            },
        }
    }

    /// Returns whether the transport does not show which request a message belongs to.
    fn has_one_stream(&self) -> bool {
        match &self.link {
            Link::Stdio(_) => true,
            Link::Http(link) => link.is_legacy_sse,
        }
    }

    /// Answers a server's request, or passes it to a client.
    fn receive_question(self: &Arc<Self>, request: Message, via: Option<u64>) {
        let id = request.part(MessagePart::Id).unwrap_or("null");
        let name = request.method().unwrap_or_default();
        let server = &self.server;
        let reason = match name {
            // The server must not ask. Source: MCP 2026-07-28, "stdio" and "Streamable HTTP".
            _ if self.era() == Era::Modern => {
                self.question_warning.call_once(|| {
                    tracing::warn!(
                        mcp_server = %server, mcp_method = name,
                        "metamcp refuses `{}` of server `{server}`: its era has no such requests",
                        self.quote(name)
                    );
                });
                let version = version::MODERN;
                format!(
                    "`{name}`: servers of protocol version {version} ask in a result, not with a request"
                )
            }
            method::PING => return self.deliver_soon(Message::response(id, "{}")),
            _ if matches!(self.owner, ConnectionOwner::Shared) => {
                tracing::debug!(
                    mcp_server = %server, mcp_method = name,
                    "metamcp refuses `{}` of server `{server}`: its connection is shared",
                    self.quote(name)
                );
                format!(
                    "`{name}`: this connection is shared and was opened without client capabilities"
                )
            }
            _ => {
                let question = ServerRequest::new(request, self);
                return self.pass_to_client(SideMessage::Question(question), via);
            }
        };
        let error = RpcError::new(METHOD_NOT_FOUND, "METHOD_NOT_FOUND", reason);
        self.deliver_soon(error.render(Some(id)));
    }

    /// Passes a message to the client that has this connection: on the stream of the request that
    /// caused it if that is known, else on that of another one. Without either it is announced. A
    /// request of metamcp itself has no client.
    fn pass_to_client(&self, message: SideMessage, via: Option<u64>) {
        // The stream of an answered request is still read after another client has taken the
        // connection: the message does not concern that client.
        let is_past = via.is_some() && matches!(self.owner, ConnectionOwner::Exclusive);
        let id = {
            let mux = self.mux();
            let has_client = |waiter: &Waiter| !waiter.is_internal;
            let its_own = via.filter(|id| mux.waiter(*id).is_some_and(has_client));
            its_own.or_else(|| if is_past { None } else { mux.any(has_client) })
        };
        match id {
            Some(_) => self.pass_to_request(message, via, id, |_| true),
            None => self.announce(message),
        }
    }

    /// Passes a message to the waiter for request `id`, if `is_for` accepts it. `via` is as in
    /// [`Self::receive`].
    ///
    /// A client that does not take its messages loses its request: it must not block the others on
    /// this connection.
    fn pass_to_request(
        &self,
        message: SideMessage,
        via: Option<u64>,
        id: Option<u64>,
        is_for: impl FnOnce(&Waiter) -> bool,
    ) {
        let server = &self.server;
        let found = id.and_then(|id| {
            let mux = self.mux();
            let waiter = mux.waiter(id).filter(|waiter| is_for(waiter))?;
            Some((id, Arc::clone(&waiter.inbox), waiter.account))
        });
        let Some((id, inbox, account)) = found else {
            tracing::debug!(
                mcp_server = %server, mcp_method = message.message().method(),
                "server `{server}` has sent a message for a request that is over: it is dropped"
            );
            return;
        };
        let counted = match via {
            None => message.wrapped(|bytes| memory_budget::global().attributed(account, bytes)),
            // It has counted for the caller since its first byte.
            Some(_) => Ok(message),
        };
        let pushed = match counted {
            Ok(message) => inbox.push(message),
            // As for a client that does not read: a notification is lost, and a question refused.
            Err(exhausted) => {
                tracing::debug!(
                    mcp_server = %server, %exhausted,
                    "a message of server `{server}` is dropped: {exhausted}"
                );
                Err(InboxFull::Dropped)
            }
        };
        match pushed {
            Ok(()) => {}
            Err(InboxFull::Dropped) => {
                self.counters.overflow.fetch_add(1, Ordering::Relaxed);
            }
            Err(InboxFull::Overrun) => {
                self.counters.cut_off.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(
                    mcp_server = %server,
                    "metamcp abandons a request to server `{server}`: its client does not read"
                );
                inbox.finish(Err(RequestFailure::ClientTooSlow));
                self.cancel_request(id, true, true);
            }
        }
    }

    /// Counts a line that is not a message; the first one is logged as a warning.
    pub(super) fn note_non_message(&self, reason: &str, length: usize) {
        if self.counters.noise.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(
                mcp_server = %self.server, length, reason,
                "server `{}` sends data that is not a JSON-RPC message: {}",
                self.server, self.quote(reason)
            );
        }
    }

    /// Counts a message that is too large, and returns the failure of its request.
    pub(super) fn note_oversized(&self, dropped: &OversizedLine) -> RequestFailure {
        self.note_non_message("it is longer than a message may be", dropped.length);
        RequestFailure::Oversized(dropped.length)
    }
}
