//! The index of tools by name, for queries that are a name.
//!
//! A query with the name of a tool means that tool: `create_issue`, `github/create_issue`,
//! `github create_issue`, or `Create Issue`. Such a tool comes before all others in every ranking.
//! A server may give its tool the full name of another server's tool, but that other tool still
//! comes first.

use std::{
    cmp::Reverse,
    hash::{DefaultHasher, Hash, Hasher as _},
};

use super::analyzed_server::AnalyzedTool;
use crate::server_name::QUALIFIER;

/// The longest query that may be a name, in bytes: two names of the longest kind that clients
/// accept, and a separator.
const NAME_BYTES_MAX: usize = 300;

/// The hashes of tool names, with and without the server's name, and the tools' numbers.
pub(super) struct NameIndex(Box<[(u64, u32)]>);

/// The tools that a query names.
#[derive(Debug, Default)]
pub(super) struct NamedTools(Vec<(u32, NameMatch)>);

/// The match of a query with a tool's name, the closest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NameMatch {
    /// The same letters and digits; the characters between them may differ.
    Loosely,
    /// The same text, except for case.
    Exactly,
    /// The same text with the server's name. The operator chooses that name, not the server.
    Fully,
}

impl NameMatch {
    /// Returns the weight, a multiple of the highest score by all other means.
    pub(super) fn weight(self) -> f64 {
        match self {
            Self::Loosely => 1.0,
            Self::Exactly => 2.0,
            Self::Fully => 3.0,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Loosely => "the name in other letters",
            Self::Exactly => "the name",
            Self::Fully => "the name with its server",
        }
    }
}

impl NameIndex {
    pub(super) fn of<'a>(tools: impl Iterator<Item = (u32, &'a AnalyzedTool)>) -> Self {
        let keys = |(number, tool): (u32, &AnalyzedTool)| {
            [key(None, tool.name()), key(Some(tool.server()), tool.name())].map(|key| (key, number))
        };
        let mut all: Vec<_> = tools.flat_map(keys).collect();
        all.sort_unstable();
        Self(all.into())
    }

    /// Returns the tools that a query names; `tool` returns a tool by its number.
    pub(super) fn called<'a>(
        &self,
        query: &str,
        tool: impl Fn(u32) -> &'a AnalyzedTool,
    ) -> NamedTools {
        let query = query.trim_matches(|found: char| {
            found.is_whitespace() || matches!(found, '`' | '\'' | '"' | '“' | '”' | '«' | '»')
        });
        if query.len() > NAME_BYTES_MAX {
            return NamedTools::default();
        }
        let query = query.to_lowercase();
        let mut named = Vec::new();
        for (server, name) in readings(&query) {
            let key = key(server, name);
            let start = self.0.partition_point(|&(known, _)| known < key);
            let same = self.0[start..].iter().take_while(|&&(known, _)| known == key);
            for &(_, number) in same {
                let tool = tool(number);
                let is_server = server.is_none_or(|server| is_alike(server, tool.server()));
                if is_server && is_alike(name, tool.name()) {
                    let called = match server {
                        _ if name != tool.name() => NameMatch::Loosely,
                        None => NameMatch::Exactly,
                        Some(server) if server == tool.server() => NameMatch::Fully,
                        Some(_) => NameMatch::Loosely,
                    };
                    named.push((number, called));
                }
            }
        }
        // The closest of several readings counts.
        named.sort_unstable_by_key(|&(number, called)| (number, Reverse(called)));
        named.dedup_by_key(|&mut (number, _)| number);
        NamedTools(named)
    }
}

impl NamedTools {
    /// Returns the match of a tool, if the query names it.
    pub(super) fn of(&self, number: u32) -> Option<NameMatch> {
        let place = self.0.binary_search_by_key(&number, |&(number, _)| number).ok()?;
        Some(self.0[place].1)
    }

    /// Returns the named tools, by number.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|&(number, _)| number)
    }
}

/// Returns the readings of a query: as a name, and as a server and a name at each split.
fn readings(query: &str) -> impl Iterator<Item = (Option<&str>, &str)> {
    let marks = query.match_indices(|found: char| !found.is_alphanumeric());
    let marks = marks.chain(query.match_indices(QUALIFIER));
    let split = marks.map(|(at, mark)| (Some(&query[..at]), &query[at + mark.len()..]));
    [(None, query)].into_iter().chain(split)
}

/// Returns a hash that all similar names share.
fn key(server: Option<&str>, name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    for letter in server.into_iter().flat_map(letters) {
        letter.hash(&mut hasher);
    }
    // Not a letter, so it separates the two names.
    server.map(|_| '/').hash(&mut hasher);
    for letter in letters(name) {
        letter.hash(&mut hasher);
    }
    hasher.finish()
}

/// Returns whether two names are equal, or have the same letters and digits, at least one.
fn is_alike(one: &str, other: &str) -> bool {
    let mut of_one = letters(one).peekable();
    (one == other && !one.is_empty()) || (of_one.peek().is_some() && of_one.eq(letters(other)))
}

fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|found| found.is_alphanumeric())
}
