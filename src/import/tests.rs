use proptest::prelude::*;

use super::*;
use crate::config::load;

/// A file as the client's documentation shows it, with its difficult cases.
struct Example {
    /// The name of its snapshots.
    name: &'static str,
    path: &'static str,
    text: &'static str,
    /// The project that it belongs to.
    project: Option<&'static str>,
}

/// The marker in every secret of the examples.
const CANARY: &str = "CANARY";

const EXAMPLES: [Example; 18] = [
    Example {
        name: "claude_code_user",
        path: "/home/ada/.claude.json",
        text: include_str!("../../tests/import/claude-code-user.json"),
        project: None,
    },
    Example {
        name: "claude_code_project",
        path: "/srv/shop/.mcp.json",
        text: include_str!("../../tests/import/claude-code-project.json"),
        project: Some("/srv/shop"),
    },
    Example {
        name: "claude_desktop",
        path: "/home/ada/.config/Claude/claude_desktop_config.json",
        text: include_str!("../../tests/import/claude-desktop.json"),
        project: None,
    },
    Example {
        name: "cursor",
        path: "/srv/shop/.cursor/mcp.json",
        text: include_str!("../../tests/import/cursor.json"),
        project: Some("/srv/shop"),
    },
    Example {
        name: "vscode",
        path: "/srv/shop/.vscode/mcp.json",
        text: include_str!("../../tests/import/vscode-mcp.json"),
        project: Some("/srv/shop"),
    },
    Example {
        name: "vscode_settings",
        path: "/home/ada/.config/Code/User/settings.json",
        text: include_str!("../../tests/import/vscode-settings.json"),
        project: None,
    },
    Example {
        name: "windsurf",
        path: "/home/ada/.codeium/windsurf/mcp_config.json",
        text: include_str!("../../tests/import/windsurf.json"),
        project: None,
    },
    Example {
        name: "codex",
        path: "/home/ada/.codex/config.toml",
        text: include_str!("../../tests/import/codex.toml"),
        project: None,
    },
    Example {
        name: "opencode",
        path: "/home/ada/.config/opencode/opencode.jsonc",
        text: include_str!("../../tests/import/opencode.jsonc"),
        project: None,
    },
    Example {
        name: "gemini",
        path: "/srv/shop/.gemini/settings.json",
        text: include_str!("../../tests/import/gemini.json"),
        project: Some("/srv/shop"),
    },
    Example {
        name: "zed",
        path: "/home/ada/.config/zed/settings.json",
        text: include_str!("../../tests/import/zed.json"),
        project: None,
    },
    Example {
        name: "goose",
        path: "/home/ada/.config/goose/config.yaml",
        text: include_str!("../../tests/import/goose.yaml"),
        project: None,
    },
    Example {
        name: "cline",
        path: "/home/ada/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        text: include_str!("../../tests/import/cline.json"),
        project: None,
    },
    Example {
        name: "copilot_cli",
        path: "/home/ada/.copilot/mcp-config.json",
        text: include_str!("../../tests/import/copilot-cli.json"),
        project: None,
    },
    Example {
        name: "kiro",
        path: "/srv/shop/.kiro/settings/mcp.json",
        text: include_str!("../../tests/import/kiro.json"),
        project: Some("/srv/shop"),
    },
    Example {
        name: "amp",
        path: "/home/ada/.config/amp/settings.json",
        text: include_str!("../../tests/import/amp.json"),
        project: None,
    },
    Example {
        name: "roo",
        path: "/srv/shop/.roo/mcp.json",
        text: include_str!("../../tests/import/roo.json"),
        project: Some("/srv/shop"),
    },
    Example {
        name: "remote_servers",
        path: "/srv/remote/.mcp.json",
        text: include_str!("../../tests/import/remote-servers.json"),
        project: Some("/srv/remote"),
    },
];

impl Example {
    fn read(&self) -> Vec<ForeignServer> {
        let path = Path::new(self.path);
        let context = context_of(path, Some(Path::new("/home/ada")));
        assert_eq!(context.project.as_deref(), self.project, "{}", self.path);
        read(path, self.text, None, &context)
            .unwrap_or_else(|error| panic!("{}: {error}", self.path))
    }
}

/// Imports a text as the file at `path`.
/// Imports servers on a host where metamcp has its usual address.
fn import(found: Vec<ForeignServer>) -> ImportPlan {
    super::import(found, &OwnEndpoints::default())
}

fn imported(path: &str, text: &str) -> ImportPlan {
    let path = Path::new(path);
    let context = context_of(path, Some(Path::new("/home/ada")));
    import(read(path, text, None, &context).expect("readable"))
}

fn mcp_servers(servers: &str) -> ImportPlan {
    imported("/srv/shop/.mcp.json", &format!("{{\"mcpServers\": {servers}}}"))
}

/// Returns all output of an import.
fn all_of(import: &ImportPlan) -> String {
    let json = import.to_json().to_string();
    [import.to_toml(), import.to_nix(), json, import.to_text(false)].concat()
}

fn assert_valid(text: &str) {
    if let Err(error) = load::content(Path::new("imported.toml"), text) {
        panic!("{error}\n{text}");
    }
}

#[test]
fn every_client_format_is_converted_to_toml_and_nix() {
    for example in &EXAMPLES {
        let import = import(example.read());
        assert_valid(&import.to_toml());
        insta::assert_snapshot!(format!("{}_toml", example.name), import.to_toml());
        insta::assert_snapshot!(format!("{}_nix", example.name), import.to_nix());
    }
}

#[test]
fn no_output_of_an_import_contains_a_secret() {
    let mut all = Vec::new();
    for example in &EXAMPLES {
        let found = example.read();
        all.extend(found.clone());
        assert!(!all_of(&import(found)).contains(CANARY), "{}", example.name);
    }
    let import = import(all);
    assert_valid(&import.to_toml());
    assert!(!all_of(&import).contains(CANARY));
    insta::assert_snapshot!("all_in_words", import.to_text(false));
    insta::assert_snapshot!("all_json", format!("{:#}", import.to_json()));
}

#[test]
fn a_secret_is_hidden_in_every_place_of_a_declaration() {
    let secret = "ghp_CANARYabcdefgh0123456789";
    for server in [
        r#""command": "x", "env": {"A": "SECRET"}"#,
        r#""command": "x", "env": {"SECRET": "1", "A=SECRET": ""}"#,
        r#""command": "x", "env": {"A": "credential:SECRET", "B": "env:SECRET"}"#,
        r#""command": "x", "env": {"A": "a ${B} SECRET", "C": "${C:-SECRET}"}"#,
        r#""command": "x", "args": ["SECRET", "--x=SECRET", "-e", "A=SECRET", "A: SECRET"]"#,
        r#""command": "x", "args": ["${A}SECRET", "https://a:SECRET@b", "a SECRET b"]"#,
        r#""command": "sh", "args": ["-c", "A=SECRET x --token SECRET"]"#,
        r#""command": "SECRET""#,
        r#""command": "x SECRET", "cwd": "/SECRET""#,
        r#""command": "x", "env": {"A": "SECRET\u0000"}, "args": ["SECRET\u0000"]"#,
        r#""url": "http://SECRET@host/""#,
        r#""url": "http://a:SECRET@host/SECRET?a=SECRET&b=${B}#SECRET""#,
        r#""url": "https://host/mcp/SECRET", "headers": {"A": "SECRET\n"}"#,
        r#""url": "http://host/", "headers": {"SECRET": "a", "SEC RET": "SECRET"}"#,
        r#""url": "SECRET", "bearerToken": "SECRET""#,
        r#""url": "http://host/", "SECRET": 1, "oauth": {"clientSecret": "SECRET"}"#,
        r#""command": ["SECRET"], "args": "SECRET""#,
    ] {
        let import = mcp_servers(&format!("{{\"a\": {{{server}}}}}").replace("SECRET", secret));
        let shown = all_of(&import);
        // A header may have any name, and the name is not a secret.
        let shown = shown
            .replace(&format!("{secret} = \"a\""), "")
            .replace(&format!("\"{secret}\":\"a\""), "");
        let is_name = server.contains("\"SECRET\": \"1\"");
        assert!(is_name || !shown.contains(CANARY), "{server}\n{shown}");
        assert_valid(&import.to_toml());
    }
}

#[test]
fn an_unreadable_file_is_refused_without_quoting_it() {
    let of = |path: &str, text: &str| {
        let error = read(Path::new(path), text, None, &ImportContext::default()).expect_err(text);
        assert!(!error.hint().is_empty());
        error.to_string()
    };
    assert_eq!(of("a.json", "{\n  \"key\": sk-CANARY\n}"), "not JSON: line 2, column 10");
    assert_eq!(of("a.json", "{} {}"), "not JSON: line 1, column 4");
    assert_eq!(of("a.toml", "a = 1\nkey = sk-CANARY\n"), "not TOML: line 2, column 7");
    let unknown = "it declares no MCP servers in a known form";
    assert_eq!(of("a.json", "{\"a\": 1}"), unknown);
    assert_eq!(of("a.json", "[]"), unknown);
    let deep = "[".repeat(100_000);
    assert!(of("a.json", &deep).starts_with("not JSON: line 1"));
    assert!(of("a.toml", &format!("a = {deep}")).starts_with("not TOML: line 1"));
    let many: Vec<String> = (0..=1000).map(|n| format!("\"s{n}\": {{}}")).collect();
    let many = format!("{{\"mcpServers\": {{{}}}}}", many.join(","));
    assert_eq!(of("a.json", &many), "more than 1000 servers are declared");
}

#[test]
fn a_format_is_detected_by_content_and_file_name() {
    for (path, text, client) in [
        ("x.json", "{\"mcpServers\": {}}", KnownClient::ClaudeCode),
        ("/h/.cursor/mcp.json", "{\"mcpServers\": {}}", KnownClient::Cursor),
        ("claude_desktop_config.json", "{\"mcpServers\": {}}", KnownClient::ClaudeDesktop),
        ("mcp_config.json", "{\"mcpServers\": {}}", KnownClient::Windsurf),
        (".claude.json", "{}", KnownClient::ClaudeCode),
        ("x.json", "{\"projects\": {}}", KnownClient::ClaudeCode),
        ("x.json", "{\"servers\": {}}", KnownClient::VsCode),
        ("settings.json", "{\"mcp\": {}}", KnownClient::VsCode),
        ("x.json", "{\"mcp\": {}}", KnownClient::OpenCode),
        ("x.toml", "", KnownClient::Codex),
        ("x.yaml", "", KnownClient::Goose),
        ("x.json", "{\"context_servers\": {}}", KnownClient::Zed),
        ("x.json", "{\"amp.mcpServers\": {}}", KnownClient::Amp),
        ("x.json", "{\"mcpServers\": {\"a\": {\"httpUrl\": \"\"}}}", KnownClient::Gemini),
        ("/h/.gemini/settings.json", "{\"mcpServers\": {}}", KnownClient::Gemini),
        ("/h/.copilot/mcp-config.json", "{\"mcpServers\": {}}", KnownClient::CopilotCli),
        ("cline_mcp_settings.json", "{\"mcpServers\": {}}", KnownClient::Cline),
        ("mcp_settings.json", "{\"mcpServers\": {}}", KnownClient::Roo),
        ("/p/.roo/mcp.json", "{\"mcpServers\": {}}", KnownClient::Roo),
        ("/h/.kiro/settings/mcp.json", "{\"mcpServers\": {}}", KnownClient::Kiro),
        ("/h/Code - OSS/User/mcp.json", "{\"servers\": {}}", KnownClient::VsCode),
    ] {
        let found = file_syntax::read(Path::new(path), text, None).expect(path);
        assert_eq!(found.0, client, "{path} {text}");
    }
    let text = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}";
    let found = read(Path::new("x"), text, Some(KnownClient::Windsurf), &ImportContext::default());
    assert_eq!(found.expect("readable")[0].origin.client, KnownClient::Windsurf);
    for client in KnownClient::ALL {
        assert_eq!(KnownClient::of_word(client.word()), Some(client));
    }
}

#[test]
fn an_invalid_server_name_becomes_a_valid_and_unique_one() {
    let import = mcp_servers(
        r#"{
            "a b": {"command": "1"}, "a.b": {"command": "2"}, "a__b": {"command": "3"},
            "__": {"command": "4"}, "ünï": {"command": "5"},
            "a-very-long-name-that-no-user-would-want-to-type-twice": {"command": "6"}
        }"#,
    );
    let names: Vec<&str> = import.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "server",
            "a-b",
            "a-very-long-name-that-no-user-would-want",
            "a-b-claude-code",
            "a_b",
            "n",
        ]
    );
    let renamed = import.notes.iter().filter(|note| note.kind == ImportNoteKind::Renamed);
    assert_eq!(renamed.count(), 6);
}

#[test]
fn a_stateful_server_is_reported_with_the_remedy() {
    let import = mcp_servers(
        r#"{ "browser": { "command": "npx", "args": ["@playwright/mcp@latest"] }, "git": { "command": "git-mcp" } }"#,
    );
    let notes: Vec<_> = import.notes.iter().map(|note| (&*note.server, &*note.text)).collect();
    let note = "all clients share one browser; with `sharing = \"session\"` each has its own";
    assert_eq!(notes, [("browser", note)]);
}

#[test]
fn a_server_declared_by_several_clients_is_imported_once() {
    let server = |name: &str, env: &str, more: &str| {
        format!("{{\"mcpServers\": {{\"{name}\": {{\"command\": \"x\", \"env\": {env}{more}}}}}}}")
    };
    let read = |path: &str, text: &str| {
        read(Path::new(path), text, None, &ImportContext::default()).expect("readable")
    };
    let mut found = read("/a/.mcp.json", &server("one", "{\"A\": \"1\"}", ", \"disabled\": true"));
    found.extend(read("/b/.cursor/mcp.json", &server("two", "{\"A\": \"1\"}", "")));
    found.extend(read("/c/mcp_config.json", &server("one", "{\"A\": \"2\"}", "")));
    found.extend(read("/d/mcp_config.json", &server("three", "{\"A\": \"3\"}", "")));
    let import = import(found);

    let names: Vec<&str> = import.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["one", "three"]);
    assert_eq!(import.servers[0].state, ImportState::Active, "used by one is used");
    insta::assert_snapshot!(import.to_text(false), @r"
    one: also declared as `two` in Cursor, /b/.cursor/mcp.json
    one: also declared in Windsurf, /c/mcp_config.json, with other variables or headers: those of Claude Code, /a/.mcp.json are used
    ");
}

#[test]
fn servers_with_the_same_secret_share_a_credential() {
    let import = mcp_servers(
        r#"{
            "a": {"command": "x", "env": {"TOKEN": "one"}},
            "b": {"command": "y", "env": {"TOKEN": "one"}},
            "c": {"command": "z", "env": {"TOKEN": "two", "A_TOKEN": "two"}}
        }"#,
    );
    let credentials: Vec<(&str, usize)> = import
        .credentials()
        .into_iter()
        .map(|(credential, servers)| (credential.name.as_str(), servers.len()))
        .collect();
    assert_eq!(credentials, [("a-token", 2), ("c-a-token", 1), ("c-token", 1)]);
}

#[test]
fn a_declared_lifecycle_is_imported_with_its_idle_timeout() {
    let import = mcp_servers(
        r#"{
            "a": {"command": "x", "lifecycle": "keep-alive"},
            "b": {"command": "y", "lifecycle": {"mode": "keep-alive", "idleTimeoutMs": 1500}},
            "c": {"command": "z", "lifecycle": {"mode": "ephemeral"}},
            "d": {"command": "w", "lifecycle": {"mode": "keep-alive", "idleTimeoutMs": 0}}
        }"#,
    );
    let toml = import.to_toml();
    let tables: Vec<&str> = toml.lines().filter(|line| line.contains("lifecycle")).collect();
    assert_eq!(
        tables,
        [
            "lifecycle = \"keep-alive\"",
            "lifecycle = { idle_timeout = \"1500ms\", mode = \"keep-alive\" }",
            "lifecycle = \"ephemeral\"",
            "# lifecycle = { idle_timeout = \"0s\", mode = \"keep-alive\" }",
        ]
    );
    assert!(matches!(import.servers[3].state, ImportState::Refused(_)));
}

#[test]
fn an_endpoint_behind_mcp_remote_becomes_a_url_whatever_starts_it() {
    for start in [
        r#""command": "npx", "args": ["mcp-remote", "#,
        r#""command": "npx", "args": ["-y", "mcp-remote@latest", "#,
        r#""command": "npx", "args": ["-p", "mcp-remote@0.1.38", "mcp-remote", "#,
        r#""command": "/usr/bin/npx", "args": ["--yes", "--", "mcp-remote", "#,
        r#""command": "npm", "args": ["exec", "mcp-remote", "--", "#,
        r#""command": "bunx", "args": ["mcp-remote", "#,
        r#""command": "bun", "args": ["x", "mcp-remote", "#,
        r#""command": "pnpm", "args": ["dlx", "mcp-remote", "#,
        r#""command": "deno", "args": ["run", "-A", "npm:mcp-remote", "#,
        r#""command": "node", "args": ["/opt/node_modules/.bin/mcp-remote", "#,
        r#""command": "node", "args": ["/opt/node_modules/mcp-remote/dist/proxy.js", "#,
        r#""command": "cmd", "args": ["/c", "npx", "-y", "mcp-remote", "#,
        r#""command": "C:\\node\\npx.cmd", "args": ["-y", "mcp-remote", "#,
        r#""command": "mcp-remote", "args": ["#,
    ] {
        let import = mcp_servers(&format!("{{\"a\": {{{start}\"https://host/mcp\"]}}}}"));
        let toml = import.to_toml();
        assert!(toml.ends_with("[servers.a]\nurl = \"https://host/mcp\"\n"), "{start}\n{toml}");
    }
    for program in [
        r#""command": "npx", "args": ["-y", "mcp-remote-static", "https://host/mcp"]"#,
        r#""command": "my-proxy", "args": ["mcp-remote", "https://host/mcp"]"#,
        r#""command": "npx", "args": ["mcp-remote"]"#,
        // Only a program can receive a variable or a secret in its URL.
        r#""command": "npx", "args": ["mcp-remote", "https://${HOST}/mcp"]"#,
        r#""command": "npx", "args": ["mcp-remote", "https://host/mcp?api_key=abc"]"#,
    ] {
        let import = mcp_servers(&format!("{{\"a\": {{{program}}}}}"));
        assert_eq!(import.servers[0].state, ImportState::Active, "{program}");
        assert!(import.to_toml().contains("\ncommand = "), "{program}");
    }
}

#[test]
fn an_option_of_mcp_remote_is_converted_or_named() {
    let import = mcp_servers(
        r#"{"a": {
            "command": "npx",
            "args": [
                "mcp-remote", "--debug", "--header", "nothing", "--header", "X-Team:${TEAM} of ${CITY}", "https://host/mcp", "8080",
                "--header", "Authorization: Bearer ${KEY}", "--auth-timeout", "60", "--resource", "https://b/",
                "--static-oauth-client-info", "@/etc/client.json"
            ],
            "env": {"TEAM": "shop", "KEY": "${input:key}", "LOG": "1"}
        }}"#,
    );
    insta::assert_snapshot!(import.to_toml(), @r#"
    # Written by `metamcp import` from
    #   /srv/shop/.mcp.json (Claude Code)
    #
    # Credentials to create, each a file in `credentials` beside the configuration:
    #   a-authorization: `Bearer ` and the value that is asked for, joined, for a in /srv/shop/.mcp.json
    #   a-x-team: the text there and the value of $CITY, joined, for a in /srv/shop/.mcp.json

    # Claude Code, /srv/shop/.mcp.json
    # mcp-remote is left out, because metamcp connects to its URL itself
    # not imported: `--debug`, `--header`, the port of its redirect address, `--auth-timeout`, `--resource`, `--static-oauth-client-info`, `LOG` of `env`
    [servers.a]
    url = "https://host/mcp"
    headers = { Authorization = "credential:a-authorization", X-Team = "credential:a-x-team" }
    "#);
}

#[test]
fn a_login_with_a_variable_as_its_id_is_left_to_registration() {
    let server = |oauth: &str| {
        let import =
            mcp_servers(&format!(r#"{{"a": {{"url": "https://host/mcp", "oauth": {oauth}}}}}"#));
        let notes: Vec<String> = import.notes.iter().map(|note| note.text.clone()).collect();
        (import.to_toml().split_once("mcp\"\n").expect("a URL").1.to_owned(), notes.join("; "))
    };
    let own = "its client id contains variables, so metamcp registers itself: write the id into `auth.client_id`";
    assert_eq!(server(r#"{"clientId": "${ID}"}"#), (String::new(), own.to_owned()));
    let lost = "its client secret is left out, because it has no client id";
    assert_eq!(server(r#"{"clientSecret": "x"}"#), (String::new(), lost.to_owned()));
    let (toml, notes) =
        server(r#"{"clientId": "a", "clientSecret": "s", "scopes": "r w", "x": 1}"#);
    assert_eq!(
        toml,
        "auth = { client_id = \"a\", client_secret = \"credential:a-client-secret\", scopes = [\"r\", \"w\"] }\n"
    );
    assert!(notes.contains("http://127.0.0.1:12011/oauth/callback"), "{notes}");
    assert!(notes.ends_with("not imported: `x` of `oauth`"), "{notes}");
    assert_eq!(server("false").0, "auth = \"none\"\n");
    assert_eq!(server(r#"{"scopes": [1]}"#).1, "not imported: `scopes` of `oauth`");
}

/// Returns documents that resemble the files of clients, with any values in any place.
fn documents() -> impl Strategy<Value = serde_json::Value> {
    // Mostly one row for each word: a table, however long.
    let word = prop::sample::select(vec![
        "command",
        "args",
        "env",
        "url",
        "headers",
        "cwd",
        "disabled",
        "enabled",
        "lifecycle",
        "mode",
        "idleTimeoutMs",
        "environment",
        "serverUrl",
        "env_vars",
        "http_headers",
        "startup_timeout_sec",
        "mcpServers",
        "servers",
        "mcp",
        "mcp_servers",
        "inputs",
        "projects",
        "oauth",
        "auth",
        "scopes",
        "clientId",
        "client_secret",
    ]);
    let text = prop_oneof![
        any::<String>(),
        "[ -~]{0,12}",
        prop::sample::select(vec![
            "${A}",
            "${input:a}",
            "${workspaceFolder}/x",
            "{file:/k}",
            "http://h/p",
            "http://",
            "./x",
            "--token",
            "credential:",
            "env:a=b",
            "npx",
            "mcp-remote",
            "--header",
            "--static-oauth-client-info",
            "{\"client_id\": \"${A}\"}",
            "keep-alive",
            "a\u{0}b",
            "\u{85}",
            "\r\n",
            "'''",
            "\"\"\"",
            "${",
            "$${",
            "\\",
        ])
        .prop_map(str::to_owned),
    ];
    let key = prop_oneof![3 => word.prop_map(str::to_owned), 1 => any::<String>()];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        text.prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// Reads a text in each format, and asserts that every result is a valid configuration.
fn holds_for_any(path: &str, text: &str) {
    let context = context_of(Path::new("/srv/shop/.mcp.json"), None);
    for client in KnownClient::ALL {
        if let Ok(found) = read(Path::new(path), text, Some(client), &context) {
            let import = import(found);
            assert_valid(&import.to_toml());
            let is_even = |text: &str| text.matches('{').count() >= 2;
            assert!(is_even(&import.to_nix()));
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_refused_or_becomes_a_valid_configuration(text in any::<String>()) {
        holds_for_any("a.json", &text);
    }

    #[test]
    fn any_document_becomes_a_valid_configuration(document in documents()) {
        for wrapped in [
            serde_json::json!({ "mcpServers": document }),
            serde_json::json!({ "mcpServers": { "a": document } }),
            serde_json::json!({ "servers": { "a": document }, "mcp": { "a": document } }),
        ] {
            holds_for_any("a.json", &format!("// a comment\n{wrapped:#}"));
        }
        let table = serde_json::json!({ "mcp_servers": { "a": document } });
        if let Ok(text) = toml::to_string(&table) {
            holds_for_any("a.toml", &text);
        }
    }

    #[test]
    fn a_value_with_a_secret_name_is_never_printed(
        key in "[A-Z]{0,4}(_?)(TOKEN|KEY|SECRET|PASSWORD)",
        before in "[a-z0-9 /:@=${}_-]{0,8}", after in "[ -~]{0,8}",
    ) {
        let value = format!("{before}{CANARY}{after}");
        for server in [
            serde_json::json!({ "command": "x", "env": { &key: value } }),
            serde_json::json!({ "command": "x", "args": [format!("--{key}"), format!("x{value}")] }),
            serde_json::json!({ "command": "x", "args": [format!("--{key}={value}")] }),
            serde_json::json!({ "command": "x", "args": ["-e", format!("{key}={value}")] }),
            serde_json::json!({ "url": "http://host/", "headers": { &key: value } }),
            serde_json::json!({ "url": "http://host/", "bearerToken": value }),
            serde_json::json!({ "url": format!("http://host/?{key}={CANARY}") }),
        ] {
            let document = serde_json::json!({ "mcpServers": { "a": server } });
            let import = imported("/srv/shop/.mcp.json", &document.to_string());
            let shown = all_of(&import);
            // The name of a referenced variable is not a secret.
            let is_reference = value.contains("${") || value.contains('{');
            prop_assert!(is_reference || !shown.contains(CANARY), "{document}\n{shown}");
        }
    }
}

#[test]
fn metamcp_itself_is_left_out_at_each_of_its_addresses_and_by_its_program() {
    let text = r#"{"mcpServers": {
        "a": {"url": "http://localhost:4711/meta"},
        "b": {"url": "http://[::1]:4712/"},
        "c": {"command": "npx", "args": ["mcp-remote", "http://127.0.0.1:4711/"]},
        "d": {"command": "/opt/metamcp-static", "args": ["stdio", "--socket", "/run/m.sock"]},
        "e": {"command": "/usr/bin/metamcp", "args": ["stdio"]},
        "f": {"url": "http://127.0.0.1:12011/"},
        "g": {"command": "/opt/metamcp-static", "args": ["demo-server", "time"]},
        "h": {"url": "http://0.0.0.0:4711/"},
        "i": {"url": "http://[::]:4712/"},
        "j": {"command": "env", "args": ["A=b", "metamcp", "stdio"]},
        "k": {"command": "/bin/sh", "args": ["-c", "exec metamcp stdio"]}
    }}"#;
    let own = OwnEndpoints {
        addresses: vec!["127.0.0.1:4711".parse().expect("one"), "[::1]:4712".parse().expect("one")],
        program: Some("/opt/metamcp-static".to_owned()),
    };
    let context = ImportContext::default();
    let found = read(Path::new(".mcp.json"), text, None, &context).expect("readable");
    let import = super::import(found, &own);
    let names: Vec<&str> = import.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["f", "g"]);
    let is_left_out = |note: &&ImportNote| note.kind == ImportNoteKind::LeftOut;
    assert_eq!(import.notes.iter().filter(is_left_out).count(), 9);
}

#[test]
fn an_import_without_servers_names_the_command_that_wrote_the_file() {
    let import = super::import(Vec::new(), &OwnEndpoints::default());
    assert_eq!(import.to_toml(), "# Written by `metamcp import`, which has found no servers\n");
}
