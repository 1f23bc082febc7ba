//! The start of requests, and the delivery of messages that have no answer.

use std::sync::Arc;

use super::{
    IngressContext,
    batch::BatchReplies,
    error::{IngressError, quoted_input},
    reply::{AcceptedForms, RequestReply},
};
use crate::{
    call_record::ClientName,
    capacity_holder::Holder,
    connection::ForwardedHeaders,
    protocol::{
        Batch, Message, MessageKind, ObjectMembers, jsonrpc::MessagePart, payloads::method,
    },
    session::{ClientRecord, Session},
    view::View,
};

/// The member of a handshake with the client's name and version. Source: MCP, "Lifecycle".
const CLIENT_INFO: &str = "clientInfo";

/// Returns the name that a client gives itself in its handshake.
pub(super) fn client_name(handshake: &Message) -> ClientName {
    let info = handshake.params().and_then(|params| ObjectMembers::one(params, CLIENT_INFO));
    ClientName::read(info)
}

/// Opens the session of a client that sends a handshake. Operators see it as `client`.
pub(super) fn open_session(
    context: &IngressContext,
    view: &View,
    handshake: &Message,
    holder: Holder,
    client: Arc<ClientRecord>,
) -> Arc<Session> {
    let requested = handshake.string(MessagePart::ProtocolVersion);
    let capabilities = handshake.part(MessagePart::Capabilities).unwrap_or("{}");
    let sessions = context.views.sessions();
    sessions.open(view.scope(), requested.as_deref(), capabilities, holder, Some(client))
}

/// Starts a request. Its server may get the headers that are `forwarded`.
pub(super) fn start_request(
    context: Arc<IngressContext>,
    view: &View,
    message: Message,
    session: &Arc<Session>,
    accepts: AcceptedForms,
    forwarded: Option<Arc<ForwardedHeaders>>,
) -> RequestReply {
    let id = message.part(MessagePart::Id).unwrap_or("null").to_owned();
    let token = message.part(MessagePart::ProgressToken).map(str::to_owned);
    let running = session.begin(&id);
    let (views, view, owner) = (Arc::clone(&context.views), view.clone(), Arc::clone(session));
    let outcome = Box::pin(async move { views.handle(&view, &owner, &message, forwarded).await });
    RequestReply::new(context, outcome, (id, token.as_deref()), accepts, running)
}

/// Starts all members of a batch. An invalid member is answered by its error at once.
pub(super) fn start_batch(
    context: Arc<IngressContext>,
    view: &View,
    batch: Batch,
    session: &Arc<Session>,
    accepts: AcceptedForms,
    forwarded: Option<&Arc<ForwardedHeaders>>,
) -> BatchReplies {
    let mut replies = BatchReplies::new(Arc::clone(&context), accepts);
    for member in batch.into_members() {
        match member {
            Ok(message) if message.kind() == MessageKind::Request => {
                let (context, forwarded) = (Arc::clone(&context), forwarded.cloned());
                replies.push(start_request(context, view, message, session, accepts, forwarded));
            }
            Ok(message) => {
                let (context, view, session) =
                    (Arc::clone(&context), view.clone(), Arc::clone(session));
                replies.push_background(async move {
                    deliver(&context, &view, &message, &session).await;
                });
            }
            Err(error) => replies.push_answer(IngressError::from(error).render(None)),
        }
    }
    replies
}

/// Handles a message that has no answer: a notification or a response.
pub(super) async fn deliver(
    context: &IngressContext,
    view: &View,
    message: &Message,
    session: &Session,
) {
    if message.kind() == MessageKind::Response {
        if !session.answer(message).await {
            tracing::debug!("client response ignored: no server request waits for it");
        }
    } else if message.method() != Some(method::CANCELLED) {
        context.views.notify(view, session, message).await;
    } else if let Some(id) = message.part(MessagePart::CancelledId)
        && !session.cancel(id)
    {
        tracing::debug!(
            "cancellation of request {} ignored: no running request, or more than one, has this id",
            quoted_input(id)
        );
    }
}
