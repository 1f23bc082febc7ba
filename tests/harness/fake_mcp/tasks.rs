//! The tasks for `--tasks`: those of 2025-11-25 and extension `io.modelcontextprotocol/tasks`.
//!
//! `job` is always a task, `job_maybe` is one if the client wants it. Time has no effect: each
//! `tasks/get` shows a step of the task and advances; the last step stays. In the modern era, a step
//! carries the question and stays until it is answered. In the legacy era, `tasks/result` goes
//! through the steps and asks.

mod task;

use serde_json::{Value, json};

use crate::{
    call::Call,
    era,
    fake::Fake,
    message::{Members, RpcError, quoted},
    methods,
    modern_client::ModernClient,
    tasks::task::{TaskArguments, TaskStep, question, with_result_type},
};

pub(crate) use task::Task;

/// The methods of the modern era.
pub(crate) const MODERN: [&str; 3] = ["tasks/cancel", "tasks/get", "tasks/update"];

/// The name, description and legacy `taskSupport` of the tools.
const TOOLS: [(&str, &str, &str); 2] = [
    ("job", "Runs as a task, step by step.", "required"),
    ("job_maybe", "As `job`, or at once for a client without tasks.", "optional"),
];

/// The arguments of both tools.
const ARGUMENTS: &str = r#"{"steps":{"type":"array","items":{"type":"string","enum":["working","input_required","completed"]}},"fails":{"type":"string","enum":["tool","rpc"],"description":"The last step is an error: of the tool, or of the protocol."},"at_once":{"type":"boolean","description":"Answer a modern call at once."},"lags":{"type":"boolean","description":"Show the answered question once more."},"value":{"description":"Returned in the result."}}"#;

/// Returns whether a tool is one of these.
pub(crate) fn is_tool(fake: &Fake, name: &str) -> bool {
    fake.options.tasks && TOOLS.iter().any(|(tool, ..)| *tool == name)
}

/// Returns name, description, properties and legacy `execution` member of the tools.
pub(crate) fn tools(
    fake: &Fake,
    is_modern: bool,
) -> impl Iterator<Item = (&'static str, &'static str, &'static str, Option<Value>)> {
    let tools = TOOLS.iter().filter(|_| fake.options.tasks);
    tools.map(move |(name, description, support)| {
        let execution = (!is_modern).then(|| json!({ "taskSupport": support }));
        (*name, *description, ARGUMENTS, execution)
    })
}

/// Adds the declaration of tasks to the capabilities.
pub(crate) fn declare(fake: &Fake, capabilities: &mut Value, is_modern: bool) {
    match (fake.options.tasks, is_modern) {
        (false, _) => {}
        (true, true) => capabilities["extensions"] = extension(),
        (true, false) => {
            let requests = json!({ "tools": { "call": {} } });
            capabilities["tasks"] = json!({ "list": {}, "cancel": {}, "requests": requests });
        }
    }
}

/// Refuses a modern request that requires the extension if its client lacks it.
pub(crate) fn admit(
    fake: &Fake,
    client: &ModernClient,
    method: &str,
    params: &Members,
) -> Result<(), RpcError> {
    let is_task_tool =
        || method == "tools/call" && params.required::<String>("name").is_ok_and(|it| it == "job");
    let needs_tasks = fake.options.tasks && (MODERN.contains(&method) || is_task_tool());
    if !needs_tasks || client.has_extension(&era::key("tasks")) {
        return Ok(());
    }
    Err(RpcError {
        code: -32021,
        message: "The client does not declare the extension for tasks".to_owned(),
        data: Some(json!({ "requiredCapabilities": { "extensions": extension() } }).to_string()),
    })
}

/// Refuses a legacy call as a task for a tool without task support.
pub(crate) fn check(call: &Call, name: &str, params: &Members) -> Result<(), RpcError> {
    let is_task = call.client.is_none() && params.raw("task").is_some();
    if call.fake.options.tasks && is_task && !is_tool(&call.fake, name) {
        return Err(RpcError::new(-32601, format!("`{name}` cannot be called as a task")));
    }
    Ok(())
}

/// Calls one of the tools: returns a task, or the result if no task is wanted.
pub(crate) fn start(call: &Call, name: &str, params: &Members) -> Result<String, RpcError> {
    let plan: TaskArguments = params.optional("arguments")?.unwrap_or_default();
    let metadata: Option<Value> = params.optional("task")?;
    let has_extension =
        call.client.as_ref().is_some_and(|client| client.has_extension(&era::key("tasks")));
    let fake = &call.fake;
    let added = {
        let mut state = fake.state();
        let task_call = json!({ "tool": name, "task": metadata, "extension": has_extension });
        state.seen.task_calls.push(task_call);
        state.executions.add(name)
    };
    added.map_err(|error| RpcError::new(-32603, format!("append to the state: {error}")))?;
    fake.changed();
    let is_task = match &call.client {
        Some(_) => has_extension && !plan.at_once,
        None if name == "job" && metadata.is_none() => {
            return Err(RpcError::new(-32601, "`job` can be called as a task only"));
        }
        None => metadata.is_some(),
    };
    let ttl = metadata.as_ref().and_then(|metadata| metadata["ttl"].as_u64());
    let mut task = Task::new(plan, ttl);
    if !is_task {
        return task.result();
    }
    task.id = uuid::Uuid::new_v4().to_string();
    // A new task is always `working`, whatever its first step is.
    let created = task.report(call.client.is_some(), TaskStep::Working);
    fake.log("job", &format!(r#","id":{}"#, quoted(&task.id)));
    fake.state().tasks.push(task);
    fake.count("tasks");
    Ok(match &call.client {
        Some(_) => with_result_type(created, "task"),
        None => json!({ "task": created }).to_string(),
    })
}

/// Answers a request about tasks.
pub(crate) async fn run(call: Call, method: &str, params: &Members) {
    let is_modern = call.client.is_some();
    let outcome = match method {
        "tasks/get" => with_task(&call, params, |task| Ok(task.get(is_modern))),
        "tasks/cancel" => with_task(&call, params, |task| task.cancel(is_modern)),
        "tasks/update" if is_modern => {
            call.fake.count("updates");
            with_task(&call, params, |task| task.update(params))
        }
        "tasks/result" if !is_modern => result(&call, params).await,
        "tasks/list" if !is_modern => list(&call.fake, params),
        _ => Err(RpcError::new(-32601, "Method not found")),
    };
    match outcome {
        Ok(result) => call.result(&result).await,
        Err(error) => call.error(&error).await,
    }
}

/// Applies `act` to the task that a request names.
fn with_task<T>(
    call: &Call,
    params: &Members,
    act: impl FnOnce(&mut Task) -> Result<T, RpcError>,
) -> Result<T, RpcError> {
    let id: String = params.required("taskId")?;
    let outcome = {
        let mut state = call.fake.state();
        let task = state.tasks.iter_mut().find(|task| task.id == id);
        task.ok_or_else(|| RpcError::invalid("Task not found")).and_then(act)
    };
    call.fake.changed();
    outcome
}

fn list(fake: &Fake, params: &Members) -> Result<String, RpcError> {
    let tasks = fake.state().tasks.iter().map(|task| task.report(false, task.step())).collect();
    methods::page(fake, params, "tasks", tasks).map(|page| page.to_string())
}

/// Goes through the steps of a task, asks its questions, and returns its result.
async fn result(call: &Call, params: &Members) -> Result<String, RpcError> {
    let id: String = params.required("taskId")?;
    let meta = format!(r#"{{"{}":{{"taskId":{}}}}}"#, era::key("related-task"), quoted(&id));
    loop {
        let (step, is_stuck) = with_task(call, params, |task| Ok((task.step(), task.is_stuck())))?;
        match step {
            TaskStep::Completed => break,
            TaskStep::Cancelled => return Err(RpcError::new(-32000, "The task was cancelled")),
            TaskStep::InputRequired => {
                let question = question().replacen('{', &format!(r#"{{"_meta":{meta},"#), 1);
                let answer = tokio::select! {
                    answer = call.fake.ask(&call.output, "elicitation/create", &question) => answer,
                    () = call.cancelled.cancelled() => return Err(RpcError::new(-32000, "gone")),
                };
                with_task(call, params, |task| {
                    task.answer(answer)?;
                    task.settle();
                    Ok(())
                })?;
            }
            // Only the client can end this task.
            TaskStep::Working if is_stuck => {
                let is_cancelled =
                    |task: &Task| task.id == id && task.step() == TaskStep::Cancelled;
                tokio::select! {
                    () = call.fake.wait_until(|state| state.tasks.iter().any(is_cancelled)) => {}
                    () = call.cancelled.cancelled() => return Err(RpcError::new(-32000, "gone")),
                }
            }
            TaskStep::Working => with_task(call, params, |task| {
                task.advance();
                Ok(())
            })?,
        }
    }
    let result = with_task(call, params, |task| task.result())?;
    Ok(result.replacen('{', &format!(r#"{{"_meta":{meta},"#), 1))
}

/// Returns the extension, as both sides declare it.
fn extension() -> Value {
    json!({ (era::key("tasks")): {} })
}
