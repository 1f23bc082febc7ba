//! The search for tools of all servers, by purpose or by pattern, for clients and operators.

use std::{sync::Arc, time::Duration};

use serde::Serialize;
use serde_json::{Value, json};

use super::Views;
use crate::{
    call::CallError,
    capacity_holder::Holder,
    catalog::{CatalogSnapshot, KnownServer, UnreadServer},
    config::defaults,
    meta::describe::DescribedTool,
    protocol::{RpcError, list_page::ListItem},
    redact,
    search::{
        RankingStrategy, RelevanceTerms, ScoreExplanation, SearchHit, SearchPattern, SearchQuery,
        ToolPosition,
    },
    server_name::ServerName,
    tool::ToolId,
};

/// A search for tools.
#[derive(Clone, Debug, Default)]
pub struct FindQuery<'a> {
    /// The purpose of the tool, in words; `None` for all tools.
    pub text: Option<&'a str>,
    /// The only server to search.
    pub server: Option<&'a str>,
    /// The ranking; `None` for the configured one.
    pub strategy: Option<RankingStrategy>,
    /// The number of results to skip.
    pub offset: usize,
    /// The number of results to return.
    pub limit: usize,
    /// Explain each score.
    pub is_explained: bool,
}

/// The known tools of all servers at one moment.
#[derive(Debug)]
pub struct KnownTools {
    /// The snapshot of the catalog.
    pub snapshot: Arc<CatalogSnapshot>,
    /// The servers whose tools are unknown.
    unread: Vec<UnreadServer>,
}

/// The result of a search.
#[derive(Debug)]
pub struct FindResult {
    /// The tools that were searched.
    pub known: KnownTools,
    /// The tools, best first; without a query in the order of their servers.
    pub tools: Vec<FoundTool>,
    /// There are more results.
    pub has_more: bool,
}

/// A tool that was found.
#[derive(Debug)]
pub struct FoundTool {
    /// The position in the snapshot.
    pub place: ToolPosition,
    /// The score, in a unit of the ranking; `None` without a query.
    pub score: Option<f64>,
    /// The share of the query that the tool accounts for, from 0 to 1; at most
    /// [`defaults::CONFIDENCE_MAX_UNREAD`] while servers are still being read.
    pub confidence: Option<f64>,
    /// The parts of the score, if requested.
    pub explanation: Option<ScoreExplanation>,
}

/// A tool in the form for operators.
#[derive(Debug, Serialize)]
struct ShownTool<'a> {
    server: &'a str,
    tool: &'a str,
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<&'a ScoreExplanation>,
}

impl Views {
    /// Returns the known tools of all servers. Servers with unknown tools are read first, for as
    /// long as [`Catalog::learn`](crate::catalog::Catalog::learn) waits: longest for those that
    /// `sought` is about. Cancel safe.
    pub async fn known_tools(&self, sought: Option<&str>) -> KnownTools {
        let sought = sought.map(RelevanceTerms::of);
        let unread = self.catalog.learn(self.limits(), sought.as_ref()).await;
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
            self.declared_slot(server)?;
        }
        let snapshot = &known.snapshot;
        let only = request.server.map(|server| snapshot.position(server));
        let tools = match (request.text, only) {
            // The server is declared, and its tools are unknown.
            (_, Some(None)) => Vec::new(),
            (Some(text), only) => {
                let strategy = request.strategy.unwrap_or(self.config.load().search.strategy);
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
                let search = self.meta_state.compute(holder, bytes, move |_| {
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
                search.await.map_err(|source| CallError::Overloaded { source })?
            }
            (None, only) => all_tools(snapshot, only.flatten())
                .skip(request.offset)
                .take(request.limit + 1)
                .map(FoundTool::listed)
                .collect(),
        };
        Ok(known.cut(tools, request.limit))
    }

    /// Returns the tools that match `pattern`, for an operator. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`RpcError`] if the compute pool is overloaded.
    pub async fn grep(
        &self,
        pattern: SearchPattern,
        limit: usize,
    ) -> Result<FindResult, Box<RpcError>> {
        let known = self.known_tools(None).await;
        let snapshot = Arc::clone(&known.snapshot);
        // The duration depends on the pattern.
        let places = move || snapshot.grep(&pattern, limit + 1);
        let places = self.operator_compute(usize::MAX, move |_| places()).await?;
        Ok(known.cut(places.into_iter().map(FoundTool::listed).collect(), limit))
    }
}

fn all_tools(
    snapshot: &CatalogSnapshot,
    only: Option<usize>,
) -> impl Iterator<Item = ToolPosition> {
    let servers = snapshot.servers().iter().enumerate();
    servers.filter(move |(server, _)| only.is_none_or(|only| only == *server)).flat_map(
        |(server, known)| (0..known.tools.len()).map(move |tool| ToolPosition { server, tool }),
    )
}

impl FoundTool {
    fn listed(place: ToolPosition) -> Self {
        Self { place, score: None, confidence: None, explanation: None }
    }
}

impl KnownTools {
    fn cut(self, mut tools: Vec<FoundTool>, limit: usize) -> FindResult {
        let has_more = tools.len() > limit;
        tools.truncate(limit);
        // A server that is still being read may have a better tool.
        if self.still_connecting().next().is_some() {
            for confidence in tools.iter_mut().filter_map(|found| found.confidence.as_mut()) {
                *confidence = confidence.min(defaults::CONFIDENCE_MAX_UNREAD);
            }
        }
        FindResult { known: self, tools, has_more }
    }

    /// Returns the servers with unknown tools, and the reasons, cut to the length of a quote.
    pub fn unavailable(&self) -> impl Iterator<Item = (&ServerName, &str)> {
        let shown = |reason| redact::cut(reason, defaults::QUOTE_BYTES_MAX);
        self.unread.iter().map(move |unread| (&unread.server, shown(&unread.reason)))
    }

    /// Returns the servers that are still connecting, and the time since they began.
    pub fn still_connecting(&self) -> impl Iterator<Item = (&ServerName, Duration)> {
        self.unread.iter().filter_map(|unread| Some((&unread.server, unread.read_for?)))
    }
}

impl FindResult {
    /// Returns the tools with their servers and definitions.
    pub fn each(&self) -> impl Iterator<Item = (&FoundTool, &KnownServer, &ListItem)> {
        self.tools.iter().filter_map(|found| {
            let (server, item) = self.known.snapshot.at(found.place)?;
            Some((found, server, item))
        })
    }

    /// Returns the result in the form for operators.
    pub fn to_value(&self) -> Value {
        let tools: Vec<ShownTool<'_>> = self
            .each()
            .map(|(found, server, item)| ShownTool {
                server: server.name.as_str(),
                tool: &item.key,
                description: summary(server, item),
                score: found.score,
                confidence: found.confidence,
                explanation: found.explanation.as_ref(),
            })
            .collect();
        json!({
            "generation": self.known.snapshot.generation, "tools": tools,
            "hasMore": self.has_more, "unavailable": self.unavailable(),
        })
    }

    /// Returns the servers with unknown tools, and the reasons, in the form for operators.
    pub fn unavailable(&self) -> Value {
        let unavailable = self.known.unavailable();
        unavailable.map(|(server, reason)| json!({ "server": server, "reason": reason })).collect()
    }
}

fn summary(server: &KnownServer, item: &ListItem) -> String {
    DescribedTool::new(ToolId::new(server.name.as_str(), &item.key), item.json()).summary()
}
