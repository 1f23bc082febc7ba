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
    Announcement, Connection, ConnectionOwner, Link, RequestFailure, ServerRequest, SideMessage,
    Waiter, announcement, inbox::InboxFull, mux::SettledRequest,
};
use crate::{
    capacity_holder::Account,
    compute_pool::read_in_place,
    era::server_subscription,
    memory_budget,
    protocol::{
        Era, LoggingLevel, Message, MessageKind, ParseError, RpcError,
        jsonrpc::MessagePart,
        list_page::ListKind,
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
                if let ParseError::TooDeep { shape, id } = error {
                    self.refuse_depth(shape, id.as_deref(), via);
                }
            }
        }
    }

    /// Refuses a message of the server that is nested too deep: an answer fails its request, and a
    /// question is answered with an error.
    fn refuse_depth(&self, shape: MessageKind, id: Option<&str>, via: Option<u64>) {
        self.counters.heard.note_unanswering();
        match shape {
            MessageKind::Response => {
                if let Some(asked) = id.and_then(|id| id.parse().ok()).or(via) {
                    self.fail(asked, RequestFailure::AnswerTooDeep);
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
        match message.shape() {
            MessageKind::Response => return self.answered(message, via),
            MessageKind::Notification => self.notified(message, via),
            MessageKind::Request => self.asked(message, via),
        }
        self.counters.heard.note_unanswering();
    }

    fn answered(&self, message: Message, via: Option<u64>) {
        let id = message.integer(MessagePart::Id);
        let settled = self.settle(id);
        match settled {
            SettledRequest::Unknown => self.counters.heard.note_unanswering(),
            SettledRequest::Wanted(_) | SettledRequest::Drained(_) => self.counters.heard.answer(),
        }
        match settled {
            SettledRequest::Wanted(waiter) => {
                let start = message.bytes().as_ptr();
                let message = match waiter.lists_tools {
                    Some(is_first) => self.screen(message, is_first),
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
                    None => message.wrapped(|bytes| memory_budget::attributed(account, bytes)),
                };
                waiter.inbox.settle(counted.map_err(RequestFailure::NoMemory));
            }
            // The client has gone, and its request was draining.
            SettledRequest::Drained(_) => {
                self.counters.late.fetch_add(1, Ordering::Relaxed);
            }
            SettledRequest::Unknown => {
                self.counters.late.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(mcp_server = %self.server, ?id, "late answer dropped");
            }
        }
    }

    /// Records the answer to request `id`, which no caller waits for any more.
    pub(super) fn drained(&self, id: u64) {
        self.counters.heard.answer();
        if let SettledRequest::Drained(_) = self.settle(Some(id)) {
            self.counters.late.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the account that the answer to request `id` counts for, while a caller waits for it.
    pub(super) fn account_of(&self, id: u64) -> Option<Account> {
        self.mux().waiter(id).map(|waiter| waiter.account)
    }

    /// Ends the wait for request `id`. If it was the last one, wakes the tasks that wait for that.
    fn settle(&self, id: Option<u64>) -> SettledRequest<Waiter> {
        let Some(id) = id else { return SettledRequest::Unknown };
        let (settled, is_idle) = {
            let mut mux = self.mux();
            (mux.settle(id), mux.in_flight() == 0)
        };
        if is_idle {
            self.idle.notify_waiters();
        }
        settled
    }

    fn notified(&self, message: Message, via: Option<u64>) {
        let (message, via) = match self.era() {
            Era::Legacy => (message, via),
            Era::Modern => match self.subscribed(message, via) {
                Some(rest) => rest,
                None => return,
            },
        };
        match message.method() {
            Some(method::PROGRESS) => {
                let token = message.integer(MessagePart::ProgressToken);
                // A request without a progress token gets no progress.
                return self.hand(SideMessage::Notification(message), via, token, |waiter| {
                    waiter.has_token
                });
            }
            Some(method::TOOLS_CHANGED) => self.lists.bump(ListKind::Tools),
            Some(method::PROMPTS_CHANGED) => self.lists.bump(ListKind::Prompts),
            Some(method::RESOURCES_CHANGED) => self.lists.bump(ListKind::Resources),
            Some(method::RESOURCE_UPDATED) => {}
            // The server cancels its question: the notification goes where the question went.
            Some(method::CANCELLED) => {
                if !matches!(self.party, ConnectionOwner::Shared) {
                    self.put(SideMessage::Notification(message), via);
                }
                return;
            }
            Some(method::LOG_MESSAGE) if self.has_one_stream() => {
                // A server without sessions logs only for requests that asked for it. Requests of
                // metamcp itself are ignored, so that they take nothing from a client.
                let is_modern = self.era() == Era::Modern;
                let level = LoggingLevel::of(&message);
                let may_be = |waiter: &Waiter| {
                    !waiter.is_ours
                        && (!is_modern || waiter.level.is_some_and(|least| level >= least))
                };
                let sole = self.mux().sole_request(may_be);
                if sole.is_some() {
                    return self.hand(SideMessage::Notification(message), via, sole, |_| true);
                }
            }
            _ if via.is_some() => {
                return self.hand(SideMessage::Notification(message), via, via, |_| true);
            }
            _ => {}
        }
        self.announce(SideMessage::Notification(message));
    }

    /// Handles the messages about metamcp's subscription. Returns those for clients, without the
    /// subscription id, with the request that owns their stream, unless that is the subscription.
    fn subscribed(&self, message: Message, via: Option<u64>) -> Option<(Message, Option<u64>)> {
        let subscription = server_subscription::subscription(&message);
        match message.method() {
            Some(method::SUBSCRIPTIONS_ACKNOWLEDGED) => {
                self.hand(SideMessage::Notification(message), via, subscription.or(via), |_| true);
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
            Link::Http(link) => link.has_one_stream(),
        }
    }

    /// Answers a server's request, or passes it to a client.
    fn asked(self: &Arc<Self>, request: Message, via: Option<u64>) {
        let id = request.part(MessagePart::Id).unwrap_or("null");
        match request.method() {
            // The server must not ask. Source: MCP 2026-07-28, "stdio" and "Streamable HTTP".
            other if self.era() == Era::Modern => {
                let name = other.unwrap_or_default();
                self.is_asking.call_once(|| {
                    tracing::warn!(
                        mcp_server = %self.server, mcp_method = name,
                        "server asks on a connection of an era without such questions: refused"
                    );
                });
                let error = RpcError::new(
                    METHOD_NOT_FOUND,
                    "METHOD_NOT_FOUND",
                    format!(
                        "`{name}`: servers of protocol version {} ask in a result, not with a request",
                        version::MODERN
                    ),
                );
                self.deliver_soon(error.render(Some(id)));
            }
            Some(method::PING) => self.deliver_soon(Message::response(id, "{}")),
            other if matches!(self.party, ConnectionOwner::Shared) => {
                let name = other.unwrap_or_default();
                tracing::debug!(mcp_server = %self.server, mcp_method = name, "server request refused");
                let error = RpcError::new(
                    METHOD_NOT_FOUND,
                    "METHOD_NOT_FOUND",
                    format!(
                        "`{name}`: this connection is shared and was opened without client capabilities"
                    ),
                );
                self.deliver_soon(error.render(Some(id)));
            }
            _ => self.put(SideMessage::Question(ServerRequest::new(request, self)), via),
        }
    }

    /// Passes a message to the client that has this connection: on the stream of the request that
    /// caused it if that is known, else on that of another one. Without either it is announced. A
    /// request of metamcp itself has no client.
    fn put(&self, aside: SideMessage, via: Option<u64>) {
        // The stream of an answered request is still read after another client has taken the
        // connection: the message does not concern that client.
        let is_past = via.is_some() && matches!(self.party, ConnectionOwner::Exclusive);
        let id = {
            let mux = self.mux();
            let has_client = |waiter: &Waiter| !waiter.is_ours;
            let its_own = via.filter(|id| mux.waiter(*id).is_some_and(has_client));
            its_own.or_else(|| if is_past { None } else { mux.any(has_client) })
        };
        match id {
            Some(_) => self.hand(aside, via, id, |_| true),
            None => self.announce(aside),
        }
    }

    /// Passes a message to the waiter for request `id`, if `is_for` accepts it. `via` is as in
    /// [`Self::receive`].
    ///
    /// A client that does not take its messages loses its request: it must not block the others on
    /// this connection.
    fn hand(
        &self,
        aside: SideMessage,
        via: Option<u64>,
        id: Option<u64>,
        is_for: impl FnOnce(&Waiter) -> bool,
    ) {
        let found = id.and_then(|id| {
            let mux = self.mux();
            let waiter = mux.waiter(id).filter(|waiter| is_for(waiter))?;
            Some((id, Arc::clone(&waiter.inbox), waiter.account))
        });
        let Some((id, inbox, account)) = found else {
            tracing::debug!(
                mcp_server = %self.server, mcp_method = aside.message().method(),
                "notification without owner"
            );
            return;
        };
        let aside = match via {
            None => aside.wrapped(|bytes| memory_budget::attributed(account, bytes)),
            // It has counted for the caller since its first byte.
            Some(_) => Ok(aside),
        };
        let aside = match aside {
            Ok(aside) => aside,
            // As for a client that does not read: a notification is lost, and a question refused.
            Err(exhausted) => {
                self.counters.overflow.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(mcp_server = %self.server, %exhausted, "notification dropped");
                return;
            }
        };
        match inbox.push(aside) {
            Ok(()) => {}
            Err(InboxFull::Dropped) => {
                self.counters.overflow.fetch_add(1, Ordering::Relaxed);
            }
            Err(InboxFull::Overrun) => {
                self.counters.cut_off.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(mcp_server = %self.server, "a client does not read: its request is given up");
                inbox.settle(Err(RequestFailure::Overrun));
                self.cancel_request(id, true, true);
            }
        }
    }

    /// Gives up the request `id`. If it was sent, it drains, and the server is told.
    ///
    /// A child that has not answered it becomes suspect, unless it may be busy with an older
    /// request: many children do one thing at a time, and a caller waits for that request.
    pub(super) fn cancel_request(&self, id: u64, is_cancelled: bool, was_sent: bool) {
        let (inbox, is_idle, is_suspicious) = {
            let mut mux = self.mux();
            let Some(waiter) = mux.waiter(id) else { return };
            let (inbox, ends) = (Arc::clone(&waiter.inbox), waiter.ends);
            // An HTTP upstream answers its requests in parallel.
            let is_suspicious =
                was_sent && self.is_child() && !mux.is_probe(id) && !mux.has_older(id);
            // A stateless request ends with its stream, and does not drain.
            if was_sent && !self.is_stateless() {
                mux.abandon(id, ends);
            } else {
                mux.settle(id);
            }
            (inbox, mux.in_flight() == 0, is_suspicious)
        };
        if is_suspicious {
            self.counters.heard.mark_suspected();
        }
        inbox.close(is_cancelled || !was_sent);
        if is_idle {
            self.idle.notify_waiters();
        }
        if was_sent {
            let params = format!(r#"{{"requestId":{id}}}"#);
            let cancelled = Message::notification(method::CANCELLED, Some(&params));
            self.deliver_soon(cancelled.bytes().clone());
        }
    }

    /// Announces that the lists of this server may differ from those that clients know.
    pub fn announce_lists_changed(&self) {
        for list in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
            if self.profile().is_some_and(|profile| profile.has(list.capability())) {
                let notice = Message::notification(list.notice(), None);
                self.announce_as(announcement::OURS, SideMessage::Notification(notice));
            }
        }
    }

    /// Announces a message that belongs to no request.
    pub(super) fn announce(&self, aside: SideMessage) {
        self.announce_as(self.generation, aside);
    }

    fn announce_as(&self, generation: u64, aside: SideMessage) {
        let owner = match &self.party {
            ConnectionOwner::Owned(owner) => Some(owner.clone()),
            // While no client has the connection, there is no receiver.
            ConnectionOwner::Exclusive => return,
            ConnectionOwner::Shared => None,
        };
        let announcement = Announcement { server: self.server.clone(), generation, owner, aside };
        if self.announcements.try_send(announcement).is_err() {
            self.counters.overflow.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a line that is not a message; the first one is logged as a warning.
    pub(super) fn note_non_message(&self, what: &str, length: usize) {
        if self.counters.noise.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(
                mcp_server = %self.server, length, reason = what,
                "server writes other things than messages to standard output"
            );
        }
    }

    /// Fails the request `id` alone, if a caller still waits for it.
    pub(super) fn fail(&self, id: u64, failure: RequestFailure) {
        if let SettledRequest::Wanted(waiter) = self.settle(Some(id)) {
            waiter.inbox.settle(Err(failure));
        }
    }

    /// Returns whether a caller waits for the answer to request `id`.
    pub(super) fn is_waiting(&self, id: u64) -> bool {
        self.mux().waiter(id).is_some()
    }

    /// Forgets a request that was never sent.
    pub(super) fn forget(&self, id: u64) {
        let _nobody_waits = self.settle(Some(id));
    }

    /// Returns whether the answer to request `id` is still to come, wanted or not.
    pub(super) fn is_open(&self, id: u64) -> bool {
        self.mux().is_open(id)
    }
}
