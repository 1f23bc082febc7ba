//! Clients of another share that use the service while it is attacked.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use futures_util::future::join_all;
use hyper::StatusCode;
use rustix::process::Uid;
use serde_json::json;
use tokio::time::Instant;

use crate::harness::{DEADLINE, client::Client, daemon::Daemon, load::Progress};

/// The number of clients beside the attacker.
const N_CLIENTS: usize = 31;

/// The time that a health check may take beyond that of an idle service at the same moment.
/// A debug build takes at least five times as long as a release build.
const HEALTH_LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 5 } else { 1 });

/// The slowness of a service that is left alone counts so many times.
const BUSY_FACTOR: u32 = 4;

/// The pause between two health checks.
const HEALTH_PAUSE: Duration = Duration::from_millis(20);

/// Every so many clients, one asks for answers that count against the memory budget. Only where the
/// bystanders belong to another user.
const LARGE_EVERY: usize = 8;

/// The size of these, in bytes.
const LARGE_BYTES: usize = 20 << 10;

/// A user who owns nothing. Where the tests run as root, bystanders belong to it.
const NOBODY: u32 = 65_534;

/// The clients, in a thread of their own that belongs to another user where it can.
pub(super) struct Bystanders {
    progress: Arc<Progress>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// A service without an attacker: its slowness is that of this machine.
    control: Daemon,
}

impl Bystanders {
    /// Starts clients that call the tool `echo` of the server at `path`, and waits until each has
    /// an answer. At `/meta`, that is the server `fake`.
    pub(super) async fn start(daemon: &Daemon, path: &str) -> Self {
        let control = Daemon::with("").ready();
        let (progress, is_over) = (Arc::new(Progress::of(N_CLIENTS)), Arc::<AtomicBool>::default());
        let health = [daemon.url("/healthz"), control.url("/healthz")];
        let (url, told, over) = (daemon.url(path), Arc::clone(&progress), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            if rustix::process::geteuid().is_root() {
                let user = Uid::from_raw(NOBODY);
                rustix::thread::set_thread_uid(user).expect("root may be anybody");
            }
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let clients = (0..N_CLIENTS).map(|number| work(&url, number, &told, &over));
                tokio::join!(join_all(clients), watch(&health, &over));
            });
        });
        let bystanders = Self { progress, is_over, thread: Some(thread), control };
        bystanders.go_on().await;
        bystanders
    }

    /// Waits until each client has had one more answer.
    pub(super) async fn go_on(&self) {
        let goes_on = self.progress.goes_on(1);
        tokio::pin!(goes_on);
        loop {
            // The thread ends before its time only with a failed assertion.
            let has_failed = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
            assert!(!has_failed, "a bystander was disturbed: see above");
            if tokio::time::timeout(HEALTH_PAUSE, &mut goes_on).await.is_ok() {
                return;
            }
        }
    }

    /// Ends them. All their answers were right, and the service told in time that it lives.
    pub(super) async fn end(mut self) {
        self.go_on().await;
        self.is_over.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it is ended once");
        let ended = tokio::task::spawn_blocking(move || thread.join());
        let ended = tokio::time::timeout(DEADLINE, ended).await.expect("they end in time");
        assert!(ended.expect("it is waited for").is_ok(), "a bystander was disturbed: see above");
        drop(self.control);
    }
}

/// One client: it asks one thing after the other, and is told what it asked for.
async fn work(url: &str, number: usize, progress: &Progress, is_over: &AtomicBool) {
    let client = Client::new(url.to_owned()).initialized().await;
    // Of the attacker's own account, memory may be refused.
    let is_large = number.is_multiple_of(LARGE_EVERY) && rustix::process::geteuid().is_root();
    let fill = "x".repeat(if is_large { LARGE_BYTES } else { 0 });
    let mut n_asked = 0;
    while !is_over.load(Ordering::Relaxed) {
        let value = json!({ "client": number, "n": n_asked, "fill": fill });
        let args = json!({ "value": value });
        let (tool, arguments) = match url.ends_with("/meta") {
            true => ("mcp_call", json!({ "server": "fake", "tool": "echo", "args": args })),
            false => ("echo", args),
        };
        let answer = client.tool(tool, arguments).await.answer();
        assert_eq!(answer["result"]["structuredContent"]["value"], value, "{answer}");
        n_asked += 1;
        progress.done(number);
    }
}

/// Asks both services for a sign of life, again and again.
async fn watch(urls: &[String; 2], is_over: &AtomicBool) {
    let [attacked, control] = urls;
    while !is_over.load(Ordering::Relaxed) {
        let (attacked, control) = tokio::join!(sign_of_life(attacked), sign_of_life(control));
        // A machine that is busy with other tests is so for both, though not to the same degree.
        let limit = BUSY_FACTOR * control + HEALTH_LIMIT;
        assert!(attacked < limit, "`/healthz` took {attacked:?}, one left alone {control:?}");
        tokio::time::sleep(HEALTH_PAUSE).await;
    }
}

/// Returns the time that a health check takes on a new connection.
async fn sign_of_life(url: &str) -> Duration {
    let since = Instant::now();
    let reply = Client::new(url.to_owned()).get().await;
    assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
    since.elapsed()
}
