//! App pages in the merged view: the routes from a page to its server, and from its calls to tools.

use std::sync::Arc;

use super::Views;
use crate::{
    call::{AttemptOutcome, CallContinuation, CallError, NextAction},
    compute_pool::StopFlag,
    connection::SessionOwner,
    pool::ServerSlot,
    protocol::{Message, mcp_apps},
    server_name::ServerName,
    session::Session,
};

impl Views {
    /// Returns the server of a resource, and its URI there. Cancel safe.
    pub(super) async fn locate_resource(
        &self,
        uri: &str,
        owner: Option<&SessionOwner>,
    ) -> Option<(Arc<ServerSlot>, String)> {
        if let Some(location) = self.locate_page(uri, owner).await {
            return Some(location);
        }
        // A server may list the same URI itself.
        if let Some(found) = self.catalog.server_of_resource(uri, owner, self.limits()).await {
            return Some((self.pool.slot(found.as_str())?, uri.to_owned()));
        }
        // A page need not be listed: a tool may have named it.
        let (server, own) = mcp_apps::split(uri)?;
        Some((self.pool.slot(server)?, own))
    }

    /// Returns the server of a listed page or of a template of pages, and its URI there. `uri` has
    /// the name of the server in front. Cancel safe.
    pub(super) async fn locate_page(
        &self,
        uri: &str,
        owner: Option<&SessionOwner>,
    ) -> Option<(Arc<ServerSlot>, String)> {
        let (server, own) = mcp_apps::split(uri)?;
        let slot = self.pool.slot(server)?;
        let has_it = self.catalog.has_resource(&slot, &own, owner, self.limits()).await;
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
            [server] => self.pool.slot(server.as_str()),
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
