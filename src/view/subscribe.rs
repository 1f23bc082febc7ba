//! The subscriptions of a client to resources, and to log messages of a level.

use std::sync::Arc;

use serde_json::json;

use crate::{
    call::{self, CallError},
    config::defaults,
    forward::{Forwarder, RequestOutcome, is_shared, missing, quoted},
    pool::ServerSlot,
    protocol::{Era, LoggingLevel, Message, jsonrpc::MessagePart, payloads::method},
    server_name::ServerName,
    session::{ServerScope, Session, WatchRefusal},
};

/// Sets the lowest level of log messages that a client receives.
pub(super) async fn set_level(
    forwarder: &Forwarder,
    session: &Session,
    request: &Message,
) -> Result<RequestOutcome, CallError> {
    let name = request.string(MessagePart::Level).ok_or_else(|| missing(request, "level"))?;
    let level = LoggingLevel::named(&name).ok_or_else(|| CallError::UnknownLevel(quoted(&name)))?;
    forwarder.sessions().set_level(session, level).await;
    Ok(RequestOutcome::answer(request, &json!({})))
}

/// Subscribes a client to a resource, or ends its subscription.
pub(super) async fn watch(
    forwarder: &Forwarder,
    session: &Session,
    slot: &Arc<ServerSlot>,
    request: &Message,
) -> Result<RequestOutcome, CallError> {
    let method = request.method().unwrap_or_default();
    if !slot.has_fixed_connection() {
        return Err(needs_fixed_connection(method));
    }
    if session.id().is_none() {
        return Err(CallError::NoSession(method.to_owned()));
    }
    let uri = request.string(MessagePart::Uri).ok_or_else(|| missing(request, "uri"))?;
    if method == method::RESOURCES_UNSUBSCRIBE {
        forwarder.sessions().unwatch(session, slot, &uri).await;
        return Ok(RequestOutcome::answer(request, &json!({})));
    }
    let mut watched = forwarder.sessions().watch(session, slot, &uri).await;
    if watched.is_ok() && slot.live(session.owner()).is_none() {
        // The connection was lost or never made, and no other request may ever make one.
        drop(call::connect(slot, session.owner(), forwarder.limits()).await?);
        watched = forwarder.sessions().watch(session, slot, &uri).await;
    }
    match watched {
        Ok(()) => Ok(RequestOutcome::answer(request, &json!({}))),
        Err(WatchRefusal::ByServer(error)) => {
            let id = request.part(MessagePart::Id).unwrap_or("null");
            Ok(RequestOutcome::Answer(Message::error(id, &error)))
        }
        Err(WatchRefusal::Full) => Err(CallError::TooManyWatched(defaults::SUBSCRIPTIONS_MAX)),
    }
}

/// Makes the server of a request send log messages of `level` while the request runs. Other
/// clients use the same connection, which has one level.
pub(super) async fn request_log_level(
    forwarder: &Forwarder,
    session: &Session,
    server: &ServerName,
    level: LoggingLevel,
) -> Result<(), CallError> {
    let Some(slot) = forwarder.pool().slot(server.as_str()) else { return Ok(()) };
    let live = slot.live(session.owner());
    // A modern server receives the level with each request.
    if !is_shared(&slot) || live.as_ref().is_some_and(|live| live.era() == Era::Modern) {
        return Ok(());
    }
    let recipient =
        forwarder.sessions().open_ephemeral(ServerScope::One(server.clone()), Some(level));
    // The server must know the level before it receives the request.
    let _lease = match live {
        Some(_) => None,
        None => Some(call::connect(&slot, session.owner(), forwarder.limits()).await?),
    };
    forwarder.sessions().reconcile(recipient.session(), &slot).await;
    session.set_ephemeral(recipient);
    Ok(())
}

/// Returns the error for a request that needs a lasting connection to its server.
pub(super) fn needs_fixed_connection(method: &str) -> CallError {
    CallError::UnknownMethod {
        method: method.to_owned(),
        hint: "This server keeps no state: each request to it uses another connection.",
    }
}
