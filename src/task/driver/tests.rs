//! Calls with servers inside the test, in virtual time.

use tokio::{sync::mpsc, task::JoinSet};

use super::*;
use crate::{
    capacity_holder::Holder,
    catalog::{Catalog, DiskCache as Cache},
    config::{Config, load::parsed},
    connection::in_process::InProcessLauncher,
    forward::Forwarder,
    meta::{MetaView, OperatorScripts},
    pool::Pool,
    protocol::{Message, payloads::method},
    provision::Provisioner,
    script::{ScriptRecords, ScriptServices},
    session::{SessionRegistry, SessionSigner},
    task::{CallWork, TaskOutcome, TaskStatus},
    tool::{ArgumentChecker, ToolDirectory},
};

struct Rig {
    tasks: Arc<TaskDriver>,
    servers: Arc<InProcessLauncher>,
    pool: Arc<Pool>,
    state: tempfile::TempDir,
    stop: CancellationToken,
    abort: CancellationToken,
    owned: JoinSet<()>,
}

impl Rig {
    fn new(more: &str) -> Self {
        let servers = InProcessLauncher::new();
        let (dialer, announced) = servers.dialer();
        let config = Arc::new(parsed(&format!("{more}\n[servers.git]\ncommand = \"git\"\n")));
        let pool = Arc::new(Pool::new(dialer, &config));
        let seal = SessionSigner::new(&[1; defaults::SESSION_KEY_BYTES]);
        let sessions = SessionRegistry::new(Arc::clone(&pool), seal, &Config::default());
        let (notices, _received) = mpsc::channel(defaults::ANNOUNCEMENT_QUEUE);
        let (slots, clients) = (Arc::clone(&pool), Arc::clone(&sessions));
        let catalog = Catalog::new(slots, clients, TaskTracker::new(), notices, Cache::default());
        let catalog = Arc::new(catalog);
        let (slots, clients) = (Arc::clone(&pool), Arc::clone(&sessions));
        let forwarder = Forwarder::new(slots, clients, Arc::clone(&config));
        let directory = ToolDirectory::new(Arc::clone(&forwarder), Arc::clone(&catalog));
        let directory = Arc::new(directory);
        let checker = Arc::new(ArgumentChecker::new(forwarder.computer().clone()));
        let (slots, clients) = (Arc::clone(&pool), Arc::clone(&sessions));
        let provisioner = Provisioner::new(slots, clients, Arc::clone(&catalog), &config);
        let meta = MetaView::new(
            Arc::clone(&forwarder),
            Arc::clone(&directory),
            Arc::clone(&checker),
            Arc::new(provisioner),
            ScriptServices::new(ScriptRecords::in_directory(None)),
        );
        let (services, lists) = (Arc::clone(&forwarder), Arc::clone(&catalog));
        let scripts = OperatorScripts::of_view(&meta);
        let operators = OperatorView::new(services, lists, directory, checker, scripts);
        let state = tempfile::tempdir().expect("a directory");
        let tasks =
            TaskDriver::new(Arc::new(operators), TaskFiles::in_directory(Some(state.path())));
        let (stop, abort, mut owned) =
            (CancellationToken::new(), CancellationToken::new(), JoinSet::new());
        let until = stop.clone();
        owned.spawn(async move {
            catalog.run_announcements(announced, || forwarder.limits(), until).await;
        });
        owned.spawn(Arc::clone(&tasks).supervise(stop.clone(), abort.clone()));
        Self { tasks, servers, pool, state, stop, abort, owned }
    }

    fn work(&self, tool: &str, timeout: Duration) -> TaskWork {
        let definition =
            format!(r#"{{"tools":[{{"name":"{tool}","inputSchema":{{"type":"object"}}}}]}}"#);
        let page = crate::protocol::list_page::ListPage::read(
            crate::protocol::list_page::ListKind::Tools,
            &definition,
        );
        let tool = page.expect("a page").items.remove(0);
        let params = format!(r#"{{"name":"{}","arguments":{{}}}}"#, tool.key);
        let request = Message::request(method::TOOLS_CALL, Some(&params));
        TaskWork::Call(Box::new(CallWork {
            slot: self.pool.slot("git").expect("declared"),
            tool,
            request,
            timeout,
            holder: Holder::SERVICE,
        }))
    }

    async fn start(&self, tool: &str) -> String {
        self.tasks.start(self.work(tool, defaults::TASK_TIMEOUT)).await.expect("it begins").id
    }

    async fn ended(&self, id: &str) -> TaskRecord {
        self.tasks.ended(id, 2 * defaults::TASK_TIMEOUT).await.expect("known")
    }

    fn files(&self) -> usize {
        let found = std::fs::read_dir(self.state.path().join("tasks"));
        found.map(Iterator::count).unwrap_or_default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_is_forgotten_an_hour_after_its_end_and_its_file_with_it() {
    let rig = Rig::new("");
    let id = rig.start("echo").await;
    let task = rig.ended(&id).await;
    assert_eq!(task.status, TaskStatus::Completed, "{task:?}");
    assert!(matches!(task.outcome, Some(TaskOutcome::Result(_))));
    time::sleep(defaults::TASK_EXPIRY - Duration::from_secs(1)).await;
    assert!(rig.tasks.get(&id).is_some());
    assert_eq!(rig.files(), 1);
    time::sleep(Duration::from_secs(2)).await;
    assert!(rig.tasks.get(&id).is_none());
    while rig.files() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_expiry_of_tasks_can_be_configured() {
    let rig = Rig::new("[tasks]\nexpiry = \"1m\"");
    let id = rig.start("echo").await;
    rig.ended(&id).await;
    time::sleep(Duration::from_secs(59)).await;
    assert!(rig.tasks.get(&id).is_some());
    time::sleep(Duration::from_secs(2)).await;
    assert!(rig.tasks.get(&id).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_exceeds_its_timeout_fails() {
    let rig = Rig::new("");
    let minute = Duration::from_secs(60);
    let task = rig.tasks.start(rig.work("wait", minute)).await.expect("it begins");
    assert_eq!(rig.tasks.n_running(), 1);
    let ended = rig.tasks.ended(&task.id, 2 * minute).await.expect("known");
    assert_eq!(ended.status, TaskStatus::Failed);
    assert_eq!(
        ended.ended_ms.map(|ended| ended - ended.min(task.created_ms + 59_000) <= 2_000),
        Some(true)
    );
    assert_eq!(rig.tasks.n_running(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_running_tasks_is_limited() {
    let rig = Rig::new("");
    let mut ids = Vec::new();
    for _ in 0..defaults::TASKS_RUNNING_MAX {
        ids.push(rig.start("wait").await);
    }
    let refused = rig.tasks.start(rig.work("wait", defaults::TASK_TIMEOUT)).await;
    assert_eq!(refused.err(), Some(TaskStartError::Full));
    let cancelled = rig.tasks.cancel(&ids[0]).await.expect("told").expect("known");
    assert_eq!(cancelled.status, TaskStatus::Cancelled);
    rig.start("wait").await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_calls_finish_and_then_ends_them() {
    let mut rig = Rig::new("");
    let (quick, stuck) = (rig.start("wait").await, rig.start("wait").await);
    rig.stop.cancel();
    while !rig.tasks.stop.is_cancelled() {
        tokio::task::yield_now().await;
    }
    let refused = rig.tasks.start(rig.work("echo", defaults::TASK_TIMEOUT)).await;
    assert_eq!(refused.err(), Some(TaskStartError::Stopping));
    let git = rig.servers.of("git");
    while git.n_calls() < 2 {
        time::sleep(Duration::from_millis(1)).await;
    }
    git.release(1);
    let ended = [rig.ended_of_two(&quick, &stuck).await];
    assert_eq!(ended, [TaskStatus::Completed]);
    rig.abort.cancel();
    while rig.owned.join_next().await.is_some() {}
    let statuses = [&quick, &stuck].map(|id| rig.tasks.get(id).expect("known").status);
    assert!(statuses.contains(&TaskStatus::UnknownOutcome), "{statuses:?}");
    assert_eq!(rig.files(), 2);
}

impl Rig {
    /// Waits until one of two calls has ended.
    async fn ended_of_two(&self, one: &str, other: &str) -> TaskStatus {
        tokio::select! {
            task = self.ended(one) => task.status,
            task = self.ended(other) => task.status,
        }
    }
}
