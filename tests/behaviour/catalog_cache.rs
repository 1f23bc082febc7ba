//! The catalog cache: lists of servers without a connection, from files of an earlier process.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    all,
    harness::{
        client::Client,
        daemon::{Daemon, Start},
        fake::{Fakes, Upstream},
        scripted_upstream::ScriptedUpstream,
    },
    server_status, until,
};

/// A cache directory that outlives its daemons.
pub(crate) struct Cache(TempDir);

impl Cache {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    pub(crate) fn start(&self, config: impl Into<String>) -> Start {
        Daemon::with(config).env("CACHE_DIRECTORY", self.0.path())
    }

    /// Returns the path of a server's file.
    fn file(&self, server: &str) -> PathBuf {
        self.0.path().join(format!("catalog/{server}.catalog"))
    }

    /// Waits until the file of `server` contains `text`.
    pub(crate) async fn wait(&self, server: &str, text: &str) {
        until(async || {
            fs::read_to_string(self.file(server)).is_ok_and(|found| found.contains(text))
        })
        .await;
    }

    /// Runs a service until the cache has the lists of its servers.
    async fn fill(&self, config: &str) {
        let mut daemon = self.start(config).ready();
        assert!(!tools(&daemon.client("/")).await.is_empty());
        assert!(daemon.stop().success());
    }
}

async fn list(client: &Client, method: &str) -> Value {
    client.request(json!(1), method, json!({})).await.answer()["result"].clone()
}

async fn tools(client: &Client) -> Vec<String> {
    let listed = list(client, "tools/list").await;
    let tools = listed["tools"].as_array().expect("a list").iter();
    tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

/// Returns a number that changes when the file is replaced.
fn version(path: &Path) -> u64 {
    fs::metadata(path).expect("it is there").ino()
}

#[tokio::test]
async fn after_a_restart_all_lists_come_from_the_cache_and_no_server_runs() {
    const N_TOOLS: usize = 500;
    let (cache, fakes) = (Cache::new(), Fakes::new());
    let names: Vec<String> = (0..N_TOOLS).map(|n| format!("tool_{n}")).collect();
    let mut options = vec!["--page", "50", "--subscribe"];
    options.extend(names.iter().flat_map(|name| ["--named", name]));
    let config = fakes.server("many", &options)
        + &fakes.server("few", &[])
        + "sharing = \"exclusive\"\n"
        + &fakes.server("own", &[])
        + "sharing = \"session\"\n";
    let methods = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
    let mut daemon = cache.start(&*config).ready();
    let client = daemon.client("/").header("mcp-protocol-version", "2025-11-25");
    let mut before = Vec::new();
    for method in methods {
        before.push(list(&client, method).await);
    }
    assert!(daemon.stop().success());
    let n_tools = before[0]["tools"].as_array().expect("a list").len();
    let pids = || ["many", "few"].map(|server| fakes.pids(server).len());
    let n_before = pids();
    assert!(n_tools > N_TOOLS && n_before == [1, 1], "{n_tools} {n_before:?}");

    let daemon = cache.start(&*config).ready();

    let client = daemon.client("/");
    for (method, before) in methods.into_iter().zip(before) {
        assert_eq!(list(&client, method).await, before, "{method}");
    }
    for server in ["many", "few"] {
        let status = server_status(&daemon, server).await;
        assert_eq!((&status["pid"], &status["connections"]), (&Value::Null, &json!(0)), "{status}");
    }
    assert_eq!(pids(), n_before, "no server was started");
    assert_eq!(client.call("few__echo", json!({ "value": 1 })).await["value"], 1);
    assert_eq!(client.call("many__echo", json!({ "value": 1 })).await["value"], 1);
    let resource = list(&client, "resources/list").await["resources"][0]["uri"].clone();
    let read = client.request(json!(2), "resources/read", json!({ "uri": resource })).await;
    assert!(read.answer()["result"]["contents"].is_array());
}

#[tokio::test]
async fn cache_files_are_accessible_to_their_owner_only() {
    let (cache, fakes) = (Cache::new(), Fakes::new());
    cache.fill(&fakes.server("fake", &[])).await;
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    let file = cache.file("fake");
    assert_eq!((mode(&file), mode(file.parent().expect("one"))), (0o600, 0o700));
    let names = fs::read_dir(file.parent().expect("one")).expect("readable");
    assert_eq!(names.count(), 1, "no temporary file is left");
}

#[tokio::test]
async fn an_invalid_cache_file_is_ignored_and_rewritten() {
    let (cache, fakes) = (Cache::new(), Fakes::new());
    let config = fakes.server("fake", &[]);
    cache.fill(&config).await;
    let good = fs::read(cache.file("fake")).expect("there");
    let flipped = {
        let mut bytes = good.clone();
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        bytes
    };
    let large = [good.clone(), vec![b' '; 17 << 20]].concat();
    for (content, is_logged) in [
        (&good[..good.len() / 2], true),
        (&flipped, true),
        (b"", true),
        (b"\0\xff", true),
        (&large, true),
        (b"{\"format\":2}\n", false),
    ] {
        fs::write(cache.file("fake"), content).expect("written");
        let n_before = fakes.pids("fake").len();

        let mut daemon = cache.start(&*config).ready();
        assert!(!tools(&daemon.client("/")).await.is_empty());

        assert_eq!(fakes.pids("fake").len(), n_before + 1, "the server is read again");
        assert_eq!(daemon.log().matches("cached lists ignored").count(), usize::from(is_logged));
        assert!(daemon.stop().success());
        let body = |bytes: &[u8]| bytes.splitn(2, |byte| *byte == b'\n').last().map(<[u8]>::to_vec);
        let written = fs::read(cache.file("fake")).expect("there");
        assert_eq!(body(&written), body(&good));
    }
}

#[tokio::test]
async fn cached_tools_are_not_shown_for_another_program_under_the_same_server_name() {
    let (cache, fakes) = (Cache::new(), Fakes::new());
    cache.fill(&fakes.server("fake", &["--named", "old"])).await;

    let daemon = cache.start(fakes.server("fake", &["--named", "new"])).ready();

    let tools = tools(&daemon.client("/")).await;
    assert!(tools.contains(&"fake__new".to_owned()) && !tools.contains(&"fake__old".to_owned()));
    assert!(!daemon.log().contains("cached lists ignored"), "a changed declaration is no error");
}

#[tokio::test]
async fn only_a_changed_definition_notifies_clients_and_rewrites_the_cache_file() {
    let cache = Cache::new();
    let version_of_schema = Arc::new(AtomicU64::new(0));
    let now = Arc::clone(&version_of_schema);
    let upstream = ScriptedUpstream::start(move |request, response| {
        if request.method() != "tools/list" {
            return false;
        }
        let schema = json!({ "type": "object", "x": now.load(Ordering::Relaxed) });
        let tool = json!({ "name": "a", "description": "as ever", "inputSchema": schema });
        response.json(&request.result(&json!({ "tools": [tool] })));
        true
    });
    let config = upstream.server("");
    cache.fill(&config).await;
    let first = version(&cache.file("up"));
    for (schema, is_other) in [(0, false), (1, true), (1, false)] {
        let before = version(&cache.file("up"));
        version_of_schema.store(schema, Ordering::Relaxed);
        let mut daemon = cache.start(&*config).ready();
        let client = daemon.client("/").initialized().await;
        let mut stream = client.listen().await;
        tools(&client).await;

        // Any request connects the server.
        daemon.client("/servers/up").tool("a", json!({})).await;

        if is_other {
            assert_eq!(stream.message().await["method"], "notifications/tools/list_changed");
            let listed = list(&client, "tools/list").await;
            assert_eq!(listed["tools"][0]["inputSchema"]["x"], schema);
            cache.wait("up", &format!("\"x\":{schema}")).await;
        }
        assert!(daemon.stop().success());
        assert_eq!(version(&cache.file("up")) != before, is_other, "schema {schema}");
    }
    assert_ne!(version(&cache.file("up")), first);
}

#[tokio::test]
async fn an_unreachable_server_keeps_its_cached_lists_and_its_cached_server_info() {
    let cache = Cache::new();
    let upstream = Upstream::start(&[]);
    let config = upstream.server("up", "");
    cache.fill(&config).await;
    drop(upstream);

    let daemon = cache.start(config).ready();

    assert!(tools(&daemon.client("/")).await.contains(&"up__echo".to_owned()));
    let client = daemon.client("/servers/up");
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {} });
    let answer = client.request(json!(1), "initialize", params).await.answer();
    assert_eq!(answer["result"]["serverInfo"]["name"], "fake_mcp");
    let call = daemon.client("/").tool("up__echo", json!({})).await.answer();
    assert!(call["error"]["message"].as_str().is_some_and(|text| text.contains("`up`")), "{call}");
}

#[tokio::test]
async fn two_services_share_one_cache_directory() {
    let (cache, fakes) = (Cache::new(), Fakes::new());
    let config = fakes.server("one", &["--page", "5"]) + &fakes.server("two", &[]);
    let mut daemons = [cache.start(&*config).ready(), cache.start(&*config).ready()];
    let lists = all(daemons.iter().map(|daemon| async { tools(&daemon.client("/")).await })).await;
    assert_eq!(lists[0], lists[1]);
    for daemon in &mut daemons {
        assert!(daemon.stop().success());
    }
    let pids: BTreeSet<_> = fakes.pids("one");

    let daemon = cache.start(config).ready();

    assert_eq!(tools(&daemon.client("/")).await, lists[0]);
    assert_eq!(fakes.pids("one"), pids);
    assert!(!daemon.log().contains("cached lists ignored"));
}

#[tokio::test]
async fn an_unwritable_cache_directory_logs_one_warning() {
    let (cache, fakes) = (Cache::new(), Fakes::new());
    fs::write(cache.0.path().join("catalog"), "a file").expect("written");
    let config = fakes.server("one", &[]) + &fakes.server("two", &[]);
    let mut daemon = cache.start(config).ready();
    let client = daemon.client("/");
    for _ in 0..3 {
        assert!(!tools(&client).await.is_empty());
        client.call("one__flip_tools", json!({})).await;
    }
    assert!(daemon.stop().success());
    assert_eq!(daemon.log().matches("lists are not cached").count(), 1);
}

#[tokio::test]
async fn the_cache_directory_is_configurable_and_can_be_turned_off() {
    let (cache, fakes) = (Cache::new(), Fakes::new());
    let elsewhere = cache.0.path().join("else/where");
    for (choice, is_kept) in [(elsewhere.to_str().expect("UTF-8"), true), ("off", false)] {
        let config = format!("[catalog]\ncache = {choice:?}\n") + &fakes.server("fake", &[]);
        cache.fill(&config).await;
        let n_before = fakes.pids("fake").len();
        let daemon = cache.start(config).ready();
        assert!(!tools(&daemon.client("/")).await.is_empty());
        assert_eq!(fakes.pids("fake").len(), n_before + usize::from(!is_kept), "{choice}");
        assert!(!cache.file("fake").exists());
    }
    assert!(elsewhere.join("fake.catalog").exists());
}

#[tokio::test]
async fn the_cached_era_of_an_upstream_saves_the_discovery_request_after_a_restart() {
    let (cache, upstream) = (Cache::new(), ScriptedUpstream::start(|_, _| false));
    for life in 1..=2 {
        let mut daemon = cache.start(upstream.server("start = \"prewarm\"\n")).ready();
        list(&daemon.client("/servers/up"), "tools/list").await;
        assert_eq!((upstream.count("server/discover"), upstream.count("initialize")), (1, life));
        assert!(daemon.stop().success());
    }
}
