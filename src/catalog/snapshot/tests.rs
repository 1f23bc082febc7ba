//! Tests of successive snapshots.

use super::*;
use crate::{protocol::list_page::ListPage, search::RankingStrategy};

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

/// A source without vectors.
struct NoVectors;

impl SnapshotVectors for NoVectors {
    fn version(&self) -> u64 {
        0
    }

    fn of(&self, _texts: Vec<EmbeddingText>) -> Vec<Option<Arc<[f32]>>> {
        Vec::new()
    }
}

/// The known lists, and the snapshots made from them.
struct Rig {
    known: BTreeMap<ServerName, KnownLists>,
    snapshot: CatalogSnapshot,
    vocabulary: Arc<SynonymTable>,
}

impl Rig {
    fn new() -> Self {
        let vocabulary = Arc::new(SynonymTable::of(&[]));
        let snapshot = CatalogSnapshot::empty(&vocabulary);
        Self { known: BTreeMap::new(), snapshot, vocabulary }
    }

    /// Records the tools of a server, each with a description.
    fn learn(&mut self, server: &str, tools: &[(&str, &str)]) -> u64 {
        self.learn_with(server, tools, None)
    }

    fn learn_with(
        &mut self,
        server: &str,
        tools: &[(&str, &str)],
        about: Option<&ServerProfile>,
    ) -> u64 {
        let known = self.known.entry(name(server)).or_default();
        known.learn(ListKind::Tools, &listing(tools), about, NOW);
        self.make()
    }

    /// Makes the next snapshot and returns its generation.
    fn make(&mut self) -> u64 {
        let revision = self.snapshot.revision + 1;
        self.snapshot = self.snapshot.next(&self.known, &self.vocabulary, &NoVectors, revision);
        self.snapshot.generation
    }

    fn found(&self, text: &str) -> Vec<String> {
        let query = SearchQuery {
            text,
            limit: 10,
            strategy: RankingStrategy::Keyword,
            ..SearchQuery::default()
        };
        let hits = self.snapshot.search(&query).into_iter();
        let found = hits.map(|hit| {
            let (server, tool) = self.snapshot.at(hit.place).expect("it stands there");
            format!("{}/{}", server.name, tool.key)
        });
        found.collect()
    }
}

fn name(text: &str) -> ServerName {
    ServerName::new(text).expect("a name")
}

fn listing(tools: &[(&str, &str)]) -> Listing {
    let tool = |(name, description): &(&str, &str)| {
        serde_json::json!({
            "name": name, "description": description, "inputSchema": { "type": "object" },
        })
    };
    let tools: Vec<_> = tools.iter().map(tool).collect();
    let result = serde_json::json!({ "tools": tools }).to_string();
    Listing::new(ListPage::read(ListKind::Tools, &result).expect("a list").items)
}

fn profile(title: &str, instructions: &str) -> ServerProfile {
    let result = serde_json::json!({
        "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
        "serverInfo": { "name": "x", "title": title, "version": "1" }, "instructions": instructions,
    });
    ServerProfile::read(&result.to_string()).expect("a profile")
}

#[test]
fn the_generation_grows_only_if_a_definition_changes() {
    let mut rig = Rig::new();
    assert_eq!(rig.make(), 0);
    assert_eq!(rig.learn("a", &[("one", "reads")]), 1);
    assert_eq!(rig.learn("a", &[("one", "reads")]), 1, "the same again");
    assert_eq!(rig.learn("a", &[("one", "writes")]), 2, "a description");
    assert_eq!(rig.learn("b", &[("one", "writes")]), 3, "a server");
    assert_eq!(rig.learn_with("b", &[("one", "writes")], Some(&profile("B", "i"))), 4);
    assert_eq!(rig.learn_with("b", &[("one", "writes")], Some(&profile("B", "i"))), 4);
    rig.known.remove("a");
    assert_eq!(rig.make(), 5, "a server that is gone");
    assert_eq!(rig.learn("b", &[]), 6, "a tool that is gone");
}

#[test]
fn equal_definitions_have_equal_fingerprints_whatever_their_history() {
    let (mut one, mut other) = (Rig::new(), Rig::new());
    one.learn("a", &[("x", "")]);
    one.learn("a", &[("y", "")]);
    one.learn("b", &[]);
    other.learn("b", &[]);
    assert_ne!(one.snapshot.fingerprint, other.snapshot.fingerprint);
    other.learn("a", &[("y", "")]);
    assert_eq!(one.snapshot.fingerprint, other.snapshot.fingerprint);
    assert_ne!(one.snapshot.generation, other.snapshot.generation);
}

#[test]
fn a_server_from_the_disk_is_confirmed_without_a_new_generation() {
    let mut rig = Rig::new();
    let tools = [("one", "reads")];
    let known = KnownLists::restored(
        CatalogDigest::of(b""),
        None,
        [(ListKind::Tools, listing(&tools))],
        NOW,
        CatalogDigest::of(b""),
    );
    rig.known.insert(name("a"), known);
    assert_eq!(rig.make(), 1);
    let source = |rig: &Rig| rig.snapshot.server("a").map(|server| server.source);
    assert_eq!(source(&rig), Some(KnownSource::Cache));
    assert_eq!(rig.learn("a", &tools), 1);
    assert_eq!(source(&rig), Some(KnownSource::Live));
}

#[test]
fn the_contents_and_the_index_of_a_snapshot_agree_and_do_not_change() {
    let mut rig = Rig::new();
    rig.learn("b", &[("open", "opens a window"), ("shut", "shuts a window")]);
    rig.learn("a", &[("read", "reads a book")]);
    let names: Vec<_> = rig.snapshot.servers().iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(rig.found("shuts"), ["b/shut"]);
    assert_eq!(rig.found("book"), ["a/read"]);
    assert_eq!(rig.snapshot.tool("b", "open").map(|tool| &*tool.key), Some("open"));
    assert!(rig.snapshot.tool("a", "open").is_none() && rig.snapshot.server("c").is_none());
    let only = SearchQuery { text: "window", limit: 9, server: Some(0), ..SearchQuery::default() };
    assert_eq!(rig.snapshot.search(&only), []);
    let pattern = SearchPattern::new("opens? a").expect("a pattern");
    assert_eq!(rig.snapshot.grep(&pattern, 9), [ToolPosition { server: 1, tool: 0 }]);

    let kept = rig.snapshot.next(&rig.known, &rig.vocabulary, &NoVectors, 0);
    rig.known.clear();
    rig.make();
    assert_eq!(rig.found("shuts"), [""; 0]);
    assert!(kept.tool("b", "shut").is_some(), "a reader keeps its snapshot");
}

#[test]
fn an_unchanged_list_is_not_analysed_again() {
    let mut rig = Rig::new();
    rig.learn("a", &[("x", "")]);
    rig.learn("b", &[("x", "")]);
    let analyzed = |rig: &Rig| Arc::clone(&rig.snapshot.server("a").expect("there").analyzed);
    let (before, index) = (analyzed(&rig), Arc::clone(&rig.snapshot.index));
    rig.learn("a", &[("x", "")]);
    assert!(Arc::ptr_eq(&index, &rig.snapshot.index));
    rig.learn("b", &[("y", "")]);
    assert!(Arc::ptr_eq(&before, &analyzed(&rig)));
    assert!(!Arc::ptr_eq(&index, &rig.snapshot.index));
}

#[test]
fn the_description_of_a_server_has_its_title_and_instructions_and_is_bounded() {
    assert_eq!(about(&profile("T", "does\nthis")), "T\ndoes\nthis");
    assert_eq!(about(&profile("", "i")), "i");
    let bare = ServerProfile::read(r#"{"protocolVersion":"2025-11-25","serverInfo":{"name":"n"}}"#);
    assert_eq!(about(&bare.expect("a profile")), "n");
    assert_eq!(about(&profile("T", &"ü".repeat(9000))).len(), defaults::ABOUT_BYTES_MAX);
}

#[test]
fn changed_synonyms_make_a_new_generation() {
    let mut rig = Rig::new();
    rig.learn("a", &[("fetch", "gets a frobnicator")]);
    let (generation, fingerprint) = (rig.snapshot.generation, rig.snapshot.fingerprint);
    let found = |rig: &Rig| {
        let query = SearchQuery { text: "doohickey", limit: 10, ..SearchQuery::default() };
        rig.snapshot.search(&query).len()
    };
    assert_eq!(found(&rig), 0);
    let group = ["doohickey", "frobnicator"].map(str::to_owned).to_vec();
    rig.vocabulary = Arc::new(SynonymTable::of(std::slice::from_ref(&group)));
    assert_eq!((rig.make(), found(&rig)), (generation + 1, 1));
    assert_ne!(rig.snapshot.fingerprint, fingerprint);
    rig.vocabulary = Arc::new(SynonymTable::of(&[group]));
    assert_eq!(rig.make(), generation + 1, "they are the same");
}
