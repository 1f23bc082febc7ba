//! Clients of another account that use the service during an attack.

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

/// The factor for the latency of a service without an attacker.
const BUSY_FACTOR: u32 = 4;

/// The pause between two health checks.
const HEALTH_PAUSE: Duration = Duration::from_millis(20);

/// One of so many clients requests answers that count against the memory budget. This requires that
/// bystanders run as another user.
const LARGE_EVERY: usize = 8;

/// The size of these answers, in bytes.
const LARGE_BYTES: usize = 20 << 10;

/// The user that bystanders run as, if the tests run as root.
const NOBODY: u32 = 65_534;

/// The clients, in a separate thread that runs as another user if it can.
pub(super) struct Bystanders {
    progress: Arc<Progress>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// A service without an attacker: its latency is that of this machine.
    control: Daemon,
}

impl Bystanders {
    /// Starts clients that call the tool `echo` of the server at `path`, and waits until each has
    /// an answer. At `/meta`, that is the server `fake`.
    pub(super) async fn start(daemon: &Daemon, path: &str) -> Self {
        let control = Daemon::with("").ready();
        let (progress, is_over) = (Arc::new(Progress::of(N_CLIENTS)), Arc::<AtomicBool>::default());
        let health = [daemon.url("/healthz"), control.url("/healthz")];
        let (url, shared, over) = (daemon.url(path), Arc::clone(&progress), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            if rustix::process::geteuid().is_root() {
                let user = Uid::from_raw(NOBODY);
                rustix::thread::set_thread_uid(user).expect("root may become any user");
            }
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let clients = (0..N_CLIENTS).map(|number| run_client(&url, number, &shared, &over));
                tokio::join!(join_all(clients), watch_health(&health, &over));
            });
        });
        let bystanders = Self { progress, is_over, thread: Some(thread), control };
        bystanders.wait_progress().await;
        bystanders
    }

    /// Waits until each client has had one more answer.
    pub(super) async fn wait_progress(&self) {
        let answers = self.progress.wait_for_answers(1);
        tokio::pin!(answers);
        loop {
            // The thread ends early only with a failed assertion.
            let has_failed = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
            assert!(!has_failed, "a bystander failed: see the output above");
            if tokio::time::timeout(HEALTH_PAUSE, &mut answers).await.is_ok() {
                return;
            }
        }
    }

    /// Ends the clients, and checks that all answers and health checks were right.
    pub(super) async fn end(mut self) {
        self.wait_progress().await;
        self.is_over.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it is ended once");
        let ended = tokio::task::spawn_blocking(move || thread.join());
        let ended = tokio::time::timeout(DEADLINE, ended).await.expect("they end in time");
        assert!(
            ended.expect("it is waited for").is_ok(),
            "a bystander failed: see the output above"
        );
        drop(self.control);
    }
}

/// Runs one client, which calls `echo` repeatedly and checks each answer.
async fn run_client(url: &str, number: usize, progress: &Progress, is_over: &AtomicBool) {
    let client = Client::new(url.to_owned()).initialized().await;
    // Within the attacker's own account, memory may be refused.
    let is_large = number.is_multiple_of(LARGE_EVERY) && rustix::process::geteuid().is_root();
    let fill = "x".repeat(if is_large { LARGE_BYTES } else { 0 });
    let mut n_calls = 0;
    while !is_over.load(Ordering::Relaxed) {
        let value = json!({ "client": number, "n": n_calls, "fill": fill });
        let args = json!({ "value": value });
        let (tool, arguments) = match url.ends_with("/meta") {
            true => ("mcp_call", json!({ "server": "fake", "tool": "echo", "args": args })),
            false => ("echo", args),
        };
        let answer = client.tool(tool, arguments).await.answer();
        assert_eq!(answer["result"]["structuredContent"]["value"], value, "{answer}");
        n_calls += 1;
        progress.done(number);
    }
}

/// Checks the health of both services repeatedly.
async fn watch_health(urls: &[String; 2], is_over: &AtomicBool) {
    let [attacked, control] = urls;
    while !is_over.load(Ordering::Relaxed) {
        let (attacked, control) = tokio::join!(health_latency(attacked), health_latency(control));
        // Other tests on the machine delay both services, though not to the same degree.
        let limit = BUSY_FACTOR * control + HEALTH_LIMIT;
        assert!(
            attacked < limit,
            "`/healthz` took {attacked:?}, and {control:?} without an attack"
        );
        tokio::time::sleep(HEALTH_PAUSE).await;
    }
}

/// Returns the time that a health check takes on a new connection.
async fn health_latency(url: &str) -> Duration {
    let since = Instant::now();
    let reply = Client::new(url.to_owned()).get().await;
    assert_eq!(reply.status, StatusCode::OK, "{reply:?}");
    since.elapsed()
}
