use std::time::Duration;

use super::*;
use crate::config::{
    BreakerConfig, EraChoice, HealthConfig, ListenConfig, LogLevel, RetryPolicy, RootView,
    ServiceConfig, SessionConfig, SessionMode, SharingMode, StartPolicy, TlsConfig, tls::PemSource,
};

#[track_caller]
pub(in crate::config) fn good(text: &str) -> Config {
    parse(text).unwrap_or_else(|problem| panic!("{}", problem.locate(Path::new("c.toml"), text)))
}

#[track_caller]
pub(in crate::config) fn bad(text: &str) -> String {
    parse(text).expect_err("a mistake").locate(Path::new("c.toml"), text).to_string()
}

#[test]
fn an_empty_file_means_the_defaults() {
    let config = good("");
    assert_eq!(config.listen, ListenConfig::default());
    assert_eq!(config.service, ServiceConfig::default());
    assert_eq!(config.breaker, BreakerConfig::default());
    assert!(config.servers.is_empty());
}

#[test]
fn a_short_max_total_timeout_shortens_the_default_request_timeout() {
    let config = good("[service]\nmax_total_timeout = \"30s\"\n");
    assert_eq!(config.service.request_timeout, Duration::from_secs(30));
}

#[test]
fn a_url_of_this_service_under_any_name_of_this_host_is_refused() {
    for url in ["http://localhost:12011/", "http://127.9.9.9:12011/mcp", "http://[::1]:12011/"] {
        let text = format!("[servers.me]\nurl = {url:?}\n");
        assert!(bad(&text).contains("server `me` is this service itself"), "{url}");
    }
}

#[test]
// One line for each key: a table, however long.
fn every_key_is_read() {
    let config = good(
        r#"
        [service]
        request_timeout = "1s"
        max_total_timeout = "2m"
        shutdown_timeout = "250ms"
        progress_beat = "0s"
        memory_max = 134217728
        idle_exit = "30m"
        log_level = "debug"
        [listen]
        http = "127.0.0.1:0"
        tls = { certificate = "/etc/chain.pem", key = "credential:tls" }
        token = "credential:client-token"
        control = "/tmp/c.sock"
        control_group = "wheel"
        metrics = "[::1]:12019"
        rpc = true
        root = "passthrough:up"
        allowed_hosts = ["mcp.example"]
        allowed_origins = ["https://mcp.example"]
        keep_alive = "5s"
        stream_after = "0s"
        write_timeout = "20s"
        session = "strict"
        session_key = "credential:session-key"
        session_timeout = "1h"
        json_response = true
        legacy_sse = true
        [health]
        interval = "40s"
        timeout = "2s"
        failures = 5
        max_reconnects = 7
        [breaker]
        failure_threshold = 3
        cooldown = "1m"
        [servers.git]
        command = "git-mcp"
        args = ["--repo", "."]
        env = { TOKEN = "credential:token", HOME = "env:HOME", MODE = "fast" }
        cwd = "/srv"
        start = "eager"
        retry = "vital"
        era = "legacy"
        [servers.up]
        url = "http://127.0.0.1:12009/mcp"
        headers = { X-API-Key = "credential:key" }
        health = { interval = "5s", timeout = "250ms", failures = 2, max_reconnects = 0 }
        start = "prewarm"
        [servers.browser]
        command = "browser-mcp"
        sharing = "session"
        max_connections = 3
        [servers.fragile]
        command = "fragile-mcp"
        sharing = "exclusive"
        start_timeout = "2m"
        [servers.unit]
        socket = "/run/metamcp-servers/notes.sock"
        [servers.other-unit]
        socket = "/run/notes.sock"
        unit = "my-notes"
        start = "eager"
        "#,
    );

    assert_eq!(config.service.request_timeout, Duration::from_secs(1));
    assert_eq!(config.service.max_total_timeout, Duration::from_secs(120));
    assert_eq!(config.service.shutdown_timeout, Duration::from_millis(250));
    assert_eq!(config.service.log_level, LogLevel::Debug);
    assert_eq!(config.listen.http.port(), 0);
    let certificate = PemSource::File("/etc/chain.pem".into());
    let key = PemSource::Credential("tls".into());
    assert_eq!(config.listen.tls, Some(TlsConfig { certificate, key }));
    let token = config.listen.token.as_ref().map(ToString::to_string);
    assert_eq!(token.as_deref(), Some("credential:client-token"));
    assert_eq!(config.listen.control.as_deref(), Some(Path::new("/tmp/c.sock")));
    assert_eq!(config.listen.control_group.as_deref(), Some("wheel"));
    assert_eq!(config.listen.metrics, "[::1]:12019".parse().ok());
    assert!(config.listen.rpc);
    assert_eq!(config.service.idle_exit, Some(Some(Duration::from_secs(1800))));
    assert_eq!(config.listen.allowed_hosts, ["mcp.example"]);
    assert_eq!(config.listen.allowed_origins, ["https://mcp.example"]);
    let TransportConfig::Stdio { command, args, env, cwd } = &config.servers["git"].transport
    else {
        panic!("a stdio server");
    };
    assert_eq!((command.as_str(), args.len(), env.len()), ("git-mcp", 2, 3));
    assert_eq!(cwd.as_deref(), Some(Path::new("/srv")));
    assert_eq!(config.servers["git"].start, StartPolicy::Eager);
    assert_eq!(config.servers["git"].retry, RetryPolicy::Vital);
    assert_eq!(config.servers["up"].retry, RetryPolicy::Safe);
    assert_eq!(config.servers["git"].era, EraChoice::Legacy);
    assert_eq!(config.servers["up"].era, EraChoice::Auto);
    let breaker = BreakerConfig { failure_threshold: 3, cooldown: Duration::from_secs(60) };
    assert_eq!(config.breaker, breaker);
    let TransportConfig::Http(super::super::HttpServerConfig { url, headers, .. }) =
        &config.servers["up"].transport
    else {
        panic!("an HTTP server");
    };
    assert_eq!((url.path(), headers.len()), ("/mcp", 1));
    let health = |name: &str| config.servers[name].health;
    assert_eq!(
        health("up"),
        HealthConfig {
            interval: Some(Duration::from_secs(5)),
            timeout: Duration::from_millis(250),
            failures: 2,
            max_reconnects: Some(0),
        }
    );
    assert_eq!(
        health("git"),
        HealthConfig {
            interval: Some(Duration::from_secs(40)),
            timeout: Duration::from_secs(2),
            failures: 5,
            max_reconnects: Some(7),
        }
    );
    assert_eq!(config.servers["up"].start, StartPolicy::Prewarm);
    assert_eq!(config.servers["up"].sharing, SharingMode::Shared);
    assert_eq!(config.servers["browser"].sharing, SharingMode::Session { max_connections: 3 });
    let max_connections = defaults::EXCLUSIVE_CONNECTIONS;
    assert_eq!(config.servers["fragile"].sharing, SharingMode::Exclusive { max_connections });
    assert_eq!(config.servers["fragile"].start_timeout, Duration::from_secs(120));
    assert_eq!(config.servers["unit"].start_timeout, defaults::START_TIMEOUT);
    let unit_of = |name: &str| match &config.servers[name].transport {
        TransportConfig::Unit { socket, unit } => (socket.display().to_string(), unit.clone()),
        other => panic!("a unit, not {}", other.name()),
    };
    let notes = "/run/metamcp-servers/notes.sock".to_owned();
    assert_eq!(unit_of("unit"), (notes, "metamcp-server-notes".to_owned()));
    assert_eq!(unit_of("other-unit"), ("/run/notes.sock".to_owned(), "my-notes".to_owned()));
    assert_eq!(config.service.progress_beat, None);
    assert_eq!(config.service.memory_max, Some(128 << 20));
    assert_eq!(config.listen.keep_alive, Duration::from_secs(5));
    assert_eq!(config.listen.stream_after, None);
    assert_eq!(config.listen.write_timeout, Duration::from_secs(20));
    let session = SessionConfig {
        mode: SessionMode::Strict,
        key: Some("session-key".into()),
        timeout: Duration::from_secs(3600),
    };
    assert_eq!(config.listen.session(), session);
    assert!(config.listen.json_response && config.listen.legacy_sse);
    assert_eq!(config.listen.root, RootView::Passthrough(ServerName::new("up").expect("a name")));
}

#[test]
fn a_server_is_pinged_at_the_interval_of_its_own_table_or_of_health() {
    let health = |all: &str, kind: &str, own: &str| {
        good(&format!("[health]\n{all}\n[servers.a]\n{kind}\n{own}\n")).servers["a"].health
    };
    let (url, command) = ("url = \"http://h/\"", "command = \"x\"");
    let seconds = |n| Some(Duration::from_secs(n));
    for (all, kind, own, interval) in [
        ("", url, "", seconds(20)),
        ("", command, "", seconds(30)),
        ("", command, "health = {}", seconds(30)),
        ("timeout = \"1s\"", url, "", seconds(20)),
        ("interval = \"40s\"", url, "", seconds(40)),
        ("interval = \"40s\"", command, "health = { timeout = \"1s\" }", seconds(40)),
        ("interval = \"40s\"", command, "health = { interval = \"50s\" }", seconds(50)),
        ("interval = \"0s\"", command, "", None),
        ("interval = \"0s\"", command, "health = { interval = \"50s\" }", seconds(50)),
        ("", url, "health = { interval = \"0s\" }", None),
    ] {
        assert_eq!(health(all, kind, own).interval, interval, "{all} {kind} {own}");
    }
    let default = health("", command, "");
    assert_eq!((default.timeout, default.failures), (Duration::from_secs(10), 3));
    assert_eq!(default.max_reconnects, None);
}

#[test]
fn a_mistake_in_a_health_table_is_shown_at_its_place() {
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\nhealth = { failures = 0 }\n"), @r#"
    `failures` is 0
     --> c.toml:3:23
      |
    3 | health = { failures = 0 }
      |                       ^
      = help: use 1 to 100, or `interval = "0s"` to send no pings
    "#);
    insta::assert_snapshot!(bad("[health]\nfailures = 101\n"), @r#"
    `failures` is 101
     --> c.toml:2:12
      |
    2 | failures = 101
      |            ^^^
      = help: use 1 to 100, or `interval = "0s"` to send no pings
    "#);
    insta::assert_snapshot!(bad("[servers.a]\nurl = \"http://h/\"\nhealth = { intervall = \"1s\" }\n"), @r#"
    unknown key `intervall`
     --> c.toml:3:12
      |
    3 | health = { intervall = "**" }
      |            ^^^^^^^^^
      = help: did you mean `interval`?
    "#);
    insta::assert_snapshot!(bad("[servers.a]\nurl = \"http://h/\"\nhealth = { interval = \"soon\" }\n"), @r#"
    `soon` is not a duration, expected one such as `250ms`, `30s`, `5m` or `1h`
     --> c.toml:3:23
      |
    3 | health = { interval = "soon" }
      |                       ^^^^^^
      = help: write a number and a unit, as in "250ms", "30s" or "5m"
    "#);
    insta::assert_snapshot!(bad("[servers.a]\nurl = \"http://h/\"\nhealth = { timeout = \"0s\" }\n"), @r#"
    `0s` is out of range, expected `1ms` to `24h`
     --> c.toml:3:22
      |
    3 | health = { timeout = "0s" }
      |                      ^^^^
      = help: write another duration, or leave the key out for its default
    "#);
    insta::assert_snapshot!(bad("[servers.a]\nurl = \"http://h/\"\nhealth = \"20s\"\n"), @r#"
    invalid type: string "20s", expected a table such as { interval = "20s" }
     --> c.toml:3:10
      |
    3 | health = "20s"
      |          ^^^^^
      = help: write a table: its name in brackets on a line of its own, then its keys
    "#);
}

#[test]
// One snapshot for each mistake: a table, however long.
fn a_mistake_in_a_unit_server_is_shown_at_its_place() {
    insta::assert_snapshot!(bad("[servers.a]\nsocket = \"/run/a.sock\"\nargs = [\"x\"]\n"), @r#"
    `args` has no effect on a server with `socket`
     --> c.toml:3:8
      |
    3 | args = ["*"]
      |        ^^^^^
      = help: remove it: it belongs to a server with `command`
    "#);
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\nsocket = \"/run/a.sock\"\n"), @r#"
    both `command` and `socket`
     --> c.toml:3:10
      |
    3 | socket = "/run/a.sock"
      |          ^^^^^^^^^^^^^
      = help: a server is a program, a URL or the socket of a unit: remove one of the two
    "#);
    insta::assert_snapshot!(bad("[servers.a]\nsocket = \"/run/a.sock\"\nurl = \"http://h/\"\n"), @r#"
    both `url` and `socket`
     --> c.toml:2:10
      |
    2 | socket = "/run/a.sock"
      |          ^^^^^^^^^^^^^
      = help: a server is a program, a URL or the socket of a unit: remove one of the two
    "#);
    insta::assert_snapshot!(bad("[servers.a]\nsocket = \"run/a.sock\"\n"), @r#"
    `socket` is not an absolute path of a socket
     --> c.toml:2:10
      |
    2 | socket = "run/a.sock"
      |          ^^^^^^^^^^^^
      = help: write one, as in "/run/metamcp-servers/git.sock"
    "#);
    insta::assert_snapshot!(bad("[servers.a]\nsocket = \"/run/a b.sock\"\n"), @r#"
    `metamcp-server-a b` is not the name of a unit
     --> c.toml:2:10
      |
    2 | socket = "/run/a b.sock"
      |          ^^^^^^^^^^^^^^^
      = help: write the name of its template without `@` and suffix, as in `unit = "metamcp-server-git"`
    "#);
    insta::assert_snapshot!(bad("[servers.a]\nsocket = \"/run/a.sock\"\nunit = \"a@.service\"\n"), @r#"
    `a@.service` is not the name of a unit
     --> c.toml:3:8
      |
    3 | unit = "a@.service"
      |        ^^^^^^^^^^^^
      = help: write the name of its template without `@` and suffix, as in `unit = "metamcp-server-git"`
    "#);
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\nunit = \"a\"\n"), @r#"
    `unit` has no effect on a server with `command`
     --> c.toml:3:8
      |
    3 | unit = "a"
      |        ^^^
      = help: remove it: it belongs to a server with `socket`
    "#);
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\nstart_timeout = \"0s\"\n"), @r#"
    `0s` is out of range, expected `1ms` to `24h`
     --> c.toml:3:17
      |
    3 | start_timeout = "0s"
      |                 ^^^^
      = help: write another duration, or leave the key out for its default
    "#);
    let long = format!("[servers.a]\nsocket = \"/run/{}\"\n", "x".repeat(103));
    assert!(bad(&long).contains("a path of 108 bytes is too long for a socket"));
    for key in ["env = {}", "cwd = \"/\"", "headers = {}"] {
        let text = format!("[servers.a]\nsocket = \"/run/a.sock\"\n{key}\n");
        assert!(bad(&text).contains("has no effect on a server with `socket`"), "{key}");
    }
}

#[test]
fn an_unknown_key_is_shown_with_a_similar_one() {
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\n  arsg = []\n"), @r"
    unknown key `arsg`
     --> c.toml:3:3
      |
    3 |   arsg = []
      |   ^^^^
      = help: did you mean `args`?
    ");
    insta::assert_snapshot!(bad("[server.a]\ncommand = \"x\"\n"), @r"
    unknown key `server`
     --> c.toml:1:2
      |
    1 | [server.a]
      |  ^^^^^^
      = help: did you mean `servers`?
    ");
    insta::assert_snapshot!(bad("[listen]\nzzz = 1\n"), @"
    unknown key `zzz`
     --> c.toml:2:1
      |
    2 | zzz = *
      | ^^^
      = help: known here: http, tls, token, control, control_group, metrics, rpc, root, allowed_hosts, allowed_origins, keep_alive, stream_after, write_timeout, session, session_key, session_timeout, json_response, legacy_sse
    ");
}

#[test]
fn a_value_of_a_wrong_type_is_shown_with_the_expected_type() {
    insta::assert_snapshot!(bad("[service]\nrequest_timeout = 30\n"), @r#"
    invalid type: integer `30`, expected a duration such as "250ms", "30s", "5m" or "1h"
     --> c.toml:2:19
      |
    2 | request_timeout = 30
      |                   ^^
      = help: write a number and a unit, as in "250ms", "30s" or "5m"
    "#);
    insta::assert_snapshot!(bad("[service]\nrequest_timeout = \"30 sec\"\n"), @r#"
    `30 sec` is not a duration, expected one such as `250ms`, `30s`, `5m` or `1h`
     --> c.toml:2:19
      |
    2 | request_timeout = "30 sec"
      |                   ^^^^^^^^
      = help: write a number and a unit, as in "250ms", "30s" or "5m"
    "#);
    insta::assert_snapshot!(bad("[servers.a]\ncommand = [\"x\"]\n"), @r#"
    `command` is a list
     --> c.toml:2:11
      |
    2 | command = ["*"]
      |           ^^^^^
      = help: write `command = "x"`, and the other words as `args = ["…"]`
    "#);
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\nstart = \"eeger\"\n"), @r#"
    unknown value `eeger`
     --> c.toml:3:9
      |
    3 | start = "eeger"
      |         ^^^^^^^
      = help: did you mean `eager`?
    "#);
    insta::assert_snapshot!(bad("[listen]\nhttp = \"localhost\"\n"), @r#"
    invalid socket address syntax
     --> c.toml:2:8
      |
    2 | http = "localhost"
      |        ^^^^^^^^^^^
      = help: write an address and a port, as in "127.0.0.1:12011"
    "#);
    insta::assert_snapshot!(bad("[listen]\nroot = \"everything\"\n"), @r#"
    `everything` is not a view, expected `direct`, `meta` or `passthrough:SERVER`
     --> c.toml:2:8
      |
    2 | root = "everything"
      |        ^^^^^^^^^^^^
      = help: write "direct", "meta" or, for one server unchanged, "passthrough:SERVER"
    "#);
}

#[test]
fn a_server_has_exactly_one_transport() {
    insta::assert_snapshot!(bad("[servers.a]\nstart = \"lazy\"\n"), @r#"
    a server without `command`, `url` or `socket`
     --> c.toml:1:10
      |
    1 | [servers.a]
      |          ^
      = help: add `command = "PROGRAM"`, `url = "https://HOST/mcp"` or `socket = "/run/DIRECTORY/NAME.sock"`
    "#);
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\nurl = \"http://h/\"\n"), @r#"
    both `command` and `url`
     --> c.toml:3:7
      |
    3 | url = "http://h/"
      |       ^^^^^^^^^^^
      = help: a server is a program, a URL or the socket of a unit: remove one of the two
    "#);
    insta::assert_snapshot!(bad("[servers.a]\nurl = \"http://h/\"\nargs = [\"x\"]\n"), @r#"
    `args` has no effect on a server with `url`
     --> c.toml:3:8
      |
    3 | args = ["*"]
      |        ^^^^^
      = help: remove it: it belongs to a server with `command`
    "#);
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"\"\n"), @r#"
    `command` is empty
     --> c.toml:2:11
      |
    2 | command = ""
      |           ^^
      = help: name the program that speaks MCP over stdio
    "#);
    insta::assert_snapshot!(bad("[servers.a]\nurl = \"h/mcp\"\n"), @r#"
    `h/***` is not a URL
     --> c.toml:2:7
      |
    2 | url = "*****"
      |       ^^^^^^^
      = help: write it as `https://HOST/PATH` or `http://HOST:PORT/PATH`
    "#);
}

#[test]
fn a_name_is_checked_and_can_be_declared_once() {
    insta::assert_snapshot!(bad("[servers.\"a b\"]\ncommand = \"x\"\n"), @r#"
    `a b` is not a server name: ` ` is not a letter, digit, `-` or `_`
     --> c.toml:1:10
      |
    1 | [servers."a b"]
      |          ^^^^^
      = help: use 1 to 40 letters, digits, `-` and single `_`
    "#);
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\n[servers.a]\ncommand = \"y\"\n"), @"
    duplicate key
     --> c.toml:3:10
      |
    3 | [servers.a]
      |          ^
      = help: rename or remove one: a name can be declared only once
    ");
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\nenv = { \"A=B\" = \"c\" }\n"), @r#"
    a key is not the name of an environment variable
     --> c.toml:3:9
      |
    3 | env = { "*=*" = "*" }
      |         ^^^^^
      = help: write a name without `=`
    "#);
}

#[test]
fn a_certificate_has_a_key_and_both_are_files_or_credentials() {
    insta::assert_snapshot!(bad("[listen]\ntls = { certificate = \"/etc/chain.pem\" }\n"), @r#"
    `tls` has no `key`
     --> c.toml:2:7
      |
    2 | tls = { certificate = "/etc/chain.pem" }
      |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      = help: add `key`: write the absolute path of a PEM file, or the name of a credential as in "credential:tls"
    "#);
    for (certificate, wrong) in [
        ("chain.pem", "`certificate` is not an absolute path"),
        ("", "`certificate` is not an absolute path"),
        ("env:CHAIN", "`certificate` cannot be in a variable"),
        ("credential:../chain", "the text after `credential:` is not a credential name"),
    ] {
        let text = format!("[listen.tls]\ncertificate = {certificate:?}\nkey = \"/etc/key.pem\"\n");
        let shown = bad(&text);
        assert!(shown.starts_with(wrong) && shown.contains("c.toml:2:15"), "{shown}");
    }
    assert!(bad("[listen]\ntls = true\n").contains("expected a table"));
    assert!(bad("[listen.tls]\ncert = \"/x\"\n").contains("unknown key `cert`"));
}

#[test]
fn a_private_key_in_the_file_is_refused_and_not_shown() {
    let text = "[listen.tls]\ncertificate = \"/c\"\nkey = \"-----BEGIN PRIVATE KEY-----\\nMC4C\"\n";
    let shown = bad(text);
    assert!(shown.starts_with("`key` is a PEM text itself"), "{shown}");
    assert!(!shown.contains("MC4C"), "{shown}");
}

#[test]
fn keys_that_contradict_each_other_are_refused() {
    insta::assert_snapshot!(bad("[service]\nrequest_timeout = \"10m\"\n"), @r#"
    `request_timeout` is longer than `max_total_timeout`
     --> c.toml:2:19
      |
    2 | request_timeout = "10m"
      |                   ^^^^^
      = help: lower it, or raise `max_total_timeout`: no request may take longer
    "#);
    insta::assert_snapshot!(bad("[listen]\nhttp = \"0.0.0.0:12011\"\n"), @r#"
    `0.0.0.0:12011` is not a loopback address, and `listen.tls` and `listen.token` are not set
     --> c.toml:2:8
      |
    2 | http = "0.0.0.0:12011"
      |        ^^^^^^^^^^^^^^^
      = help: set both `listen.tls` and `listen.token`, or listen on 127.0.0.1: everyone who reaches the port may run every tool
    "#);
    insta::assert_snapshot!(bad("[listen]\nmetrics = \"127.0.0.1:12011\"\n"), @r#"
    `127.0.0.1:12011` is the address of clients, too: `listen.http`
     --> c.toml:2:11
      |
    2 | metrics = "127.0.0.1:12011"
      |           ^^^^^^^^^^^^^^^^^
      = help: choose another port; `/metrics` is at the address of clients in any case
    "#);
    insta::assert_snapshot!(bad("[listen]\nroot = \"passthrough:gti\"\n[servers.git]\ncommand = \"x\"\n"), @r#"
    `passthrough:gti` names no server
     --> c.toml:2:8
      |
    2 | root = "passthrough:gti"
      |        ^^^^^^^^^^^^^^^^^
      = help: did you mean `git`?
    "#);
    insta::assert_snapshot!(bad("[servers.me]\nurl = \"http://127.0.0.1:12011/\"\n"), @"
    server `me` is this service itself
     --> c.toml:1:10
      |
    1 | [servers.me]
      |          ^^
      = help: remove it: its `url` is the address in `listen.http`, so calls would never end
    ");
}

#[test]
fn values_of_env_and_headers_are_masked_wherever_the_mistake_is() {
    for text in [
        "[servers.a]\nurl = \"http://h/\"\nheaders = { Authorization = \"Bearer hunter2\", \"bad header\" = \"x\" }\n",
        "[servers.a]\ncommand = \"x\"\nenv = \"TOKEN=hunter2\"\n",
        "[servers.a]\ncommand = \"x\"\nenv = ' A = \"hunter2\" '\n",
        "[servers.a]\ncommand = \"x\"\n[servers.a.env]\nTOKEN = \"hunter2\" x\n",
        "[servers.a]\ncommand = \"x\"\n[servers.a.env]\nA = \"b\"\nTOKEN = [\"hunter2\"]\n",
        "[servers.a]\ncommand = \"x\"\nenv.TOKEN = [\"hunter2\"]\n",
        "[servers.a]\ncommand = \"x\"\nenv = { T = \"hunter2\", T = \"hunter2\" }\n",
        "servers.a = { command = \"x\", env = { T = \"hunter2\\u0000\" } }\n",
        "[servers.a]\ncommand = \"x\"\npasswort = \"hunter2\n",
        "[servers.a]\ncommand = \"x\"\npasswort = \"hunter2\"\n",
        "[servers.a]\ncommand = \"x\"\npasswort = hunter2\n",
        "[servers.a]\ncommand = \"x\"\npasswort = '''\nhunter2",
        "# in \"\"\"\n[servers.a]\ncommand = \"x\"\nenv.T = \"\"\"\nhunter2=",
        "[servers]\nurl = \"http://h/\"\nheaders = { \"Authorization: hunter2\" = \"x\" }\n",
        "[servers.a]\ncommand = \"x\"\nenv.T = \"\"\"a\nenv.U = \"\"\"\nhunter2 = x\n\"\"\"\n",
    ] {
        let shown = bad(text);
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("c.toml:"), "{shown}");
    }
}

/// Declarations with a secret, `@`, that the parser may take for something else.
const WITH_SECRET: [&str; 12] = [
    "command = \"x\"\nenv = { A = \"b\", API_KEY = \"@\", C = \"d\" }\n",
    "command = \"x\"\n[servers.a.env]\nA = \"b\"\nAPI_KEY = \"@\"\n",
    "command = \"x\"\n  [servers.a.env]\n  API_KEY = 'x @'\n",
    "command = \"x\"\nargs = [\"-v\", \"--token\", \"@\"]\n",
    "command = \"x\"\nargs = [\n  \"--token\",\n  \"@\",\n]\n",
    "command = \"x\"\nenv.API_KEY = \"\"\"\n@\n\"\"\"\n",
    "url = \"http://h/\"\nheaders = { Authorization = \"Bearer @\" }\n",
    "url = \"http://h/\"\nheaders = { \"Authorization: Bearer @\" = \"x\" }\n",
    "url = \"http://user:@@h/\"\n",
    "url = \"http://h/?key=@\"\n",
    "command = [\"x\", \"--token\", \"@\"]\n",
    "command = \"x\"\n[listen]\ntoken = \"@\"\n",
];

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2000))]

    #[test]
    fn no_broken_file_shows_a_secret(
        which in 0..WITH_SECRET.len(),
        secret in "(3f|-|[+]|/|[$]|credential:|env:|)CANARY([ /@-]?[0-9a-z]{0,3}|==)",
        edits in proptest::collection::vec((0.0..1.0, "[\"'={},#.\\[\\] x1\n]?"), 0..3),
    ) {
        let mut text: Vec<char> =
            format!("[servers.a]\n{}", WITH_SECRET[which].replacen('@', &secret, 1)).chars().collect();
        for (place, new) in edits {
            let at = (place * text.len() as f64) as usize;
            text.splice(at..at + 1, new.chars());
        }
        let text = String::from_iter(text);
        if let Err(problem) = parse(&text) {
            let shown = problem.locate(Path::new("c.toml"), &text).to_string();
            proptest::prop_assert!(!shown.contains("NAR"), "{}\n{}", text, shown);
        }
    }
}

#[test]
fn a_value_without_quotes_is_masked_wherever_it_stands() {
    for text in [
        "[servers.a]\ncommand = \"x\"\nenv = { API_KEY = hunter2 }\n",
        "[servers.a]\ncommand = \"x\"\n[servers.a.env]\nAPI_KEY = 3fhunter2-1234\n",
        "[servers.a]\ncommand = \"x\"\n[servers.a.env]\nAPI_KEY = $hunter2\n",
        "[listen]\ntoken = 3fhunter2\n",
        "[servers.a]\nurl = \"http://h/\"\nheaders = { Authorization = Bearer hunter2 }\n",
        "[servers.a]\ncommand = \"x\"\nargs = [\"--token\", hunter2]\n",
        "[servers.a]\ncommand = \"x\"\nargs = [\"--token\", \"hunter2\", 1]\n",
        "[servers.a]\ncommand = \"x\"\nenv = { PIN = 1234567, T = \"hunter2\" }\n",
        "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":[\"hunter2\"]}}}",
    ] {
        let shown = content(Path::new("c.toml"), text).expect_err("a mistake").to_string();
        assert!(!shown.contains("hunter2") && !shown.contains("1234567"), "{shown}");
        assert!(shown.contains("c.toml:"), "{shown}");
    }
}

#[test]
fn a_configuration_that_can_never_work_is_refused() {
    for text in [
        "[servers.a]\nurl = \"http://x:99999/\"\n",
        "[servers.a]\ncommand = \"a\\u0000b\"\n",
        "[servers.a]\ncommand = \"x\"\nargs = [\"a\\u0000b\"]\n",
        "[servers.a]\ncommand = \"x\"\nenv = { T = \"credential:../x\" }\n",
        "[servers.a]\ncommand = \"x\"\nenv = { T = \"credential:\" }\n",
        "[servers.a]\nurl = \"http://h/\"\nheaders = { T = \"a\\nb\" }\n",
        "[servers.a]\nurl = \"http://h/\"\nheaders = { X-A = \"1\", x-a = \"2\" }\n",
        "[servers.a]\ncommand = \"x\"\nsharing = \"session\"\nmax_connections = 1025\n",
        "[servers.a]\nurl = \"http://h/\"\nheaders = { Mcp-Session-Id = \"1\" }\n",
        "[listen]\ncontrol = \"\"\n",
        "[listen]\ncontrol = \"relative.sock\"\n",
        &format!("[listen]\ncontrol = \"/{}\"\n", "x".repeat(200)),
        "[listen]\ncontrol_group = \"\"\n",
        "[listen]\ncontrol_group = \"1000\"\n",
        "[listen]\ncontrol_group = \"a group\"\n",
        "[listen]\nallowed_hosts = [\"a.example:80\"]\n",
        "[listen]\nallowed_origins = [\"a.example\"]\n",
        "[telemetry]\notlp = \"http://h/?api-key=hunter2\"\n",
        "[telemetry]\notlp = \"http://ada:hunter2@h/\"\n",
    ] {
        let shown = bad(text);
        assert!(shown.contains("c.toml:"), "{shown}");
    }
}

/// Values of every type, including the bounds of numbers.
const VALUES: [&str; 13] = [
    "5",
    "-1",
    "5000000000",
    "1.5",
    "true",
    "\"\"",
    "\"x\"",
    "\"0s\"",
    "[]",
    "[5]",
    "{}",
    "{ a = 5 }",
    "1979-05-27",
];

/// Returns the known keys of a table.
fn keys(table: &str) -> Vec<String> {
    let shown = bad(&format!("[{table}]\nnothing-like-any-of-them = 1\n"));
    let (_, known) = shown.split_once("known here: ").expect("the help lists all keys");
    known.trim().split(", ").map(str::to_owned).collect()
}

/// Returns the message for `text` if it uses serde's words or has no remedy.
fn in_other_words(text: &str) -> Option<String> {
    let shown = parse(text).err()?.locate(Path::new("c.toml"), text).to_string();
    let message = shown.lines().next().expect("a message");
    let is_theirs = [
        "usize", "u32", "i64", "struct", "wanted", "variant", "field", "sequence", "map", "tuple",
        "unit", "length", "floating", "spanned",
    ]
    .into_iter()
    .any(|word| message.split([' ', ',']).any(|found| found == word));
    (is_theirs || !shown.contains("= help: ")).then_some(shown)
}

#[test]
fn every_wrong_value_of_every_key_is_reported_in_plain_words_with_a_remedy() {
    let tables = [
        "service",
        "listen",
        "pool",
        "health",
        "breaker",
        "tasks",
        "servers.a",
        "servers.a.health",
        "servers.a.auth",
        "servers.a.tls",
        "auth",
    ];
    let mut n_keys = 0;
    let mut texts = Vec::new();
    for table in tables {
        texts.push(format!("[[{table}]]\n"));
        texts.extend(VALUES.map(|value| format!("{table} = {value}\n")));
        for key in keys(table) {
            n_keys += 1;
            texts.extend(VALUES.map(|value| format!("[{table}]\n{key} = {value}\n")));
        }
    }
    assert!(n_keys > 40, "{n_keys} keys");
    let command = "[servers.a]\ncommand = \"x\"\n";
    for value in VALUES {
        for keys in ["mode = \"keep-alive\", idle_timeout", "idle_timeout", "mode"] {
            texts.push(format!("{command}lifecycle = {{ {keys} = {value} }}\n"));
        }
        texts.push(format!("{command}env = {{ A = {value} }}\n"));
        texts.push(format!("{command}args = [{value}]\n"));
        texts.push(format!("[servers.a]\nurl = \"http://h/\"\nheaders = {{ A = {value} }}\n"));
        texts.push(format!("[listen]\nallowed_hosts = [{value}]\n"));
    }

    let found: Vec<_> = texts.iter().filter_map(|text| in_other_words(text)).collect();

    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
// One snapshot for each mistake: a table, however long.
fn a_value_of_a_wrong_form_is_reported_with_the_valid_forms() {
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\nlifecycle = {}\n"), @r#"
    `lifecycle` has no `mode`
     --> c.toml:3:13
      |
    3 | lifecycle = {}
      |             ^^
      = help: write "keep-alive", "ephemeral" or { mode = "keep-alive", idle_timeout = "1h" }
    "#);
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\nlifecycle = 5\n"), @r#"
    invalid type: integer `5`, expected a lifecycle
     --> c.toml:3:13
      |
    3 | lifecycle = 5
      |             ^
      = help: write "keep-alive", "ephemeral" or { mode = "keep-alive", idle_timeout = "1h" }
    "#);
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\nlifecycle = \"forever\"\n"), @r#"
    unknown value `forever`
     --> c.toml:3:13
      |
    3 | lifecycle = "forever"
      |             ^^^^^^^^^
      = help: known here: keep-alive, ephemeral
    "#);
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\nstart = true\n"), @r#"
    invalid type: boolean `true`, expected a word
     --> c.toml:3:9
      |
    3 | start = true
      |         ^^^^
      = help: write one of these, in quotes: "lazy", "eager", "prewarm"
    "#);
    insta::assert_snapshot!(bad("[pool]\nsize = \"3\"\n"), @r#"
    invalid type: string "3", expected a whole number from 0
     --> c.toml:2:8
      |
    2 | size = "3"
      |        ^^^
      = help: write a number without quotes, as in 3
    "#);
    insta::assert_snapshot!(bad("[pool]\nsize = -1\n"), @"
    invalid value: integer `-1`, expected a whole number from 0
     --> c.toml:2:8
      |
    2 | size = -1
      |        ^^
      = help: write a number without quotes, as in 3
    ");
    insta::assert_snapshot!(bad("servers.a = \"x\"\n"), @r#"
    invalid type: string "x", expected a table
     --> c.toml:1:13
      |
    1 | servers.a = "x"
      |             ^^^
      = help: write a table: its name in brackets on a line of its own, then its keys
    "#);
    insta::assert_snapshot!(bad("[[servers.a]]\ncommand = \"x\"\n"), @"
    a table in double brackets
     --> c.toml:1:1
      |
    1 | [[servers.a]]
      | ^^^^^^^^^^^^^
      = help: write its name in single brackets: each name has one table
    ");
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\ncwd = 5\n"), @r#"
    invalid type: integer `5`, expected a path
     --> c.toml:3:7
      |
    3 | cwd = 5
      |       ^
      = help: write a path in quotes, as in "/path"
    "#);
    let shown = bad("[health]\nmax_reconnects = 5000000000\n");
    assert!(shown.contains("a whole number below 4294967296"), "{shown}");
}

#[test]
fn a_long_line_is_shown_around_the_place() {
    let shown =
        bad(&format!("[servers.a]\nargs = [{}]\ncommand = \"x\"\n", "\"x\", ".repeat(5000) + "1"));
    assert!(shown.len() < 1000, "{} bytes", shown.len());
    assert!(shown.lines().any(|line| line.trim_end().ends_with('^')), "{shown}");
}

#[test]
fn a_literal_value_never_shows_up_in_debug_output() {
    let config = good("[servers.a]\ncommand = \"x\"\nenv = { TOKEN = \"hunter2\" }\n");
    assert!(!format!("{config:?}").contains("hunter2"));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_diagnostics_panic(text in "(\\[servers\\.[a-z\"]{0,3}\\]|[a-zä= \"\\[\\]{}\n\t.#0-9]){0,40}") {
        if let Err(problem) = parse(&text) {
            let _text = problem.locate(Path::new("c.toml"), &text).to_string();
        }
    }
}

#[test]
fn a_meaningless_sharing_setting_is_refused_with_the_remedy() {
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\nmax_connections = 2\n"), @r#"
    `max_connections` has no effect on a shared server
     --> c.toml:3:19
      |
    3 | max_connections = 2
      |                   ^
      = help: remove it, because all clients share one connection, or set `sharing` to "exclusive" or "session"
    "#);
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\nsharing = \"exclusive\"\nmax_connections = 0\n"), @"
    `max_connections` is 0
     --> c.toml:4:19
      |
    4 | max_connections = 0
      |                   ^
      = help: use 1 to 1024
    ");
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\nsharing = \"session\"\nstart = \"eager\"\n"), @r#"
    `start` has no effect with `sharing = "session"`
     --> c.toml:4:9
      |
    4 | start = "eager"
      |         ^^^^^^^
      = help: remove `start`: metamcp connects such a server when a client needs it
    "#);
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\nsharing = \"alone\"\n"), @r#"
    unknown value `alone`
     --> c.toml:3:11
      |
    3 | sharing = "alone"
      |           ^^^^^^^
      = help: known here: shared, exclusive, session
    "#);
}

#[test]
fn a_mistake_in_the_breaker_table_is_shown_at_its_place() {
    assert_eq!(good("[breaker]\nfailure_threshold = 0\n").breaker.failure_threshold, 0);
    insta::assert_snapshot!(bad("[breaker]\nfailure_threshold = 1001\n"), @"
    `failure_threshold` is 1001
     --> c.toml:2:21
      |
    2 | failure_threshold = 1001
      |                     ^^^^
      = help: use 1 to 1000, or 0 for a breaker that never opens
    ");
    assert!(bad("[breaker]\nfailure_threshold = -1\n").contains("use 1 to 1000"));
    assert!(bad("[breaker]\ncooldown = \"0s\"\n").contains("`0s` is out of range"));
    insta::assert_snapshot!(bad("[breaker]\ncool_down = \"1s\"\n"), @r#"
    unknown key `cool_down`
     --> c.toml:2:1
      |
    2 | cool_down = "**"
      | ^^^^^^^^^
      = help: did you mean `cooldown`?
    "#);
}

#[test]
fn a_retry_policy_is_one_of_four_words() {
    let retry = |word: &str| {
        let config = good(&format!("[servers.a]\ncommand = \"x\"\nretry = {word:?}\n"));
        config.servers["a"].retry
    };
    assert_eq!(
        ["safe", "vital", "fresh", "never"].map(retry),
        [RetryPolicy::Safe, RetryPolicy::Vital, RetryPolicy::Fresh, RetryPolicy::Never]
    );
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\nretry = \"vitl\"\n"), @r#"
    unknown value `vitl`
     --> c.toml:3:9
      |
    3 | retry = "vitl"
      |         ^^^^^^
      = help: did you mean `vital`?
    "#);
}

#[test]
fn an_era_is_one_of_three_words() {
    let era = |word: &str| {
        let config = good(&format!("[servers.a]\ncommand = \"x\"\nera = {word:?}\n"));
        config.servers["a"].era
    };
    assert_eq!(
        ["auto", "legacy", "modern"].map(era),
        [EraChoice::Auto, EraChoice::Legacy, EraChoice::Modern]
    );
    insta::assert_snapshot!(bad("[servers.a]\ncommand = \"x\"\nera = \"moder\"\n"), @r#"
    unknown value `moder`
     --> c.toml:3:7
      |
    3 | era = "moder"
      |       ^^^^^^^
      = help: did you mean `modern`?
    "#);
}

#[test]
fn memory_max_is_unset_or_within_its_bounds() {
    let memory = |text: &str| good(&format!("[service]\n{text}\n")).service.memory_max;
    assert_eq!(memory(""), None);
    assert_eq!(memory("memory_max = 117440512"), Some(112 << 20));
    assert_eq!(memory("memory_max = 1099511627776"), Some(1 << 40));
    insta::assert_snapshot!(bad("[service]\nmemory_max = 117440511\n"), @"
    `memory_max` is 117440511
     --> c.toml:2:14
      |
    2 | memory_max = 117440511
      |              ^^^^^^^^^
      = help: use 117440512 to 1099511627776, a number of bytes
    ");
    for text in ["0", "-1", "1099511627777"] {
        assert!(bad(&format!("[service]\nmemory_max = {text}\n")).contains("a number of bytes"));
    }
}
