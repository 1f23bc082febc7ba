//! What all servers offer, at one moment: immutable, so that whoever reads it never sees half of a
//! change. Pure.

use std::{collections::BTreeMap, sync::Arc, time::SystemTime};

use super::{
    Listing,
    digest::Digest,
    known::{Known, Source},
};
use crate::{
    config::defaults,
    name::ServerName,
    protocol::mcp::{Item, List, Profile},
    redact,
};

/// What all servers offer, at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Grows whenever a definition is another one than before, and only then.
    pub generation: u64,
    /// Tells these definitions from any others, also in the life of another process.
    pub fingerprint: u64,
    servers: Vec<KnownServer>,
    /// Of what is known.
    pub(super) revision: u64,
}

/// A server whose tools are known.
#[derive(Clone, Debug)]
pub struct KnownServer {
    /// Its name.
    pub name: ServerName,
    /// What it says of itself: its title and its instructions.
    pub about: Arc<str>,
    /// Where the tools are known from.
    pub source: Source,
    /// When they were read from the server.
    pub since: SystemTime,
    /// The tools, in its order.
    pub tools: Listing,
    /// What it said of itself when it was connected last.
    pub profile: Option<Arc<Profile>>,
    digest: Digest,
}

impl Snapshot {
    /// Returns the servers in the order of their names.
    pub fn servers(&self) -> &[KnownServer] {
        &self.servers
    }

    /// Returns the server called `name`.
    pub fn server(&self, name: &str) -> Option<&KnownServer> {
        let at = self.servers.binary_search_by(|server| server.name.as_str().cmp(name)).ok()?;
        self.servers.get(at)
    }

    /// Returns the tool that `server` calls `tool`.
    pub fn tool(&self, server: &str, tool: &str) -> Option<&Item> {
        self.server(server)?.tools.iter().find(|item| item.key == tool)
    }

    /// Returns the snapshot after this one.
    pub(super) fn next(&self, known: &BTreeMap<ServerName, Known>, revision: u64) -> Self {
        let servers: Vec<_> =
            known.iter().filter_map(|(name, known)| self.server_after(name, known)).collect();
        let is_same = servers.len() == self.servers.len()
            && servers.iter().zip(&self.servers).all(|(one, other)| one.is_like(other));
        if is_same {
            let Self { generation, fingerprint, .. } = *self;
            return Self { generation, fingerprint, servers, revision };
        }
        let mut all = Vec::new();
        for server in &servers {
            all.extend_from_slice(server.name.as_str().as_bytes());
            all.extend_from_slice(server.digest.to_string().as_bytes());
        }
        let fingerprint = Digest::of(&all).short();
        Self { generation: self.generation + 1, fingerprint, servers, revision }
    }

    /// Returns what is known of a server now, with all that is as it was.
    fn server_after(&self, name: &ServerName, known: &Known) -> Option<KnownServer> {
        let reading = known.reading(List::Tools)?;
        let (source, since, tools) = (reading.source, reading.read, Arc::clone(&reading.listing));
        let profile = known.profile().cloned();
        let last = self.server(name.as_str()).filter(|last| {
            let is_profile = match (&last.profile, &profile) {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            is_profile && Arc::ptr_eq(&last.tools, &tools)
        });
        if let Some(last) = last {
            return Some(KnownServer { source, since, ..last.clone() });
        }
        let about = profile.as_deref().map(about).unwrap_or_default();
        let digest = digest(&about, &tools);
        let name = name.clone();
        Some(KnownServer { name, about: about.into(), source, since, tools, profile, digest })
    }
}

impl KnownServer {
    /// Tells whether whoever looks for something finds the same.
    fn is_like(&self, other: &Self) -> bool {
        self.name == other.name && self.digest == other.digest
    }
}

/// Returns what a server says of itself in words.
fn about(profile: &Profile) -> String {
    let info = profile.server_info();
    let word = |member: &str| info.and_then(|info| info.get(member)).and_then(|word| word.as_str());
    let instructions = profile.result.get("instructions").and_then(|word| word.as_str());
    let words = [word("title").or_else(|| word("name")), word("description"), instructions];
    let words: Vec<&str> = words.into_iter().flatten().filter(|word| !word.is_empty()).collect();
    redact::cut(&words.join("\n"), defaults::ABOUT_BYTES_MAX).to_owned()
}

fn digest(about: &str, tools: &Listing) -> Digest {
    let mut all = serde_json::Value::from(about).to_string();
    for tool in tools.iter() {
        all.push('\n');
        all.push_str(tool.json());
    }
    Digest::of(all.as_bytes())
}

#[cfg(test)]
mod tests;
