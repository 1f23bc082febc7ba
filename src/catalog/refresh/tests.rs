//! Tests of the cached lists of servers that connect, disconnect or do not run, in virtual time.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{sync::mpsc, task::JoinSet, time};
use tokio_util::task::TaskTracker;

use super::*;
use crate::{
    catalog::{CatalogSnapshot, DiskCache, Listing, UnreadServer},
    config::{self, Config},
    connection::{
        Announcement,
        in_process::{InProcessLauncher, InProcessServer, ServerBehaviour, declared},
    },
    pool::Pool,
    search::RelevanceTerms,
    session::{SessionRegistry, SessionSigner},
};

const LIMITS: ConnectionLimits =
    ConnectionLimits { silence: defaults::REQUEST_TIMEOUT, total: defaults::MAX_TOTAL_TIMEOUT };

/// The servers `a` and `b`, and a service in front of them with a disk cache.
struct Rig {
    catalog: Arc<Catalog>,
    pool: Arc<Pool>,
    servers: Arc<InProcessLauncher>,
    config: Config,
    notices: mpsc::Receiver<Announcement>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    directory: Arc<TempDir>,
}

impl Rig {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl Fn(&mut config::ServerConfig)) -> Self {
        let directory = Arc::new(tempfile::tempdir().expect("a directory"));
        let server = |name: &str| {
            let mut server = declared(name);
            change(&mut server);
            (self::name(name), Arc::new(server))
        };
        let config = Config { servers: ["a", "b"].map(server).into(), ..Config::default() };
        Self::start(config, InProcessLauncher::new(), directory).await
    }

    async fn start(
        config: Config,
        servers: Arc<InProcessLauncher>,
        directory: Arc<TempDir>,
    ) -> Self {
        let (dialer, announced) = servers.dialer();
        let pool = Arc::new(Pool::new(dialer, &config));
        let seal = SessionSigner::new(&[1; defaults::SESSION_KEY_BYTES]);
        let sessions = SessionRegistry::new(Arc::clone(&pool), seal, &Config::default());
        let (sender, notices) = mpsc::channel(defaults::ANNOUNCEMENT_QUEUE);
        let store = DiskCache::new(Some(directory.path().to_owned()));
        let tracker = TaskTracker::new();
        let catalog = Arc::new(Catalog::new(Arc::clone(&pool), sessions, tracker, sender, store));
        catalog.restore().await;
        let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
        let (at_work, stopped) = (Arc::clone(&catalog), stop.clone());
        tasks.spawn(async move { at_work.run_announcements(announced, || LIMITS, stopped).await });
        let (at_work, stopped) = (Arc::clone(&catalog), stop.clone());
        tasks.spawn(async move { at_work.follow(|| LIMITS, stopped).await });
        let (at_work, stopped) = (Arc::clone(&catalog), stop.clone());
        tasks.spawn(async move { at_work.run_persister(stopped).await });
        Self { catalog, pool, servers, config, notices, stop, tasks, directory }
    }

    /// Stops the service and its servers, and starts a new one with the same cache.
    async fn restart(mut self) -> Self {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("no panic");
        }
        self.catalog.save().await;
        self.pool.close().await;
        Self::start(self.config, self.servers, self.directory).await
    }

    fn server(&self, name: &str) -> Arc<InProcessServer> {
        self.servers.of(name)
    }

    fn slot(&self, name: &str) -> Arc<ServerSlot> {
        self.pool.slot(name).expect("declared")
    }

    fn n_launches(&self) -> usize {
        ["a", "b"].map(|name| self.server(name).n_launches()).into_iter().sum()
    }

    /// Connects `a`, as a client of its own path does.
    async fn connect(&self) {
        let until = Instant::now() + LIMITS.silence;
        drop(self.slot("a").lease(None, until).await.expect("a connection"));
        settle().await;
    }

    /// Returns the merged tools of `a` and `b`.
    async fn tools(&self) -> Vec<(String, Vec<String>)> {
        let all = self.catalog.all(ListKind::Tools, None, LIMITS).await;
        let names = |listing: &Listing| listing.iter().map(|tool| tool.key.clone()).collect();
        all.iter().map(|(server, listing)| (server.to_string(), names(listing))).collect()
    }

    async fn snapshot(&self) -> Arc<CatalogSnapshot> {
        self.catalog.snapshot().await
    }

    async fn source(&self, server: &str) -> Option<KnownSource> {
        self.snapshot().await.server(server).map(|server| server.source)
    }

    /// Returns the number of notices that the tools of `a` have changed.
    fn n_notices(&mut self) -> usize {
        let mut n_notices = 0;
        while self.notices.try_recv().is_ok() {
            n_notices += 1;
        }
        n_notices
    }

    fn file(&self) -> std::path::PathBuf {
        self.directory.path().join("a.catalog")
    }
}

fn name(text: &str) -> ServerName {
    ServerName::new(text).expect("a name")
}

fn named(tool: &str) -> Value {
    json!({ "name": tool, "inputSchema": { "type": "object" } })
}

/// Returns a number that differs between versions of a file.
fn version(path: &Path) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).expect("it is there"))
}

/// Sleeps longer than anything is held back.
async fn settle() {
    time::sleep(4 * defaults::CACHE_WRITE_WINDOW).await;
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_the_lists_are_known_and_no_server_runs() {
    let rig = Rig::new().await;
    let before = rig.tools().await;
    assert_eq!((before.len(), rig.n_launches()), (2, 2));
    let snapshot = rig.snapshot().await;

    let rig = rig.restart().await;

    assert_eq!(rig.tools().await, before);
    let again = rig.snapshot().await;
    assert_eq!((again.servers().len(), again.fingerprint), (2, snapshot.fingerprint));
    assert_eq!(rig.source("a").await, Some(KnownSource::Cache));
    assert!(rig.catalog.learn(LIMITS, None).await.is_empty());
    assert_eq!(rig.catalog.profile(&name("a")).expect("known").protocol_version, "2025-11-25");
    let prompts = rig.catalog.all(ListKind::Prompts, None, LIMITS).await;
    assert_eq!(prompts.len(), 2, "they say that they have none");
    assert_eq!(rig.n_launches(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_connected_just_before_a_stop_is_cached_for_the_next_start() {
    // The order of the tasks at a stop is random.
    for _ in 0..20 {
        let rig = Rig::new().await;
        let until = Instant::now() + LIMITS.silence;
        drop(rig.slot("a").lease(None, until).await.expect("a connection"));

        let rig = rig.restart().await;

        assert_eq!(rig.source("a").await, Some(KnownSource::Cache));
        assert_eq!(rig.server("a").n_launches(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connected_server_replaces_its_cached_list_and_clients_are_notified_once() {
    for (tools, n_notices) in [(vec![], 0), (vec![named("x")], 1)] {
        let rig = Rig::new().await;
        rig.tools().await;
        let mut rig = rig.restart().await;
        rig.tools().await;
        let (before, file) = (rig.snapshot().await.generation, version(&rig.file()));
        rig.server("a").list(&tools);

        rig.connect().await;

        assert_eq!(rig.n_notices(), n_notices);
        let snapshot = rig.snapshot().await;
        assert_eq!(snapshot.generation, before + n_notices as u64);
        assert_eq!(rig.source("a").await, Some(KnownSource::Live));
        assert_eq!(snapshot.tool("a", "x").is_some(), n_notices == 1);
        assert_eq!(
            version(&rig.file()) != file,
            n_notices == 1,
            "written only if it is another one"
        );
        rig.connect().await;
        rig.tools().await;
        assert_eq!(rig.server("a").n_lists(), 2, "it is read once in each life");
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_idle_server_keeps_its_tools_and_is_read_again_on_reconnection() {
    let rig = Rig::new().await;
    rig.connect().await;
    assert_eq!(
        rig.source("a").await,
        Some(KnownSource::Live),
        "also where no client has listed them"
    );
    time::sleep(defaults::POOL_IDLE_TIMEOUT + Duration::from_secs(1)).await;
    assert_eq!(rig.server("a").n_living(), 0);
    rig.server("a").list(&[named("x")]);
    let snapshot = rig.snapshot().await;
    assert!(snapshot.tool("a", "echo").is_some() && snapshot.tool("a", "x").is_none());

    rig.connect().await;

    assert!(rig.snapshot().await.tool("a", "x").is_some());
    assert_eq!(rig.server("a").n_lists(), 2);
}

#[tokio::test(start_paused = true)]
async fn learning_reads_all_unknown_servers_together_and_names_the_failed_ones() {
    let rig = Rig::new().await;
    rig.server("b").set_behaviour(ServerBehaviour::Missing);
    let left_out = rig.catalog.learn(LIMITS, None).await;
    assert_eq!(left_out.len(), 1);
    let UnreadServer { server, reason, read_for } = &left_out[0];
    assert!(*server == name("b") && reason.contains('b') && read_for.is_none(), "{left_out:?}");
    assert!(rig.snapshot().await.tool("a", "echo").is_some());

    rig.server("b").set_behaviour(ServerBehaviour::Hangs);
    let start = Instant::now();
    let left_out = rig.catalog.learn(LIMITS, None).await;
    assert_eq!(left_out.len(), 1);
    assert!(start.elapsed() <= defaults::LIST_TIMEOUT);
    assert_eq!(rig.server("a").n_lists(), 1, "it is known");
}

#[tokio::test(start_paused = true)]
async fn a_search_waits_longer_for_a_starting_server_that_it_is_about() {
    let seconds = Duration::from_secs;
    let rig = Rig::new().await;
    rig.server("b").set_behaviour(ServerBehaviour::SlowModern);
    let start = Instant::now();
    let words = |text| Some(RelevanceTerms::of(text));
    let left_out = rig.catalog.learn(LIMITS, words("draw a map").as_ref()).await;
    assert_eq!(left_out[0].read_for, Some(defaults::LIST_TIMEOUT), "{left_out:?}");
    assert_eq!(start.elapsed(), defaults::LIST_TIMEOUT);
    // A caller that has waited in vain does not wait again.
    assert_eq!(rig.catalog.learn(LIMITS, words("draw a map").as_ref()).await.len(), 1);
    assert_eq!(start.elapsed(), defaults::LIST_TIMEOUT);

    let release = async {
        tokio::time::sleep(seconds(8)).await;
        rig.server("b").release(1);
    };
    let words = words("what b has");
    let (left_out, ()) = tokio::join!(rig.catalog.learn(LIMITS, words.as_ref()), release);
    assert!(left_out.is_empty(), "{left_out:?}");
    assert_eq!(start.elapsed(), defaults::LIST_TIMEOUT + seconds(8));
}

#[tokio::test(start_paused = true)]
async fn a_list_is_read_on_demand_and_the_known_list_survives_a_failure() {
    let rig = Rig::new().await;
    rig.tools().await;
    rig.server("a").list(&[named("x")]);
    let read = rig.catalog.refresh(&rig.slot("a"), LIMITS).await.expect("it is there");
    assert!(read.iter().any(|tool| tool.key == "x"));
    assert!(rig.snapshot().await.tool("a", "x").is_some());

    rig.server("a").set_mute(true);
    rig.catalog.refresh(&rig.slot("a"), LIMITS).await.expect_err("it says nothing");
    assert!(rig.snapshot().await.tool("a", "x").is_some());
    assert_eq!(rig.tools().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_changed_list_makes_one_new_generation_for_all_listeners() {
    let rig = Rig::new().await;
    rig.tools().await;
    let before = rig.snapshot().await.generation;
    rig.server("a").list(&[named("x")]);
    for _ in 0..5 {
        rig.server("a").send_notification("notifications/tools/list_changed");
    }
    settle().await;
    assert_eq!(rig.snapshot().await.generation, before + 1);

    rig.server("a").send_notification("notifications/tools/list_changed");
    settle().await;
    assert_eq!(rig.snapshot().await.generation, before + 1, "it is the same");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_asks_while_a_snapshot_is_made_sees_the_preceding_change() {
    let rig = Rig::new().await;
    rig.tools().await;
    for n in 0..20 {
        let tool = format!("tool_{n}");
        rig.server("a").list(&[named(&tool)]);
        rig.catalog.refresh(&rig.slot("a"), LIMITS).await.expect("it is there");
        let snapshots = (0..4).map(|_| rig.snapshot());
        for snapshot in futures_util::future::join_all(snapshots).await {
            assert!(snapshot.tool("a", &tool).is_some());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_read_on_connecting_does_not_change_the_failure_count_of_its_server() {
    let rig = Rig::new().await;
    rig.tools().await;
    let failures = |rig: &Rig| rig.slot("a").gate().snapshot().failures;
    rig.server("a").kill();
    settle().await;
    let permit = rig
        .slot("a")
        .gate()
        .admit(crate::capacity_holder::Holder::SERVICE)
        .expect("it is not left alone");
    let error = crate::connection::RequestFailure::Unresponsive;
    permit.failed(error.fault(), None, &error, None);
    assert_eq!(failures(&rig), 1);

    rig.connect().await;
    assert_eq!((rig.server("a").n_lists(), failures(&rig)), (2, 1), "that it lists is no proof");
    rig.server("a").kill();
    settle().await;
    rig.server("a").set_behaviour(ServerBehaviour::Taciturn);
    rig.server("a").set_mute(false);
    rig.connect().await;
    assert_eq!(failures(&rig), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_with_a_process_for_each_request_is_not_read_at_each_request() {
    for change in [
        (|server: &mut config::ServerConfig| server.lifecycle = LifecycleConfig::Ephemeral)
            as fn(&mut _),
        |server| server.sharing = SharingMode::Exclusive { max_connections: 2 },
    ] {
        let rig = Rig::with(change).await;
        rig.tools().await;
        settle().await;
        for _ in 0..3 {
            rig.connect().await;
        }
        assert_eq!(rig.server("a").n_lists(), 1);
        let rig = rig.restart().await;
        for _ in 0..3 {
            rig.connect().await;
        }
        assert_eq!(rig.server("a").n_lists(), 2, "it was known from the disk alone");
        assert_eq!(rig.source("a").await, Some(KnownSource::Live));
    }
}

#[tokio::test(start_paused = true)]
async fn the_tools_of_a_per_session_server_are_read_on_a_connection_of_no_client() {
    let rig =
        Rig::with(|server| server.sharing = SharingMode::Session { max_connections: 4 }).await;
    assert!(rig.catalog.learn(LIMITS, None).await.is_empty());
    assert!(rig.snapshot().await.tool("a", "echo").is_some());
    let rig = rig.restart().await;
    let n_before = rig.n_launches();
    let mut client = SessionOwner::new(7, "{}");
    let tools = rig.catalog.all(ListKind::Tools, Some(&client), LIMITS).await;
    assert_eq!((tools.len(), rig.n_launches()), (2, n_before), "it is answered from the disk");

    let mut rig = rig;
    rig.server("a").list(&[named("x")]);
    let until = Instant::now() + LIMITS.silence;
    drop(rig.slot("a").lease(Some(&client), until).await.expect("its own"));
    settle().await;
    assert_eq!(rig.n_notices(), 1, "the list of the client's own connection is a separate list");
    client.key = 8;
    let tools = rig.catalog.all(ListKind::Tools, Some(&client), LIMITS).await;
    assert!(!tools[0].1.iter().any(|tool| tool.key == "x"), "that was said to one client alone");
}

#[tokio::test(start_paused = true)]
async fn a_server_with_a_changed_declaration_does_not_keep_its_old_tools() {
    let mut rig = Rig::new().await;
    rig.tools().await;
    settle().await;
    let apply = |rig: &mut Rig, change: &dyn Fn(&mut Config)| {
        change(&mut rig.config);
        let servers = &rig.config.servers;
        let diff = rig.pool.compare(servers);
        rig.pool.apply(servers, &diff, &rig.config, Duration::ZERO);
        rig.catalog.replaced(&diff);
    };
    let declare = |config: &mut Config, server: config::ServerConfig| {
        config.servers.insert(name("a"), Arc::new(server));
    };

    let slower = || config::ServerConfig { start_timeout: Duration::from_secs(7), ..declared("a") };
    apply(&mut rig, &|config| declare(config, slower()));
    settle().await;
    assert!(rig.snapshot().await.server("a").is_some(), "it is the same program");
    apply(&mut rig, &|config| declare(config, declared("other")));
    settle().await;
    assert!(rig.snapshot().await.server("a").is_none());
    apply(&mut rig, &|config| declare(config, declared("a")));
    settle().await;
    assert_eq!(rig.source("a").await, Some(KnownSource::Cache), "the disk knows it still");
    apply(&mut rig, &|config| drop(config.servers.remove("a")));
    assert!(rig.snapshot().await.server("a").is_none());
    settle().await;
    let rig = rig.restart().await;
    assert_eq!(rig.snapshot().await.servers().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_old_list_of_a_server_without_change_notifications_is_read_again_on_use() {
    let rig =
        Rig::with(|server| server.lifecycle = LifecycleConfig::KeepAlive { idle_timeout: None })
            .await;
    rig.tools().await;
    settle().await;
    let is_known = async || rig.snapshot().await.tool("a", "x").is_some();
    assert!(!is_known().await);
    rig.server("a").list(&[named("x")]);

    time::sleep(defaults::REFRESH_AFTER / 2).await;
    assert!(!is_known().await, "it is not old");
    time::sleep(defaults::REFRESH_AFTER).await;
    assert_eq!(rig.server("a").n_lists(), 1, "no client has used the list");

    assert!(!is_known().await, "no client waits for the list");
    settle().await;
    assert!(is_known().await);
    assert_eq!((rig.server("a").n_lists(), rig.server("b").n_lists()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_changes_at_each_read_is_written_at_most_once_per_pause() {
    let rig = Rig::new().await;
    rig.tools().await;
    settle().await;
    let file = rig.directory.path().join("a.catalog");
    let written = || std::fs::read_to_string(&file).expect("it was written");
    let first = written();
    let read = async |tool: &str| {
        rig.server("a").list(&[named(tool)]);
        rig.catalog.refresh(&rig.slot("a"), LIMITS).await.expect("it is there");
    };

    for n in 0..4 {
        read(&format!("tool_{n}")).await;
        time::sleep(defaults::CACHE_WRITE_WINDOW * 2).await;
        assert_eq!(written(), first);
    }
    time::sleep(defaults::CACHE_WRITE_PAUSE).await;
    settle().await;
    assert!(written().contains("tool_3"), "the last one");
    read("at_the_end").await;
    rig.stop.cancel();
    settle().await;
    assert!(written().contains("at_the_end"), "before the last reads have ended");
    let rig = rig.restart().await;
    assert!(rig.snapshot().await.tool("a", "at_the_end").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_file_that_was_removed_is_written_again_when_its_server_lists_the_same() {
    let rig = Rig::new().await;
    rig.tools().await;
    settle().await;
    let file = rig.directory.path().join("a.catalog");
    let first = std::fs::read(&file).expect("it was written");
    std::fs::remove_file(&file).expect("removed");

    rig.catalog.refresh(&rig.slot("a"), LIMITS).await.expect("it is there");

    time::sleep(defaults::CACHE_WRITE_WINDOW * 2).await;
    settle().await;
    assert!(std::fs::read(&file).is_ok_and(|again| again.len() == first.len()));
}

#[tokio::test(start_paused = true)]
async fn without_a_cache_directory_the_catalog_works_and_stores_nothing() {
    let rig = Rig::new().await;
    std::fs::remove_dir(rig.directory.path()).expect("it is empty");
    std::fs::write(rig.directory.path(), "a file").expect("written");
    rig.tools().await;
    let rig = rig.restart().await;
    assert_eq!(rig.snapshot().await.servers().len(), 0);
    assert_eq!((rig.tools().await.len(), rig.n_launches()), (2, 4));
    std::fs::remove_file(rig.directory.path()).expect("removed");
}
