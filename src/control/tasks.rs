//! The methods `tools/call-async` and `tasks/…`: calls that continue without their callers.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time;

use super::{Asker, ControlMethod, ControlParams, ControlService, MethodResult, to_text, tools};
use crate::{
    call::CallError,
    config::defaults,
    error_report::chain,
    protocol::{
        RpcError,
        jsonrpc::MessagePart,
        rpc_error::{INTERNAL_ERROR, INVALID_PARAMS},
        task,
    },
    task::{CancelError, TaskOutcome, TaskRecord, TaskStartError, TaskStatus, TaskWork},
    view::operator::{self, CheckedCall},
};

/// Answers `tools/call-async`.
pub(super) async fn call(
    desk: &ControlService,
    params: &ControlParams<'_>,
    asker: &Asker,
) -> MethodResult {
    let wanted = tools::requested_tool(params)?;
    let patience = match params.optional::<u64>("timeout")? {
        Some(0) => return Err(params.invalid("timeout", "at least 1 ms")),
        Some(ms) => Duration::from_millis(ms).min(defaults::TASK_PATIENCE_MAX),
        None => defaults::TASK_PATIENCE,
    };
    let call = operator::OperatorCall {
        tool: &wanted,
        args: params.object("arguments")?.unwrap_or("{}"),
        // No caller waits for the call itself.
        timeout: None,
        meta: params.meta()?,
        holder: asker.holder(),
    };
    let CheckedCall { tool, request, .. } = desk.views.operator_request(&call).await?;
    let (slot, tool, holder) = (tool.slot, tool.item, asker.holder());
    let work = TaskWork { slot, tool, request, patience, holder };
    let task = desk.calls.start(work).await.map_err(not_started)?;
    let told = json!({ "taskId": task.id, "status": task.status.name(), "server": task.server });
    Ok(to_text(&told))
}

/// Answers `tasks/list`: metamcp's own tasks, and those that connected servers list.
pub(super) async fn list(
    desk: &ControlService,
    params: &ControlParams<'_>,
    asker: &Asker,
) -> MethodResult {
    let wanted: Option<String> = params.optional("server")?;
    if let Some(server) = &wanted {
        desk.views.of_server(server).map_err(|error| error.to_operator())?;
    }
    let expiry = desk.calls.expiry();
    let mut servers: Map<String, Value> = Map::new();
    let mut add = |server: &str, told: Value| {
        let tasks = servers.entry(server.to_owned()).or_insert_with(|| json!([]));
        if let Some(tasks) = tasks.as_array_mut() {
            tasks.push(told);
        }
    };
    let ours = desk.calls.all();
    let is_wanted = |server: &str| wanted.as_deref().is_none_or(|wanted| wanted == server);
    for task in ours.iter().filter(|task| is_wanted(&task.server)) {
        add(&task.server, task.to_operator_json(expiry));
    }
    let listing = desk.views.listing_tasks();
    let listing = listing.iter().filter(|server| is_wanted(server.as_str()));
    let listed =
        listing.map(|server| async move { (server, own(desk, server.as_str(), asker).await) });
    for (server, told) in futures_util::future::join_all(listed).await {
        let is_ours = |told: &Value| {
            ours.iter().any(|task| {
                task.server == server.as_str()
                    && task.upstream.as_ref().is_some_and(|found| told["taskId"] == found.id)
            })
        };
        told.into_iter().filter(|told| !is_ours(told)).for_each(|told| add(server.as_str(), told));
    }
    let mut rows: Vec<(String, Value)> = servers.into_iter().collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    let rows = rows.into_iter().map(|(server, tasks)| json!({ "server": server, "tasks": tasks }));
    Ok(to_text(&rows.collect::<Vec<_>>()))
}

/// Returns the tasks that a server lists in time.
async fn own(desk: &ControlService, server: &str, asker: &Asker) -> Vec<Value> {
    let mut tasks = Vec::new();
    let reading = async {
        let mut params = "{}".to_owned();
        for _ in 0..defaults::TASK_PAGES_MAX {
            let asking = desk.views.ask_about_task(server, task::LIST, &params, asker.holder());
            let Ok(answer) = asking.await else { return };
            let page: Value = answer
                .part(MessagePart::Result)
                .and_then(|result| serde_json::from_str(result).ok())
                .unwrap_or_default();
            tasks.extend(page["tasks"].as_array().into_iter().flatten().cloned());
            match page["nextCursor"].as_str() {
                Some(cursor) => params = json!({ "cursor": cursor }).to_string(),
                None => return,
            }
        }
    };
    let _in_time = time::timeout(defaults::LIST_PATIENCE, reading).await;
    tasks
}

/// Answers `tasks/get`.
pub(super) async fn get(
    desk: &ControlService,
    params: &ControlParams<'_>,
    asker: &Asker,
) -> MethodResult {
    match find(desk, params, (asker, ControlMethod::TasksGet)).await? {
        Found::Ours(task) => {
            let task = looked_at(desk, *task).await;
            Ok(to_text(&task.to_operator_json(desk.calls.expiry())))
        }
        Found::Of { server, id } => ask(desk, &server, task::GET, &id, asker).await,
    }
}

/// Answers `tasks/result`.
pub(super) async fn result(
    desk: &ControlService,
    params: &ControlParams<'_>,
    asker: &Asker,
) -> MethodResult {
    let is_waiting = params.flag("wait")?;
    let task = match find(desk, params, (asker, ControlMethod::TasksResult)).await? {
        Found::Ours(task) => looked_at(desk, *task).await,
        Found::Of { server, id } => return ask(desk, &server, task::RESULT, &id, asker).await,
    };
    let patience = desk.views.config().service.request_timeout;
    let task = match is_waiting && !task.status.has_ended() {
        true => desk.calls.ended(&task.id, patience).await.unwrap_or(task),
        false => task,
    };
    outcome(&task)
}

/// Answers `tasks/cancel`.
pub(super) async fn cancel(
    desk: &ControlService,
    params: &ControlParams<'_>,
    asker: &Asker,
) -> MethodResult {
    let task = match find(desk, params, (asker, ControlMethod::TasksCancel)).await? {
        Found::Ours(task) => *task,
        Found::Of { server, id } => return ask(desk, &server, task::CANCEL, &id, asker).await,
    };
    if task.status.has_ended() {
        return Err(ended(&task).into());
    }
    let cancelled =
        desk.calls.cancel(&task.id).await.map_err(|error| not_cancelled(&task, &error))?;
    match cancelled {
        Some(task) if task.status == TaskStatus::Cancelled => {
            Ok(to_text(&task.to_operator_json(desk.calls.expiry())))
        }
        // The task ended first.
        Some(task) => Err(ended(&task).into()),
        None => Err(unknown(&task.id).into()),
    }
}

/// The task that a request names.
enum Found {
    /// A task that metamcp started.
    Ours(Box<TaskRecord>),
    /// A task that the server may know.
    Of {
        /// The server.
        server: String,
        /// Its id at the server.
        id: String,
    },
}

/// Returns the task that `asker` names in a request for this method.
///
/// A server of this service must know metamcp's own id: the ids of servers may be guessable.
async fn find(
    desk: &ControlService,
    params: &ControlParams<'_>,
    (asker, method): (&Asker, ControlMethod),
) -> Result<Found, Box<RpcError>> {
    let id: String = params.required("taskId")?;
    let server: Option<String> = params.optional("server")?;
    if let Some(task) = desk.calls.find(server.as_deref(), &id) {
        if task.id != id {
            desk.check_operator(asker, method).await?;
        }
        return Ok(Found::Ours(Box::new(task)));
    }
    let Some(server) = server else { return Err(unknown(&id).into()) };
    desk.check_operator(asker, method).await?;
    desk.views.of_server(&server).map_err(|error| error.to_operator())?;
    // A server without a connection would be started, and would not know the task.
    match desk.views.is_connected(&server) {
        Some(true) => Ok(Found::Of { server, id }),
        Some(false) | None => Err(unknown(&id).into()),
    }
}

/// Polls the server of a lost call first; returns the old state if it does not answer soon.
async fn looked_at(desk: &ControlService, task: TaskRecord) -> TaskRecord {
    if task.status != TaskStatus::Unreachable {
        return task;
    }
    let looking = desk.calls.poll_server(&task.id);
    let looked = time::timeout(defaults::LIST_PATIENCE, looking).await.ok().flatten();
    looked.or_else(|| desk.calls.get(&task.id)).unwrap_or(task)
}

/// Asks a server about a task that metamcp did not start.
async fn ask(
    desk: &ControlService,
    server: &str,
    method: &str,
    id: &str,
    asker: &Asker,
) -> MethodResult {
    let params = json!({ "taskId": id }).to_string();
    let answer = desk.views.ask_about_task(server, method, &params, asker.holder()).await;
    let answer = answer.map_err(|error| match error {
        // A server without tasks does not know this one either.
        CallError::Untranslatable { .. } => unknown(id),
        error => error.to_operator(),
    })?;
    match (answer.part(MessagePart::Result), answer.part(MessagePart::Error)) {
        (Some(result), _) => Ok(result.to_owned()),
        (None, error) => Err(told(error.unwrap_or("{}"), server, id).into()),
    }
}

/// Returns the outcome of a call.
fn outcome(task: &TaskRecord) -> MethodResult {
    match (task.status, &task.outcome) {
        (_, Some(TaskOutcome::Result(result))) => Ok(result.clone()),
        (_, Some(TaskOutcome::Error(error))) => Err(told(error, &task.server, &task.id).into()),
        (TaskStatus::Working | TaskStatus::InputRequired | TaskStatus::Unreachable, None) => {
            let message =
                format!("task `{}` is {}: it has no result yet", task.id, task.status.name());
            let remedy = match task.status {
                TaskStatus::InputRequired => {
                    "Its server waits for an answer that nobody can give here: cancel it with `tasks/cancel`, and make the call from a client that can be asked."
                }
                TaskStatus::Unreachable => {
                    "Its server was lost: it is asked again when it is connected. See `servers/list`."
                }
                TaskStatus::Working
                | TaskStatus::Completed
                | TaskStatus::Failed
                | TaskStatus::Cancelled
                | TaskStatus::UnknownOutcome => "Ask again later, or with `wait`: true.",
            };
            Err(about(
                task,
                RpcError::new(INVALID_PARAMS, "TASK_NOT_FINISHED", message).suggest(remedy),
            )
            .into())
        }
        (TaskStatus::Cancelled, None) => {
            let message = format!("task `{}` was cancelled: it has no result", task.id);
            let error = RpcError::new(INTERNAL_ERROR, "TASK_CANCELLED", message);
            Err(about(task, error.suggest("Call the tool again if you want its result.")).into())
        }
        (TaskStatus::UnknownOutcome | TaskStatus::Completed | TaskStatus::Failed, None) => {
            let why = task.message.as_deref().unwrap_or("its result was not kept");
            let message = format!("nobody knows what came of task `{}`: {why}", task.id);
            let error = RpcError::new(INTERNAL_ERROR, "OUTCOME_UNKNOWN", message);
            let remedy = "See what the tool has done before you call it again.";
            Err(about(task, error.suggest(remedy)).into())
        }
    }
}

/// Returns an error with the details of the task.
fn about(task: &TaskRecord, error: RpcError) -> RpcError {
    let (status, tool) = (task.status.name(), &task.tool);
    error.context(json!({
        "taskId": task.id, "server": task.server, "tool": tool, "status": status,
    }))
}

/// Returns the error of a failed call, or of a server's answer, as one of metamcp.
fn told(error: &str, server: &str, id: &str) -> RpcError {
    let found: Value = match error.len() <= defaults::ERROR_DETAIL_BYTES_MAX {
        true => serde_json::from_str(error).unwrap_or_default(),
        false => Value::Null,
    };
    let message = found["message"].as_str().unwrap_or("the task has failed");
    let code = found["code"].as_i64().unwrap_or(INTERNAL_ERROR);
    let remedy = found["data"]["suggestion"].as_str();
    RpcError::new(code, "TASK_FAILED", crate::redact::sanitize(message))
        .suggest(
            remedy.unwrap_or(
                "The words are those of the server: correct the arguments, or see its log.",
            ),
        )
        .context(json!({ "taskId": id, "server": server, "data": found["data"] }))
}

fn unknown(id: &str) -> RpcError {
    let shown = crate::redact::cut(id, defaults::SUGGESTION_BYTES_MAX);
    RpcError::new(INVALID_PARAMS, "TASK_NOT_FOUND", format!("there is no task `{shown}`"))
        .suggest("See `tasks/list`: a task is forgotten some time after its end. Name its `server` if it was not begun here.")
        .context(json!({ "taskId": shown }))
}

fn ended(task: &TaskRecord) -> RpcError {
    let error = task::ended(task.status.name());
    about(task, error.suggest("There is nothing to cancel: see `tasks/result`."))
}

fn not_cancelled(task: &TaskRecord, error: &CancelError) -> RpcError {
    let message = format!("task `{}` goes on: {}", task.id, chain(error));
    let remedy = match error {
        CancelError::Unasked(_) => "Cancel it again when its server is there.",
        CancelError::Refused(_) => "Look at it with `tasks/get`: it may have ended.",
    };
    about(task, RpcError::new(INTERNAL_ERROR, "TASK_NOT_CANCELLED", message).suggest(remedy))
}

fn not_started(error: TaskStartError) -> Box<RpcError> {
    let (name, remedy) = match error {
        TaskStartError::Full => {
            ("TOO_MANY_TASKS", "Wait until one has ended, or cancel one: see `tasks/list`.")
        }
        TaskStartError::Stopping => {
            ("SERVICE_STOPPING", "Call again in a moment: the service may come back.")
        }
    };
    let error = RpcError::new(INTERNAL_ERROR, name, error.to_string()).suggest(remedy);
    error.context(json!({ "max": defaults::TASKS_RUNNING_MAX })).into()
}
