//! The directory of the tools of all servers: the resolution of names, and searches.

use std::sync::Arc;

use super::{
    error::ErrorObject,
    found_tools::{FindQuery, FindResult, FoundTool, KnownTools, all_tools},
    tool_id::{RequestedTool, ToolId},
};
use crate::{
    call::CallError,
    capacity_holder::Holder,
    catalog::{Catalog, CatalogSnapshot, KnownServer},
    config::defaults,
    connection::{ConnectionLimits, SessionOwner},
    forward::Forwarder,
    pool::ServerSlot,
    protocol::list_page::{ListItem, ListKind},
    search::{RankingStrategy, RelevanceTerms, SearchHit, SearchPattern, SearchQuery},
    server_name::ServerName,
    similar_names::nearest,
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

/// The most tools of one name in an error.
const SAME_NAME_MAX: usize = 3;

/// The tools of all servers.
#[derive(Debug)]
pub struct ToolDirectory {
    forwarder: Arc<Forwarder>,
    catalog: Arc<Catalog>,
}

impl ToolDirectory {
    /// Returns the directory of the tools that `catalog` knows.
    pub fn new(forwarder: Arc<Forwarder>, catalog: Arc<Catalog>) -> Self {
        Self { forwarder, catalog }
    }

    /// Returns the requested tool. If no known tool has this name, reads the list that `list_owner`
    /// sees from its server.
    ///
    /// # Errors
    ///
    /// [`ErrorObject`] if there is no such server or tool, or the server cannot be asked.
    pub async fn resolve(
        &self,
        list_owner: Option<&SessionOwner>,
        requested: &RequestedTool,
        limits: ConnectionLimits,
    ) -> Result<ResolvedTool, ErrorObject> {
        let snapshot = self.catalog.snapshot().await;
        let readings = requested.readings().map_err(|error| {
            let name = &requested.tool;
            match self.forwarder.pool().slot(name) {
                Some(_) => ErrorObject::server_as_tool(name, &tools_of(&snapshot, name)),
                None => ErrorObject::bad_id(&error, &tools_named(&snapshot, name, None)),
            }
        })?;
        let declared: Vec<(Arc<ServerSlot>, &ToolId)> = readings
            .iter()
            .filter_map(|id| Some((self.forwarder.pool().slot(&id.server)?, id)))
            .collect();
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

    /// Returns the error for a disabled server, or for an unknown one, with similar names.
    pub fn no_server(&self, server: &str) -> ErrorObject {
        if self.forwarder.is_disabled(server) {
            return ErrorObject::disabled_server(server);
        }
        let slots = self.forwarder.pool().slots();
        let similar = nearest(server, slots.keys().map(ServerName::to_string));
        let available: Vec<String> =
            slots.keys().take(AVAILABLE_MAX).map(ServerName::to_string).collect();
        ErrorObject::unknown_server(server, &similar, &available)
    }

    /// Returns the known tools of all servers. Servers with unknown tools are read first, for as
    /// long as [`Catalog::learn`](crate::catalog::Catalog::learn) waits: longest for those that
    /// `sought` is about. Cancel safe.
    pub async fn known_tools(&self, sought: Option<&str>) -> KnownTools {
        let sought = sought.map(RelevanceTerms::of);
        let unread = self.catalog.learn(self.forwarder.limits(), sought.as_ref()).await;
        KnownTools { snapshot: self.catalog.snapshot().await, unread }
    }

    /// Searches the tools in `known`. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the query names an undeclared server, or the compute pool is overloaded.
    pub async fn find(
        &self,
        holder: Holder,
        known: KnownTools,
        request: &FindQuery<'_>,
    ) -> Result<FindResult, CallError> {
        if let Some(server) = request.server {
            self.forwarder.declared_slot(server)?;
        }
        let snapshot = &known.snapshot;
        let only = request.server.map(|server| snapshot.position(server));
        let tools = match (request.text, only) {
            // The server is declared, and its tools are unknown.
            (_, Some(None)) => Vec::new(),
            (Some(text), only) => {
                let strategy =
                    request.strategy.unwrap_or(self.forwarder.peek_config().search.strategy);
                let embedder =
                    self.catalog.embedder().filter(|_| strategy == RankingStrategy::Hybrid);
                let vector = match &embedder {
                    Some(embedder) => embedder.query(text).await,
                    None => None,
                };
                let (text, snapshot) = (text.to_owned(), Arc::clone(snapshot));
                let (offset, limit, is_explained) =
                    (request.offset, request.limit, request.is_explained);
                let n_tools: usize = snapshot.servers().iter().map(|one| one.tools.len()).sum();
                let bytes = n_tools * defaults::SEARCH_BYTES_PER_TOOL;
                let search = self.forwarder.compute(holder, bytes, move |_| {
                    let query = SearchQuery {
                        text: &text,
                        strategy,
                        // A forged cursor may begin anywhere.
                        limit: offset.saturating_add(limit + 1),
                        server: only.flatten(),
                        vector: vector.as_deref(),
                    };
                    let hits = snapshot.search(&query);
                    let shown = |hit: &SearchHit| FoundTool {
                        place: hit.place,
                        score: Some(hit.score),
                        confidence: Some(hit.confidence),
                        explanation: is_explained.then(|| snapshot.explain(&query, hit.place)),
                    };
                    hits.iter().skip(offset).map(shown).collect()
                });
                search.await.map_err(CallError::Overloaded)?
            }
            (None, only) => all_tools(snapshot, only.flatten())
                .skip(request.offset)
                .take(request.limit + 1)
                .map(FoundTool::listed)
                .collect(),
        };
        Ok(known.cut(tools, request.limit))
    }

    /// Returns the tools that match `pattern`. It counts for the service. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the compute pool is overloaded.
    pub async fn grep(
        &self,
        pattern: SearchPattern,
        limit: usize,
    ) -> Result<FindResult, CallError> {
        let known = self.known_tools(None).await;
        let snapshot = Arc::clone(&known.snapshot);
        // The duration depends on the pattern.
        let places = move || snapshot.grep(&pattern, limit + 1);
        let search = self.forwarder.compute(Holder::SERVICE, usize::MAX, move |_| places());
        let places = search.await.map_err(CallError::Overloaded)?;
        Ok(known.cut(places.into_iter().map(FoundTool::listed).collect(), limit))
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

/// Returns the ids of the first known tools of a server.
fn tools_of(snapshot: &CatalogSnapshot, server: &str) -> Vec<String> {
    let known = snapshot.servers().iter().filter(|known| known.name.as_str() == server);
    let tools = known.flat_map(|known| known.tools.iter()).take(SAME_NAME_MAX);
    tools.map(|item| ToolId::new(server, &*item.key).to_string()).collect()
}

/// Returns the ids of tools with the name `tool`, except that of the server `except`.
fn tools_named(snapshot: &CatalogSnapshot, tool: &str, except: Option<&str>) -> Vec<String> {
    let servers = snapshot.servers().iter().filter(|server| {
        except != Some(server.name.as_str()) && server.tools.iter().any(|item| item.key == tool)
    });
    let id = |server: &KnownServer| ToolId::new(server.name.as_str(), tool).to_string();
    servers.take(SAME_NAME_MAX).map(id).collect()
}
