//! What all servers offer, at one moment: immutable, so that whoever reads it never sees half of a
//! change. Pure.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use super::{
    Listing,
    digest::CatalogDigest,
    known_lists::{KnownLists, KnownSource},
    parallel,
};
use crate::{
    config::defaults,
    embedding::EmbeddingText,
    name::ServerName,
    protocol::{
        ObjectMembers, apps,
        list_page::{ListItem, ListKind},
        payloads::ServerProfile,
    },
    redact,
    search::{
        AnalyzedServer, ScoreExplanation, SearchHit, SearchIndex, SearchPattern, SearchQuery,
        Thesaurus, ToolPosition,
    },
};

/// What all servers offer, at one moment.
pub struct CatalogSnapshot {
    /// Grows whenever a definition is another one than before, or tools are found by other words,
    /// and only then.
    pub generation: u64,
    /// Tells these definitions from any others, also in the life of another process.
    pub fingerprint: u64,
    servers: Vec<KnownServer>,
    index: Arc<SearchIndex>,
    vocabulary: Arc<SynonymTable>,
    /// Which vectors the index has.
    pub(super) vectors: u64,
    /// Of what is known.
    pub(super) revision: u64,
}

/// Dense vectors of tools, as far as there are any.
pub(super) trait SnapshotVectors {
    /// Returns what tells them from those that were there before; 0 where there are none.
    fn version(&self) -> u64;

    /// Returns those of these texts.
    fn of(&self, texts: Vec<EmbeddingText>) -> Vec<Option<Arc<[f32]>>>;
}

/// The words that mean the same.
pub(super) struct SynonymTable {
    /// Groups that are declared.
    synonyms: Vec<Vec<String>>,
    /// Read when the first index is made, which is not where the service starts.
    thesaurus: OnceLock<Arc<Thesaurus>>,
    /// Of the groups.
    digest: CatalogDigest,
}

/// A server whose tools are known.
#[derive(Clone, Debug)]
pub struct KnownServer {
    /// Its name.
    pub name: ServerName,
    /// What it says of itself: its title and its instructions.
    pub about: Arc<str>,
    /// Where the tools are known from.
    pub source: KnownSource,
    /// When they were read from the server.
    pub since: SystemTime,
    /// The tools that are there for models, in its order.
    pub tools: Listing,
    /// All of them.
    listing: Listing,
    /// One of them has a page.
    has_pages: bool,
    /// What it said of itself when it was connected last.
    pub profile: Option<Arc<ServerProfile>>,
    digest: CatalogDigest,
    analyzed: Arc<AnalyzedServer>,
}

impl CatalogSnapshot {
    /// Returns one of no servers.
    pub(super) fn empty(vocabulary: &Arc<SynonymTable>) -> Self {
        let index = Arc::new(SearchIndex::new(&[], &Thesaurus::default()));
        let (servers, vocabulary) = (Vec::new(), Arc::clone(vocabulary));
        let (generation, fingerprint, vectors, revision) = (0, 0, 0, 0);
        Self { generation, fingerprint, servers, index, vocabulary, vectors, revision }
    }

    /// Returns the servers in the order of their names.
    pub fn servers(&self) -> &[KnownServer] {
        &self.servers
    }

    /// Returns the server called `name`.
    pub fn server(&self, name: &str) -> Option<&KnownServer> {
        self.servers.get(self.position(name)?)
    }

    /// Returns the tool that `server` calls `tool`.
    pub fn tool(&self, server: &str, tool: &str) -> Option<&ListItem> {
        self.server(server)?.tools.iter().find(|item| item.key == tool)
    }

    /// Returns the servers with pages that have a tool called `name`.
    pub fn servers_of_page_calling(&self, name: &str) -> Vec<&ServerName> {
        let calls = |server: &&KnownServer| {
            server.has_pages && server.listing.iter().any(|item| item.key == name)
        };
        self.servers.iter().filter(calls).map(|server| &server.name).collect()
    }

    /// Returns the best tools for a query, best first.
    pub fn search(&self, query: &SearchQuery<'_>) -> Vec<SearchHit> {
        self.index.search(query)
    }

    /// Returns why a tool stands where it does in an answer of [`CatalogSnapshot::search`].
    pub fn explain(&self, query: &SearchQuery<'_>, place: ToolPosition) -> ScoreExplanation {
        self.index.explain(query, place)
    }

    /// Returns the tools that a pattern is in, in their order.
    pub fn grep(&self, pattern: &SearchPattern, limit: usize) -> Vec<ToolPosition> {
        self.index.grep(pattern, limit)
    }

    /// Returns the position of a server, for [`SearchQuery::server`].
    pub fn position(&self, name: &str) -> Option<usize> {
        self.servers.binary_search_by(|server| server.name.as_str().cmp(name)).ok()
    }

    /// Returns what stands at a place that a search has found.
    pub fn at(&self, place: ToolPosition) -> Option<(&KnownServer, &ListItem)> {
        let server = self.servers.get(place.server)?;
        Some((server, server.tools.get(place.tool)?))
    }

    /// Returns the snapshot after this one.
    pub(super) fn next(
        &self,
        known: &BTreeMap<ServerName, KnownLists>,
        vocabulary: &Arc<SynonymTable>,
        vectors: &dyn SnapshotVectors,
        revision: u64,
    ) -> Self {
        let known: Vec<_> = known.iter().collect();
        let after = |&(name, known): &(&ServerName, &KnownLists)| self.server_after(name, known);
        let servers: Vec<_> = match self.servers.is_empty() {
            true => parallel::map(&known, after).into_iter().flatten().collect(),
            // One of them or a few are new.
            false => known.iter().filter_map(after).collect(),
        };
        let is_same = self.vocabulary.is_same(vocabulary)
            && servers.len() == self.servers.len()
            && servers.iter().zip(&self.servers).all(|(one, other)| one.is_like(other));
        let vocabulary = Arc::clone(vocabulary);
        let version = vectors.version();
        let index = match (is_same, version == self.vectors) {
            (true, true) => Arc::clone(&self.index),
            (true, false) => Arc::new(with_vectors(&self.index, &servers, vectors)),
            (false, _) => Arc::new(index_of(&servers, &vocabulary, vectors)),
        };
        if is_same {
            let &Self { generation, fingerprint, .. } = self;
            let vectors = version;
            return Self { generation, fingerprint, servers, index, vocabulary, vectors, revision };
        }
        let mut all = vocabulary.digest.to_string().into_bytes();
        for server in &servers {
            all.extend_from_slice(server.name.as_str().as_bytes());
            all.extend_from_slice(server.digest.to_string().as_bytes());
        }
        let fingerprint = CatalogDigest::of(&all).as_u64();
        let generation = self.generation + 1;
        let vectors = version;
        Self { generation, fingerprint, servers, index, vocabulary, vectors, revision }
    }

    /// Returns what is known of a server now, with all that is as it was.
    fn server_after(&self, name: &ServerName, known: &KnownLists) -> Option<KnownServer> {
        let reading = known.reading(ListKind::Tools)?;
        let (source, since, listing) = (reading.source, reading.read, Arc::clone(&reading.listing));
        let profile = known.profile().cloned();
        let last = self.server(name.as_str()).filter(|last| {
            let is_profile = match (&last.profile, &profile) {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            is_profile && Arc::ptr_eq(&last.listing, &listing)
        });
        if let Some(last) = last {
            return Some(KnownServer { source, since, ..last.clone() });
        }
        let about = profile.as_deref().map(about).unwrap_or_default();
        let tools = for_models(&listing);
        let digest = digest(&about, &tools);
        // Also where it says something else that nobody searches.
        let before = self.server(name.as_str()).filter(|last| last.digest == digest);
        let analyzed = before.map(|last| Arc::clone(&last.analyzed)).unwrap_or_else(|| {
            Arc::new(AnalyzedServer::of(name.as_str(), &about, tools.iter().map(ListItem::json)))
        });
        let (name, about) = (name.clone(), about.into());
        let has_pages = listing.iter().any(|item| apps::has_page(item.json()));
        Some(KnownServer {
            name,
            about,
            source,
            since,
            tools,
            listing,
            has_pages,
            profile,
            digest,
            analyzed,
        })
    }
}

/// Returns the tools that are not there for pages alone.
fn for_models(listing: &Listing) -> Listing {
    let is_hidden = |item: &ListItem| apps::is_app_only(item.json());
    match listing.iter().any(is_hidden) {
        true => Arc::new(listing.iter().filter(|item| !is_hidden(item)).cloned().collect()),
        false => Arc::clone(listing),
    }
}

/// Returns the index of the tools of these servers.
fn index_of(
    servers: &[KnownServer],
    vocabulary: &SynonymTable,
    vectors: &dyn SnapshotVectors,
) -> SearchIndex {
    let analyzed: Vec<_> = servers.iter().map(|server| Arc::clone(&server.analyzed)).collect();
    let index = SearchIndex::new(&analyzed, vocabulary.thesaurus());
    match vectors.version() {
        0 => index,
        _ => with_vectors(&index, servers, vectors),
    }
}

/// Returns an index of the tools of these servers with the vectors that there are now.
fn with_vectors(
    index: &SearchIndex,
    servers: &[KnownServer],
    vectors: &dyn SnapshotVectors,
) -> SearchIndex {
    let tools = |server: &KnownServer| {
        let name = server.name.clone();
        let text = move |item: &ListItem| {
            let said = ObjectMembers::read(item.json()).and_then(|item| item.string("description"));
            EmbeddingText::new(&format!("{name} {}: {}", item.key, said.unwrap_or_default()))
        };
        server.tools.iter().map(text).collect::<Vec<_>>()
    };
    let firsts: Vec<usize> = servers
        .iter()
        .scan(0, |next, server| Some(std::mem::replace(next, *next + server.tools.len())))
        .collect();
    let found = vectors.of(servers.iter().flat_map(tools).collect());
    index.with_vectors(|place| found.get(firsts.get(place.server)? + place.tool)?.as_deref())
}

impl SynonymTable {
    /// Returns that of the program, with groups of words that mean the same here.
    pub(super) fn of(synonyms: &[Vec<String>]) -> Self {
        let (digest, synonyms) = (Self::digest(synonyms), synonyms.to_vec());
        Self { synonyms, thesaurus: OnceLock::new(), digest }
    }

    /// Returns all of them. The first time takes a few milliseconds.
    pub(super) fn thesaurus(&self) -> &Thesaurus {
        self.thesaurus.get_or_init(|| Thesaurus::with_synonyms(&self.synonyms))
    }

    /// Tells whether it is the one with these groups.
    pub(super) fn has_groups(&self, synonyms: &[Vec<String>]) -> bool {
        self.digest == Self::digest(synonyms)
    }

    fn digest(synonyms: &[Vec<String>]) -> CatalogDigest {
        CatalogDigest::of(format!("{synonyms:?}").as_bytes())
    }

    /// Tells whether the same words mean the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl fmt::Debug for SynonymTable {
    /// Prints which it is, and not all of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vocabulary({})", self.digest)
    }
}

impl fmt::Debug for CatalogSnapshot {
    /// Prints how much it is, and not all of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (generation, n_servers) = (self.generation, self.servers.len());
        write!(f, "Snapshot {{ generation: {generation}, n_servers: {n_servers} }}")
    }
}

impl KnownServer {
    /// Tells whether whoever looks for something finds the same.
    fn is_like(&self, other: &Self) -> bool {
        self.name == other.name && self.digest == other.digest
    }
}

/// Returns what a server says of itself in words.
pub(super) fn about(profile: &ServerProfile) -> String {
    let info = profile.server_info();
    let word = |member: &str| info.and_then(|info| info.get(member)).and_then(|word| word.as_str());
    let instructions = profile.result.get("instructions").and_then(|word| word.as_str());
    let words = [word("title").or_else(|| word("name")), word("description"), instructions];
    let words: Vec<&str> = words.into_iter().flatten().filter(|word| !word.is_empty()).collect();
    redact::cut(&words.join("\n"), defaults::ABOUT_BYTES_MAX).to_owned()
}

fn digest(about: &str, tools: &Listing) -> CatalogDigest {
    let mut all = serde_json::Value::from(about).to_string();
    for tool in tools.iter() {
        all.push('\n');
        all.push_str(tool.json());
    }
    CatalogDigest::of(all.as_bytes())
}

#[cfg(test)]
mod tests;
