//! The dispatch of requests, notifications and cancellations to a server.

use std::{
    borrow::Cow,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use tokio::{sync::oneshot, time};

use super::{
    Connection, ConnectionLimits, ForwardedHeaders, Link, PendingRequest, RequestFailure,
    RequestOrigin, Waiter, mux,
};
use crate::{
    capacity_holder::Holder,
    config::defaults,
    era::{ClientEra, add_client_meta},
    fair_share::QueueTicket,
    protocol::{Era, Message, MessageKind, client_meta, jsonrpc::MessagePart, payloads::method},
};

/// A request in the queue; dropping it leaves the queue, or gives back the place that it got.
struct QueuedRequest<'a> {
    connection: &'a Arc<Connection>,
    ticket: QueueTicket,
    admitted: oneshot::Receiver<u64>,
}

impl Connection {
    /// Sends `request` for `holder` with an id that is unique on the connection. At the bound on
    /// requests in flight it waits its turn, at most for its silence timeout. Cancel safe: a
    /// request that was not sent yet is forgotten. An upstream gets the headers of the client that
    /// are `forwarded`.
    ///
    /// # Errors
    ///
    /// [`RequestFailure`] when the link did not take the request, which was not executed then.
    pub async fn call(
        self: &Arc<Self>,
        holder: Holder,
        request: &Message,
        limits: ConnectionLimits,
        forwarded: Option<Arc<ForwardedHeaders>>,
    ) -> Result<PendingRequest, RequestFailure> {
        self.note_client_use();
        self.start_work(holder, request, RequestOrigin::Client, limits, forwarded).await
    }

    /// Sends a request of metamcp itself, as [`Connection::call`] does. Questions of the server go
    /// to clients, not to this request. Cancel safe likewise.
    ///
    /// # Errors
    ///
    /// As [`Connection::call`].
    pub async fn call_internal(
        self: &Arc<Self>,
        holder: Holder,
        request: &Message,
        limits: ConnectionLimits,
    ) -> Result<PendingRequest, RequestFailure> {
        self.start_work(holder, request, RequestOrigin::Metamcp, limits, None).await
    }

    async fn start_work(
        self: &Arc<Self>,
        holder: Holder,
        request: &Message,
        origin: RequestOrigin,
        limits: ConnectionLimits,
        forwarded: Option<Arc<ForwardedHeaders>>,
    ) -> Result<PendingRequest, RequestFailure> {
        let total_ms = u64::try_from(limits.total.as_millis()).unwrap_or(u64::MAX);
        self.longest_ms.fetch_max(total_ms, Ordering::Relaxed);
        self.start(holder, &self.with_client_meta(request), origin, limits, forwarded).await
    }

    /// Returns the request as a server of the modern era expects it. A request without client data
    /// gets the capabilities of the connection's owner.
    fn with_client_meta<'a>(&self, request: &'a Message) -> Cow<'a, Message> {
        if self.era() == Era::Legacy || client_meta::version_of(request).is_some() {
            return Cow::Borrowed(request);
        }
        let client =
            ClientEra::Legacy { capabilities: self.owner.capabilities().into(), level: None };
        Cow::Owned(add_client_meta(request, &client))
    }

    /// Asks the server about itself. The request is not work: the connection counts as idle
    /// meanwhile.
    pub(super) async fn probe(
        self: &Arc<Self>,
        request: &Message,
        timeout: Duration,
    ) -> Result<Message, RequestFailure> {
        let limits = ConnectionLimits::of_total(timeout);
        let starting = self.start(Holder::SERVICE, request, RequestOrigin::Probe, limits, None);
        starting.await?.finish().await
    }

    /// Assigns an id to `request` and sends it.
    pub(super) async fn start(
        self: &Arc<Self>,
        holder: Holder,
        request: &Message,
        origin: RequestOrigin,
        limits: ConnectionLimits,
        forwarded: Option<Arc<ForwardedHeaders>>,
    ) -> Result<PendingRequest, RequestFailure> {
        debug_assert_eq!(request.kind(), MessageKind::Request, "only requests are called");
        // Parts of a request may come from several messages, none of which was too deep by itself.
        if request.is_too_deep() {
            return Err(RequestFailure::TooDeep);
        }
        let has_token = request.part(MessagePart::ProgressToken).is_some();
        let now = self.since.elapsed();
        let lists_tools = (self.is_stateless() && request.method() == Some(method::TOOLS_LIST))
            .then(|| request.part(MessagePart::Cursor).is_none());
        let level = if self.era() == Era::Modern { client_meta::level_of(request) } else { None };
        let mut call = PendingRequest::new(Arc::clone(self), origin, limits);
        let waiter = Waiter {
            inbox: call.inbox(),
            account: holder.account,
            is_internal: origin != RequestOrigin::Client,
            has_token,
            level,
            lists_tools,
            ends: now + limits.total,
            admitted: None,
        };
        self.expire(now);
        let admitted = match origin {
            RequestOrigin::Client | RequestOrigin::Metamcp => self.mux().admit(holder, waiter),
            RequestOrigin::Probe => Ok(self.mux().probe(waiter)),
        };
        let id = match admitted {
            Ok(id) => id,
            // Boxed: requests that find room need not reserve space for it.
            Err(waiter) => {
                let id = Box::pin(self.queued(holder, waiter, limits)).await?;
                call.restart();
                id
            }
        };
        call.id = id;
        // Checked after the admission: a task that takes the link down either sees the waiter or is
        // seen here.
        if !self.is_live() {
            return Err(RequestFailure::Gone);
        }
        let frame = mux::with_connection_id(request, id);
        // A handshake cannot be cancelled.
        let is_cancellable =
            !matches!(request.method(), Some(method::INITIALIZE | method::DISCOVER));
        call.send(request, frame, is_cancellable, forwarded).await?;
        Ok(call)
    }

    /// Waits until the request of `waiter` is admitted, and returns its id. Cancel safe: a request
    /// that leaves gives its place to the next.
    ///
    /// # Errors
    ///
    /// [`RequestFailure::Saturated`] when its turn does not come within its time limits, or when
    /// too many requests wait and `holder` has the most of them. [`RequestFailure::Gone`] when the
    /// connection ends meanwhile.
    async fn queued(
        self: &Arc<Self>,
        holder: Holder,
        mut waiter: Waiter,
        limits: ConnectionLimits,
    ) -> Result<u64, RequestFailure> {
        let (grant, admitted) = oneshot::channel();
        waiter.admitted = Some(grant);
        let _timer = self.durations.queue_waits.start();
        let (ticket, lost) = self.mux().enqueue(holder, waiter);
        drop(lost);
        let mut queued = QueuedRequest { connection: self, ticket, admitted };
        tokio::select! {
            biased;
            // Another connection may have room.
            () = self.wait_until_gone() => Err(RequestFailure::Gone),
            id = &mut queued.admitted => id.map_err(|_| RequestFailure::Saturated),
            () = time::sleep(limits.silence.min(limits.total)) => Err(RequestFailure::Saturated),
        }
    }

    /// Removes requests that have drained for too long, and draining ones where there is no room.
    /// `now` is the age of the connection.
    pub(super) fn expire(&self, now: Duration) {
        let expired = self.mux().expire(now);
        expired.iter().for_each(|waiter| waiter.inbox.close(true));
    }

    /// Sends an internal request and waits for its answer, as [`PendingRequest::finish`] does.
    /// Dropping it cancels the request at the server.
    ///
    /// # Errors
    ///
    /// As [`Connection::call`] and [`PendingRequest::next`].
    pub async fn ask(
        self: &Arc<Self>,
        request: &Message,
        limits: ConnectionLimits,
    ) -> Result<Message, RequestFailure> {
        let request = match self.era() {
            Era::Legacy => Cow::Borrowed(request),
            Era::Modern => Cow::Owned(add_client_meta(request, &ClientEra::Metamcp)),
        };
        self.call_internal(Holder::SERVICE, &request, limits).await?.finish().await
    }

    /// Sends a notification. Servers of the modern era accept only cancellations, so they are sent
    /// no others. A notification is lost if the server is gone, or does not take it within
    /// [`defaults::SESSION_END_TIMEOUT`]. Cancel safe: the notification is sent or not.
    pub async fn notify(self: &Arc<Self>, notification: &Message) {
        let is_known = match self.era() {
            Era::Legacy => true,
            Era::Modern => notification.method() == Some(method::CANCELLED),
        };
        if is_known {
            self.deliver(notification.bytes().clone()).await;
        }
    }

    /// Sends a message that has no answer, as [`Connection::notify`] does.
    pub(super) async fn deliver(&self, frame: Bytes) {
        if self.is_stateless() {
            return;
        }
        let sending = async {
            match &self.link {
                Link::Stdio(link) => link.send(frame.into(), None).await,
                Link::Http(link) => link.upstream.notify(frame).await,
            }
        };
        let server = &self.server;
        match time::timeout(defaults::SESSION_END_TIMEOUT, sending).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(
                mcp_server = %server, %error,
                "server `{server}` missed a message: {error}"
            ),
            Err(_) => tracing::debug!(
                mcp_server = %server,
                "server `{server}` missed a message: it was too slow"
            ),
        }
    }

    /// Queues a message that has no answer. It is lost only if very many are queued already.
    pub(super) fn deliver_soon(&self, frame: Bytes) {
        if self.is_stateless() {
            return;
        }
        match &self.link {
            Link::Stdio(link) => link.try_send(frame),
            Link::Http(link) => link.try_notify(frame),
        }
    }

    /// Abandons the request `id`. If it was sent, it drains, and the server receives a cancellation.
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
            self.deliver_soon(mux::cancellation(id).bytes().clone());
        }
    }
}

impl Drop for QueuedRequest<'_> {
    fn drop(&mut self) {
        let has_left = self.connection.mux().leave_queue(self.ticket).is_some();
        // If the id was already received, the call gives it back.
        if !has_left && let Ok(id) = self.admitted.try_recv() {
            self.connection.cancel_request(id, true, false);
        }
    }
}
