//! The control interface for operators: JSON-RPC 2.0, one message per line, on the control socket.
//!
//! ```text
//!  peer_credentials ─ socket_server ─ ControlService ─ dispatch ─ servers, tools, … ─ view, status
//!                                                                      └─▶ rpc_method, params
//! ```
//!
//! The requests of one connection run concurrently, and each is answered when it is done. Unlike
//! elsewhere, names are in camel case here. Every error has a stable name, a suggestion, and the
//! things involved in its `data`.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    capacity_holder::{Account, AccountMember, Holder},
    config::defaults,
    fair_share::{EvictablePermit, Evictables, EvictionBounds},
    ingress::IngressContext,
    oauth::LoginService,
    peer_process::ConnectedClient,
    protocol::{
        Message, MessageKind, ParseError, RpcError,
        jsonrpc::MessagePart,
        list_page::ListKind,
        ndjson::on_one_line,
        rpc_error::{INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR},
    },
    redact,
    similar_names::nearest,
    status::StatusBoard,
    task::TaskDriver,
    telemetry::log_ring::LogRing,
    view::{OperatorView, Views, operator},
};

mod auth_status;
mod calls;
mod completions;
mod daemon;
mod http_rpc;
mod listing;
mod logins;
mod logs;
mod mcp_attach;
mod operator_check;
mod operator_command;
mod params;
mod peer_credentials;
mod prompts;
mod resources;
mod ring_page;
mod rpc_method;
mod scripts;
pub mod service_environment;
pub mod socket_client;
pub mod socket_file;
mod socket_server;
mod tasks;
mod tools;
mod top;

use operator_check::OperatorCheck;
pub use operator_command::{ControlCommand, NamedFile, ReloadError};
use params::ControlParams;
#[doc(hidden)]
pub use params::read_params;
use peer_credentials::PeerCredentials;
use rpc_method::{ControlMethod, ControlRequest, MethodResult};
pub use socket_server::serve;

/// The parts of the service that the control interface exposes.
#[derive(Debug)]
pub struct ControlParts {
    /// The state of the service.
    pub board: Arc<StatusBoard>,
    /// The views that clients attached to the socket can choose.
    pub views: Arc<Views>,
    /// The lists and methods of the servers.
    pub operators: Arc<OperatorView>,
    /// The context that serves clients attached to the socket.
    pub ingress: Arc<IngressContext>,
    /// The calls that continue without their callers.
    pub task_driver: Arc<TaskDriver>,
    /// The logins at servers.
    pub logins: Arc<LoginService>,
    /// The last log lines.
    pub log_ring: Arc<LogRing>,
    /// Takes commands to the service as a whole.
    pub commands: mpsc::Sender<ControlCommand>,
}

/// The control interface: it answers operators.
#[derive(Debug)]
pub struct ControlService {
    parts: ControlParts,
    /// The permits for connections of operators.
    connections: Arc<Evictables>,
    /// The permits for MCP clients at the socket.
    attach_permits: Arc<Semaphore>,
    /// Distinguishes operators from servers.
    operator_check: OperatorCheck,
    /// Cancelled when no more requests are accepted.
    stop: CancellationToken,
    /// Cancelled when running requests are to fail.
    drain_deadline: CancellationToken,
    /// Owns the connections.
    tasks: TaskTracker,
}

/// The sender of a request.
#[derive(Clone, Debug)]
struct Requester {
    /// The process at the other end of the control socket; `None` over HTTP.
    peer: Option<PeerCredentials>,
    /// The party at the other end of the connection.
    caller: ConnectedClient,
    /// Takes notifications that precede the answer, if there can be any.
    lines: Option<mpsc::Sender<Bytes>>,
}

impl Requester {
    /// Returns the user, if known.
    fn uid(&self) -> Option<u32> {
        self.peer.map(|peer| peer.uid)
    }
}

impl ControlService {
    /// Creates the control interface. It accepts nothing more after `stop`, and running requests
    /// end at once when `drain_deadline` is cancelled; `tasks` owns the connections.
    pub fn new(
        parts: ControlParts,
        stop: CancellationToken,
        drain_deadline: CancellationToken,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        let connections = Evictables::new(EvictionBounds {
            max: defaults::CONTROL_CONNECTIONS_MAX,
            reserve: defaults::CONTROL_CONNECTIONS_RESERVE,
        });
        let attach_permits = Arc::new(Semaphore::new(defaults::CONTROL_ATTACHED_MAX));
        let operator_check = OperatorCheck::default();
        Arc::new(Self {
            parts,
            connections,
            attach_permits,
            operator_check,
            stop,
            drain_deadline,
            tasks,
        })
    }

    /// Takes a permit for a connection of the user `uid`; `None` if all have requests running.
    fn admit(&self, uid: u32) -> Option<EvictablePermit> {
        let account = Account::User(uid);
        self.connections.admit(Holder { account, member: AccountMember::Whole })
    }

    /// Returns the group that is admitted at the socket, if any.
    fn control_group(&self) -> Option<String> {
        self.parts.operators.config().listen.control_group.clone()
    }

    async fn answer(&self, request: &Message, requester: &Requester) -> Bytes {
        let id = request.part(MessagePart::Id).unwrap_or("null");
        match self.try_answer(request, requester).await {
            Ok(result) => on_one_line(Message::response(id, &result)),
            Err(error) => error.complete().render(Some(id)),
        }
    }

    async fn try_answer(&self, request: &Message, requester: &Requester) -> MethodResult {
        let name = request.method().unwrap_or_default();
        let method = ControlMethod::named(name).ok_or_else(|| unknown_method(name))?;
        if method.is_for_operators() {
            self.check_operator(requester, method).await?;
        }
        let params = ControlParams::read(method, request.params())?;
        let request = ControlRequest { service: self, params, requester };
        tokio::select! {
            biased;
            // Boxed: most methods need far less room than the largest.
            answer = Box::pin(dispatch(&request)) => answer,
            () = self.drain_deadline.cancelled() => {
                Err(RpcError::stopping(method.calls_tools()).into())
            }
        }
    }
}

/// Answers a request with the handler of its method.
async fn dispatch(request: &ControlRequest<'_>) -> MethodResult {
    use ControlMethod as Method;
    match request.params.method {
        Method::ServersList => listing::servers(request).await,
        Method::ToolsList => tools::list(request).await,
        Method::ToolsInfo => tools::info(request).await,
        Method::ToolsCall => tools::call(request).await,
        Method::ToolsValidate => tools::validate(request).await,
        Method::ToolsGrep => tools::grep(request).await,
        Method::ToolsCallAsync => tasks::call(request).await,
        Method::ScriptsRun => scripts::run(request).await,
        Method::ScriptsRunAsync => scripts::run_async(request).await,
        Method::TasksList => tasks::list(request).await,
        Method::TasksGet => tasks::get(request).await,
        Method::TasksResult => tasks::result(request).await,
        Method::TasksCancel => tasks::cancel(request).await,
        Method::ToolsSearch => tools::search(request).await,
        Method::ResourcesList => {
            listing::list_result(request, ListKind::Resources, "resource").await
        }
        Method::ResourcesRead => resources::read(request).await,
        Method::PromptsList => listing::list_result(request, ListKind::Prompts, "prompt").await,
        Method::PromptsGet => prompts::get(request).await,
        Method::CompletionsComplete => completions::complete(request).await,
        Method::AuthStatus => auth_status::status(request).await,
        Method::AuthLogin => logins::begin(request).await,
        Method::AuthWait => logins::wait(request).await,
        Method::AuthFinish => logins::finish(request).await,
        Method::AuthLogout => logins::logout(request).await,
        Method::AuthDocument => logins::document(request),
        // It shows that the service is alive.
        Method::Ping => Ok("{}".to_owned()),
        Method::DaemonStatus => daemon::status(request).await,
        Method::DaemonEnvironment => service_environment::environment(request).await,
        Method::DaemonLogs => logs::logs(request).await,
        Method::DaemonTop => top::top(request),
        Method::DaemonCalls => calls::calls(request).await,
        // The connection of this request cannot be attached.
        Method::McpAttach => Err(mcp_attach::refusal().into()),
        Method::ConfigReload => daemon::reload(request).await,
        Method::DaemonStop => daemon::stop(request).await,
    }
}

/// Parses a line that holds a request or a notification.
fn read(line: Bytes) -> Result<Message, Box<RpcError>> {
    let message = Message::parse(line).map_err(|error| {
        let (code, name) = match &error {
            ParseError::Encoding(_) | ParseError::Json(_) => (PARSE_ERROR, "PARSE_ERROR"),
            ParseError::TooDeep { .. } => (INVALID_REQUEST, "TOO_DEEP"),
            ParseError::Batch
            | ParseError::Shape(_)
            | ParseError::Member(_)
            | ParseError::TooLarge(_) => (INVALID_REQUEST, "INVALID_REQUEST"),
        };
        RpcError::new(code, name, error.to_string())
            .suggest("Send one JSON-RPC 2.0 request at a time, on a line of its own.")
    })?;
    match message.kind() {
        MessageKind::Response => {
            let text = "unexpected response: the service sends no requests here";
            let error = RpcError::new(INVALID_REQUEST, "INVALID_REQUEST", text);
            Err(error.suggest("Send only requests and notifications.").into())
        }
        MessageKind::Request | MessageKind::Notification => Ok(message),
    }
}

fn unknown_method(name: &str) -> RpcError {
    let known = ControlMethod::ALL.map(ControlMethod::name);
    let shown = redact::cut(name, defaults::SUGGESTION_BYTES_MAX);
    let similar = nearest(name, known.iter().map(|name| (*name).to_owned()));
    let suggestion = match similar.first() {
        Some(nearest) => format!("Did you mean `{nearest}`?"),
        None => format!("Known methods: `{}`.", known.join("`, `")),
    };
    RpcError::new(METHOD_NOT_FOUND, "METHOD_NOT_FOUND", format!("there is no method `{shown}`"))
        .suggest(suggestion)
        .context(json!({ "method": shown, "similar": similar, "known": known.as_slice() }))
}

/// Calls `method` of a server with `params` for an operator, and returns the JSON text of its result.
async fn finish_call(
    request: &ControlRequest<'_>,
    server: &str,
    method: &'static str,
    params: &Value,
) -> MethodResult {
    let operators = &request.service.parts.operators;
    let exchange = operators.ask(server, method, &params.to_string(), request.holder())?;
    operator::finish(exchange, None).await
}

/// Returns one of metamcp's own values as JSON text.
fn to_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("our own values have string keys")
}
