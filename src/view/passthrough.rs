//! The view of one server. metamcp forwards everything, except requests about the connection, and
//! list items that clients would reject.

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{
    RequestOutcome, Views, answer, client_exchange, initialize_result, needs_fixed_connection,
    task_requests, total_limit,
};
use crate::{
    call::{self, CallError},
    config::defaults,
    era,
    pool::ServerSlot,
    protocol::{
        Message,
        jsonrpc::MessagePart,
        list_page::ListKind,
        payloads::{ServerProfile, method},
        task::{PREFIX, TaskCapability},
    },
    server_name::ServerName,
    session::Session,
};

impl Views {
    pub(super) async fn passthrough(
        &self,
        session: &Session,
        server: &ServerName,
        is_root: bool,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        let slot = self.declared_slot(server.as_str())?;
        let tasks = task_requests::offered(&slot, session);
        let mut request = Cow::Borrowed(request);
        if request.method() == Some(method::TOOLS_CALL) {
            match tasks {
                TaskCapability::Nothing => {
                    request = Cow::Owned(era::without_tasks(request.into_owned()));
                }
                // Boxed, since most calls do not need it.
                TaskCapability::ById | TaskCapability::All if session.is_modern() => {
                    Box::pin(self.learn_task_tools(&slot, session)).await;
                }
                TaskCapability::ById | TaskCapability::All => {}
            }
        }
        let mut outcome = self.at(slot, session, is_root, &request).await?;
        if let RequestOutcome::Exchange(exchange) = &mut outcome
            && tasks != TaskCapability::Nothing
        {
            exchange.carry_tasks();
        }
        Ok(outcome)
    }

    /// Answers a request at a server, or forwards it.
    async fn at(
        &self,
        slot: Arc<ServerSlot>,
        session: &Session,
        is_root: bool,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        match request.method().unwrap_or_default() {
            method::INITIALIZE => Ok(self.initialize_at(&slot, session, is_root, request).await),
            requested @ (method::LOGGING_SET_LEVEL
            | method::RESOURCES_SUBSCRIBE
            | method::RESOURCES_UNSUBSCRIBE) => {
                if !slot.has_fixed_connection() {
                    return Err(needs_fixed_connection(requested));
                }
                let lease = call::connect(&slot, session.owner(), self.limits()).await?;
                let capability =
                    if requested == method::LOGGING_SET_LEVEL { "logging" } else { "resources" };
                match lease.connection.profile() {
                    // The server itself rejects what it does not support.
                    Some(profile) if !profile.has(capability) => {
                        self.exchange(slot, session, request.clone()).await
                    }
                    _ if requested == method::LOGGING_SET_LEVEL => {
                        self.set_level(session, request).await
                    }
                    _ => self.watch(session, &slot, request).await,
                }
            }
            requested @ (method::DISCOVER | method::SUBSCRIPTIONS_LISTEN) => {
                Err(CallError::UnknownMethod {
                    method: requested.to_owned(),
                    hint: "Use `initialize`, or declare version 2026-07-28 in the request.",
                })
            }
            requested if requested.starts_with(PREFIX) => {
                self.about_task(slot, session, request).await
            }
            requested => {
                let Some(list) = ListKind::of_method(requested) else {
                    return self.exchange(slot, session, request.clone()).await;
                };
                let is_first = request.part(MessagePart::Cursor).is_none();
                // With a connection per client, the server knows whether its client shows pages.
                let shows_pages = slot.is_per_session() || session.client().shows_pages();
                let list_owner = self.list_owner(session);
                let filter =
                    self.catalog.quarantine_filter(&slot, list, list_owner, is_first, shows_pages);
                let one_shot = self.one_shot_client(&slot, session).await;
                let exchange =
                    client_exchange(session, one_shot, slot, request.clone(), self.limits());
                Ok(RequestOutcome::Exchange(Box::new(exchange.with_filter(filter))))
            }
        }
    }

    /// Answers `initialize` with the profile of the server, which had one handshake, with metamcp.
    async fn initialize_at(
        &self,
        slot: &Arc<ServerSlot>,
        session: &Session,
        is_root: bool,
        request: &Message,
    ) -> RequestOutcome {
        let timeout = if is_root { Duration::ZERO } else { defaults::INITIALIZE_TIMEOUT };
        let lease = call::connect(slot, session.owner(), total_limit(timeout)).await.ok();
        let requested = request.string(MessagePart::ProtocolVersion);
        let answer_with = |profile: &ServerProfile| {
            // Without a session, there is no stream for notifications.
            let has_stream = slot.has_fixed_connection() && session.id().is_some();
            let tasks = task_requests::offered(slot, session);
            answer(request, &profile.for_client(requested.as_deref(), has_stream, tasks))
        };
        if let Some(profile) = lease.as_ref().and_then(|lease| lease.connection.profile()) {
            return answer_with(profile);
        }
        // A client that fails to connect may never try again, and a server that is down now may be
        // up for the first call.
        slot.note_omitted();
        self.catalog.mark_stale(slot, session.owner());
        // The profile that it last sent, also to an earlier process.
        if let Some(profile) = self.catalog.profile(slot.name()) {
            return answer_with(&profile);
        }
        let instructions = stand_in_instructions(slot.name());
        let result = initialize_result(session, request, stand_in_capabilities(), &instructions);
        answer(request, &result)
    }
}

/// Returns the likely capabilities of a server without a connection.
pub(super) fn stand_in_capabilities() -> Value {
    json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true },
    })
}

/// Returns the instructions for a server without a connection.
pub(super) fn stand_in_instructions(server: &ServerName) -> String {
    format!("The server `{server}` is not connected yet.")
}
