use super::*;
use crate::config::{
    TransportConfig,
    load::tests::{bad, good},
};

fn server(keys: &str) -> String {
    format!("[provision.servers.a]\ncommand = \"x\"\ndescription = \"does\"\n{keys}\n")
}

#[test]
fn nothing_can_be_provisioned_unless_the_table_is_there() {
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
    assert!(found.servers.is_empty(), "what may be provisioned is not there by itself");
    let found = found.provision;
    assert!((found.min_confidence - 0.75).abs() < f64::EPSILON);
    let rules: Vec<_> = found.trusted.iter().map(TrustRule::to_string).collect();
    assert_eq!(rules, ["@modelcontextprotocol/*", "internal/github"]);
    let github = &found.servers["github"];
    assert_eq!(github.namespace.as_ref().map(Namespace::as_str), Some("internal/github"));
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
fn a_rule_trusts_what_is_below_its_scope_or_one_namespace() {
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
fn a_mistake_in_what_may_be_provisioned_is_shown_where_it_is() {
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\n[provision.servers.a]\ncommand = \"y\"\ndescription = \"does\"\n"), @"
    `a` is a server under `[servers]` too
     --> c.toml:3:20
      |
    3 | [provision.servers.a]
      |                    ^
      = help: one that is declared there is there anyway: remove or rename one
    ");
    insta::assert_snapshot!(bad("[provision.servers.a]\ncommand = \"x\"\n"), @r#"
    a server to be provisioned without `description`
     --> c.toml:1:20
      |
    1 | [provision.servers.a]
      |                    ^
      = help: nothing would find it: add `description = "…"` with what it is for
    "#);
    insta::assert_snapshot!(bad("[provision.servers.a]\ndescription = \"does\"\n"), @r#"
    a server without `command`, `url` or `socket`
     --> c.toml:1:20
      |
    1 | [provision.servers.a]
      |                    ^
      = help: add `command = "PROGRAM"`, `url = "http://HOST:PORT/mcp"` or `socket = "/run/DIRECTORY/NAME.sock"`
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
    `start` of a server that waits to be provisioned
     --> c.toml:4:9
      |
    4 | start = "eager"
      |         ^^^^^^^
      = help: it is connected when it is provisioned: remove `start`
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
    `keywords` says nothing
     --> c.toml:4:13
      |
    4 | keywords = ["  "]
      |             ^^^^
      = help: write words by which the server is to be found
    "#);
    insta::assert_snapshot!(bad(&server("keyword = [\"x\"]")), @r#"
    unknown key `keyword`
     --> c.toml:4:1
      |
    4 | keyword = ["x"]
      | ^^^^^^^
      = help: did you mean `keywords`?
    "#);
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\ndescription = \"does\"\n"), @r#"
    `description` of a server under `[servers]`
     --> c.toml:3:15
      |
    3 | description = "does"
      |               ^^^^^^
      = help: only one under `[provision.servers]` is looked for by it: remove it
    "#);
    insta::assert_snapshot!(bad("[provision]\nmin_confidence = 1.5\n"), @"
    `min_confidence` is 1.5
     --> c.toml:2:18
      |
    2 | min_confidence = 1.5
      |                  ^^^
      = help: use 0 to 1: 1 is certain, and 0.6 is a server whose words cover most of the request
    ");
    insta::assert_snapshot!(bad("[provision]\nmin_confidence = \"high\"\n"), @r#"
    invalid type: string "high", expected a number
     --> c.toml:2:18
      |
    2 | min_confidence = "high"
      |                  ^^^^^^
      = help: write one without quotes, as in 0.6
    "#);
    insta::assert_snapshot!(bad("[provision]\ntrusted = [\"*\"]\n"), @r#"
    `*` trusts no namespace
     --> c.toml:2:12
      |
    2 | trusted = ["*"]
      |            ^^^
      = help: write a namespace, as in "internal/github", or all below one, as in "@modelcontextprotocol/*"
    "#);
    insta::assert_snapshot!(bad("[provision.registry]\nttl = \"1h\"\n"), @"
    `provision.registry` without `url`
     --> c.toml:1:1
      |
    1 | [provision.registry]
      | ^^^^^^^^^^^^^^^^^^^^
      = help: no registry is asked unless it is named: add `url`, and write what stands before `/v0/servers`, as in `https://HOST`
    ");
    insta::assert_snapshot!(bad("[provision.registry]\nurl = \"https://h/v0/servers\"\n"), @r#"
    `https://h/v0/servers` is more than the base of a registry
     --> c.toml:2:7
      |
    2 | url = "https://h/v0/servers"
      |       ^^^^^^^^^^^^^^^^^^^^^^
      = help: write what stands before `/v0/servers`, as in `https://HOST`
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
fn servers_that_are_kept_once_they_are_there_must_leave_room_for_the_others() {
    let text = server("lifecycle = \"keep-alive\"\n[servers.b]\ncommand = \"y\"\n[pool]\nsize = 1");
    assert!(bad(&text).contains("1 of 2 servers are to be connected always"));
}
