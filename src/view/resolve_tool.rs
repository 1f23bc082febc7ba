//! Which tool is meant by what somebody calls it.

use std::sync::Arc;

use super::Views;
use crate::{
    catalog::{CatalogSnapshot, KnownServer},
    connection::{ConnectionLimits, SessionOwner},
    meta::{ErrorObject, RequestedTool, ToolId},
    name::ServerName,
    pool::ServerSlot,
    protocol::list_page::{ListItem, ListKind},
    similar_names::nearest,
};

/// How many names of servers an error shows. Ours: a model that sees them all reads none.
const AVAILABLE_MAX: usize = 20;

/// A tool that is there.
#[derive(Clone, Debug)]
pub struct ResolvedTool {
    /// Its server.
    pub slot: Arc<ServerSlot>,
    /// What it is called.
    pub id: ToolId,
    /// Its definition.
    pub item: ListItem,
}

impl Views {
    /// Returns the tool that is meant. Where nothing known is called so, its server is asked for what
    /// `lister` sees.
    ///
    /// # Errors
    ///
    /// [`ErrorObject`] when there is no such server or tool, or the server cannot be asked.
    pub(super) async fn resolve(
        &self,
        lister: Option<&SessionOwner>,
        wanted: &RequestedTool,
        limits: ConnectionLimits,
    ) -> Result<ResolvedTool, ErrorObject> {
        let snapshot = self.catalog.snapshot().await;
        let readings = wanted.readings().map_err(|error| {
            ErrorObject::server_not_named(&error, &called(&snapshot, &wanted.tool, None))
        })?;
        let declared: Vec<(Arc<ServerSlot>, &ToolId)> =
            readings.iter().filter_map(|id| Some((self.pool.slot(&id.server)?, id))).collect();
        let Some((first, _)) = declared.first() else {
            let server = readings.first().map_or("", |id| id.server.as_str());
            return Err(self.no_server(server));
        };
        for (slot, id) in &declared {
            if let Some(item) = snapshot.tool(&id.server, &id.tool) {
                let (slot, id, item) = (Arc::clone(slot), (*id).clone(), item.clone());
                return Ok(ResolvedTool { slot, id, item });
            }
        }
        // It may be new, or nothing is known of its server.
        let listing = self
            .catalog
            .listing(first, ListKind::Tools, lister, limits)
            .await
            .map_err(|error| ErrorObject::from(&*error))?;
        for (slot, id) in &declared {
            if let Some(item) = listing.iter().find(|item| item.key == id.tool) {
                let (slot, id, item) = (Arc::clone(slot), (*id).clone(), item.clone());
                return Ok(ResolvedTool { slot, id, item });
            }
        }
        let id = declared.last().map_or(&readings[0], |(_, id)| id);
        Err(no_tool(&snapshot, &listing, id))
    }

    /// Returns that there is no such server, and which one may be meant.
    pub(super) fn no_server(&self, server: &str) -> ErrorObject {
        let slots = self.pool.slots();
        let similar = nearest(server, slots.keys().map(ServerName::to_string));
        let available: Vec<String> =
            slots.keys().take(AVAILABLE_MAX).map(ServerName::to_string).collect();
        ErrorObject::unknown_server(server, &similar, &available)
    }
}

/// Returns that a server has no such tool: who has one of that very name, or which of its own may be
/// meant.
fn no_tool(snapshot: &CatalogSnapshot, listing: &[ListItem], id: &ToolId) -> ErrorObject {
    let mut similar = called(snapshot, &id.tool, Some(&id.server));
    let own = nearest(&id.tool, listing.iter().map(|item| item.key.clone()));
    similar.extend(own.into_iter().map(|tool| ToolId::new(&id.server, tool).to_string()));
    ErrorObject::unknown_tool(id, &similar)
}

/// How many tools of one name an error shows. Ours.
const CALLED_SO_MAX: usize = 3;

/// Returns the ids of tools that are called `tool`, but for that of the server `except`.
fn called(snapshot: &CatalogSnapshot, tool: &str, except: Option<&str>) -> Vec<String> {
    let servers = snapshot.servers().iter().filter(|server| {
        except != Some(server.name.as_str()) && server.tools.iter().any(|item| item.key == tool)
    });
    let id = |server: &KnownServer| ToolId::new(server.name.as_str(), tool).to_string();
    servers.take(CALLED_SO_MAX).map(id).collect()
}
