//! MCP servers inside a test: tasks instead of processes, so that time can be virtual.
//!
//! [`InProcessLauncher`] launches them, and finds a server by its declared `command`. The tool
//! `echo` answers at once with its arguments, `wait` after [`InProcessServer::release`], and `ask`
//! asks its client a question before it waits.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::{
    StreamExt,
    future::{BoxFuture, ready},
    stream::FuturesUnordered,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex},
    sync::{Semaphore, broadcast, mpsc},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    child::{
        ChildExit, LaunchError, LaunchSite, LaunchedServer, Launcher, RunningServer, SpawnError,
        SpawnFault, StdioServerKind, escalation::Escalation, launcher::ServerPipes,
    },
    config::{self, defaults},
    connection::{Announcement, Dialer},
};

/// The time for which a list is valid, as the server reports it; only the modern era has it.
pub(crate) const TTL: Duration = Duration::from_secs(60);

/// The capacity of a pipe, in bytes.
const PIPE_BYTES: usize = 64 << 10;

/// The number of unrequested messages that may wait for the output.
const NOTICES_MAX: usize = 256;

/// The behaviour of a server that is launched from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ServerBehaviour {
    /// It behaves correctly.
    #[default]
    Good,
    /// It cannot be launched.
    Missing,
    /// It ends before it answers anything.
    Crashes,
    /// It answers nothing.
    Hangs,
    /// It closes its output before it answers anything, and keeps running.
    HangsUp,
    /// It behaves correctly, but does not end when its input ends: it must be killed.
    Clings,
    /// It behaves correctly, but does not answer requests that it does not know.
    Taciturn,
    /// It is of the modern era, which has no handshake.
    Modern,
    /// It is of the modern era, and answers once it is released.
    SlowModern,
    /// It is of both eras, takes a handshake at any time, and answers once it is released.
    SlowBoth,
}

/// A launcher that runs each server as a task.
#[derive(Debug, Default)]
pub(crate) struct InProcessLauncher {
    tasks: TaskTracker,
    known: Mutex<BTreeMap<String, Arc<InProcessServer>>>,
}

/// The state and the counters of all instances of one server.
#[derive(Debug)]
pub(crate) struct InProcessServer {
    behaviour: Mutex<ServerBehaviour>,
    n_launches: AtomicUsize,
    n_living: AtomicUsize,
    n_living_max: AtomicUsize,
    n_calls: AtomicUsize,
    n_pings: AtomicUsize,
    n_discoveries: AtomicUsize,
    /// The notifications that came, in their order.
    notifications: Mutex<Vec<String>>,
    /// `true` while it reads and sends nothing.
    is_mute: AtomicBool,
    /// The tools that it lists besides `echo` and `wait`.
    tools: Mutex<Vec<Value>>,
    n_lists: AtomicUsize,
    /// The notifications that it sends on its own.
    notices: broadcast::Sender<Value>,
    releases: Semaphore,
    /// Ends every running instance.
    death: Mutex<CancellationToken>,
}

impl InProcessLauncher {
    /// Returns a launcher; all servers behave correctly so far.
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns the server that is declared with `command`.
    pub(crate) fn of(&self, command: &str) -> Arc<InProcessServer> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(
            known.entry(command.to_owned()).or_insert_with(|| Arc::new(InProcessServer::new())),
        )
    }

    /// Returns the `command` of each server that was launched.
    pub(crate) fn launched(&self) -> Vec<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let launched = known.iter().filter(|(_, server)| server.n_launches() > 0);
        launched.map(|(command, _)| command.clone()).collect()
    }

    /// Returns a dialer of these servers, and the receiver of its announcements.
    pub(crate) fn dialer(self: &Arc<Self>) -> (Dialer, mpsc::Receiver<Announcement>) {
        let (announcements, announced) = mpsc::channel(defaults::ANNOUNCEMENT_QUEUE);
        let launcher = Arc::<Self>::clone(self);
        let dialer = Dialer::new(None, TaskTracker::new(), announcements).with_launcher(launcher);
        (dialer, announced)
    }
}

/// Returns the declaration of a server with `command` and nothing else.
pub(crate) fn declared(command: &str) -> config::ServerConfig {
    config::ServerConfig::new(config::TransportConfig::Stdio {
        command: command.to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        cwd: None,
    })
}

impl InProcessServer {
    fn new() -> Self {
        Self {
            behaviour: Mutex::default(),
            n_launches: AtomicUsize::new(0),
            n_living: AtomicUsize::new(0),
            n_living_max: AtomicUsize::new(0),
            n_calls: AtomicUsize::new(0),
            n_pings: AtomicUsize::new(0),
            n_discoveries: AtomicUsize::new(0),
            notifications: Mutex::default(),
            is_mute: AtomicBool::new(false),
            tools: Mutex::default(),
            n_lists: AtomicUsize::new(0),
            notices: broadcast::channel(NOTICES_MAX).0,
            releases: Semaphore::new(0),
            death: Mutex::default(),
        }
    }

    /// Sets the behaviour of instances that are launched from now on.
    pub(crate) fn set_behaviour(&self, behaviour: ServerBehaviour) {
        *self.behaviour.lock().unwrap_or_else(PoisonError::into_inner) = behaviour;
    }

    fn behaviour(&self) -> ServerBehaviour {
        *self.behaviour.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of launches, failed ones included.
    pub(crate) fn n_launches(&self) -> usize {
        self.n_launches.load(Relaxed)
    }

    /// Returns the number of running instances.
    pub(crate) fn n_living(&self) -> usize {
        self.n_living.load(Relaxed)
    }

    /// Returns the largest number of instances that ran at the same time.
    pub(crate) fn n_living_max(&self) -> usize {
        self.n_living_max.load(Relaxed)
    }

    /// Returns the number of tool calls that came.
    pub(crate) fn n_calls(&self) -> usize {
        self.n_calls.load(Relaxed)
    }

    /// Returns the number of pings that came.
    pub(crate) fn n_pings(&self) -> usize {
        self.n_pings.load(Relaxed)
    }

    /// Returns how often it received `server/discover` and handled it as its behaviour says.
    pub(crate) fn n_discoveries(&self) -> usize {
        self.n_discoveries.load(Relaxed)
    }

    /// Returns the methods of the notifications that came.
    pub(super) fn notifications(&self) -> Vec<String> {
        self.notifications.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes it read and send nothing, or ends that for the messages from now on.
    pub(crate) fn set_mute(&self, is_mute: bool) {
        self.is_mute.store(is_mute, Relaxed);
    }

    /// Returns how often its tools were listed.
    pub(crate) fn n_lists(&self) -> usize {
        self.n_lists.load(Relaxed)
    }

    /// Sets the tools that it lists besides `echo` and `wait`, without a notification.
    pub(crate) fn list(&self, tools: &[Value]) {
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = tools.to_vec();
    }

    /// Makes every running instance send a notification.
    pub(crate) fn send_notification(&self, method: &str) {
        let _no_instance = self.notices.send(json!({ "jsonrpc": "2.0", "method": method }));
    }

    /// Releases `n_calls` calls that wait, or will wait.
    pub(crate) fn release(&self, n_calls: usize) {
        self.releases.add_permits(n_calls);
    }

    /// Kills every running instance.
    pub(crate) fn kill(&self) {
        let mut death = self.death.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *death).cancel();
    }

    fn start(self: &Arc<Self>, tasks: &TaskTracker) -> LaunchedServer {
        let (stdin, input) = duplex(PIPE_BYTES);
        let (output, stdout) = duplex(PIPE_BYTES);
        let n_living = self.n_living.fetch_add(1, Relaxed) + 1;
        self.n_living_max.fetch_max(n_living, Relaxed);
        let death = self.death.lock().unwrap_or_else(PoisonError::into_inner).child_token();
        let instance = Instance { death, ended: CancellationToken::new() };
        let (server, death, ended) =
            (Arc::clone(self), instance.death.clone(), instance.ended.clone());
        tasks.spawn(async move {
            let _killed = death.run_until_cancelled(server.live(input, output)).await;
            server.n_living.fetch_sub(1, Relaxed);
            ended.cancel();
        });
        let pipes = ServerPipes { stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: None };
        LaunchedServer { running: Box::new(instance), pipes }
    }

    async fn live(&self, input: DuplexStream, mut output: DuplexStream) {
        let behaviour = self.behaviour();
        if behaviour == ServerBehaviour::Crashes {
            return;
        }
        if behaviour == ServerBehaviour::HangsUp {
            drop(output);
            std::future::pending::<()>().await;
            return;
        }
        if matches!(behaviour, ServerBehaviour::SlowModern | ServerBehaviour::SlowBoth) {
            self.releases.acquire().await.expect("never closed").forget();
        }
        let mut lines = BufReader::new(input).lines();
        let (mut answers, mut notices) = (FuturesUnordered::new(), self.notices.subscribe());
        loop {
            tokio::select! {
                Ok(notice) = notices.recv() => {
                    let _hung_up = output.write_all(format!("{notice}\n").as_bytes()).await;
                }
                line = lines.next_line() => match line {
                    Ok(Some(line)) if behaviour != ServerBehaviour::Hangs => {
                        answers.extend(question(&line));
                        answers.extend(self.answer(&line));
                    }
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => break,
                },
                Some(answer) = answers.next() => {
                    let _hung_up = output.write_all(format!("{answer}\n").as_bytes()).await;
                }
            }
        }
        if behaviour == ServerBehaviour::Clings {
            std::future::pending::<()>().await;
        }
    }

    /// Returns the answer to a request, once it is due.
    fn answer(&self, line: &str) -> Option<BoxFuture<'_, Value>> {
        let message: Value = serde_json::from_str(line).expect("JSON");
        let Some(id) = message.get("id").cloned() else {
            let method = message["method"].as_str().unwrap_or_default().to_owned();
            self.notifications.lock().unwrap_or_else(PoisonError::into_inner).push(method);
            return None;
        };
        if let Some(answer) = opened(self.behaviour(), &message) {
            self.n_discoveries
                .fetch_add(usize::from(message["method"] == "server/discover"), Relaxed);
            return answer.map(|answer| -> BoxFuture<'_, Value> { Box::pin(ready(answer)) });
        }
        let respond = move |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
        let params = &message["params"];
        let result = match message["method"].as_str()? {
            "initialize" => json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "in-process", "version": "1" },
            }),
            "ping" => {
                self.n_pings.fetch_add(1, Relaxed);
                json!({})
            }
            "tools/list" => {
                let schema = json!({ "type": "object" });
                let tools =
                    ["echo", "wait"].map(|name| json!({ "name": name, "inputSchema": schema }));
                self.n_lists.fetch_add(1, Relaxed);
                let more = self.tools.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let tools = [&tools[..], &more].concat();
                json!({ "tools": tools, "ttlMs": TTL.as_millis() })
            }
            "tools/call" => {
                self.n_calls.fetch_add(1, Relaxed);
                let text = params["arguments"].to_string();
                let result = json!({ "content": [{ "type": "text", "text": text }] });
                if params["name"] == "wait" || params["name"] == "ask" {
                    return Some(Box::pin(async move {
                        self.releases.acquire().await.expect("never closed").forget();
                        respond(result)
                    }));
                }
                result
            }
            _ => json!({}),
        };
        let is_mute = self.is_mute.load(Relaxed);
        (!is_mute).then(|| -> BoxFuture<'_, Value> { Box::pin(ready(respond(result))) })
    }
}

impl Launcher for InProcessLauncher {
    fn launch<'a>(
        &'a self,
        site: &'a LaunchSite,
    ) -> BoxFuture<'a, Result<LaunchedServer, LaunchError>> {
        let command = match site {
            LaunchSite::Program(program) => &*program.command,
            LaunchSite::Unit(unit) => &*unit.name,
        };
        let server = self.of(command);
        server.n_launches.fetch_add(1, Relaxed);
        Box::pin(ready(match server.behaviour() {
            ServerBehaviour::Missing => Err(SpawnError::new(command, SpawnFault::NotFound).into()),
            ServerBehaviour::Good
            | ServerBehaviour::Crashes
            | ServerBehaviour::Hangs
            | ServerBehaviour::HangsUp
            | ServerBehaviour::Clings
            | ServerBehaviour::Taciturn
            | ServerBehaviour::Modern
            | ServerBehaviour::SlowModern
            | ServerBehaviour::SlowBoth => Ok(server.start(&self.tasks)),
        }))
    }
}

/// One instance of a server.
#[derive(Debug)]
struct Instance {
    death: CancellationToken,
    ended: CancellationToken,
}

impl RunningServer for Instance {
    fn kind(&self) -> StdioServerKind {
        StdioServerKind::Process
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn wait(&mut self) -> BoxFuture<'_, ChildExit> {
        Box::pin(async {
            self.ended.cancelled().await;
            ChildExit::Unknown
        })
    }

    fn terminate(
        mut self: Box<Self>,
        skip_drain: CancellationToken,
    ) -> BoxFuture<'static, ChildExit> {
        Box::pin(async move {
            tokio::select! {
                biased;
                exit = self.wait() => return exit,
                () = Escalation::new(skip_drain).end() => self.death.cancel(),
            }
            self.wait().await
        })
    }
}

/// Returns the answer of a server to the request that opens a connection, if its behaviour defines
/// one: that may be no answer.
fn opened(behaviour: ServerBehaviour, message: &Value) -> Option<Option<Value>> {
    let id = &message["id"];
    let is_modern = match behaviour {
        ServerBehaviour::Taciturn => {
            return (message["method"] == "server/discover").then_some(None);
        }
        ServerBehaviour::Modern | ServerBehaviour::SlowModern => true,
        ServerBehaviour::SlowBoth => false,
        ServerBehaviour::Good
        | ServerBehaviour::Missing
        | ServerBehaviour::Crashes
        | ServerBehaviour::Hangs
        | ServerBehaviour::HangsUp
        | ServerBehaviour::Clings => return None,
    };
    let answer = match message["method"].as_str()? {
        "server/discover" => json!({ "jsonrpc": "2.0", "id": id, "result": {
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} },
        } }),
        "initialize" if is_modern => json!({ "jsonrpc": "2.0", "id": id, "error": {
            "code": -32022, "message": "No.", "data": { "supported": ["2026-07-28"] },
        } }),
        _ => return None,
    };
    Some(Some(answer))
}

/// Returns the question that a server asks before it answers.
fn question(line: &str) -> Option<BoxFuture<'static, Value>> {
    let message: Value = serde_json::from_str(line).expect("JSON");
    let asks = message["method"] == "tools/call" && message["params"]["name"] == "ask";
    let question = json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" });
    asks.then(|| -> BoxFuture<'static, Value> { Box::pin(ready(question)) })
}
