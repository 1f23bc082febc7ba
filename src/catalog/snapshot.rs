//! An immutable snapshot of the catalog, so that readers never see half of a change. Pure.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use super::{
    Listing,
    definition_hash::CatalogDigest,
    parallel_map,
    server_lists::{KnownLists, KnownSource},
};
use crate::{
    config::defaults,
    embedding::EmbeddingText,
    protocol::{
        ObjectMembers,
        list_page::{ListItem, ListKind},
        mcp_apps,
        payloads::ServerProfile,
    },
    redact,
    search::{
        AnalyzedServer, ScoreExplanation, SearchHit, SearchIndex, SearchPattern, SearchQuery,
        Thesaurus, ToolPosition,
    },
    server_name::ServerName,
};

/// The known servers and their tools at one moment, with the search index.
pub struct CatalogSnapshot {
    /// Grows when a definition or the synonyms change, and only then.
    pub generation: u64,
    /// A hash of the definitions and synonyms; equal across processes.
    pub fingerprint: u64,
    servers: Vec<KnownServer>,
    index: Arc<SearchIndex>,
    vocabulary: Arc<SynonymTable>,
    /// The version of the vectors in the index.
    pub(super) vectors: u64,
    /// The revision of the store that the snapshot was made from.
    pub(super) revision: u64,
}

/// A source of dense vectors for the tools.
pub(super) trait SnapshotVectors {
    /// Returns a number that differs between versions of the vectors; 0 without vectors.
    fn version(&self) -> u64;

    /// Returns the vectors of these texts, where they exist.
    fn of(&self, texts: Vec<EmbeddingText>) -> Vec<Option<Arc<[f32]>>>;
}

/// The synonyms that a search knows.
#[derive(Debug)]
pub(super) struct SynonymTable {
    /// The declared groups.
    synonyms: Vec<Vec<String>>,
    /// Read for the first index, so that it does not delay the start of the service.
    thesaurus: OnceLock<Arc<Thesaurus>>,
    /// The digest of the declared groups.
    digest: CatalogDigest,
}

/// A server with known tools.
#[derive(Clone, Debug)]
pub struct KnownServer {
    /// The name of the server.
    pub name: ServerName,
    /// The words of its profile: title, description and instructions.
    pub about: Arc<str>,
    /// The source of the tools.
    pub source: KnownSource,
    /// The time at which the tools were read from the server.
    pub since: SystemTime,
    /// The tools for models, in the server's order.
    pub tools: Listing,
    /// All tools.
    listing: Listing,
    /// Some tool has an app page.
    has_pages: bool,
    /// The profile that the server last sent.
    pub profile: Option<Arc<ServerProfile>>,
    digest: CatalogDigest,
    analyzed: Arc<AnalyzedServer>,
}

impl CatalogSnapshot {
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

    /// Returns the server with this name.
    pub fn server(&self, name: &str) -> Option<&KnownServer> {
        self.servers.get(self.position(name)?)
    }

    /// Returns the tool `tool` of `server`.
    pub fn tool(&self, server: &str, tool: &str) -> Option<&ListItem> {
        self.server(server)?.tools.iter().find(|item| item.key == tool)
    }

    /// Returns the servers that have app pages and a tool called `name`.
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

    /// Returns the explanation of a tool's rank in a result of [`CatalogSnapshot::search`].
    pub fn explain(&self, query: &SearchQuery<'_>, place: ToolPosition) -> ScoreExplanation {
        self.index.explain(query, place)
    }

    /// Returns the tools that match a pattern, in their order.
    pub fn grep(&self, pattern: &SearchPattern, limit: usize) -> Vec<ToolPosition> {
        self.index.grep(pattern, limit)
    }

    /// Returns the position of a server, for [`SearchQuery::server`].
    pub fn position(&self, name: &str) -> Option<usize> {
        self.servers.binary_search_by(|server| server.name.as_str().cmp(name)).ok()
    }

    /// Returns the server and the tool at a position that a search has found.
    pub fn at(&self, place: ToolPosition) -> Option<(&KnownServer, &ListItem)> {
        let server = self.servers.get(place.server)?;
        Some((server, server.tools.get(place.tool)?))
    }

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
            true => parallel_map::map(&known, after).into_iter().flatten().collect(),
            // Few servers have changed.
            false => known.iter().filter_map(after).collect(),
        };
        // Equal definitions and synonyms give the same results.
        let is_same = self.vocabulary.digest == vocabulary.digest
            && servers.len() == self.servers.len()
            && servers
                .iter()
                .zip(&self.servers)
                .all(|(one, other)| one.name == other.name && one.digest == other.digest);
        let version = vectors.version();
        let index = match (is_same, version == self.vectors) {
            (true, true) => Arc::clone(&self.index),
            (true, false) => Arc::new(with_vectors(&self.index, &servers, vectors)),
            (false, _) => Arc::new(index_of(&servers, vocabulary, vectors)),
        };
        let (generation, fingerprint) = match is_same {
            true => (self.generation, self.fingerprint),
            false => (self.generation + 1, fingerprint(vocabulary, &servers)),
        };
        let (vocabulary, vectors) = (Arc::clone(vocabulary), version);
        Self { generation, fingerprint, servers, index, vocabulary, vectors, revision }
    }

    /// Returns the present state of a server; reuses what has not changed.
    fn server_after(&self, name: &ServerName, known: &KnownLists) -> Option<KnownServer> {
        let reading = known.reading(ListKind::Tools)?;
        let (source, since, listing) = (reading.source, reading.read, Arc::clone(&reading.listing));
        let profile = known.profile().cloned();
        let last = self.server(name.as_str()).filter(|last| {
            let [one, other] = [&last.profile, &profile].map(|it| it.as_ref().map(Arc::as_ptr));
            one == other && Arc::ptr_eq(&last.listing, &listing)
        });
        if let Some(last) = last {
            return Some(KnownServer { source, since, ..last.clone() });
        }
        let about = profile.as_deref().map(about).unwrap_or_default();
        let tools = for_models(&listing);
        let digest = digest(&about, &tools);
        // Reuses the analysis if only unsearched parts of the profile have changed.
        let before = self.server(name.as_str()).filter(|last| last.digest == digest);
        let analyzed = before.map(|last| Arc::clone(&last.analyzed)).unwrap_or_else(|| {
            Arc::new(AnalyzedServer::of(name.as_str(), &about, tools.iter().map(ListItem::json)))
        });
        let (name, about) = (name.clone(), about.into());
        let has_pages = listing.iter().any(|item| mcp_apps::has_page(item.json()));
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

/// Returns a hash of what searches find.
fn fingerprint(vocabulary: &SynonymTable, servers: &[KnownServer]) -> u64 {
    let mut all = vocabulary.digest.to_string();
    for server in servers {
        all += server.name.as_str();
        all += &server.digest.to_string();
    }
    CatalogDigest::of(all.as_bytes()).as_u64()
}

/// Returns the tools except those for app pages only.
fn for_models(listing: &Listing) -> Listing {
    let is_hidden = |item: &ListItem| mcp_apps::is_app_only(item.json());
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

/// Returns the index with the present vectors.
fn with_vectors(
    index: &SearchIndex,
    servers: &[KnownServer],
    vectors: &dyn SnapshotVectors,
) -> SearchIndex {
    let tools = |server: &KnownServer| {
        let name = server.name.clone();
        let text = move |item: &ListItem| {
            let text = ObjectMembers::read(item.json()).and_then(|item| item.string("description"));
            EmbeddingText::new(&format!("{name} {}: {}", item.key, text.unwrap_or_default()))
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
    /// Returns a table of the built-in thesaurus and these declared groups.
    pub(super) fn of(synonyms: &[Vec<String>]) -> Self {
        let digest = CatalogDigest::of(format!("{synonyms:?}").as_bytes());
        Self { synonyms: synonyms.to_vec(), thesaurus: OnceLock::new(), digest }
    }

    /// Returns the thesaurus. The first call takes a few milliseconds.
    pub(super) fn thesaurus(&self) -> &Thesaurus {
        self.thesaurus.get_or_init(|| Thesaurus::with_synonyms(&self.synonyms))
    }

    /// Returns whether the declared groups equal `synonyms`.
    pub(super) fn has_groups(&self, synonyms: &[Vec<String>]) -> bool {
        self.synonyms == synonyms
    }
}

impl fmt::Debug for CatalogSnapshot {
    /// Prints the size only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (generation, n_servers) = (self.generation, self.servers.len());
        write!(f, "Snapshot {{ generation: {generation}, n_servers: {n_servers} }}")
    }
}

/// Returns the words with which a server describes itself.
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
