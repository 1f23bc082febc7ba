use super::*;
use crate::config::{
    TransportConfig,
    load::tests::{bad, good},
};

fn server(keys: &str) -> String {
    format!("[provision.servers.a]\ncommand = \"x\"\ndescription = \"does\"\n{keys}\n")
}

#[test]
fn no_server_can_be_provisioned_without_the_table() {
    assert_eq!(good("").provision, ProvisionConfig::default());
    assert!(!good("").provision.is_enabled);
    assert!(good("[provision]\n").provision.is_enabled);
    assert!(good(&server("")).provision.is_enabled, "a table below makes the one above");
    assert!(!good("[provision]\nenabled = false\n").provision.is_enabled);
}

#[test]
fn every_key_is_read() {
    let text = r#"
        [provision]
        enabled = true
        min_confidence = 0.75
        trusted = ["@modelcontextprotocol/*", "internal/github"]
        [provision.servers.github]
        namespace = "internal/github"
        description = "issues and pull requests"
        keywords = ["review", "repository"]
        command = "github-mcp"
        args = ["stdio"]
        env = { TOKEN = "credential:token" }
        retry = "never"
        [provision.servers.wiki]
        description = "pages"
        url = "http://127.0.0.1:9/mcp"
        health = { failures = 7 }
        [provision.registry]
        url = "https://registry.example/base/"
        ttl = "2h"
    "#;
    let found = good(text);
    assert!(found.servers.is_empty(), "a provisionable server is not declared by itself");
    let found = found.provision;
    assert!((found.min_confidence - 0.75).abs() < f64::EPSILON);
    let rules = [
        TrustRule::Below("@modelcontextprotocol/".to_owned()),
        TrustRule::Exactly("internal/github".to_owned()),
    ];
    assert_eq!(found.trusted, rules);
    let github = &found.servers["github"];
    assert_eq!(github.namespace, Some(Namespace("internal/github".to_owned())));
    assert_eq!(github.description, "issues and pull requests");
    assert_eq!(github.keywords, ["review", "repository"]);
    assert!(matches!(&github.server.transport, TransportConfig::Stdio { command, env, .. }
        if command == "github-mcp" && env.len() == 1));
    assert_eq!(found.servers["wiki"].namespace, None);
    assert_eq!(found.servers["wiki"].server.health.failures, 7);
    let registry = found.registry.expect("declared");
    assert_eq!(registry.url, "https://registry.example/base/");
    assert_eq!(registry.ttl, Duration::from_secs(7200));
    let text = "[provision.registry]\nurl = \"http://127.0.0.1:9\"\n";
    assert_eq!(good(text).provision.registry.expect("declared").ttl, defaults::REGISTRY_TTL);
    assert!(
        (good("[provision]\nmin_confidence = 1\n").provision.min_confidence - 1.0).abs() < 0.01
    );
}

#[test]
fn a_trust_rule_covers_one_namespace_or_all_below_a_scope() {
    let rules =
        good("[provision]\ntrusted = [\"@scope/*\", \"internal/github\"]\n").provision.trusted;
    let is_trusted = |text: &str| {
        let namespace = Namespace(text.to_owned());
        rules.iter().any(|rule| rule.covers(&namespace))
    };
    for namespace in ["@scope/git", "@scope/a/b", "internal/github"] {
        assert!(is_trusted(namespace), "{namespace}");
    }
    for namespace in [
        "@scope",
        "@scope/",
        "@scoped/git",
        "scope/git",
        "@Scope/git",
        "internal/github2",
        "internal",
    ] {
        assert!(!is_trusted(namespace), "{namespace}");
    }
}

#[test]
// One snapshot for each mistake: a table, however long.
fn a_mistake_in_the_provision_table_is_shown_at_its_place() {
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\n[provision.servers.a]\ncommand = \"y\"\ndescription = \"does\"\n"), @"
    server `a` is declared under `[servers]` too
     --> c.toml:3:20
      |
    3 | [provision.servers.a]
      |                    ^
      = help: rename it, or remove one of the two declarations
    ");
    insta::assert_snapshot!(bad("[provision.servers.a]\ncommand = \"x\"\n"), @r#"
    server `a` has no `description`
     --> c.toml:1:20
      |
    1 | [provision.servers.a]
      |                    ^
      = help: add `description = "…"` with its purpose, by which metamcp finds it
    "#);
    insta::assert_snapshot!(bad("[provision.servers.a]\ndescription = \"does\"\n"), @r#"
    a server without `command`, `url` or `socket`
     --> c.toml:1:20
      |
    1 | [provision.servers.a]
      |                    ^
      = help: add `command = "PROGRAM"`, `url = "https://HOST/mcp"` or `socket = "/run/DIRECTORY/NAME.sock"`
    "#);
    insta::assert_snapshot!(bad("[provision.servers.\"a b\"]\ncommand = \"x\"\ndescription = \"does\"\n"), @r#"
    `a b` is not a server name: ` ` is not a letter, digit, `-` or `_`
     --> c.toml:1:20
      |
    1 | [provision.servers."a b"]
      |                    ^^^^^
      = help: use 1 to 40 letters, digits, `-` and single `_`
    "#);
    insta::assert_snapshot!(bad(&server("start = \"eager\"")), @r#"
    `start` has no effect under `[provision.servers]`
     --> c.toml:4:9
      |
    4 | start = "eager"
      |         ^^^^^^^
      = help: remove it: metamcp connects the server when it provisions it
    "#);
    insta::assert_snapshot!(bad(&server("namespace = \"internal//github\"")), @r#"
    `internal//github` is not a namespace
     --> c.toml:4:13
      |
    4 | namespace = "internal//github"
      |             ^^^^^^^^^^^^^^^^^^
      = help: write one, as in "internal/github" or "@modelcontextprotocol/server-git"
    "#);
    insta::assert_snapshot!(bad(&server("keywords = [\"  \"]")), @r#"
    `keywords` has no letter and no digit
     --> c.toml:4:13
      |
    4 | keywords = ["  "]
      |             ^^^^
      = help: write words by which metamcp finds the server
    "#);
    insta::assert_snapshot!(bad(&server("keyword = [\"x\"]")), @r#"
    unknown key `keyword`
     --> c.toml:4:1
      |
    4 | keyword = ["*"]
      | ^^^^^^^
      = help: did you mean `keywords`?
    "#);
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\ndescription = \"does\"\n"), @r#"
    `description` has no effect under `[servers]`
     --> c.toml:3:15
      |
    3 | description = "does"
      |               ^^^^^^
      = help: remove it, or declare the server under `[provision.servers]`
    "#);
    insta::assert_snapshot!(bad("[provision]\nmin_confidence = 1.5\n"), @"
    `min_confidence` is 1.5
     --> c.toml:2:18
      |
    2 | min_confidence = 1.5
      |                  ^^^
      = help: use 0 to 1
    ");
    insta::assert_snapshot!(bad("[provision]\nmin_confidence = \"high\"\n"), @r#"
    invalid type: string "high", expected a number
     --> c.toml:2:18
      |
    2 | min_confidence = "high"
      |                  ^^^^^^
      = help: write a number without quotes, as in 0.6
    "#);
    insta::assert_snapshot!(bad("[provision]\ntrusted = [\"*\"]\n"), @r#"
    `*` is not a trust rule
     --> c.toml:2:12
      |
    2 | trusted = ["*"]
      |            ^^^
      = help: write a namespace, as in "internal/github", or all below one, as in "@modelcontextprotocol/*"
    "#);
    insta::assert_snapshot!(bad("[provision.registry]\nttl = \"1h\"\n"), @"
    `provision.registry` has no `url`
     --> c.toml:1:1
      |
    1 | [provision.registry]
      | ^^^^^^^^^^^^^^^^^^^^
      = help: add `url`: write the part before `/v0/servers`, as in `https://HOST`
    ");
    insta::assert_snapshot!(bad("[provision.registry]\nurl = \"https://h/v0/servers\"\n"), @r#"
    `https://h/v0/servers` is not the base URL of a registry
     --> c.toml:2:7
      |
    2 | url = "https://h/v0/servers"
      |       ^^^^^^^^^^^^^^^^^^^^^^
      = help: write the part before `/v0/servers`, as in `https://HOST`
    "#);
    assert!(bad("[provision]\nmin_confidence = nan\n").contains("is NaN"));
    assert!(
        bad(&server("sharing = \"session\"\n[listen]\nsession = \"off\"")).contains("server `a`")
    );
    let ours = "[provision.servers.a]\nurl = \"http://localhost:12011/\"\ndescription = \"us\"\n";
    assert!(bad(ours).contains("server `a` is this service itself"));
    let root = server("[listen]\nroot = \"passthrough:a\"");
    assert!(bad(&root).contains("names no server"), "a root view is there from the start");
    let long = server(&format!("keywords = [{:?}]", "x".repeat(129)));
    assert!(bad(&long).contains("129 bytes"));
}

#[test]
fn provisionable_servers_that_stay_connected_leave_room_for_the_others() {
    let text = server("lifecycle = \"keep-alive\"\n[servers.b]\ncommand = \"y\"\n[pool]\nsize = 1");
    assert!(bad(&text).contains("1 of 2 servers stay connected"));
}
