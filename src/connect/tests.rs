use std::path::PathBuf;

use proptest::prelude::*;

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
    ConnectRequest { client, name: "metamcp", link, address, served: None }
}

/// Connects a client, and returns the new text with the record of it.
fn connected(request: &ConnectRequest<'_>, text: &str) -> (String, ConnectionRecord) {
    let change = connect(request, Some(text))
        .unwrap_or_else(|error| panic!("{:?}: {error}\n{text}", request.client))
        .expect("a change");
    let record = ConnectionRecord {
        client: request.client.word().to_owned(),
        file: PathBuf::from("/file"),
        entries: change.entries,
        switched: change.switched,
        n_tables_made: change.n_tables_made,
        ..ConnectionRecord::default()
    };
    (change.text.expect("a text"), record)
}

fn disconnected(client: KnownClient, text: &str, record: &ConnectionRecord) -> String {
    let change = disconnect(client, text, Some(record), defaults::HTTP_ADDRESS)
        .unwrap_or_else(|error| panic!("{client:?}: {error}\n{text}"))
        .expect("a change");
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
            let own = own_entries(client, &after, defaults::HTTP_ADDRESS).expect("readable");
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
        let change = disconnect(client, &after, None, defaults::HTTP_ADDRESS).expect("readable");
        let change = change.expect("a change");
        assert_eq!(change.text.as_deref(), Some(text), "{client:?}");
        let again = disconnect(client, text, None, defaults::HTTP_ADDRESS).expect("readable");
        assert_eq!(again, None, "{client:?}");
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
        let change = disconnect(client, &after, Some(&record), defaults::HTTP_ADDRESS);
        assert_eq!(change.expect("readable").expect("a change").text, None, "{client:?}");
    }
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
