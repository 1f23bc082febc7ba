//! The requests of modern clients that metamcp answers itself: discovery and subscriptions.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::{
    RequestOutcome, View, Views, alias, answer_text, direct, is_shared, passthrough, total_limit,
};
use crate::{
    call::{self, CallError},
    config::defaults,
    connection::SessionOwner,
    era::{self, client_subscription::SubscriptionFilter},
    pool::{ClientDemand, OneShotClient, ServerSlot},
    protocol::{
        Era, LoggingLevel, Message,
        client_meta::SERVER_INFO,
        jsonrpc::MessagePart,
        mcp_apps,
        parameter_headers::HeaderParameter,
        payloads::{self, ServerProfile, method},
        task::TaskCapability,
        version,
    },
    server_name::{self, ServerName},
    session::{EphemeralSession, ServerScope, Session},
};

impl Views {
    /// Answers the modern requests that a view answers itself; `None` for all others.
    pub(super) async fn modern(
        &self,
        view: &View,
        request: &Message,
    ) -> Option<Result<RequestOutcome, CallError>> {
        let method = request.method().unwrap_or_default();
        if method::LEGACY_ONLY.contains(&method) {
            return Some(Err(CallError::UnknownMethod {
                method: method.to_owned(),
                hint: "Protocol version 2026-07-28 has no such method.",
            }));
        }
        if method != method::DISCOVER {
            return None;
        }
        Some(self.discover(view).await.map(|discovery| {
            let result = era::decorate(&discovery.to_string(), method::DISCOVER, None);
            answer_text(request, &result)
        }))
    }

    /// Returns the discovery result of `view`. It is a client's first request, so it does not wait
    /// for a server to start.
    async fn discover(&self, view: &View) -> Result<Value, CallError> {
        let server = match view {
            View::Direct => {
                return Ok(own_discovery(self.direct_capabilities(), direct::INSTRUCTIONS));
            }
            View::Meta => {
                return Ok(own_discovery(self.meta_capabilities(), &self.meta_instructions()));
            }
            View::Passthrough { server, .. } => server,
        };
        let slot = self.declared_slot(server.as_str())?;
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
        let mut capabilities = passthrough::stand_in_capabilities();
        if !is_shared(&slot) {
            payloads::leave_out_notices(&mut capabilities);
        }
        Ok(own_discovery(capabilities, &passthrough::stand_in_instructions(server)))
    }

    /// Returns the profile of a server, if it is connected or connects at once.
    async fn known_profile(&self, slot: &Arc<ServerSlot>) -> Option<ServerProfile> {
        let limits = total_limit(defaults::DISCOVER_TIMEOUT);
        let lease = call::connect(slot, Some(&self.observer), limits).await.ok()?;
        lease.connection.profile().cloned()
    }

    /// Returns the owner that lists are read for. Where each client has its own connection, a modern
    /// client sees the lists of the common observer, since it has no identity.
    pub(super) fn list_owner<'a>(&'a self, session: &'a Session) -> Option<&'a SessionOwner> {
        session.owner().or_else(|| session.is_modern().then_some(&self.observer))
    }

    /// Returns a one-shot client for a server with a connection per client, if this client has no
    /// identity. Its connection lasts until the request is answered.
    pub(super) async fn one_shot_client(
        &self,
        slot: &ServerSlot,
        session: &Session,
    ) -> Option<OneShotClient> {
        let client_meta = session.client_meta().filter(|_| slot.is_per_session())?;
        let one_shot = self.sessions.one_shot_client(&client_meta.capabilities);
        let demand = || ClientDemand { level: client_meta.level, ..ClientDemand::default() };
        // Boxed, to keep the future of other clients small.
        Box::pin(slot.set_demand(Some(one_shot.owner()), demand)).await;
        Some(one_shot)
    }

    /// Makes the server of a request send log messages of `level` while the request runs. Other
    /// clients use the same connection, which has one level.
    pub(super) async fn request_log_level(
        &self,
        session: &Session,
        server: &ServerName,
        level: LoggingLevel,
    ) -> Result<(), CallError> {
        let Some(slot) = self.pool.slot(server.as_str()) else { return Ok(()) };
        let live = slot.live(session.owner());
        // A modern server receives the level with each request.
        if !is_shared(&slot) || live.as_ref().is_some_and(|live| live.era() == Era::Modern) {
            return Ok(());
        }
        let recipient = self.sessions.open_ephemeral(ServerScope::One(server.clone()), Some(level));
        // The server must know the level before it receives the request.
        let _lease = match live {
            Some(_) => None,
            None => Some(call::connect(&slot, session.owner(), self.limits()).await?),
        };
        self.sessions.reconcile(recipient.session(), &slot).await;
        session.set_ephemeral(recipient);
        Ok(())
    }

    /// Returns the arguments of a tool call that its headers must repeat, if the tool's schema was
    /// read.
    pub fn header_parameters(&self, view: &View, request: &Message) -> Vec<HeaderParameter> {
        let is_call = request.method() == Some(method::TOOLS_CALL);
        let tool = is_call.then(|| request.string(MessagePart::Name)).flatten();
        let Some(tool) = tool else { return Vec::new() };
        match view {
            View::Passthrough { server, .. } => {
                let slot = self.pool.slot(server.as_str());
                slot.map(|slot| slot.hints().header_parameters(|known| known == tool))
                    .unwrap_or_default()
            }
            View::Direct => {
                let slot = server_name::split_qualified(&tool)
                    .and_then(|(server, _)| self.pool.slot(server.as_str()));
                let Some(slot) = slot else { return Vec::new() };
                slot.hints().header_parameters(|known| alias::exposed(slot.name(), known) == tool)
            }
            // The meta-tools have none.
            View::Meta => Vec::new(),
        }
    }

    /// Opens the listener of a client of `view`. It receives everything;
    /// [`Views::accept_subscription`] returns the part for the client.
    pub fn listen(&self, view: &View) -> EphemeralSession {
        self.sessions.open_ephemeral(view.scope(), None)
    }

    /// Returns the part of `requested` that a client with `listener` receives, and subscribes to its
    /// resources. Cancel safe: subscriptions last as long as the listener.
    pub async fn accept_subscription(
        &self,
        view: &View,
        listener: &Session,
        requested: &SubscriptionFilter,
    ) -> SubscriptionFilter {
        let (mut honoured, slot) = match view {
            View::Meta => return requested.supported_by(&self.meta_capabilities()),
            View::Direct => (requested.supported_by(&direct::capabilities()), None),
            View::Passthrough { server, .. } => {
                // Events on the connection of one client or one request are not for other clients.
                let slot = self.pool.slot(server.as_str()).filter(|slot| is_shared(slot));
                let Some(slot) = slot else { return SubscriptionFilter::default() };
                let found = self.discover(view).await.unwrap_or_default();
                (requested.supported_by(&found["capabilities"]), Some(slot))
            }
        };
        let resources = self.locate_resources(slot, &requested.uris).await;
        let watching = resources.iter().map(|(slot, uris)| async move {
            let watched = self.watch_uris(listener, slot, uris).await.into_iter();
            // The client knows a page by the URI that is listed.
            let listed = |own: String| match view {
                View::Direct => mcp_apps::exposed(slot.name().as_str(), &own).unwrap_or(own),
                View::Meta | View::Passthrough { .. } => own,
            };
            watched.map(listed).collect::<Vec<_>>()
        });
        honoured.uris = futures_util::future::join_all(watching).await.concat();
        honoured
    }

    /// Returns the servers of these resources, `slot` if it is known, and the URIs there.
    async fn locate_resources(
        &self,
        slot: Option<Arc<ServerSlot>>,
        uris: &[String],
    ) -> Vec<(Arc<ServerSlot>, Vec<String>)> {
        if let Some(slot) = slot {
            return vec![(slot, uris.to_vec())];
        }
        let mut located: BTreeMap<ServerName, (Arc<ServerSlot>, Vec<String>)> = BTreeMap::new();
        let until = Instant::now() + defaults::SUBSCRIBE_TIMEOUT;
        for uri in uris.iter().take(defaults::SUBSCRIPTIONS_MAX) {
            let search = self.locate_resource(uri, None);
            // A known server is found at once, even after the deadline.
            let found = timeout_at(until, search).await.ok().flatten();
            if let Some((slot, own)) = found.filter(|(slot, _)| is_shared(slot)) {
                let resources = located.entry(slot.name().clone()).or_insert((slot, Vec::new()));
                resources.1.push(own);
            }
        }
        located.into_values().collect()
    }

    /// Subscribes to resources of one server, and returns those that it accepted.
    async fn watch_uris(
        &self,
        listener: &Session,
        slot: &Arc<ServerSlot>,
        uris: &[String],
    ) -> Vec<String> {
        if uris.is_empty() {
            return Vec::new();
        }
        let limits = total_limit(defaults::SUBSCRIBE_TIMEOUT);
        // No other request may ever need the connection. A late server is subscribed once it
        // connects.
        if let Ok(lease) = call::connect(slot, None, limits).await
            && let Some(profile) = lease.connection.profile()
            && !has_subscriptions(profile)
        {
            return Vec::new();
        }
        self.sessions.watch_all(listener, slot, uris).await
    }
}

fn has_subscriptions(profile: &ServerProfile) -> bool {
    let capabilities = profile.result.get("capabilities");
    capabilities.is_some_and(|all| all["resources"]["subscribe"] == true)
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

/// Returns metamcp's own discovery result.
fn own_discovery(capabilities: Value, instructions: &str) -> Value {
    json!({
        "supportedVersions": version::SERVED,
        "capabilities": capabilities,
        "instructions": instructions,
        "_meta": { SERVER_INFO: payloads::implementation() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
