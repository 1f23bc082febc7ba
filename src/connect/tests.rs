use std::{path::PathBuf, sync::LazyLock};

use proptest::prelude::*;
use saphyr::{LoadableYamlNode as _, Yaml};

use super::*;
use crate::config::{defaults, load};

/// The examples of the clients' documentation, which `metamcp import` reads as well.
const EXAMPLES: [(KnownClient, &str); 14] = [
    // The examples of Claude Code declare metamcp already.
    (KnownClient::ClaudeCode, include_str!("../../tests/import/cursor.json")),
    (KnownClient::ClaudeDesktop, include_str!("../../tests/import/claude-desktop.json")),
    (KnownClient::Cursor, include_str!("../../tests/import/cursor.json")),
    (KnownClient::VsCode, include_str!("../../tests/import/vscode-mcp.json")),
    (KnownClient::Codex, include_str!("../../tests/import/codex.toml")),
    (KnownClient::Gemini, include_str!("../../tests/import/gemini.json")),
    (KnownClient::OpenCode, include_str!("../../tests/import/opencode.jsonc")),
    (KnownClient::Windsurf, include_str!("../../tests/import/windsurf.json")),
    (KnownClient::Zed, include_str!("../../tests/import/zed.json")),
    (KnownClient::Goose, include_str!("../../tests/import/goose.yaml")),
    (KnownClient::Cline, include_str!("../../tests/import/cline.json")),
    (KnownClient::Kiro, include_str!("../../tests/import/kiro.json")),
    (KnownClient::Amp, include_str!("../../tests/import/amp.json")),
    (KnownClient::Roo, include_str!("../../tests/import/roo.json")),
];

/// The usual address of metamcp.
static OWN: LazyLock<OwnEndpoints> = LazyLock::new(OwnEndpoints::default);

fn request(client: KnownClient, has_token: bool) -> ConnectRequest<'static> {
    let address = defaults::HTTP_ADDRESS;
    let form = client.profile().endpoint.as_ref();
    let is_endpoint = form.is_some_and(|form| !has_token || form.token.is_some());
    let link = match is_endpoint {
        true => ClientLink::Endpoint { url: format!("http://{address}/"), has_token },
        false => ClientLink::Program {
            command: "/usr/bin/metamcp".to_owned(),
            args: vec!["stdio".to_owned()],
        },
    };
    ConnectRequest { client, name: "metamcp", link, own: &OWN, served: None }
}

/// Connects a client, and returns the new text with the record of it.
fn connected(request: &ConnectRequest<'_>, text: &str) -> (String, ConnectionRecord) {
    let change = connect(request, Some(text))
        .unwrap_or_else(|error| panic!("{:?}: {error}\n{text}", request.client))
        .expect("a change");
    let record = ConnectionRecord {
        client: request.client.word().to_owned(),
        file: PathBuf::from("/file"),
        entries: change.entries.into_iter().map(|name| (name, request.link.clone())).collect(),
        switched: change.switched,
        n_tables_made: change.n_tables_made,
        ..ConnectionRecord::default()
    };
    (change.text.expect("a text"), record)
}

fn disconnected(client: KnownClient, text: &str, record: &ConnectionRecord) -> String {
    let change = disconnect(client, text, Some(record), &OWN)
        .unwrap_or_else(|error| panic!("{client:?}: {error}\n{text}"));
    assert!(!change.is_empty(), "{client:?}\n{text}");
    change.text.unwrap_or_default()
}

#[test]
fn every_client_gets_an_entry_in_its_own_form() {
    let mut all = String::new();
    for client in KnownClient::ALL {
        for has_token in [false, true] {
            let with = if has_token { "with" } else { "without" };
            let request = request(client, has_token);
            all.push_str(&format!("== {} {with} a token\n{}\n", client.title(), snippet(&request)));
            let again = connect(&request, Some(&snippet(&request))).expect("readable");
            assert_eq!(again, None, "{client:?} is connected once");
        }
    }
    insta::assert_snapshot!("entries", all);
}

#[test]
fn connecting_and_disconnecting_a_documented_file_gives_the_same_text() {
    for (client, text) in EXAMPLES {
        for has_token in [false, true] {
            let (after, record) = connected(&request(client, has_token), text);
            let own = own_entries(client, &after, &OWN).expect("readable");
            assert_eq!(own, ["metamcp"], "{client:?}");
            for line in text.lines().filter(|line| line.trim_start().starts_with(['/', '#'])) {
                assert!(after.contains(line), "{client:?}: {line}");
            }
            assert_eq!(disconnected(client, &after, &record), text, "{client:?}");
        }
    }
}

#[test]
fn without_a_record_the_entries_that_lead_to_metamcp_are_removed() {
    for (client, text) in EXAMPLES {
        let (after, _) = connected(&request(client, false), text);
        let change = disconnect(client, &after, None, &OWN).expect("readable");
        assert_eq!(change.text.as_deref(), Some(text), "{client:?}");
        let again = disconnect(client, text, None, &OWN).expect("readable");
        assert!(again.is_empty(), "{client:?}");
    }
}

#[test]
fn an_own_entry_is_replaced_and_that_of_another_server_is_not() {
    let other = r#"{"mcpServers": {"metamcp": {"url": "https://example.com/mcp"}}}"#;
    let taken = connect(&request(KnownClient::Cursor, false), Some(other));
    assert!(matches!(taken, Err(ClientFileError::Taken(name)) if name == "metamcp"));
    let old = r#"{"mcpServers": {"metamcp": {"url": "http://localhost:12011/meta"}}}"#;
    let (after, _) = connected(&request(KnownClient::Cursor, false), old);
    assert!(!after.contains("/meta"), "{after}");
}

#[test]
fn a_file_of_an_unknown_shape_is_refused_with_an_entry_to_paste() {
    for (client, text, error) in [
        (KnownClient::Cursor, "{\n  \"a\": sk-x\n}", "not JSON: line 2, column 8"),
        (KnownClient::Cursor, "[]", "its `root` is not a table"),
        (KnownClient::Cursor, "{\"mcpServers\": []}", "its `mcpServers` is not a table"),
        (KnownClient::Codex, "a = \n", "not TOML: line 1, column 5"),
        (KnownClient::Codex, "mcp_servers = 1\n", "its `mcp_servers` is not a table"),
        (KnownClient::Goose, "extensions: {a: {b: 1}}\n", "the form of line 1 is not understood"),
        (KnownClient::Goose, "extensions:\n- a\n", "its `extensions` is not a table"),
        (
            KnownClient::Goose,
            "extensions:\n  a: &x\n    b: 1\n",
            "not YAML in the form that Goose writes: line 2",
        ),
    ] {
        let request = request(client, false);
        let refused = connect(&request, Some(text)).expect_err(text);
        assert_eq!(refused.to_string(), error, "{text}");
        assert!(snippet(&request).contains("metamcp"));
    }
}

/// Each client's declaration of two servers, of which metamcp serves one.
fn with_served(client: KnownClient) -> Option<&'static str> {
    Some(match client {
        KnownClient::Cursor | KnownClient::Cline => {
            "{\n  // mine\n  \"mcpServers\": {\n    \"time\": {\"command\": \"mcp-time\", \"args\": [\"-u\"]},\n    // other\n    \"git\": {\"command\": \"other-git\"}\n  }\n}\n"
        }
        KnownClient::OpenCode => {
            "{\n  \"mcp\": {\n    \"time\": {\"type\": \"local\", \"command\": [\"mcp-time\", \"-u\"]},\n    \"git\": {\"type\": \"local\", \"command\": [\"other-git\"], \"enabled\": true}\n  }\n}\n"
        }
        KnownClient::Codex => {
            "# mine\n[mcp_servers.time] # UTC\ncommand = \"mcp-time\"\nargs = [\"-u\"]\n\n[mcp_servers.git]\ncommand = \"other-git\"\n"
        }
        KnownClient::Goose => {
            "extensions:\n  # mine\n  time:\n    type: stdio\n    cmd: mcp-time\n    args: [-u]\n    enabled: true # on\n  git:\n    type: stdio\n    cmd: other-git\n"
        }
        _ => return None,
    })
}

#[test]
fn entries_of_servers_that_metamcp_serves_are_switched_off_and_on_again() {
    let config = "[servers.time]\ncommand = \"mcp-time\"\nargs = [\"-u\"]\n[servers.git]\ncommand = \"git\"\n";
    let config = load::content(Path::new("c.toml"), config).expect("valid");
    for client in KnownClient::ALL {
        let Some(text) = with_served(client) else { continue };
        let request = ConnectRequest { served: Some(&config), ..request(client, false) };
        let (after, record) = connected(&request, text);
        let names: Vec<&str> = record.switched.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["time"], "{client:?}");
        let found = servers(client, &after).expect("readable");
        let is_active = |name| found.iter().any(|it| it.name() == name && !it.is_disabled());
        assert!(!is_active("time") && is_active("git") && is_active("metamcp"), "{after}");
        assert_eq!(connect(&request, Some(&after)).expect("readable"), None, "{client:?}");
        let text_again = disconnected(client, &after, &record);
        let (before, again) = (servers(client, text), servers(client, &text_again));
        let (before, again) = (before.expect("readable"), again.expect("readable"));
        assert_eq!(before.len(), again.len(), "{text_again}");
        let is_there =
            |server: &ForeignServer| again.iter().any(|it| it.is_same_declaration(server));
        assert!(before.iter().all(is_there), "{client:?}\n{text_again}");
    }
}

#[test]
fn a_file_without_content_is_removed_again_if_connect_made_it() {
    for client in KnownClient::ALL {
        let (after, record) = connected(&request(client, false), "");
        let record = ConnectionRecord { was_made: true, ..record };
        let change = disconnect(client, &after, Some(&record), &OWN);
        assert_eq!(change.expect("readable").text, None, "{client:?}");
    }
}

/// Connects a client of two served servers, and returns the new text with the record of it.
fn connected_to_served(client: KnownClient, text: &str) -> (String, ConnectionRecord) {
    let config = "[servers.time]\ncommand = \"mcp-time\"\nargs = [\"-u\"]\n";
    let config = load::content(Path::new("c.toml"), config).expect("valid");
    connected(&ConnectRequest { served: Some(&config), ..request(client, false) }, text)
}

/// Returns the names and reasons of the entries that stay when a client is disconnected.
fn kept(client: KnownClient, text: &str, record: &ConnectionRecord) -> Vec<(String, KeptReason)> {
    let change = disconnect(client, text, Some(record), &OWN).expect("readable");
    change.kept.into_iter().map(|kept| (kept.name, kept.reason)).collect()
}

#[test]
fn an_entry_that_the_user_changed_after_connecting_stays_and_the_reason_is_known() {
    let reason = |reason| vec![("time".to_owned(), reason)];
    let (after, record) =
        connected_to_served(KnownClient::Cursor, with_served(KnownClient::Cursor).expect("one"));
    let elsewhere = after.replace("http://127.0.0.1:12011/", "https://example.com/");
    let (changed, left) = (
        vec![("metamcp".to_owned(), KeptReason::Changed)],
        disconnected(KnownClient::Cursor, &elsewhere, &record),
    );
    assert_eq!(kept(KnownClient::Cursor, &elsewhere, &record), changed);
    assert!(left.contains("example.com") && left.contains("mcp-time"), "{left}");

    let again = after.replace("\"git\":", "\"time\": {\"command\": \"mine\"}, \"git\":");
    assert_eq!(kept(KnownClient::Cursor, &again, &record), reason(KeptReason::DeclaredAgain));
    let renamed = after.replace(
        "\"git\":",
        "\"clock\": {\"command\": \"mcp-time\", \"args\": [\"-u\"]}, \"git\":",
    );
    let as_clock = KeptReason::DeclaredAs("clock".to_owned());
    assert_eq!(kept(KnownClient::Cursor, &renamed, &record), reason(as_clock));
    let left = disconnected(KnownClient::Cursor, &renamed, &record);
    assert_eq!(left.matches("mcp-time").count(), 1, "{left}");

    let (after, record) =
        connected_to_served(KnownClient::Codex, with_served(KnownClient::Codex).expect("one"));
    let on = after.replace("enabled = false\n", "");
    assert_eq!(kept(KnownClient::Codex, &on, &record), reason(KeptReason::Active));
}

#[test]
fn an_entry_with_a_former_address_of_metamcp_is_removed_by_its_record() {
    let link = ClientLink::Endpoint { url: "http://127.0.0.1:4711/".to_owned(), has_token: false };
    let former = ConnectRequest { link, ..request(KnownClient::Cursor, false) };
    let (after, record) = connected(&former, "{}");
    assert_eq!(disconnected(KnownClient::Cursor, &after, &record), "{}");
    assert!(disconnect(KnownClient::Cursor, &after, None, &OWN).expect("readable").is_empty());
}

#[test]
fn a_record_forgets_what_is_no_longer_as_connect_left_it() {
    let text = with_served(KnownClient::Cursor).expect("one");
    let (after, record) = connected_to_served(KnownClient::Cursor, text);
    let mut current = record.clone();
    retain_current(&mut current, KnownClient::Cursor, &after);
    assert_eq!(current, record);
    retain_current(&mut current, KnownClient::Cursor, text);
    assert!(current.entries.is_empty() && current.switched.is_empty(), "{current:?}");
}

#[test]
fn a_mark_and_the_line_ends_of_a_file_stay() {
    for (client, text) in EXAMPLES {
        let text = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        let (after, record) = connected(&request(client, false), &text);
        assert!(after.starts_with('\u{feff}'), "{client:?}");
        assert!(!after.replace("\r\n", "").contains(['\r', '\n']), "{client:?}: {after:?}");
        assert_eq!(disconnected(client, &after, &record), text, "{client:?}");
    }
}

/// Files of Goose in forms that Goose itself does not write.
const UNUSUAL_YAML: [&str; 16] = [
    "\"extensions\":\n  a:\n    type: stdio\n    cmd: x\n",
    "'extensions': {}\nb: 1\n",
    "a: |\n  x\n  extensions:\n    b: 1\n",
    "a: \"x\nextensions:\n  b: 1\"\n",
    "a: 'x\nextensions:'\n",
    "{a: 1, extensions: {}}\n",
    "  a: 1\n  extensions:\n    b:\n      type: stdio\n      cmd: x\n",
    "extensions:\n  a:\n    type: stdio\n    cmd: x\n...\n",
    "extensions: {}\n---\nextensions: {}\n",
    "extensions:\n- a\n",
    "extensions:\t{}\n",
    "extensions: &x\n  a:\n    type: stdio\n    cmd: x\n",
    "a: &x\n  b: 1\nextensions: *x\n",
    "extensions:\n  a:\n    type: stdio\n    cmd: x\n    description: |\n      y\n      # z",
    "extensions:\n  a:\n    type: stdio\n    cmd: x\n    description: |+\n      y\n      # z\n\n# c\n",
    "[a,\nextensions: 1]\n",
];

#[test]
fn a_file_of_goose_in_an_unusual_form_is_refused_or_means_the_same_afterwards() {
    let n_written = UNUSUAL_YAML.iter().filter(|text| is_connected(text)).count();
    assert_eq!(n_written, 4, "quoted keys and literal texts are understood");
}

/// Connects Goose unless the form is refused, checks the result with another parser, and returns
/// whether it is connected.
fn is_connected(text: &str) -> bool {
    let request = request(KnownClient::Goose, false);
    let Ok(Some(change)) = connect(&request, Some(text)) else { return false };
    let after = change.text.expect("a text");
    let (Ok(before), Ok(now)) = (Yaml::load_from_str(text), Yaml::load_from_str(&after)) else {
        assert!(Yaml::load_from_str(text).is_err(), "it is broken:\n{text}\n=>\n{after}");
        return true;
    };
    let others = |documents: Vec<Yaml<'static>>| {
        let mut others = Vec::new();
        for (key, value) in documents.iter().filter_map(Yaml::as_mapping).flatten() {
            let Some(table) = value.as_mapping().filter(|_| key.as_str() == Some("extensions"))
            else {
                others.push(format!("{key:?}: {value:?}"));
                continue;
            };
            let entries = table.iter().filter(|(name, _)| name.as_str() != Some("metamcp"));
            others.extend(entries.map(|(name, entry)| format!("extensions {name:?}: {entry:?}")));
        }
        others.retain(|other| !other.starts_with("Value(String(\"extensions\")): Value(Null)"));
        (documents.len().max(1), others)
    };
    let own = |yaml: &Yaml<'_>| yaml["extensions"]["metamcp"]["uri"].as_str().map(str::to_owned);
    assert_eq!(own(&now[0]).as_deref(), Some("http://127.0.0.1:12011/"), "{after}");
    assert_eq!(others(before), others(now), "{text}\n=>\n{after}");
    true
}

/// Files in JSON with comments, members in a row or in lines, and other line ends.
fn json_files() -> impl Strategy<Value = String> {
    let members = prop::sample::subsequence(vec![0, 1, 2], 0..=3);
    (members, any::<bool>(), any::<bool>()).prop_map(|(chosen, has_table, is_crlf)| {
        let all = [
            "\"a\": {\"command\": \"x\"}",
            "\"b\": {\n      // inside\n      \"url\": \"http://h/\"\n    }",
            "\"c\": {\"command\": \"y\"}",
        ];
        let members: Vec<String> =
            chosen.into_iter().map(|at| format!("    // above\n    {}", all[at])).collect();
        let text = match has_table {
            true => format!(
                "// first\n{{\n  \"theme\": 1,\n  \"mcpServers\": {{\n{}\n  }}\n}}\n",
                members.join(",\n")
            ),
            false => "{\n  // nothing\n  \"theme\": 1\n}\n".to_owned(),
        };
        if is_crlf { text.replace('\n', "\r\n") } else { text }
    })
}

proptest! {
    #[test]
    fn comments_and_servers_survive_in_any_file(text in json_files()) {
        let request = request(KnownClient::Cursor, false);
        let (after, record) = connected(&request, &text);
        let comments = |text: &str| text.matches("//").count();
        prop_assert_eq!(comments(&after) , comments(&text) + 1);
        prop_assert_eq!(after.matches("\r\n").count() > 0, text.contains("\r\n"));
        let undone = disconnected(KnownClient::Cursor, &after, &record);
        prop_assert_eq!(comments(&undone), comments(&text));
        let (before, again) = (servers(KnownClient::Cursor, &text), servers(KnownClient::Cursor, &undone));
        let (before, again) = (before.expect("readable"), again.expect("readable"));
        prop_assert!(before.iter().all(|it| again.iter().any(|other| other.is_same_declaration(it))));
        prop_assert_eq!(before.len(), again.len());
    }

    #[test]
    fn any_file_of_goose_is_refused_or_means_the_same_afterwards(
        lines in prop::collection::vec(prop_oneof![
            Just("extensions:"), Just("extensions: {}"), Just("'extensions':"), Just("  a:"),
            Just("  a: {}"), Just("    b: 1"), Just("    b: |"), Just("    b: >+ # c"), Just("      # c"),
            Just("      d"), Just("e: 'f"), Just("e: |"), Just("  g: [h,"), Just("- i: j"), Just("  - k"),
            Just("---"), Just("..."), Just(""), Just("# l"), Just("m: n # o"), Just("  p: \"q\\"),
            Just("  - - r"), Just("s: - t"), Just("u: it's"), Just("  'v': w"), Just("  x # y"),
            Just("z:\t1"), Just("  \t"), Just("0: !t a"), Just("    enabled: true"),
        ], 0..9),
        is_ended in any::<bool>(),
    ) {
        let text = lines.join("\n");
        is_connected(&if is_ended { format!("{text}\n") } else { text });
    }

    #[test]
    fn any_text_is_connected_or_refused(text in "(\\{|extensions:|\\[mcp_servers\\])?[ \n{}\\[\\]a:\"=,#-]{0,40}") {
        for client in [KnownClient::Cursor, KnownClient::Codex, KnownClient::Goose] {
            let request = request(client, false);
            if let Ok(Some(change)) = connect(&request, Some(&text)) {
                let after = change.text.expect("a text");
                prop_assert!(connect(&request, Some(&after)).expect("readable").is_none());
            }
        }
    }
}
