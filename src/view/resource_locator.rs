//! The servers of resources in the merged view, also of app pages, and of the calls of pages.

use std::sync::Arc;

use crate::{
    call::{AttemptOutcome, CallContinuation, CallError, NextAction},
    catalog::Catalog,
    compute_pool::StopFlag,
    connection::SessionOwner,
    forward::Forwarder,
    pool::ServerSlot,
    protocol::{Message, mcp_apps},
    server_name::ServerName,
    session::Session,
};

/// The search for the servers of resources.
#[derive(Clone, Debug)]
pub(super) struct ResourceLocator {
    pub(super) forwarder: Arc<Forwarder>,
    pub(super) catalog: Arc<Catalog>,
}

impl ResourceLocator {
    /// Returns the server of a resource, and its URI there. Cancel safe.
    pub(super) async fn locate(
        &self,
        uri: &str,
        owner: Option<&SessionOwner>,
    ) -> Option<(Arc<ServerSlot>, String)> {
        if let Some(location) = self.locate_page(uri, owner).await {
            return Some(location);
        }
        // A server may list the same URI itself.
        if let Some(found) =
            self.catalog.server_of_resource(uri, owner, self.forwarder.limits()).await
        {
            return Some((self.forwarder.pool().slot(found.as_str())?, uri.to_owned()));
        }
        // A page need not be listed: a tool may have named it.
        let (server, own) = mcp_apps::split(uri)?;
        Some((self.forwarder.pool().slot(server)?, own))
    }

    /// Returns the server of a listed page or of a template of pages, and its URI there. `uri` has
    /// the name of the server in front. Cancel safe.
    pub(super) async fn locate_page(
        &self,
        uri: &str,
        owner: Option<&SessionOwner>,
    ) -> Option<(Arc<ServerSlot>, String)> {
        let (server, own) = mcp_apps::split(uri)?;
        let slot = self.forwarder.pool().slot(server)?;
        let has_it = self.catalog.has_resource(&slot, &own, owner, self.forwarder.limits()).await;
        has_it.then_some((slot, own))
    }

    /// Returns the server whose page calls its tool `name`, which clients pass on unchanged.
    /// Returns `None` if pages of several servers may have called it. Cancel safe.
    pub(super) async fn slot_of_page_calling(
        &self,
        session: &Session,
        name: &str,
    ) -> Option<Arc<ServerSlot>> {
        if !session.client().shows_pages() {
            return None;
        }
        match &*self.catalog.snapshot().await.servers_of_page_calling(name) {
            [server] => self.forwarder.pool().slot(server.as_str()),
            _ => None,
        }
    }
}

/// Replaces the URIs in the content of a page by those of the merged view.
pub(super) struct AppPageRead {
    /// The server of the page.
    pub(super) server: ServerName,
}

impl CallContinuation for AppPageRead {
    fn on_outcome(&mut self, outcome: Result<Message, CallError>, _: &StopFlag) -> AttemptOutcome {
        let action = match outcome {
            Ok(answer) => {
                let exposed = mcp_apps::with_exposed_contents(self.server.as_str(), &answer);
                NextAction::Answer(exposed.unwrap_or(answer))
            }
            Err(error) => NextAction::Error(error),
        };
        AttemptOutcome { notices: Vec::new(), action }
    }

    fn may_continue(&self) -> bool {
        false
    }
}
