//! What is asked for, and what comes of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How tools are ranked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RankingStrategy {
    /// By the words of the query that stand in names and descriptions, letter for letter.
    Keyword,
    /// By the stems of the words, each by how rare it is, in all fields.
    Bm25,
    /// By words and by what they mean.
    #[default]
    Hybrid,
}

/// What is searched for.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchQuery<'a> {
    /// In words: what the tool should do.
    pub text: &'a str,
    /// How tools are ranked.
    pub strategy: RankingStrategy,
    /// How many tools are wanted.
    pub limit: usize,
    /// Only tools of this server, by its position.
    pub server: Option<usize>,
    /// The query as a dense vector, by whoever made those of the tools.
    pub vector: Option<&'a [f32]>,
}

/// Where a tool stands in what the index was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolPosition {
    /// The position of its server.
    pub server: usize,
    /// Its position among the tools of its server.
    pub tool: usize,
}

/// A tool that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchHit {
    /// Which one.
    pub place: ToolPosition,
    /// How well it fits, in a unit of the strategy; more is better.
    pub score: f64,
    /// How much of the query it accounts for, between 0 and 1.
    pub confidence: f64,
}
