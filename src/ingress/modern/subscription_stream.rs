//! The answer to `subscriptions/listen`: a stream of notifications, after an acknowledgement, until
//! the client closes it or the service stops.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream};
use tokio::time;

use super::super::{IngressContext, Response, error::IngressError, http_response};
use crate::{
    era::client_subscription::{self, SubscriptionFilter},
    protocol::{ByteChunks, Message, jsonrpc::MessagePart, sse},
    session::{EphemeralSession, OutboxItem, OutboxReader},
    view::View,
};

/// An open subscription with its source of messages.
pub(in super::super) struct ListenRequest {
    context: Arc<IngressContext>,
    /// The id of the request in the client's spelling.
    id: String,
    stage: Stage,
    reader: OutboxReader,
    /// The messages that must precede all others.
    queued: VecDeque<Bytes>,
    /// The session that lasts as long as the stream.
    listener: EphemeralSession,
}

enum Stage {
    /// The servers are being informed.
    Subscribing(BoxFuture<'static, SubscriptionFilter>),
    /// The client has received the acknowledgement.
    Open(SubscriptionFilter),
    Closed,
}

/// Opens the stream of a client that subscribes to `filter`.
pub(super) fn open(
    context: Arc<IngressContext>,
    view: &View,
    filter: SubscriptionFilter,
    request: &Message,
) -> Result<Response, IngressError> {
    let listening = ListenRequest::new(Arc::clone(&context), view, filter, request);
    let permit = context.stream_permit(listening.listener.session().holder())?;
    // A proxy may hold back the head until data follows.
    let opened = (Some(ByteChunks::from(sse::KEEP_ALIVE)), permit, listening);
    let pieces = stream::unfold(opened, |(queued, permit, mut listening)| async move {
        if let Some(queued) = queued {
            return Some((queued, (None, permit, listening)));
        }
        let silence = listening.context.views.config().listen.keep_alive;
        let next = tokio::select! {
            next = time::timeout(silence, listening.next()) => next,
            () = permit.evicted(), if !listening.is_ending() => Ok(listening.end()),
        };
        let piece = match next {
            Ok(Some(message)) => {
                permit.touch();
                sse::encode_pieces(message.into())
            }
            Ok(None) => return None,
            Err(_) => sse::KEEP_ALIVE.into(),
        };
        Some((piece, (None, permit, listening)))
    });
    Ok(http_response::event_stream(pieces))
}

impl ListenRequest {
    /// Starts a subscription to `filter`.
    pub(in super::super) fn new(
        context: Arc<IngressContext>,
        view: &View,
        filter: SubscriptionFilter,
        request: &Message,
    ) -> Self {
        let listener = context.views.listen(view);
        // Nothing is missed from now on; earlier events follow the acknowledgement.
        let reader = listener.session().read(None);
        let id = request.part(MessagePart::Id).unwrap_or("null").to_owned();
        let (views, view, session) =
            (Arc::clone(&context.views), view.clone(), Arc::clone(listener.session()));
        let subscribing =
            Box::pin(async move { views.accept_subscription(&view, &session, &filter).await });
        let stage = Stage::Subscribing(subscribing);
        Self { context, id, stage, reader, queued: VecDeque::new(), listener }
    }

    /// Returns the next message for the client; `None` ends the stream. Cancel safe. The next call
    /// continues.
    pub(in super::super) async fn next(&mut self) -> Option<Bytes> {
        if let Some(queued) = self.queued.pop_front() {
            return Some(queued);
        }
        let stop = self.context.stop.clone();
        let is_open = !self.is_ending();
        tokio::select! {
            next = self.advance() => next,
            () = stop.cancelled(), if is_open => self.end(),
        }
    }

    /// Returns whether only messages that are already queued are left.
    fn is_ending(&self) -> bool {
        matches!(self.stage, Stage::Closed)
    }

    /// Advances to the next message. Cancel safe. The next call continues.
    async fn advance(&mut self) -> Option<Bytes> {
        loop {
            match &mut self.stage {
                Stage::Subscribing(subscribing) => {
                    let filter = subscribing.await;
                    let queued = client_subscription::acknowledged(&self.id, &filter);
                    self.stage = Stage::Open(filter);
                    return Some(queued);
                }
                Stage::Open(filter) => match self.reader.next().await {
                    OutboxItem::Event(_, bytes) => {
                        let message = Message::parse_own(bytes).ok();
                        if let Some(message) = message.filter(|message| filter.matches(message)) {
                            return Some(client_subscription::tagged(&message, &self.id));
                        }
                    }
                    OutboxItem::Closed => return self.end(),
                    OutboxItem::Overflow => {
                        tracing::warn!(
                            "subscription closed: the client does not read its messages as fast as they arrive"
                        );
                        return None;
                    }
                },
                Stage::Closed => return None,
            }
        }
    }

    /// Ends the subscription. A client that still waits for the acknowledgement receives an empty
    /// one first. Source: MCP 2026-07-28, "Subscriptions".
    fn end(&mut self) -> Option<Bytes> {
        let stage = std::mem::replace(&mut self.stage, Stage::Closed);
        self.queued.push_back(client_subscription::ended(&self.id));
        if let Stage::Subscribing(_) = stage {
            self.queued.push_front(client_subscription::acknowledged(
                &self.id,
                &SubscriptionFilter::default(),
            ));
        }
        self.queued.pop_front()
    }
}
