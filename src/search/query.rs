//! Search queries and their results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The ranking of tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RankingStrategy {
    /// By the words of the query in names and descriptions, letter for letter.
    Keyword,
    /// By word stems in all fields, weighted by rarity.
    Bm25,
    /// By words and their meaning.
    #[default]
    Hybrid,
}

/// A search for tools.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchQuery<'a> {
    /// The task of the tool, in words.
    pub text: &'a str,
    /// The ranking of tools.
    pub strategy: RankingStrategy,
    /// The maximum number of tools.
    pub limit: usize,
    /// Only tools of this server, by its position.
    pub server: Option<usize>,
    /// The query as a dense vector, from the model used for the tools.
    pub vector: Option<&'a [f32]>,
}

impl<'a> SearchQuery<'a> {
    /// Returns a search of all servers without a vector.
    pub fn new(text: &'a str, strategy: RankingStrategy, limit: usize) -> Self {
        Self { text, strategy, limit, server: None, vector: None }
    }
}

/// The position of a tool in the input of the index.
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
    /// The position of the tool.
    pub place: ToolPosition,
    /// The score, in a unit of the strategy; higher is better.
    pub score: f64,
    /// The part of the query that the tool covers, between 0 and 1.
    pub confidence: f64,
}
