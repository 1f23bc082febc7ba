//! The view of one server. metamcp forwards everything, except requests about the connection, and
//! list items that clients would reject.

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    subscribe,
    task_requests::{finished_answer, offered},
};
use crate::{
    call::{self, CallError},
    catalog::Catalog,
    config::defaults,
    connection::ConnectionLimits,
    era,
    forward::{
        Forwarder, RequestOutcome, client_exchange, discovery_result, initialize_result, is_shared,
    },
    pool::ServerSlot,
    protocol::{
        Message,
        jsonrpc::MessagePart,
        list_page::ListKind,
        parameter_headers::HeaderParameter,
        payloads::{self, ServerProfile, method},
        task::{self, PREFIX, TaskCapability},
    },
    server_name::ServerName,
    session::Session,
};

/// The view of one server.
#[derive(Debug)]
pub(super) struct PassthroughView {
    pub(super) forwarder: Arc<Forwarder>,
    pub(super) catalog: Arc<Catalog>,
}

impl PassthroughView {
    /// Returns the discovery result of a server, for modern clients. It is a client's first request,
    /// so it does not wait for the server to start. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server is not declared.
    pub(super) async fn discovery(&self, server: &ServerName) -> Result<Value, CallError> {
        let slot = self.forwarder.declared_slot(server.as_str())?;
        let discovery_of = |profile: &ServerProfile| {
            let tasks = if is_shared(&slot) { slot.tasks() } else { TaskCapability::Nothing };
            discovery(profile, is_shared(&slot), tasks)
        };
        if let Some(profile) = self.known_profile(&slot).await {
            return Ok(discovery_of(&profile));
        }
        // Clients are notified when it connects.
        slot.note_omitted();
        // The profile that it last sent, also to an earlier process.
        if let Some(profile) = self.catalog.profile(server) {
            return Ok(discovery_of(&profile));
        }
        self.catalog.mark_stale(&slot, None);
        let mut capabilities = stand_in_capabilities();
        if !is_shared(&slot) {
            payloads::leave_out_notices(&mut capabilities);
        }
        Ok(discovery_result(capabilities, &stand_in_instructions(server)))
    }

    /// Returns the profile of a server, if it is connected or connects at once.
    async fn known_profile(&self, slot: &Arc<ServerSlot>) -> Option<ServerProfile> {
        let limits = ConnectionLimits::of_total(defaults::DISCOVER_TIMEOUT);
        let lease = call::connect(slot, Some(self.forwarder.observer()), limits).await.ok()?;
        lease.connection.profile().cloned()
    }

    /// Returns the arguments of a call of `tool` of `server` that its headers must repeat, if the
    /// tool's schema was read.
    pub(super) fn header_parameters(
        &self,
        server: &ServerName,
        tool: &str,
    ) -> Vec<HeaderParameter> {
        let slot = self.forwarder.pool().slot(server.as_str());
        slot.map(|slot| slot.hints().header_parameters(|known| known == tool)).unwrap_or_default()
    }

    /// Answers a request to `server`, or forwards it. Cancel safe: nothing was sent.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the server is not declared, or cannot serve the request.
    pub(super) async fn handle(
        &self,
        session: &Session,
        server: &ServerName,
        is_root: bool,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        let slot = self.forwarder.declared_slot(server.as_str())?;
        let tasks = offered(&slot, session);
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
                    return Err(subscribe::needs_fixed_connection(requested));
                }
                let lease = call::connect(&slot, session.owner(), self.forwarder.limits()).await?;
                let capability =
                    if requested == method::LOGGING_SET_LEVEL { "logging" } else { "resources" };
                match lease.connection.profile() {
                    // The server itself rejects what it does not support.
                    Some(profile) if !profile.has(capability) => {
                        self.forwarder.forward(slot, session, request.clone()).await
                    }
                    _ if requested == method::LOGGING_SET_LEVEL => {
                        subscribe::set_level(&self.forwarder, session, request).await
                    }
                    _ => subscribe::watch(&self.forwarder, session, &slot, request).await,
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
                    return self.forwarder.forward(slot, session, request.clone()).await;
                };
                let is_first = request.part(MessagePart::Cursor).is_none();
                // With a connection per client, the server knows whether its client shows pages.
                let shows_pages = slot.is_per_session() || session.client().shows_pages();
                let list_owner = self.forwarder.list_owner(session);
                let filter =
                    self.catalog.quarantine_filter(&slot, list, list_owner, is_first, shows_pages);
                let one_shot = self.forwarder.one_shot_client(&slot, session).await;
                let exchange = client_exchange(
                    session,
                    one_shot,
                    slot,
                    request.clone(),
                    self.forwarder.limits(),
                );
                Ok(RequestOutcome::Exchange(Box::new(exchange.with_filter(filter))))
            }
        }
    }

    /// Reads the tools of a server before the first call of a client that supports tasks. A server
    /// up to version 2025-11-25 declares there which tools accept or require tasks.
    async fn learn_task_tools(&self, slot: &Arc<ServerSlot>, session: &Session) {
        let takes_tasks = session
            .client_meta()
            .is_some_and(|client_meta| task::declares_tasks(&client_meta.capabilities));
        if takes_tasks && !slot.hints().is_read() {
            let listing = self.catalog.listing(
                slot,
                ListKind::Tools,
                self.forwarder.list_owner(session),
                self.forwarder.limits(),
            );
            // Without a list, the server itself rejects a wrong call.
            let _is_known = timeout(defaults::LIST_TIMEOUT, listing).await;
        }
    }

    /// Forwards a request about a task to its server, unless metamcp holds the finished task.
    async fn about_task(
        &self,
        slot: Arc<ServerSlot>,
        session: &Session,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        if request.method() == Some(task::LIST) && offered(&slot, session) != TaskCapability::All {
            return Err(CallError::UnknownMethod {
                method: task::LIST.to_owned(),
                hint: "Clients do not see the tasks of others: keep the ids of your own tasks.",
            });
        }
        if !session.is_modern()
            && let Some(answer) = finished_answer(&slot, request)
        {
            return Ok(RequestOutcome::Answer(answer));
        }
        self.forwarder.forward(slot, session, request.clone()).await
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
        let lease =
            call::connect(slot, session.owner(), ConnectionLimits::of_total(timeout)).await.ok();
        let requested = request.string(MessagePart::ProtocolVersion);
        let answer_with = |profile: &ServerProfile| {
            // Without a session, there is no stream for notifications.
            let has_stream = slot.has_fixed_connection() && session.id().is_some();
            let tasks = offered(slot, session);
            RequestOutcome::answer(
                request,
                &profile.for_client(requested.as_deref(), has_stream, tasks),
            )
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
        RequestOutcome::answer(request, &result)
    }
}

/// Returns the likely capabilities of a server without a connection.
fn stand_in_capabilities() -> Value {
    json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true },
    })
}

/// Returns the instructions for a server without a connection.
fn stand_in_instructions(server: &ServerName) -> String {
    format!("The server `{server}` is not connected yet.")
}

/// Returns a server's profile in the form for modern clients. Without a connection that all clients
/// share, it declares no notifications.
fn discovery(profile: &ServerProfile, is_shared: bool, tasks: TaskCapability) -> Value {
    let mut result = profile.for_modern_client(is_shared, tasks);
    if let Some(capabilities) = result.get_mut("capabilities").and_then(Value::as_object_mut) {
        // Log messages belong to a request and need no lasting connection.
        let logging = profile.result.get("capabilities").and_then(|all| all.get("logging"));
        capabilities.extend(logging.map(|logging| ("logging".to_owned(), logging.clone())));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{client_meta::SERVER_INFO, version};

    fn profile() -> ServerProfile {
        let result = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {
                "tools": { "listChanged": true }, "logging": {}, "tasks": {},
                "resources": { "subscribe": true },
            },
            "serverInfo": { "name": "a", "version": "1" }, "instructions": "i", "_meta": { "x": 1 },
        });
        ServerProfile::read(&result.to_string()).expect("a profile")
    }

    #[test]
    fn the_discovery_result_carries_the_handshake_of_the_server_in_the_modern_era() {
        assert_eq!(
            discovery(&profile(), true, TaskCapability::ById),
            json!({
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                "supportedVersions": version::SERVED, "instructions": "i",
                "capabilities": {
                    "tools": { "listChanged": true }, "logging": {},
                    "resources": { "subscribe": true },
                },
                "_meta": { "x": 1, SERVER_INFO: { "name": "a", "version": "1" } },
            })
        );
    }

    #[test]
    fn the_discovery_result_declares_no_change_notifications_if_metamcp_cannot_send_any() {
        assert_eq!(
            discovery(&profile(), false, TaskCapability::Nothing)["capabilities"],
            json!({ "tools": {}, "logging": {}, "resources": {} })
        );
    }
}
