//! Tests of the notifications about changed lists, in virtual time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time};
use tokio_util::task::TaskTracker;

use super::*;
use crate::{
    capacity_holder::Holder,
    catalog::DiskCache,
    config::{Config, LifecycleConfig, SharingMode},
    connection::in_process::{InProcessLauncher, InProcessServer, ServerBehaviour, TTL, declared},
    pool::{Pool, ServerSlot},
    protocol::payloads::method,
    session::{OutboxItem, OutboxReader, ServerScope, Session, SessionRegistry, SessionSigner},
};

const LIMITS: ConnectionLimits =
    ConnectionLimits { silence: defaults::REQUEST_TIMEOUT, total: defaults::MAX_TOTAL_TIMEOUT };
const TOOLS: &str = method::TOOLS_CHANGED;

/// The servers `a` and `b`, and everything between them and their clients.
struct Rig {
    catalog: Arc<Catalog>,
    servers: Arc<InProcessLauncher>,
    pool: Arc<Pool>,
    sessions: Arc<SessionRegistry>,
    _tasks: JoinSet<()>,
}

/// A client that listens to notifications.
struct Client {
    session: Arc<Session>,
    stream: OutboxReader,
}

impl Rig {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl Fn(&mut crate::config::ServerConfig)) -> Self {
        let servers = InProcessLauncher::new();
        let (dialer, announced) = servers.dialer();
        let server = |name: &str| {
            let mut server = declared(name);
            change(&mut server);
            (ServerName::new(name).expect("a name"), Arc::new(server))
        };
        let config =
            Config { servers: BTreeMap::from(["a", "b"].map(server)), ..Config::default() };
        let pool = Arc::new(Pool::new(dialer, &config));
        let seal = SessionSigner::new(&[1; defaults::SESSION_KEY_BYTES]);
        let sessions = SessionRegistry::new(Arc::clone(&pool), seal, &Config::default());
        let (notices, received) = mpsc::channel(defaults::ANNOUNCEMENT_QUEUE);
        let tracker = TaskTracker::new();
        let catalog = Catalog::new(
            Arc::clone(&pool),
            Arc::clone(&sessions),
            tracker,
            notices,
            DiskCache::default(),
        );
        let catalog = Arc::new(catalog);
        let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
        let (heeding, stopped) = (Arc::clone(&catalog), stop.clone());
        tasks.spawn(async move { heeding.run_announcements(announced, || LIMITS, stopped).await });
        tasks.spawn(Arc::clone(&sessions).run(received, stop));
        Self { catalog, servers, pool, sessions, _tasks: tasks }
    }

    fn server(&self, name: &str) -> Arc<InProcessServer> {
        self.servers.of(name)
    }

    fn slot(&self, name: &str) -> Arc<ServerSlot> {
        self.pool.slot(name).expect("declared")
    }

    fn client(&self, scope: ServerScope) -> Client {
        let session = self.sessions.open(scope, None, "{}", Holder::unknown(), None);
        Client { stream: session.read(None), session }
    }

    /// Shows the merged tools to a client.
    async fn see(&self, client: &Client) {
        self.catalog.all(ListKind::Tools, client.session.owner(), LIMITS).await;
    }

    /// Returns a client that has seen the merged tools and received all pending notifications.
    async fn informed(&self) -> Client {
        let mut client = self.client(ServerScope::Every);
        self.see(&client).await;
        settle().await;
        client.received();
        client
    }

    /// Connects a server and waits until its first notifications have passed.
    async fn connect(&self, name: &str) {
        drop(self.slot(name).lease(None, Instant::now() + LIMITS.silence).await.expect("good"));
        settle().await;
    }

    /// Adds a tool to the list of `a`, which then sends `list_changed`.
    fn change(&self, tool: &str) {
        self.server("a").list(&[named(tool)]);
        self.server("a").send_notification(TOOLS);
    }
}

impl Client {
    /// Returns the methods of the messages received so far.
    fn received(&mut self) -> Vec<String> {
        let mut received = Vec::new();
        while let Some(OutboxItem::Event(_, message)) = self.stream.next().now_or_never() {
            let message: Value = serde_json::from_slice(&message).expect("JSON");
            received.push(message["method"].as_str().expect("a method").to_owned());
        }
        received
    }
}

fn named(tool: &str) -> Value {
    json!({ "name": tool, "inputSchema": { "type": "object" } })
}

/// Sleeps longer than any notice is held back.
async fn settle() {
    time::sleep(4 * defaults::NOTICE_WINDOW).await;
}

#[tokio::test(start_paused = true)]
async fn clients_are_notified_of_a_change_once_and_never_of_an_unchanged_list() {
    let rig = Rig::new();
    let mut client = rig.informed().await;

    for _ in 0..3 {
        rig.server("a").send_notification(TOOLS);
        settle().await;
    }
    assert_eq!(client.received(), [""; 0], "it has the same tools as before");
    for tool in ["x", "y"] {
        rig.change(tool);
        settle().await;
        assert_eq!(client.received(), [TOOLS]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_list_is_read_again_if_its_server_does_not_announce_changes() {
    for (manner, n_reads) in [(ServerBehaviour::Good, 0), (ServerBehaviour::Modern, 1)] {
        let rig = Rig::new();
        rig.server("a").set_behaviour(manner);
        let client = rig.client(ServerScope::Every);
        rig.see(&client).await;
        let n_before = rig.server("a").n_lists();

        time::sleep(TTL / 2).await;
        rig.see(&client).await;
        assert_eq!(rig.server("a").n_lists(), n_before, "{manner:?}: it is good");
        time::sleep(TTL).await;
        rig.see(&client).await;
        assert_eq!(rig.server("a").n_lists() - n_before, n_reads, "{manner:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_notices_causes_one_read_and_one_notice() {
    let rig = Rig::new();
    let mut client = rig.informed().await;
    let n_before = rig.server("a").n_lists();

    for n in 0..50 {
        rig.change(&format!("tool_{n}"));
        time::sleep(Duration::from_millis(1)).await;
    }
    settle().await;

    assert_eq!(client.received(), [TOOLS]);
    assert_eq!(rig.server("a").n_lists() - n_before, 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_reports_changes_without_end_is_read_once_per_window() {
    const N_WINDOWS: usize = 20;
    let rig = Rig::new();
    let mut client = rig.informed().await;
    let n_before = rig.server("a").n_lists();

    let ends = Instant::now() + defaults::NOTICE_WINDOW * u32::try_from(N_WINDOWS).expect("few");
    let mut n = 0;
    while Instant::now() < ends {
        n += 1;
        rig.change(&format!("tool_{n}"));
        time::sleep(Duration::from_millis(2)).await;
    }
    settle().await;

    let (n_received, n_read) = (client.received().len(), rig.server("a").n_lists() - n_before);
    assert!((N_WINDOWS / 2..=N_WINDOWS + 1).contains(&n_received), "{n_received}");
    assert!((N_WINDOWS / 2..=N_WINDOWS + 1).contains(&n_read), "{n_read}");
}

#[tokio::test(start_paused = true)]
async fn a_client_of_the_merged_view_gets_one_notice_for_changes_of_several_servers() {
    let rig = Rig::new();
    let mut merged = rig.client(ServerScope::Every);
    let mut own = rig.client(ServerScope::One(ServerName::new("b").expect("a name")));
    rig.see(&merged).await;
    settle().await;
    merged.received();
    own.received();

    rig.change("x");
    rig.server("b").list(&[named("y")]);
    rig.server("b").send_notification(TOOLS);
    settle().await;

    assert_eq!(
        (merged.received(), own.received()),
        (vec![TOOLS.to_owned()], vec![TOOLS.to_owned()])
    );
    rig.change("z");
    settle().await;
    assert_eq!((merged.received().len(), own.received().len()), (1, 0), "it does not see that one");
}

#[tokio::test(start_paused = true)]
async fn a_client_is_notified_of_a_list_it_never_read_the_first_time_and_then_only_of_changes() {
    let rig = Rig::new();
    let mut client = rig.client(ServerScope::One(ServerName::new("a").expect("a name")));
    rig.connect("a").await;

    rig.server("a").send_notification(TOOLS);
    settle().await;
    assert_eq!(client.received(), [TOOLS]);
    rig.server("a").send_notification(TOOLS);
    settle().await;
    assert_eq!(client.received(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn without_a_listener_a_changed_list_is_read_for_the_search_index() {
    let rig = Rig::new();
    let deaf = rig.sessions.open(ServerScope::Every, None, "{}", Holder::unknown(), None);
    rig.catalog.all(ListKind::Tools, deaf.owner(), LIMITS).await;
    let n_before = rig.server("a").n_lists();

    for _ in 0..9 {
        rig.change("x");
    }
    settle().await;

    assert_eq!(rig.server("a").n_lists(), n_before + 1);
    assert!(rig.catalog.snapshot().await.tool("a", "x").is_some());
    let tools = rig.catalog.all(ListKind::Tools, deaf.owner(), LIMITS).await;
    assert!(tools[0].1.iter().any(|tool| tool.key == "x"), "it is there when it is asked for");
}

#[tokio::test(start_paused = true)]
async fn clients_are_notified_of_a_reconnected_server_only_if_its_list_changed() {
    let rig = Rig::new();
    let mut client = rig.informed().await;

    for (tools, n_notices) in [(&[][..], 0), (&[named("x")], 1), (&[named("x")], 0)] {
        rig.server("a").kill();
        settle().await;
        rig.server("a").list(tools);
        rig.connect("a").await;
        settle().await;
        assert_eq!(client.received().len(), n_notices, "{tools:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn clients_are_notified_if_a_server_ends_before_its_list_is_compared() {
    let rig = Rig::new();
    let mut client = rig.informed().await;

    rig.server("a").send_notification(TOOLS);
    time::sleep(Duration::from_millis(1)).await;
    rig.server("a").set_behaviour(ServerBehaviour::Missing);
    rig.server("a").kill();
    settle().await;

    assert_eq!(client.received(), [TOOLS]);
    assert_eq!(rig.server("a").n_launches(), 1, "it is not started for that");
}

#[tokio::test(start_paused = true)]
async fn clients_are_notified_once_of_a_list_that_does_not_arrive_in_time() {
    let rig = Rig::new();
    let mut client = rig.informed().await;

    rig.server("a").set_mute(true);
    rig.server("a").send_notification(TOOLS);
    settle().await;
    assert_eq!(client.received(), [""; 0], "it is waited for");
    time::sleep(defaults::LIST_TIMEOUT).await;
    assert_eq!(client.received(), [TOOLS]);
    rig.server("a").set_mute(false);
    time::sleep(LIMITS.silence).await;
    rig.see(&client).await;
    settle().await;
    assert_eq!(client.received(), [""; 0], "they were notified");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_closed_as_idle_meanwhile_is_not_started_and_causes_no_notice() {
    let rig = Rig::with(|server| server.lifecycle = LifecycleConfig::Ephemeral);
    let mut client = rig.client(ServerScope::Every);
    rig.see(&client).await;
    // Some servers send `list_changed` at each start.
    rig.server("a").send_notification(TOOLS);
    settle().await;

    assert_eq!(client.received(), [""; 0]);
    assert_eq!((rig.server("a").n_launches(), rig.server("a").n_living()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_per_session_server_is_sent_only_to_its_own_client() {
    let rig = Rig::with(|server| server.sharing = SharingMode::Session { max_connections: 4 });
    let (mut one, mut two) = (rig.client(ServerScope::Every), rig.client(ServerScope::Every));
    rig.see(&one).await;
    settle().await;
    rig.server("a").list(&[named("x")]);
    rig.see(&two).await;
    settle().await;
    one.received();
    two.received();

    rig.server("a").send_notification(TOOLS);
    settle().await;

    assert_eq!((one.received(), two.received()), (vec![TOOLS.to_owned()], vec![]));
}

#[tokio::test(start_paused = true)]
async fn an_exclusive_server_is_compared_when_its_list_is_read_again() {
    let rig = Rig::with(|server| server.sharing = SharingMode::Exclusive { max_connections: 2 });
    let mut client = rig.client(ServerScope::Every);
    rig.see(&client).await;
    rig.server("a").send_notification(TOOLS);
    rig.server("a").list(&[named("x")]);
    settle().await;
    assert_eq!(client.received(), [""; 0], "no client sees this change");

    rig.see(&client).await;
    settle().await;
    assert_eq!(client.received(), [TOOLS]);
}

#[tokio::test(start_paused = true)]
async fn a_subscribed_client_gets_one_notice_per_window_for_an_updated_resource() {
    let rig = Rig::new();
    let mut client = rig.client(ServerScope::Every);
    let slot = rig.slot("a");
    for uri in ["r:1", "r:2"] {
        rig.sessions.watch(&client.session, &slot, uri).await.expect("not refused");
    }
    let update = |uri: &str| {
        let params = json!({ "uri": uri }).to_string();
        let message =
            crate::protocol::Message::notification(method::RESOURCE_UPDATED, Some(&params));
        let message = SideMessage::Notification(message);
        Announcement { server: slot.name().clone(), generation: 1, owner: None, message }
    };
    for uri in ["r:2", "r:1", "r:2", "r:3", "r:2"] {
        rig.catalog.notices.send(update(uri)).await.expect("it is read");
    }
    time::sleep(Duration::from_millis(1)).await;
    rig.sessions.unwatch(&client.session, &slot, "r:1").await;
    settle().await;
    assert_eq!(client.received(), [method::RESOURCE_UPDATED]);

    for _ in 0..3 {
        let message = crate::protocol::Message::notification(
            method::LOG_MESSAGE,
            Some(r#"{"level":"error","data":1}"#),
        );
        let message = SideMessage::Notification(message);
        let log = Announcement { message, ..update("") };
        rig.sessions.set_level(&client.session, crate::protocol::LoggingLevel::Info).await;
        rig.catalog.notices.send(log).await.expect("it is read");
    }
    time::sleep(Duration::from_millis(1)).await;
    assert_eq!(client.received().len(), 3, "log messages wait for nothing");
}
