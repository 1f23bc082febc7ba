//! The resolution of a tool's name to the tool.

use std::sync::Arc;

use super::Views;
use crate::{
    catalog::{CatalogSnapshot, KnownServer},
    connection::{ConnectionLimits, SessionOwner},
    pool::ServerSlot,
    protocol::list_page::{ListItem, ListKind},
    server_name::ServerName,
    similar_names::nearest,
    tool::{ErrorObject, RequestedTool, ToolId},
};

/// The most names of servers in an error: a model reads no longer list.
const AVAILABLE_MAX: usize = 20;

/// A tool that exists.
#[derive(Clone, Debug)]
pub struct ResolvedTool {
    /// The server of the tool.
    pub slot: Arc<ServerSlot>,
    /// The id of the tool.
    pub id: ToolId,
    /// The definition of the tool.
    pub item: ListItem,
}

impl Views {
    /// Returns the requested tool. If no known tool has this name, reads the list that `list_owner`
    /// sees from its server.
    ///
    /// # Errors
    ///
    /// [`ErrorObject`] if there is no such server or tool, or the server cannot be asked.
    pub(super) async fn resolve(
        &self,
        list_owner: Option<&SessionOwner>,
        requested: &RequestedTool,
        limits: ConnectionLimits,
    ) -> Result<ResolvedTool, ErrorObject> {
        let snapshot = self.catalog.snapshot().await;
        let readings = requested.readings().map_err(|error| {
            ErrorObject::bad_id(&error, &tools_named(&snapshot, &requested.tool, None))
        })?;
        let declared: Vec<(Arc<ServerSlot>, &ToolId)> =
            readings.iter().filter_map(|id| Some((self.pool.slot(&id.server)?, id))).collect();
        let Some((first, _)) = declared.first() else {
            let server = readings.first().map_or("", |id| id.server.as_str());
            return Err(self.no_server(server));
        };
        let resolved = |slot: &Arc<ServerSlot>, id: &ToolId, item: &ListItem| {
            let (slot, id, item) = (Arc::clone(slot), id.clone(), item.clone());
            ResolvedTool { slot, id, item }
        };
        for (slot, id) in &declared {
            if let Some(item) = snapshot.tool(&id.server, &id.tool) {
                return Ok(resolved(slot, id, item));
            }
        }
        // The tool may be new, or the list of its server unknown.
        let listing = self
            .catalog
            .listing(first, ListKind::Tools, list_owner, limits)
            .await
            .map_err(|error| ErrorObject::from(&*error))?;
        for (slot, id) in &declared {
            if let Some(item) = listing.iter().find(|item| item.key == id.tool) {
                return Ok(resolved(slot, id, item));
            }
        }
        let id = declared.last().map_or(&readings[0], |(_, id)| id);
        Err(no_tool(&snapshot, &listing, id))
    }

    /// Returns the error for an unknown server, with similar names.
    pub(super) fn no_server(&self, server: &str) -> ErrorObject {
        let slots = self.pool.slots();
        let similar = nearest(server, slots.keys().map(ServerName::to_string));
        let available: Vec<String> =
            slots.keys().take(AVAILABLE_MAX).map(ServerName::to_string).collect();
        ErrorObject::unknown_server(server, &similar, &available)
    }
}

/// Returns the error for an unknown tool, with the servers that have a tool of this name, and
/// similar names.
fn no_tool(snapshot: &CatalogSnapshot, listing: &[ListItem], id: &ToolId) -> ErrorObject {
    let mut similar = tools_named(snapshot, &id.tool, Some(&id.server));
    let own = nearest(&id.tool, listing.iter().map(|item| item.key.clone()));
    similar.extend(own.into_iter().map(|tool| ToolId::new(&id.server, tool).to_string()));
    ErrorObject::unknown_tool(id, &similar)
}

/// The most tools of one name in an error.
const SAME_NAME_MAX: usize = 3;

/// Returns the ids of tools with the name `tool`, except that of the server `except`.
fn tools_named(snapshot: &CatalogSnapshot, tool: &str, except: Option<&str>) -> Vec<String> {
    let servers = snapshot.servers().iter().filter(|server| {
        except != Some(server.name.as_str()) && server.tools.iter().any(|item| item.key == tool)
    });
    let id = |server: &KnownServer| ToolId::new(server.name.as_str(), tool).to_string();
    servers.take(SAME_NAME_MAX).map(id).collect()
}
