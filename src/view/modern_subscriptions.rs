//! The subscriptions of modern clients: one listener for notifications and resources.

use std::{collections::BTreeMap, sync::Arc};

use tokio::time::{Instant, timeout_at};

use super::resource_locator::ResourceLocator;
use crate::{
    call,
    config::defaults,
    connection::ConnectionLimits,
    era::client_subscription::SubscriptionFilter,
    forward::{Forwarder, is_shared},
    pool::ServerSlot,
    protocol::{mcp_apps, payloads::ServerProfile},
    server_name::ServerName,
    session::Session,
};

/// The subscriptions of modern clients.
#[derive(Debug)]
pub(super) struct ModernSubscriptions {
    pub(super) forwarder: Arc<Forwarder>,
    pub(super) resources: ResourceLocator,
}

impl ModernSubscriptions {
    /// Subscribes a client with `listener` to the resources with these URIs, of the server of `slot`
    /// or of all servers. Returns `honoured` with those that were accepted. Cancel safe:
    /// subscriptions last as long as the listener.
    pub(super) async fn accept(
        &self,
        listener: &Session,
        mut honoured: SubscriptionFilter,
        slot: Option<Arc<ServerSlot>>,
        uris: &[String],
    ) -> SubscriptionFilter {
        let is_merged = slot.is_none();
        let resources = self.locate_resources(slot, uris).await;
        let watching = resources.iter().map(|(slot, uris)| async move {
            let watched = self.watch_uris(listener, slot, uris).await.into_iter();
            // The client of the merged view knows a page by the URI that is listed there.
            let listed = |own: String| match is_merged {
                true => mcp_apps::exposed(slot.name().as_str(), &own).unwrap_or(own),
                false => own,
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
            let search = self.resources.locate(uri, None);
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
        let limits = ConnectionLimits::of_total(defaults::SUBSCRIBE_TIMEOUT);
        // No other request may ever need the connection. A late server is subscribed once it
        // connects.
        if let Ok(lease) = call::connect(slot, None, limits).await
            && let Some(profile) = lease.connection.profile()
            && !has_subscriptions(profile)
        {
            return Vec::new();
        }
        self.forwarder.sessions().watch_all(listener, slot, uris).await
    }
}

fn has_subscriptions(profile: &ServerProfile) -> bool {
    let capabilities = profile.result.get("capabilities");
    capabilities.is_some_and(|all| all["resources"]["subscribe"] == true)
}
