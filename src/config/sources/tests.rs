use std::time::Duration;

use super::*;
use crate::config::{RetryPolicy, TransportConfig, effective, environment::EnvironmentVariable};

/// Returns the sources with this file, these variables and these flags.
fn sources(file: &str, variables: &[(&str, &str)], flags: &[(&str, &str, &str)]) -> ConfigSources {
    let variable = |(name, value): &(&str, &str)| EnvironmentVariable {
        name: (*name).to_owned(),
        value: (*value).to_owned(),
    };
    let flag = |(name, key, value): &(&str, &str, &str)| SourcedSetting {
        origin: SettingOrigin::Flag((*name).to_owned()),
        target: match *key {
            "host" => SettingTarget::Host,
            "port" => SettingTarget::Port,
            key => SettingTarget::Written(key.to_owned()),
        },
        value: (*value).to_owned(),
    };
    ConfigSources {
        file: None,
        without_file: file.to_owned(),
        variables: variables.iter().map(variable).collect(),
        flags: flags.iter().map(flag).collect(),
    }
}

#[track_caller]
fn good(sources: &ConfigSources) -> LoadedConfig {
    sources.load().unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn bad(sources: &ConfigSources) -> String {
    sources.load().expect_err("a mistake").to_string()
}

const SERVER: &str = "[servers.my-git]\ncommand = \"git-mcp\"\n";

#[test]
fn a_flag_overrides_a_variable_which_overrides_the_file() {
    let file = "[pool]\nsize = 10\nmin_size = 1\nreserve_size = 2\n";
    let variables = [("METAMCP_POOL_SIZE", "11"), ("METAMCP_POOL_RESERVE_SIZE", "3")];
    let pool = good(&sources(file, &variables, &[("--max-connections", "pool.size", "12")]));
    let pool = pool.config.pool;
    assert_eq!((pool.size, pool.reserve_size, pool.min_size), (12, 3, 1));
    assert_eq!(pool.reserve_timeout, defaults::POOL_RESERVE_TIMEOUT);
}

#[test]
fn a_variable_takes_texts_without_quotes_and_other_values_as_toml() {
    let variables = [
        ("METAMCP_SERVICE_LOG_LEVEL", "debug"),
        ("METAMCP_SERVICE_IDLE_EXIT", " \"30m\" "),
        ("METAMCP_LISTEN_HTTP", "[::1]:0"),
        ("METAMCP_LISTEN_RPC", "true"),
        ("METAMCP_LISTEN_ALLOWED_HOSTS", "[\"a.example\", 'b.example']"),
        ("METAMCP_LISTEN_TLS", "{ certificate = \"/c\", key = \"/k\" }"),
        ("METAMCP_LISTEN_TLS_KEY", "/other"),
        ("METAMCP_SEARCH_EMBEDDING_URL", "http://h/v1/embeddings"),
        ("METAMCP_SEARCH_EMBEDDING_MODEL", "4"),
        ("METAMCP_PROVISION_MIN_CONFIDENCE", "0.75"),
        ("METAMCP_SERVERS_MY_GIT_ARGS", "[\"a b\", \"c\"]"),
        ("METAMCP_SERVERS_MY_GIT_ENV", "{ T = \"credential:t\" }"),
        ("METAMCP_SERVERS_MY_GIT_LIFECYCLE", "{ mode = \"keep-alive\", idle_timeout = \"1h\" }"),
        ("METAMCP_SERVERS_MY_GIT_HEALTH_FAILURES", "7"),
        ("METAMCP_SERVERS_MY_GIT_RETRY", "vital"),
        ("METAMCP_SERVERS_MY_GIT_CWD", "/a \"b\"\\c"),
    ];
    let config = good(&sources(SERVER, &variables, &[])).config;
    assert_eq!(config.service.idle_exit, Some(Some(Duration::from_secs(1800))));
    assert!(config.listen.rpc && config.listen.http.is_ipv6());
    assert_eq!(config.listen.allowed_hosts, ["a.example", "b.example"]);
    let tls = config.listen.tls.expect("declared");
    assert_eq!((tls.certificate.to_string(), tls.key.to_string()), ("/c".into(), "/other".into()));
    assert_eq!(config.search.embedding.expect("declared").model, "4");
    let git = &config.servers["my-git"];
    assert_eq!((git.retry, git.health.failures), (RetryPolicy::Vital, 7));
    let TransportConfig::Stdio { command, args, env, cwd } = &git.transport else {
        panic!("a program")
    };
    assert_eq!(
        (command.as_str(), args.as_slice(), env.len()),
        ("git-mcp", &["a b".into(), "c".into()][..], 1)
    );
    assert_eq!(cwd.as_deref(), Some(Path::new("/a \"b\"\\c")));
}

#[test]
fn a_mistake_in_a_variable_or_a_flag_is_shown_with_its_name() {
    let of = |name, value| bad(&sources(SERVER, &[(name, value)], &[]));
    insta::assert_snapshot!(of("METAMCP_POOL_SIZE", "many"), @r#"
    invalid type: string "many", expected a whole number from 0
     --> METAMCP_POOL_SIZE
      |
      | pool.size = "many"
      |             ^^^^^^
      = help: write a number without quotes, as in 3
    "#);
    insta::assert_snapshot!(of("METAMCP_SERVICE_LOG_LEVEL", "debgu"), @r#"
    unknown value `debgu`
     --> METAMCP_SERVICE_LOG_LEVEL
      |
      | service.log_level = "debgu"
      |                     ^^^^^^^
      = help: did you mean `debug`?
    "#);
    insta::assert_snapshot!(of("METAMCP_POOL_SIZ", "3"), @"
    unknown variable `METAMCP_POOL_SIZ`
     --> METAMCP_POOL_SIZ
      = help: did you mean `METAMCP_POOL_SIZE`?
    ");
    insta::assert_snapshot!(of("METAMCP_SERVERS_HG_COMMAND", "hg-mcp"), @"
    unknown variable `METAMCP_SERVERS_HG_COMMAND`
     --> METAMCP_SERVERS_HG_COMMAND
      = help: did you mean `METAMCP_SERVERS_MY_GIT_COMMAND`?
    ");
    insta::assert_snapshot!(of("METAMCP_LISTEN_ALLOWED_HOSTS", "[\"a\"]\npool.size = 3"), @r#"
    unexpected content, expected nothing
     --> METAMCP_LISTEN_ALLOWED_HOSTS
      |
      | listen.allowed_hosts = ["*"]
      |                             ^
      = help: write it as in the file: a list as ["one", "two"], a table as { NAME = "value" }
    "#);
    let flag = bad(&sources(SERVER, &[], &[("--set pool.siz", "pool.siz", "3")]));
    insta::assert_snapshot!(flag, @"
    unknown key `siz`
     --> --set pool.siz
      |
      | pool.siz = *
      |      ^^^
      = help: did you mean `size`?
    ");
    let flag = bad(&sources(SERVER, &[], &[("--host", "host", "0.0.0.0")]));
    assert!(
        flag.contains("and `listen.tls` and `listen.token` are not set\n --> --host\n"),
        "{flag}"
    );
    for key in ["pool", "", "pool.", "[pool]"] {
        let flag = bad(&sources("", &[], &[("--set", key, "3")]));
        assert!(flag.contains(" --> --set") && flag.contains("= help: "), "{flag}");
    }
}

#[test]
fn a_mistake_in_the_file_is_shown_at_its_place_despite_variables() {
    let variables = [("METAMCP_POOL_IDLE_TIMEOUT", "1m")];
    let shown = bad(&sources("[pool]\nsize = 0\n", &variables, &[]));
    assert!(shown.contains(" --> the demonstration:2:8\n"), "{shown}");
    let shown = bad(&sources("[pool\n", &variables, &[]));
    assert!(shown.contains("the demonstration:1:"), "{shown}");
}

#[test]
fn a_variable_that_fits_two_servers_is_refused() {
    let file = format!("{SERVER}[servers.my_git]\ncommand = \"x\"\n");
    insta::assert_snapshot!(bad(&sources(&file, &[("METAMCP_SERVERS_MY_GIT_RETRY", "never")], &[])), @"
    `METAMCP_SERVERS_MY_GIT_RETRY` may be `servers.my-git.retry` or `servers.my_git.retry`
     --> METAMCP_SERVERS_MY_GIT_RETRY
      = help: set the key in the file, or with `--set KEY=VALUE`
    ");
}

#[test]
fn an_unknown_variable_is_reported_and_a_variable_of_other_software_is_ignored() {
    let variables = [
        ("METAMCP_FOO", "1"),
        ("METAMCP_SOCKET", "/x"),
        ("METAMCP_CHILD", "1"),
        ("METAMCP_SERVICE_HOST", "10.0.0.1"),
        ("METAMCP_SERVICE_PORT_HTTP", "80"),
        ("METAMCP_PORT_80_TCP_ADDR", "10.0.0.1"),
        ("METAMCP_POOL_SIZE", ""),
    ];
    let loaded = good(&sources("", &variables, &[]));
    assert_eq!(loaded.unknown_variables, ["METAMCP_FOO"]);
    assert_eq!(loaded.config, Config::default());
}

#[test]
fn host_and_port_change_one_half_of_the_address() {
    let http = |file: &str, flags: &[(&str, &str, &str)]| {
        good(&sources(file, &[], flags)).config.listen.http.to_string()
    };
    let file = "[listen]\nhttp = \"127.0.0.2:99\"\n";
    assert_eq!(http(file, &[("--port", "port", "4000")]), "127.0.0.2:4000");
    assert_eq!(http(file, &[("--host", "host", "::1")]), "[::1]:99");
    assert_eq!(
        http("", &[("--host", "host", "localhost"), ("--port", "port", "0")]),
        "127.0.0.1:0"
    );
    assert!(bad(&sources("", &[], &[("--port", "port", "many")])).contains(" --> --port\n"));
}

#[test]
fn a_diagnostic_never_shows_the_value_of_a_secret() {
    for (name, value) in [
        ("METAMCP_SERVERS_MY_GIT_ENV", "{ TOKEN = [\"hunter2\"] }"),
        ("METAMCP_SERVERS_MY_GIT_ENV", "{ TOKEN = \"hunter2\" "),
        ("METAMCP_LISTEN_SESSION_KEY", "hunter2"),
        ("METAMCP_SEARCH_EMBEDDING_API_KEY", "hunter2"),
        ("METAMCP_SERVICE_PROXY", "https://ada:hunter2@proxy"),
    ] {
        let sources = sources(SERVER, &[(name, value)], &[]);
        assert!(!format!("{sources:?}").contains("hunter2"));
        let shown = bad(&sources);
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn each_effective_setting_is_listed_with_its_source() {
    let file = "[servers.git]\ncommand = \"x\"\nenv = { TOKEN = \"hunter2\", REF = \"env:R\" }\n";
    let variables = [("METAMCP_POOL_SIZE", "30"), ("METAMCP_SERVICE_MAX_TOTAL_TIMEOUT", "30s")];
    let loaded = good(&sources(file, &variables, &[("--stateless", "listen.session", "off")]));
    let entries = effective::entries(&loaded.config, &loaded.configured);
    let entry = |key: &str| {
        let found = entries.iter().find(|entry| entry.path.join(".") == key).expect(key);
        let value = found.value.as_ref().map_or("-".to_owned(), ToString::to_string);
        format!("{value} {}", found.place())
    };
    assert_eq!(entry("pool.size"), "30 environment METAMCP_POOL_SIZE");
    assert_eq!(entry("pool.min_size"), "0 default");
    assert_eq!(entry("listen.session"), "\"off\" flag --stateless");
    assert_eq!(entry("servers.git.command"), "\"x\" the demonstration:2");
    assert_eq!(entry("servers.git.env.TOKEN"), "\"***\" the demonstration:3");
    assert_eq!(entry("servers.git.env.REF"), "\"env:R\" the demonstration:3");
    assert_eq!(entry("service.request_timeout"), "\"30s\" default");
    assert_eq!(entry("listen.control_group"), "- not set");
    assert_eq!(entry("provision.registry.ttl"), "- not set");
    assert!(!format!("{:?}", loaded.configured).contains("hunter2"));

    let file = "[service]\nproxy = \"http://ada:hunter2@proxy:3128\"\n[servers.up]\nurl = \"https://h/?k=hunter2\"\nauth = { client_id = \"a\", client_secret = \"env:S\" }\n";
    let loaded = good(&sources(file, &[], &[]));
    let entries = effective::entries(&loaded.config, &loaded.configured);
    let shown = |key: &str| {
        let found = entries.iter().find(|entry| entry.path.join(".") == key).expect(key);
        found.value.as_ref().map_or("-".to_owned(), ToString::to_string)
    };
    assert_eq!(shown("service.proxy"), "\"http://***@proxy:3128\"");
    assert_eq!(shown("servers.up.url"), "\"https://h/?***\"");
    assert_eq!(shown("servers.up.auth.client_secret"), "\"env:S\"");
}
