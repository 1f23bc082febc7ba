//! The answer to `subscriptions/listen`: a stream that says first what it is told of, then when that
//! happens, until the client closes it or the service stops.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream};
use tokio::time;

use super::super::{Edge, Response, respond};
use crate::{
    era::subscription::{self, Filter},
    protocol::{Message, jsonrpc::Part, sse},
    session::{Next, Passing, Reader},
    view::View,
};

/// Who listens, and to what.
struct Listening {
    edge: Arc<Edge>,
    /// The client's id of the request, as it wrote it.
    id: String,
    stage: Stage,
    reader: Reader,
    /// Lasts as long as the stream.
    _listener: Passing,
}

enum Stage {
    /// A proxy in between may hold the head back until something comes after it.
    Opened(BoxFuture<'static, Filter>),
    /// The servers are being told.
    Settling(BoxFuture<'static, Filter>),
    /// The client was told what it hears of.
    Open(Filter),
    Closed,
}

/// Opens the stream of a client that wants to be told of what is in `asked`.
pub(super) fn open(edge: Arc<Edge>, view: &View, asked: Filter, request: &Message) -> Response {
    let listener = edge.views.listen(view);
    // From now on nothing is missed; what comes before the acknowledgement comes after it.
    let reader = listener.session().read(None);
    let id = request.part(Part::Id).unwrap_or("null").to_owned();
    let (views, view, session) =
        (Arc::clone(&edge.views), view.clone(), Arc::clone(listener.session()));
    let settling = Box::pin(async move { views.honour(&view, &session, &asked).await });
    let stage = Stage::Opened(settling);
    let listening = Listening { edge, id, stage, reader, _listener: listener };
    respond::event_stream(stream::unfold(listening, |mut listening| async move {
        listening.next().await.map(|piece| (piece, listening))
    }))
}

impl Listening {
    /// Returns what goes to the client next; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        let silence = self.edge.views.config().listen.keep_alive;
        let stop = self.edge.stop.clone();
        let is_open = !matches!(self.stage, Stage::Closed);
        let next = tokio::select! {
            next = time::timeout(silence, self.advance()) => next,
            () = stop.cancelled(), if is_open => Ok(self.end()),
        };
        next.unwrap_or(Some(sse::KEEP_ALIVE))
    }

    /// Goes on to the next message.
    ///
    /// # Cancel safety
    ///
    /// Safe: the next call goes on.
    async fn advance(&mut self) -> Option<Bytes> {
        loop {
            match &mut self.stage {
                Stage::Opened(_) => {
                    let stage = std::mem::replace(&mut self.stage, Stage::Closed);
                    if let Stage::Opened(settling) = stage {
                        self.stage = Stage::Settling(settling);
                    }
                    return Some(sse::KEEP_ALIVE);
                }
                Stage::Settling(settling) => {
                    let honoured = settling.await;
                    let first = subscription::acknowledged(&self.id, &honoured);
                    self.stage = Stage::Open(honoured);
                    return Some(sse::encode(&first));
                }
                Stage::Open(honoured) => match self.reader.next().await {
                    Next::Event(_, bytes) => {
                        let message = Message::parse(bytes).ok();
                        if let Some(message) = message.filter(|message| honoured.wants(message)) {
                            let tagged = subscription::tagged(&message, &self.id);
                            return Some(sse::encode(&tagged));
                        }
                    }
                    Next::Closed => return self.end(),
                    Next::Overtaken => {
                        tracing::warn!("a client does not read its stream: it is cut off");
                        return None;
                    }
                },
                Stage::Closed => return None,
            }
        }
    }

    /// Says that nothing comes any more; to a client that waits for the acknowledgement still, that it
    /// is told of nothing. Source: MCP 2026-07-28, "Subscriptions", which comes first.
    fn end(&mut self) -> Option<Bytes> {
        let stage = std::mem::replace(&mut self.stage, Stage::Closed);
        let end = sse::encode(&subscription::ended(&self.id));
        Some(match stage {
            Stage::Opened(_) | Stage::Settling(_) => {
                let nothing = subscription::acknowledged(&self.id, &Filter::default());
                [sse::encode(&nothing), end].concat().into()
            }
            Stage::Open(_) | Stage::Closed => end,
        })
    }
}
