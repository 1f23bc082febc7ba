//! Tests of merged lists with a server that never answers, in virtual time.

use std::{net::TcpListener, time::Duration};

use tokio::time::Instant;

use super::*;
use crate::{
    config::{self, defaults},
    connection::Dialer,
    session::SessionSigner,
};

/// A time shorter than any timeout.
const MOMENT: Duration = Duration::from_millis(100);

/// The limits that the service uses.
const LIMITS: ConnectionLimits =
    ConnectionLimits { silence: defaults::REQUEST_TIMEOUT, total: defaults::MAX_TOTAL_TIMEOUT };

/// One server, which accepts connections and never answers.
struct Rig {
    catalog: Catalog,
    _listener: TcpListener,
    _announced: mpsc::Receiver<Announcement>,
}

impl Rig {
    fn new(start: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("metamcp.toml");
        let table = format!("[servers.mute]\nurl = \"http://{address}/\"\nstart = {start:?}\n");
        std::fs::write(&file, table).expect("written");
        let config = config::load::file(&file).expect("it is right");
        let (announcements, announced) = mpsc::channel(64);
        let tasks = TaskTracker::new();
        let pool = Pool::new(Dialer::new(None, tasks.clone(), announcements), &config);
        let pool = Arc::new(pool);
        let seal = SessionSigner::new(&[1; defaults::SESSION_KEY_BYTES]);
        let sessions = SessionRegistry::new(Arc::clone(&pool), seal, &Config::default());
        // The notices go nowhere.
        let catalog = Catalog::new(pool, sessions, tasks, mpsc::channel(1).0, DiskCache::default());
        Self { catalog, _listener: listener, _announced: announced }
    }

    /// Returns the time that a merged list takes.
    async fn wait(&self, list: ListKind) -> Duration {
        let start = Instant::now();
        assert!(self.catalog.all(list, None, LIMITS).await.is_empty());
        start.elapsed()
    }

    /// Waits until the connection attempt in progress has failed.
    async fn fail(&self) {
        let slot = self.catalog.pool.slot("mute").expect("it is declared");
        let listed = self.catalog.listing(&slot, ListKind::Tools, None, LIMITS).await;
        listed.expect_err("it says nothing");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_delays_one_list_and_not_the_next() {
    let rig = Rig::new("lazy");

    let first = rig.wait(ListKind::Tools).await;

    assert!((defaults::LIST_TIMEOUT..defaults::LIST_TIMEOUT + MOMENT).contains(&first));
    for _ in 0..3 {
        for list in
            [ListKind::Tools, ListKind::Prompts, ListKind::Resources, ListKind::ResourceTemplates]
        {
            assert!(rig.wait(list).await < MOMENT, "{list:?}");
        }
        rig.fail().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_timeout_of_a_list_counts_from_the_start_of_the_connection_attempt() {
    let rig = Rig::new("eager");
    rig.catalog.pool.warm_up().await;
    // Until the connection attempt has begun.
    tokio::task::yield_now().await;
    tokio::time::advance(Duration::from_secs(1)).await;

    let rest = defaults::LIST_TIMEOUT - Duration::from_secs(1);

    assert!((rest..rest + MOMENT).contains(&rig.wait(ListKind::Tools).await));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_awaited_at_the_start_delays_no_list() {
    let rig = Rig::new("prewarm");
    rig.catalog.pool.warm_up().await;
    assert!(rig.wait(ListKind::Tools).await < MOMENT);
}
