//! All tools of all servers, ready to be searched. Immutable.

use std::sync::Arc;

use super::{
    Analyzed, Hit, Pattern, Place, Query, Strategy, Thesaurus,
    analyzed::Tool,
    explanation::{Explanation, Part},
    keyword,
};

/// All tools of all servers, ready to be searched.
#[derive(Debug)]
pub struct Index {
    servers: Box<[Arc<Analyzed>]>,
}

impl Index {
    /// Makes an index of servers that were analysed before.
    pub fn new(servers: &[Arc<Analyzed>], _thesaurus: &Thesaurus) -> Self {
        Self { servers: servers.into() }
    }

    /// Returns the best tools for a query, best first; of equal ones the one that comes first.
    pub fn search(&self, query: &Query<'_>) -> Vec<Hit> {
        match query.strategy {
            Strategy::Keyword | Strategy::Bm25 | Strategy::Hybrid => self.by_keyword(query),
        }
    }

    /// Returns why a tool stands where it does: parts that add up to its score.
    pub fn explain(&self, query: &Query<'_>, place: Place) -> Explanation {
        let words = keyword::Words::of(query.text);
        let mut parts = Vec::new();
        if let Some(tool) = self.tool(place) {
            words.each_in(tool, |word, found, score| {
                parts.push(Part { name: format!("{found:?} {word}"), score });
            });
        }
        Explanation::of(parts)
    }

    /// Returns the tools that a pattern is in: their path, title or description.
    pub fn grep(&self, pattern: &Pattern, limit: usize) -> Vec<Place> {
        self.tools(None)
            .filter(|(_, tool)| {
                [tool.path(), tool.title(), tool.description()]
                    .into_iter()
                    .any(|text| pattern.is_in(text))
            })
            .map(|(place, _)| place)
            .take(limit)
            .collect()
    }

    fn by_keyword(&self, query: &Query<'_>) -> Vec<Hit> {
        let words = keyword::Words::of(query.text);
        let mut hits: Vec<Hit> = self
            .tools(query.server)
            .map(|(place, tool)| (place, words.score(tool)))
            .filter(|&(_, score)| score > 0.0)
            .map(|(place, score)| Hit { place, score, confidence: words.confidence(score) })
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.place.cmp(&b.place)));
        hits.truncate(query.limit);
        hits
    }

    fn tools(&self, server: Option<usize>) -> impl Iterator<Item = (Place, &Tool)> {
        self.servers
            .iter()
            .enumerate()
            .filter(move |&(place, _)| server.is_none_or(|only| only == place))
            .flat_map(|(server, analyzed)| {
                let tools = analyzed.tools.iter().enumerate();
                tools.map(move |(tool, text)| (Place { server, tool }, text))
            })
    }

    fn tool(&self, place: Place) -> Option<&Tool> {
        self.servers.get(place.server)?.tools.get(place.tool)
    }
}
