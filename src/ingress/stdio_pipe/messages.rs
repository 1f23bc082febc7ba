//! The messages of a client on a pipe, from their arrival to their answers.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{MessageSource, PipeService};
use crate::{
    call_record::ClientName,
    compute_pool::read_in_place,
    config::defaults,
    era::client_subscription::SubscriptionFilter,
    ingress::{
        concurrent_requests::ConcurrentEvent,
        error::{IngressError, quoted_input},
        message_dispatch,
        modern::{self, subscription_stream::ListenRequest},
        reply::AcceptedForms,
    },
    memory_budget::MeteredLine,
    protocol::{
        Batch, Era, Message, MessageKind, RpcError,
        client_meta::{ClientMeta, version_of},
        jsonrpc::MessagePart,
        payloads::method,
        rpc_error::INTERNAL_ERROR,
        version,
    },
    session::{ClientRecord, Session},
};

impl PipeService {
    pub(super) fn handle_line(&mut self, line: MeteredLine) {
        self.n_read += 1;
        match line {
            MeteredLine::Whole(bytes) if Batch::is_batch(&bytes) => self.handle_batch(&bytes),
            MeteredLine::Whole(bytes) => match read_in_place(bytes.len(), || Message::parse(bytes))
            {
                Ok(message) => self.handle_message(message),
                Err(error) => self.refuse(&error.into(), None),
            },
            MeteredLine::Oversized(line) => {
                self.unsent.push(line.refusal(defaults::BODY_BYTES_MAX));
            }
            MeteredLine::Refused(line, exhausted) => {
                self.unsent.push(exhausted.to_rpc().render(line.request_id().as_deref()));
            }
        }
    }

    fn handle_message(&mut self, message: Message) {
        match message.kind() {
            MessageKind::Request if self.waiting.len() >= defaults::PIPE_REQUESTS_MAX => {
                let era = if version_of(&message).is_some() { Era::Modern } else { Era::Legacy };
                self.unsent.push(queue_full(message.part(MessagePart::Id), era));
            }
            MessageKind::Request => {
                self.waiting.push_back(message);
                self.start_waiting();
            }
            MessageKind::Notification if message.method() == Some(method::CANCELLED) => {
                if let Some(id) = message.part(MessagePart::CancelledId) {
                    self.cancel(id);
                }
            }
            MessageKind::Notification | MessageKind::Response => {
                self.undelivered.push_back(message);
                if self.delivering.is_none() {
                    self.deliver_next();
                }
            }
        }
    }

    fn handle_batch(&mut self, bytes: &Bytes) {
        let version = self.session.version().unwrap_or(version::ASSUMED);
        if !version::has_batches(version) {
            return self.refuse(&IngressError::BatchUnsupported(version.to_owned()), None);
        }
        let reading = || Batch::parse(bytes, defaults::BATCH_MESSAGES_MAX);
        let batch = match read_in_place(bytes.len(), reading) {
            Ok(batch) => batch,
            Err(error) => return self.refuse(&error.into(), None),
        };
        if self.n_running() >= defaults::PIPE_REQUESTS_MAX {
            return self.unsent.push(queue_full(None, Era::Legacy));
        }
        let (context, accepts) = (Arc::clone(&self.context), AcceptedForms::events_only());
        let replies =
            message_dispatch::start_batch(context, &self.view, batch, &self.session, accepts, None);
        self.sources.push(MessageSource::Batch(Box::new(replies)).turn());
    }

    fn refuse(&mut self, error: &IngressError, id: Option<&str>) {
        tracing::debug!(%error, "message on a pipe refused: {error}");
        self.unsent.push(error.render(id));
    }

    pub(super) fn start_waiting(&mut self) {
        while self.n_running() < defaults::PIPE_REQUESTS_MAX
            && let Some(request) = self.waiting.pop_front()
        {
            self.start(request);
        }
    }

    fn start(&mut self, request: Message) {
        let is_handshake = request.method() == Some(method::INITIALIZE);
        if let Some(requested) = version_of(&request).filter(|_| !is_handshake) {
            let id = request.part(MessagePart::Id).map(str::to_owned);
            if let Err(error) = self.start_modern(request, &requested) {
                self.refuse(&error, id.as_deref());
            }
            return;
        }
        // A pipe has one session: a second handshake changes nothing.
        if is_handshake && self.session.id().is_none() {
            let client = self.client(message_dispatch::client_name(&request), Era::Legacy);
            self.session = message_dispatch::open_session(
                &self.context,
                &self.view,
                &request,
                self.holder,
                client,
            );
            self.reader = Some(self.session.read(None));
        }
        let session = Arc::clone(&self.session);
        self.run_request(request, &session);
    }

    /// Starts a request of the modern era, which is self-contained.
    fn start_modern(&mut self, request: Message, requested: &str) -> Result<(), IngressError> {
        modern::check_version(Some(requested))?;
        let client_meta = ClientMeta::read(&request)?;
        if request.method() == Some(method::SUBSCRIPTIONS_LISTEN) {
            let filter = SubscriptionFilter::read(&request)?;
            let id = request.part(MessagePart::Id).unwrap_or("null");
            let cancelled = CancellationToken::new();
            self.cancellers.push((id.into(), cancelled.clone()));
            let listening =
                ListenRequest::new(Arc::clone(&self.context), &self.view, filter, &request);
            self.sources.push(MessageSource::Listening(Box::new(listening), cancelled).turn());
            return Ok(());
        }
        let name = ClientName::read(client_meta.client_info.as_deref());
        let client = self.client(name, Era::Modern);
        let session = Session::of_request(self.view.scope(), client_meta, self.holder, client);
        self.run_request(request, &session);
        Ok(())
    }

    /// Returns the client of the pipe; its first request determines its name.
    fn client(&mut self, name: ClientName, era: Era) -> Arc<ClientRecord> {
        let register = self.context.views.sessions().clients();
        Arc::clone(self.client.get_or_insert_with(|| register.attached(name, era)))
    }

    fn run_request(&mut self, request: Message, session: &Arc<Session>) {
        let context = Arc::clone(&self.context);
        let reply = Box::new(message_dispatch::start_request(
            context,
            &self.view,
            request,
            session,
            AcceptedForms::events_only(),
            None,
        ));
        self.cancellers.push((reply.id().into(), reply.canceller()));
        self.running.push(reply);
    }

    pub(super) fn handle_event(&mut self, next: ConcurrentEvent) {
        match next {
            ConcurrentEvent::Message(message) => self.unsent.push(message),
            ConcurrentEvent::Answer { id, message } => {
                self.remove_canceller(&id);
                self.unsent.push(message);
            }
        }
    }

    fn remove_canceller(&mut self, id: &str) {
        if let Some(at) = self.cancellers.iter().position(|(known, _)| **known == *id) {
            self.cancellers.swap_remove(at);
        }
    }

    /// Cancels a request of either era, which then gets no answer.
    fn cancel(&mut self, id: &str) {
        let n_waiting = self.waiting.len();
        self.waiting.retain(|request| request.part(MessagePart::Id) != Some(id));
        let mut matching = self.cancellers.iter().filter(|(known, _)| **known == *id);
        match (matching.next(), matching.next()) {
            (Some((_, canceller)), None) => {
                canceller.cancel();
                self.remove_canceller(id);
            }
            // The request may be in a batch.
            (None, None) if self.waiting.len() < n_waiting || self.session.cancel(id) => {}
            // No cancellation is better than that of the wrong request.
            _ => tracing::debug!(
                "cancellation of request {} ignored: no running request, or more than one, has this id",
                quoted_input(id)
            ),
        }
    }

    pub(super) fn deliver_next(&mut self) {
        self.delivering = self.undelivered.pop_front().map(|message| {
            let (context, view, session) =
                (Arc::clone(&self.context), self.view.clone(), Arc::clone(&self.session));
            Box::pin(
                async move { message_dispatch::deliver(&context, &view, &message, &session).await },
            ) as BoxFuture<'static, ()>
        });
    }
}

fn queue_full(id: Option<&str>, era: Era) -> Bytes {
    let text =
        format!("{} requests of this client are waiting already", defaults::PIPE_REQUESTS_MAX);
    RpcError::new(INTERNAL_ERROR, "CLIENT_TOO_SLOW", text)
        .suggest("Read the answers, and send fewer requests at a time.")
        .for_era(era)
        .render(id)
}
