//! Notifications: those that a client sends, and those that it subscribes to.

use std::sync::Arc;

use serde_json::json;

use super::{RequestOutcome, View, Views, answer, missing, needs_fixed_connection, quoted};
use crate::{
    call::{self, CallError},
    config::defaults,
    pool::ServerSlot,
    protocol::{LoggingLevel, Message, jsonrpc::MessagePart, payloads::method},
    session::{Session, WatchRefusal},
};

impl Views {
    /// Forwards a notification that concerns a server and no request in flight. Cancel safe: it is
    /// sent or not.
    pub async fn notify(&self, view: &View, session: &Session, notification: &Message) {
        let is_personal =
            matches!(notification.method(), Some(method::PROGRESS | method::ROOTS_CHANGED));
        if notification.method() == Some(method::INITIALIZED) {
            return;
        }
        for slot in self.pool.slots().values() {
            let is_addressed = match view {
                View::Direct | View::Meta => is_personal,
                View::Passthrough { server, .. } => slot.name() == server,
            };
            // The roots of one client have no meaning on a shared connection.
            if is_addressed
                && slot.has_fixed_connection()
                && (slot.is_per_session() || !is_personal)
                && let Some(connection) = slot.live(session.owner())
            {
                connection.notify(notification).await;
            }
        }
    }

    /// Sets the lowest level of log messages that a client receives.
    pub(super) async fn set_level(
        &self,
        session: &Session,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        let name = request.string(MessagePart::Level).ok_or_else(|| missing(request, "level"))?;
        let level = LoggingLevel::named(&name)
            .ok_or_else(|| CallError::UnknownLevel { level: quoted(&name) })?;
        self.sessions.set_level(session, level).await;
        Ok(answer(request, &json!({})))
    }

    /// Subscribes a client to a resource, or ends its subscription.
    pub(super) async fn watch(
        &self,
        session: &Session,
        slot: &Arc<ServerSlot>,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        let method = request.method().unwrap_or_default();
        if !slot.has_fixed_connection() {
            return Err(needs_fixed_connection(method));
        }
        if session.id().is_none() {
            return Err(CallError::NoSession { method: method.to_owned() });
        }
        let uri = request.string(MessagePart::Uri).ok_or_else(|| missing(request, "uri"))?;
        if method == method::RESOURCES_UNSUBSCRIBE {
            self.sessions.unwatch(session, slot, &uri).await;
            return Ok(answer(request, &json!({})));
        }
        let mut watched = self.sessions.watch(session, slot, &uri).await;
        if watched.is_ok() && slot.live(session.owner()).is_none() {
            // The connection was lost or never made, and no other request may ever make one.
            drop(call::connect(slot, session.owner(), self.limits()).await?);
            watched = self.sessions.watch(session, slot, &uri).await;
        }
        match watched {
            Ok(()) => Ok(answer(request, &json!({}))),
            Err(WatchRefusal::ByServer(error)) => {
                let id = request.part(MessagePart::Id).unwrap_or("null");
                Ok(RequestOutcome::Answer(Message::error(id, &error)))
            }
            Err(WatchRefusal::Full) => {
                Err(CallError::TooManyWatched { max: defaults::SUBSCRIPTIONS_MAX })
            }
        }
    }
}
