//! Which tools are called by their name.
//!
//! Whoever knows the name of a tool wants that tool and no better one: `create_issue`,
//! `github/create_issue`, `github create_issue`, or in other letters `Create Issue`. Such a tool
//! comes before all others, whatever the ranking. A server can call its tool as another server's tool
//! is called in full: that one comes first all the same.

use std::{
    cmp::Reverse,
    hash::{DefaultHasher, Hash, Hasher as _},
};

use super::analyzed_server::AnalyzedTool;
use crate::name::QUALIFIER;

/// The longest query that may be a name, in bytes. Ours: two names of the longest kind that
/// clients take, and a little between them.
const NAME_BYTES_MAX: usize = 300;

/// The tools by their names, and by those of their servers and theirs.
pub(super) struct NameIndex(Box<[(u64, u32)]>);

/// The tools that a query calls by their name.
#[derive(Debug, Default)]
pub(super) struct NamedTools(Vec<(u32, NameMatch)>);

/// How a query calls a tool by its name, the nearest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NameMatch {
    /// With the same letters and digits, whatever is between them.
    Loosely,
    /// Letter for letter, but for upper and lower case.
    Exactly,
    /// So, with its server. No server can choose that: servers are called as the operator says.
    Fully,
}

impl NameMatch {
    /// Returns how many times as much as anything else may be worth that is worth.
    pub(super) fn weight(self) -> f64 {
        match self {
            Self::Loosely => 1.0,
            Self::Exactly => 2.0,
            Self::Fully => 3.0,
        }
    }

    /// Returns what is said of it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Loosely => "the name in other letters",
            Self::Exactly => "the name",
            Self::Fully => "the name with its server",
        }
    }
}

impl NameIndex {
    /// Returns those of tools, each with its number.
    pub(super) fn of<'a>(tools: impl Iterator<Item = (u32, &'a AnalyzedTool)>) -> Self {
        let keys = |(number, tool): (u32, &AnalyzedTool)| {
            [key(None, tool.name()), key(Some(tool.server()), tool.name())].map(|key| (key, number))
        };
        let mut all: Vec<_> = tools.flat_map(keys).collect();
        all.sort_unstable();
        Self(all.into())
    }

    /// Returns the tools that a query calls by their name; `tool` knows them by their number.
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
        // Of several readings the one that is nearest.
        named.sort_unstable_by_key(|&(number, called)| (number, Reverse(called)));
        named.dedup_by_key(|&mut (number, _)| number);
        NamedTools(named)
    }
}

impl NamedTools {
    /// Returns how a tool is called, if it is.
    pub(super) fn of(&self, number: u32) -> Option<NameMatch> {
        let place = self.0.binary_search_by_key(&number, |&(number, _)| number).ok()?;
        Some(self.0[place].1)
    }

    /// Returns the tools that are called, by number.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|&(number, _)| number)
    }
}

/// Returns how a query can be read: as a name, and split wherever it may name a server first.
fn readings(query: &str) -> impl Iterator<Item = (Option<&str>, &str)> {
    let marks = query.match_indices(|found: char| !found.is_alphanumeric());
    let marks = marks.chain(query.match_indices(QUALIFIER));
    let split = marks.map(|(at, mark)| (Some(&query[..at]), &query[at + mark.len()..]));
    [(None, query)].into_iter().chain(split)
}

/// Returns what names have in common that are alike.
fn key(server: Option<&str>, name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    for letter in server.into_iter().flat_map(letters) {
        letter.hash(&mut hasher);
    }
    // No letter: it parts the two names.
    server.map(|_| '/').hash(&mut hasher);
    for letter in letters(name) {
        letter.hash(&mut hasher);
    }
    hasher.finish()
}

/// Whether two names are the same, or have the same letters and any at all.
fn is_alike(one: &str, other: &str) -> bool {
    let mut of_one = letters(one).peekable();
    (one == other && !one.is_empty()) || (of_one.peek().is_some() && of_one.eq(letters(other)))
}

fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|found| found.is_alphanumeric())
}
