//! Tests with files that metamcp wrote, and with foreign files.

use serde_json::json;

use super::*;

const SINCE: SystemTime = SystemTime::UNIX_EPOCH;

fn name(text: &str) -> ServerName {
    ServerName::new(text).expect("a name")
}

fn declared() -> CatalogDigest {
    CatalogDigest::of(b"a")
}

fn page(list: ListKind, items: &str) -> Listing {
    let result = format!(r#"{{"{}":{items}}}"#, list.member());
    Listing::new(ListPage::read(list, &result).expect("a list").items)
}

fn profile() -> ServerProfile {
    let result = json!({
        "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "future": [1.5],
        "serverInfo": { "name": "s", "version": "1" }, "instructions": "i\n\"",
    });
    ServerProfile::read(&result.to_string()).expect("a profile")
}

/// Tools with unusual but valid JSON.
const TOOLS: &str = r#"[{ "name":"a\u0062", "inputSchema":{"type":"object"},"x":1e400 },
    {"inputSchema" : {"type":"object",
"y":0.10},"name":"ü"}]"#;

fn known() -> KnownLists {
    let lists = [
        (ListKind::Tools, page(ListKind::Tools, TOOLS)),
        (ListKind::Resources, Listing::default()),
        (
            ListKind::ResourceTemplates,
            page(ListKind::ResourceTemplates, r#"[{"uriTemplate":"a:{b}","name":"t"}]"#),
        ),
    ];
    KnownLists::restored(declared(), Some(profile()), lists, SINCE, CatalogDigest::of(b""))
}

fn file() -> Vec<u8> {
    write(&name("git"), &known()).0
}

/// Returns a file with this body and a valid header.
fn file_of(body: &str) -> Vec<u8> {
    let checksum = CatalogDigest::of(body.as_bytes()).to_string();
    let header = json!({
        "format": FORMAT, "server": "git", "declared": declared().to_string(),
        "checksum": checksum, "read": 7,
    });
    format!("{header}\n{body}").into_bytes()
}

fn read_back(bytes: &[u8]) -> Result<KnownLists, CacheFileError> {
    read(&name("git"), declared(), bytes)
}

#[test]
fn a_written_catalog_file_is_read_back_byte_for_byte() {
    let found = read_back(&file()).expect("ours");
    for list in LISTS {
        assert_eq!(found.reading(list), known().reading(list), "{list:?}");
    }
    let tools = found.listing(ListKind::Tools).expect("tools");
    assert_eq!(tools.iter().map(|tool| &*tool.key).collect::<Vec<_>>(), ["ab", "ü"]);
    assert!(tools.iter().all(|tool| TOOLS.contains(tool.json())));
    assert_eq!(found.profile().map(|profile| &**profile), Some(&profile()));
    assert_eq!((found.read(), found.declared), (Some(SINCE), Some(declared())));

    let (again, digest) = write(&name("git"), &found);
    assert_eq!(again, file());
    assert_eq!(found.saved, Some(digest), "there is nothing to write");
}

#[test]
fn cache_files_of_modern_servers_and_of_servers_without_a_profile_are_read() {
    let result = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"prompts":{}},"_meta":{}}"#;
    let modern = ServerProfile::discovered(result).expect("a profile");
    for profile in [Some(modern), None] {
        let known =
            KnownLists::restored(declared(), profile.clone(), [], SINCE, CatalogDigest::of(b""));
        let found = read_back(&write(&name("git"), &known).0).expect("ours");
        assert_eq!(found.profile().map(|found| (**found).clone()), profile);
    }
}

#[test]
fn the_digest_of_a_cache_file_depends_on_definitions_and_not_on_the_time_of_the_read() {
    let (_, digest) = write(&name("git"), &known());
    let mut known = known();
    let mut learn = |tools: &str| {
        let later = SINCE + Duration::from_secs(60);
        known.learn(ListKind::Tools, &page(ListKind::Tools, tools), Some(&profile()), later);
        write(&name("git"), &known).1
    };
    assert_eq!(learn(TOOLS), digest);
    assert_ne!(learn(&TOOLS.replace("0.10", "0.11")), digest);
}

#[test]
fn a_cache_file_of_another_declaration_or_format_is_ignored() {
    let of_another = read(&name("git"), CatalogDigest::of(b"b"), &file());
    assert_eq!(of_another.map(drop), Err(CacheFileError::Foreign));
    let newer = format!("{{\"format\":{},\"all\":\"else\"}}\nbinary", FORMAT + 1);
    assert_eq!(read_back(newer.as_bytes()).map(drop), Err(CacheFileError::Foreign));
}

#[test]
fn a_truncated_cache_file_is_rejected() {
    let file = file();
    for end in 0..file.len() {
        assert!(read_back(&file[..end]).is_err(), "{end} bytes of it");
    }
    assert!(read(&name("other"), declared(), &file).is_err(), "that of another server");
}

#[test]
fn an_invalid_cache_file_is_rejected_even_if_its_checksum_is_right() {
    let tool = r#"{"name":"a","inputSchema":{"type":"object"}}"#;
    let good = format!(r#"{{"tools":[{tool}]}}"#);
    read_back(&file_of(&good)).expect("it is as we write it");
    let many = vec![r#"{"uri":"a","name":""}"#; defaults::CACHED_ITEMS_MAX + 1];
    let many: Vec<_> = many
        .iter()
        .enumerate()
        .map(|(n, item)| item.replace("\"a\"", &format!("\"a:{n}\"")))
        .collect();
    for odd in [
        "",
        "7",
        "[]",
        r#"{"tools":7}"#,
        r#"{"tools":[7]}"#,
        r#"{"tools":[{"name":"a"}]}"#,
        &format!(r#"{{"tools":[{tool},{tool}]}}"#),
        &format!(r#"{{"resources":[{}]}}"#, many.join(",")),
        r#"{"protocolVersion":"2025-11-25","profile":7}"#,
        r#"{"protocolVersion":"2025-11-25","profile":{"protocolVersion":"2025-06-18"}}"#,
        r#"{"protocolVersion":"2026-07-28","profile":{"protocolVersion":"2025-06-18"}}"#,
        r#"{"protocolVersion":"9999-99-99","profile":{"protocolVersion":"9999-99-99"}}"#,
        &format!("{}7{}", "[".repeat(10_000), "]".repeat(10_000)),
    ] {
        let found = read_back(&file_of(odd)).map(drop);
        assert!(matches!(found, Err(CacheFileError::Corrupt(_))), "{}", &odd[..odd.len().min(80)]);
    }
}

proptest::proptest! {
    #[test]
    fn no_content_of_a_cache_file_causes_a_panic(bytes: Vec<u8>, body: String) {
        let _neither_panics = read_back(&bytes);
        let _nor_with_a_header = read_back(&file_of(&body));
    }

    #[test]
    fn a_changed_byte_in_a_cache_file_is_detected(at: proptest::sample::Index, byte: u8) {
        let mut file = file();
        let at = at.index(file.len());
        proptest::prop_assume!(file[at] != byte);
        file[at] = byte;
        if let Ok(found) = read_back(&file) {
            // The time of the read is not compared.
            proptest::prop_assert_eq!(found.listing(ListKind::Tools), known().listing(ListKind::Tools));
        }
    }
}
