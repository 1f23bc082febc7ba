//! The tools of all servers that a search finds.
//!
//! Pure.

use std::{sync::Arc, time::Duration};

use serde::Serialize;
use serde_json::{Value, json};

use super::summary::summary_of;
use crate::{
    catalog::{CatalogSnapshot, KnownServer, UnreadServer},
    config::defaults,
    protocol::list_page::ListItem,
    redact,
    search::{RankingStrategy, ScoreExplanation, ToolPosition},
    server_name::ServerName,
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
    pub(super) unread: Vec<UnreadServer>,
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

/// Returns the positions of all tools, or of those of the server `only`.
pub(super) fn all_tools(
    snapshot: &CatalogSnapshot,
    only: Option<usize>,
) -> impl Iterator<Item = ToolPosition> {
    let servers = snapshot.servers().iter().enumerate();
    servers.filter(move |(server, _)| only.is_none_or(|only| only == *server)).flat_map(
        |(server, known)| (0..known.tools.len()).map(move |tool| ToolPosition { server, tool }),
    )
}

impl FoundTool {
    /// Returns the tool at `place` of a list.
    pub(super) fn listed(place: ToolPosition) -> Self {
        Self { place, score: None, confidence: None, explanation: None }
    }
}

impl KnownTools {
    /// Returns the first `limit` of `tools` as the result of a search.
    pub(super) fn cut(self, mut tools: Vec<FoundTool>, limit: usize) -> FindResult {
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
                description: summary_of(item.json()),
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
