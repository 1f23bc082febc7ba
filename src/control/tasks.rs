//! The methods `tools/call-async` and `tasks/…`: calls and scripts that continue without their
//! callers.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::time;

use super::{ControlRequest, ControlService, MethodResult, to_text, tools};
use crate::{
    call::CallError,
    compute_pool::StopFlag,
    config::defaults,
    error_report::chain,
    protocol::{
        RpcError,
        jsonrpc::MessagePart,
        rpc_error::{INTERNAL_ERROR, INVALID_PARAMS},
        task,
    },
    redact,
    task::{
        CallWork, CancelError, TaskOutcome, TaskRecord, TaskStartError, TaskStatus, TaskSubject,
        TaskWork,
    },
    view::operator::{self, CheckedCall},
};

/// Answers `tools/call-async`.
pub(super) async fn call(request: &ControlRequest<'_>) -> MethodResult {
    let wanted = tools::requested_tool(&request.params)?;
    let timeout = request.params.timeout()?.unwrap_or(defaults::TASK_TIMEOUT);
    let timeout = timeout.min(defaults::TASK_TIMEOUT_MAX);
    let call = operator::OperatorCall {
        tool: &wanted,
        args: request.params.object("arguments")?.unwrap_or("{}"),
        // No caller waits for the call itself.
        timeout: None,
        meta: request.params.meta()?,
        holder: request.holder(),
    };
    let (service, holder) = (request.service, request.holder());
    let CheckedCall { tool, request, .. } = service.parts.operators.request(&call).await?;
    let server = tool.slot.name().clone();
    let work = CallWork { slot: tool.slot, tool: tool.item, request, timeout, holder };
    let mut started = start(service, TaskWork::Call(Box::new(work))).await?;
    started["server"] = json!(server);
    Ok(to_text(&started))
}

/// Starts a task, and returns the members that every such method answers with.
pub(super) async fn start(
    service: &ControlService,
    work: TaskWork,
) -> Result<Value, Box<RpcError>> {
    let task = service.parts.task_driver.start(work).await.map_err(not_started)?;
    Ok(json!({ "taskId": task.id, "status": task.status.name() }))
}

/// Answers `tasks/list`: metamcp's own tasks, and those that connected servers list.
pub(super) async fn list(request: &ControlRequest<'_>) -> MethodResult {
    let wanted: Option<String> = request.params.optional("server")?;
    let service = request.service;
    if let Some(server) = &wanted {
        service.parts.operators.check_declared(server)?;
    }
    let expiry = service.parts.task_driver.expiry();
    let mut servers: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut scripts = Vec::new();
    let own_tasks = service.parts.task_driver.all();
    let is_wanted = |server: &str| wanted.as_deref().is_none_or(|wanted| wanted == server);
    for task in &own_tasks {
        match task.subject.server() {
            Some(server) if is_wanted(server) => {
                let tasks = servers.entry(server.to_owned()).or_default();
                tasks.push(task.to_operator_json(expiry));
            }
            None if wanted.is_none() => scripts.push(task.to_operator_json(expiry)),
            Some(_) | None => {}
        }
    }
    let listing = service.parts.operators.listing_tasks();
    let listing = listing.iter().map(|server| server.as_str()).filter(|server| is_wanted(server));
    let listed = listing.map(|server| async move { (server, listed_by(request, server).await) });
    for (server, mut tasks) in futures_util::future::join_all(listed).await {
        let is_own = |task: &Value, own: &TaskRecord| {
            let upstream = own.upstream.as_ref();
            own.subject.server() == Some(server)
                && upstream.is_some_and(|found| task["taskId"] == found.id)
        };
        tasks.retain(|task| !own_tasks.iter().any(|own| is_own(task, own)));
        if !tasks.is_empty() {
            servers.entry(server.to_owned()).or_default().append(&mut tasks);
        }
    }
    let rows =
        servers.into_iter().map(|(server, tasks)| json!({ "server": server, "tasks": tasks }));
    let of_scripts = (!scripts.is_empty()).then(|| json!({ "tasks": scripts }));
    Ok(to_text(&rows.chain(of_scripts).collect::<Vec<_>>()))
}

/// Returns the tasks that a server lists in time.
async fn listed_by(request: &ControlRequest<'_>, server: &str) -> Vec<Value> {
    let mut tasks = Vec::new();
    let reading = async {
        let mut params = "{}".to_owned();
        for _ in 0..defaults::TASK_PAGES_MAX {
            let operators = &request.service.parts.operators;
            let answer =
                operators.ask_about_task(server, task::LIST, &params, request.holder()).await;
            let Ok(answer) = answer else { return };
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
    let _in_time = time::timeout(defaults::LIST_TIMEOUT, reading).await;
    tasks
}

/// Answers `tasks/get`.
pub(super) async fn get(request: &ControlRequest<'_>) -> MethodResult {
    match find(request).await? {
        FoundTask::Own(task) => {
            let task = polled(request.service, *task).await;
            Ok(own_task_json(request.service, &task))
        }
        FoundTask::OfServer { server, id } => ask_server(request, &server, task::GET, &id).await,
    }
}

fn own_task_json(service: &ControlService, task: &TaskRecord) -> String {
    to_text(&task.to_operator_json(service.parts.task_driver.expiry()))
}

/// Answers `tasks/result`.
pub(super) async fn result(request: &ControlRequest<'_>) -> MethodResult {
    let service = request.service;
    let is_waiting = request.params.flag("wait")?;
    let task = match find(request).await? {
        FoundTask::Own(task) => polled(service, *task).await,
        FoundTask::OfServer { server, id } => {
            return ask_server(request, &server, task::RESULT, &id).await;
        }
    };
    let timeout = service.parts.operators.config().service.request_timeout;
    let task = match is_waiting && !task.status.has_ended() {
        true => service.parts.task_driver.ended(&task.id, timeout).await.unwrap_or(task),
        false => task,
    };
    outcome(service, task).await
}

/// Answers `tasks/cancel`.
pub(super) async fn cancel(request: &ControlRequest<'_>) -> MethodResult {
    let task = match find(request).await? {
        FoundTask::Own(task) => *task,
        FoundTask::OfServer { server, id } => {
            return ask_server(request, &server, task::CANCEL, &id).await;
        }
    };
    if task.status.has_ended() {
        return Err(ended(&task).into());
    }
    let cancelled = request.service.parts.task_driver.cancel(&task.id).await;
    match cancelled.map_err(|error| not_cancelled(&task, &error))? {
        Some(task) if task.status == TaskStatus::Cancelled => {
            Ok(own_task_json(request.service, &task))
        }
        // The task ended first.
        Some(task) => Err(ended(&task).into()),
        None => Err(unknown(&task.id).into()),
    }
}

/// The task that a request names.
enum FoundTask {
    /// A task that metamcp started.
    Own(Box<TaskRecord>),
    /// A task that the server may know, by its id there.
    OfServer { server: String, id: String },
}

/// Returns the task that a request names.
///
/// A server of this service must know metamcp's own id: the ids of servers may be guessable.
async fn find(request: &ControlRequest<'_>) -> Result<FoundTask, Box<RpcError>> {
    let ControlRequest { service, params, requester } = request;
    let id: String = params.required("taskId")?;
    let server: Option<String> = params.optional("server")?;
    if let Some(task) = service.parts.task_driver.find(server.as_deref(), &id) {
        if task.id != id {
            service.check_operator(requester, params.method).await?;
        }
        return Ok(FoundTask::Own(Box::new(task)));
    }
    let Some(server) = server else { return Err(unknown(&id).into()) };
    service.check_operator(requester, params.method).await?;
    service.parts.operators.check_declared(&server)?;
    // A server without a connection would be started, and would not know the task.
    match service.parts.operators.is_connected(&server) {
        Some(true) => Ok(FoundTask::OfServer { server, id }),
        Some(false) | None => Err(unknown(&id).into()),
    }
}

/// Polls the server of a lost call first; returns the old state if it does not answer soon.
async fn polled(service: &ControlService, task: TaskRecord) -> TaskRecord {
    if task.status != TaskStatus::Unreachable {
        return task;
    }
    let polling = service.parts.task_driver.poll_server(&task.id);
    let polled = time::timeout(defaults::LIST_TIMEOUT, polling).await.ok().flatten();
    polled.or_else(|| service.parts.task_driver.get(&task.id)).unwrap_or(task)
}

/// Asks a server about a task that metamcp did not start.
async fn ask_server(
    request: &ControlRequest<'_>,
    server: &str,
    method: &str,
    id: &str,
) -> MethodResult {
    let params = json!({ "taskId": id }).to_string();
    let operators = &request.service.parts.operators;
    let answer = operators.ask_about_task(server, method, &params, request.holder()).await;
    let answer = answer.map_err(|error| match error {
        // A server without tasks does not know this one either.
        CallError::Untranslatable(..) => unknown(id),
        error => error.to_operator(),
    })?;
    match (answer.part(MessagePart::Result), answer.part(MessagePart::Error)) {
        (Some(result), _) => Ok(result.to_owned()),
        (None, error) => Err(failed(error.unwrap_or("{}"), server, id).into()),
    }
}

/// Returns the outcome of a task.
async fn outcome(service: &ControlService, mut task: TaskRecord) -> MethodResult {
    match (&task.subject, task.outcome.take()) {
        (_, Some(TaskOutcome::Result(result))) => Ok(result),
        (TaskSubject::Call { server, .. }, Some(TaskOutcome::Error(error))) => {
            Err(failed(&error, server, &task.id).into())
        }
        (TaskSubject::Script { .. }, Some(TaskOutcome::Error(error))) => {
            // The error has everything that the script has printed.
            let (bytes, mut context) = (error.len(), task.subject.to_operator_json());
            context["taskId"] = json!(task.id);
            let read = move |_: &StopFlag| {
                let found = serde_json::from_str(&error).unwrap_or_default();
                task_failed(&found, context)
            };
            Err(service.parts.operators.compute(bytes, read).await?.into())
        }
        (_, None) => Err(without_outcome(&task).into()),
    }
}

/// Returns the error for a task without a result.
fn without_outcome(task: &TaskRecord) -> RpcError {
    let (id, status) = (&task.id, task.status);
    let (again, check) = match &task.subject {
        TaskSubject::Call { .. } => (
            "Call the tool again if you want its result.",
            "Check what the tool did before you call it again.",
        ),
        TaskSubject::Script { .. } => (
            "Run the script again if you want its result.",
            "Check what its calls did before you run the script again.",
        ),
    };
    let (code, name, message, remedy) = match status {
        TaskStatus::Working | TaskStatus::InputRequired | TaskStatus::Unreachable => {
            let remedy = match status {
                TaskStatus::InputRequired => format!(
                    "Its server waits for input that operators cannot give: cancel it with `metamcp task {id} --cancel`, and call the tool from a client that can answer."
                ),
                TaskStatus::Unreachable => {
                    "Its server is not connected: metamcp asks it again once it is. Run `metamcp servers`."
                        .to_owned()
                }
                _ => format!("Wait for it with `metamcp task {id} --wait`."),
            };
            let message = format!("task `{id}` is {}: it has no result yet", status.name());
            (INVALID_PARAMS, "TASK_NOT_FINISHED", message, remedy)
        }
        TaskStatus::Cancelled => {
            let message = format!("task `{id}` was cancelled: it has no result");
            (INTERNAL_ERROR, "TASK_CANCELLED", message, again.to_owned())
        }
        TaskStatus::UnknownOutcome | TaskStatus::Completed | TaskStatus::Failed => {
            let why = task.message.as_deref().unwrap_or("its result was not kept");
            let message = format!("the outcome of task `{id}` is unknown: {why}");
            (INTERNAL_ERROR, "OUTCOME_UNKNOWN", message, check.to_owned())
        }
    };
    about(task, RpcError::new(code, name, message).suggest(remedy))
}

/// Returns an error with the details of the task.
fn about(task: &TaskRecord, error: RpcError) -> RpcError {
    let mut context = task.subject.to_operator_json();
    context["taskId"] = json!(task.id);
    context["status"] = json!(task.status.name());
    error.context(context)
}

/// Returns the error of a failed call, or of a server's answer, as one of metamcp.
fn failed(error: &str, server: &str, id: &str) -> RpcError {
    let found: Value = match error.len() <= defaults::ERROR_DETAIL_BYTES_MAX {
        true => serde_json::from_str(error).unwrap_or_default(),
        false => Value::Null,
    };
    task_failed(&found, json!({ "taskId": id, "server": server }))
}

/// Returns the error of a task that failed with the error object `found`.
fn task_failed(found: &Value, mut context: Value) -> RpcError {
    let message = found["message"].as_str().unwrap_or("the task has failed");
    let code = found["code"].as_i64().unwrap_or(INTERNAL_ERROR);
    let remedy = found["data"]["suggestion"].as_str();
    let default = "The server itself reports this: correct the arguments, or read its log.";
    context["data"] = found["data"].clone();
    RpcError::new(code, "TASK_FAILED", redact::sanitize(message))
        .suggest(remedy.unwrap_or(default))
        .context(context)
}

fn unknown(id: &str) -> RpcError {
    let shown = redact::cut(id, defaults::SUGGESTION_BYTES_MAX);
    RpcError::new(INVALID_PARAMS, "TASK_NOT_FOUND", format!("there is no task `{shown}`"))
        .suggest("Run `metamcp tasks` to list the tasks: one is removed some time after its end. Write `SERVER/ID` for a task that a server started.")
        .context(json!({ "taskId": shown }))
}

fn ended(task: &TaskRecord) -> RpcError {
    let error = task::ended(task.status.name());
    let remedy = match task.status {
        TaskStatus::Cancelled => "There is nothing to cancel.".to_owned(),
        _ => format!("There is nothing to cancel: see `metamcp task {} --result`.", task.id),
    };
    about(task, error.suggest(remedy))
}

fn not_cancelled(task: &TaskRecord, error: &CancelError) -> RpcError {
    let message = format!("task `{}` is not cancelled: {}", task.id, chain(error));
    let remedy = match error {
        CancelError::Unasked(_) => "Cancel it again when its server is connected.".to_owned(),
        CancelError::Refused(_) => {
            format!("Check it with `metamcp task {}`: it may have ended.", task.id)
        }
    };
    about(task, RpcError::new(INTERNAL_ERROR, "TASK_NOT_CANCELLED", message).suggest(remedy))
}

fn not_started(error: TaskStartError) -> Box<RpcError> {
    let (name, remedy) = match &error {
        TaskStartError::Full => {
            ("TOO_MANY_TASKS", "Wait until one has ended, or cancel one: see `metamcp tasks`.")
        }
        TaskStartError::Unrecorded(_) => {
            ("NOT_RECORDED", "Make room in the state directory, or run it without `--async`.")
        }
        TaskStartError::Stopping => {
            ("SERVICE_STOPPING", "Call again in a moment: the service may come back.")
        }
    };
    let error = RpcError::new(INTERNAL_ERROR, name, error.to_string()).suggest(remedy);
    error.context(json!({ "max": defaults::TASKS_RUNNING_MAX })).into()
}
