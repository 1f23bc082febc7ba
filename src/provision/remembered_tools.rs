//! The tools that servers had in an earlier run, with their search index. Pure.
//!
//! Each tool is scored by itself: all tools of a large server together match any request.

use std::sync::Arc;

use crate::{
    catalog::Listing,
    config::defaults,
    protocol::list_page::ListItem,
    search::{AnalyzedServer, RankingStrategy, SearchIndex, SearchQuery, Thesaurus},
    server_name::ServerName,
};

/// The tools that servers had in an earlier run, with their search index.
#[derive(Debug)]
pub(super) struct RememberedTools {
    /// The position of each server among those that may be added, with its name and tools.
    servers: Vec<(usize, ServerName, Listing)>,
    index: SearchIndex,
}

impl RememberedTools {
    /// Returns the index of these tools; each server comes with its position.
    pub(super) fn new(servers: Vec<(usize, ServerName, Listing)>, thesaurus: &Thesaurus) -> Self {
        let analyzed: Vec<_> = servers
            .iter()
            .map(|(_, name, tools)| {
                Arc::new(AnalyzedServer::of(name.as_str(), "", tools.iter().map(ListItem::json)))
            })
            .collect();
        let index = SearchIndex::new(&analyzed, thesaurus);
        Self { servers, index }
    }

    /// Returns the first results of a search, each with the position of its server.
    pub(super) fn found(
        &self,
        text: &str,
        strategy: RankingStrategy,
    ) -> Vec<(usize, &ServerName, &ListItem)> {
        let hits = self.index.search(&SearchQuery::new(text, strategy, defaults::SHORTLIST_MAX));
        hits.iter()
            .filter_map(|hit| {
                let (at, name, tools) = self.servers.get(hit.place.server)?;
                Some((*at, name, tools.get(hit.place.tool)?))
            })
            .collect()
    }
}
