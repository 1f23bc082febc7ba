//! The tasks for `--tasks`: those of 2025-11-25 and extension `io.modelcontextprotocol/tasks`.
//!
//! `job` is always a task, `job_maybe` is one if the client wants it. Time has no effect: each
//! `tasks/get` shows a step of the job and advances; the last step stays. In the modern era, a step
//! carries the question and stays until it is answered. In the legacy era, `tasks/result` goes
//! through the steps and asks.

mod job;

use serde_json::{Value, json};

use crate::{
    call::Call,
    caller::Caller,
    era,
    fake::Fake,
    message::{Fault, Members, quoted},
    methods,
    tasks::job::{Plan, Step, kinded, question},
};

pub(crate) use job::Job;

/// The methods of the modern era.
pub(crate) const MODERN: [&str; 3] = ["tasks/cancel", "tasks/get", "tasks/update"];

/// The name, description and legacy `taskSupport` of the tools.
const TOOLS: [(&str, &str, &str); 2] = [
    ("job", "Is done as a task, step by step.", "required"),
    ("job_maybe", "As `job`, or at once for who has no tasks.", "optional"),
];

/// The arguments of both tools.
const ARGUMENTS: &str = r#"{"steps":{"type":"array","items":{"type":"string","enum":["working","input_required","completed"]}},"fails":{"type":"string","enum":["tool","rpc"],"description":"The last step is an error: of the tool, or of the protocol."},"at_once":{"type":"boolean","description":"Answer a modern call at once."},"lags":{"type":"boolean","description":"Show what was answered once more."},"value":{"description":"Returned in the result."}}"#;

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
    caller: &Caller,
    method: &str,
    params: &Members,
) -> Result<(), Fault> {
    let is_job =
        || method == "tools/call" && params.required::<String>("name").is_ok_and(|it| it == "job");
    let needs_tasks = fake.options.tasks && (MODERN.contains(&method) || is_job());
    if !needs_tasks || caller.has_extension(&era::key("tasks")) {
        return Ok(());
    }
    Err(Fault {
        code: -32021,
        message: "The client does not declare the extension for tasks".to_owned(),
        data: Some(json!({ "requiredCapabilities": { "extensions": extension() } }).to_string()),
    })
}

/// Refuses a legacy call as a task for a tool without task support.
pub(crate) fn check(call: &Call, name: &str, params: &Members) -> Result<(), Fault> {
    let is_task = call.caller.is_none() && params.raw("task").is_some();
    if call.fake.options.tasks && is_task && !is_tool(&call.fake, name) {
        return Err(Fault::new(-32601, format!("`{name}` cannot be called as a task")));
    }
    Ok(())
}

/// Calls one of the tools: returns a task, or the result if no task is wanted.
pub(crate) fn start(call: &Call, name: &str, params: &Members) -> Result<String, Fault> {
    let plan: Plan = params.optional("arguments")?.unwrap_or_default();
    let task: Option<Value> = params.optional("task")?;
    let has_extension =
        call.caller.as_ref().is_some_and(|caller| caller.has_extension(&era::key("tasks")));
    let fake = &call.fake;
    let added = {
        let mut state = fake.state();
        let asked_for = json!({ "tool": name, "task": task, "extension": has_extension });
        state.seen.jobs.push(asked_for);
        state.executions.add(name)
    };
    added.map_err(|error| Fault::new(-32603, format!("append to the state: {error}")))?;
    fake.changed();
    let is_task = match &call.caller {
        Some(_) => has_extension && !plan.at_once,
        None if name == "job" && task.is_none() => {
            return Err(Fault::new(-32601, "`job` can be called as a task only"));
        }
        None => task.is_some(),
    };
    let ttl = task.as_ref().and_then(|task| task["ttl"].as_u64());
    let mut job = Job::new(plan, ttl);
    if !is_task {
        return job.result();
    }
    job.id = uuid::Uuid::new_v4().to_string();
    // A new task is always `working`, whatever its first step is.
    let created = job.told(call.caller.is_some(), Step::Working);
    fake.log("job", &format!(r#","id":{}"#, quoted(&job.id)));
    fake.state().jobs.push(job);
    fake.count("tasks");
    Ok(match &call.caller {
        Some(_) => kinded(created, "task"),
        None => json!({ "task": created }).to_string(),
    })
}

/// Answers a request about tasks.
pub(crate) async fn run(call: Call, method: &str, params: &Members) {
    let is_modern = call.caller.is_some();
    let answered = match method {
        "tasks/get" => on(&call, params, |job| Ok(job.get(is_modern))),
        "tasks/cancel" => on(&call, params, |job| job.cancel(is_modern)),
        "tasks/update" if is_modern => {
            call.fake.count("updates");
            on(&call, params, |job| job.update(params))
        }
        "tasks/result" if !is_modern => result(&call, params).await,
        "tasks/list" if !is_modern => list(&call.fake, params),
        _ => Err(Fault::new(-32601, "Method not found")),
    };
    match answered {
        Ok(result) => call.result(&result).await,
        Err(fault) => call.error(&fault).await,
    }
}

/// Applies `act` to the task that a request names.
fn on<T>(
    call: &Call,
    params: &Members,
    act: impl FnOnce(&mut Job) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let id: String = params.required("taskId")?;
    let outcome = {
        let mut state = call.fake.state();
        let job = state.jobs.iter_mut().find(|job| job.id == id);
        job.ok_or_else(|| Fault::invalid("Task not found")).and_then(act)
    };
    call.fake.changed();
    outcome
}

fn list(fake: &Fake, params: &Members) -> Result<String, Fault> {
    let jobs = fake.state().jobs.iter().map(|job| job.told(false, job.step())).collect();
    methods::page(fake, params, "tasks", jobs).map(|page| page.to_string())
}

/// Goes through the steps of a job, asks its questions, and returns its result.
async fn result(call: &Call, params: &Members) -> Result<String, Fault> {
    let id: String = params.required("taskId")?;
    let meta = format!(r#"{{"{}":{{"taskId":{}}}}}"#, era::key("related-task"), quoted(&id));
    loop {
        let (step, is_stuck) = on(call, params, |job| Ok((job.step(), job.is_stuck())))?;
        match step {
            Step::Completed => break,
            Step::Cancelled => return Err(Fault::new(-32000, "The task was cancelled")),
            Step::InputRequired => {
                let question = question().replacen('{', &format!(r#"{{"_meta":{meta},"#), 1);
                let answer = tokio::select! {
                    answer = call.fake.ask(&call.wire, "elicitation/create", &question) => answer,
                    () = call.cancelled.cancelled() => return Err(Fault::new(-32000, "gone")),
                };
                on(call, params, |job| {
                    job.answer(answer)?;
                    job.settle();
                    Ok(())
                })?;
            }
            // Only the client can end this job.
            Step::Working if is_stuck => {
                let is_cancelled = |job: &Job| job.id == id && job.step() == Step::Cancelled;
                tokio::select! {
                    () = call.fake.reached(|state| state.jobs.iter().any(is_cancelled)) => {}
                    () = call.cancelled.cancelled() => return Err(Fault::new(-32000, "gone")),
                }
            }
            Step::Working => on(call, params, |job| {
                job.go_on();
                Ok(())
            })?,
        }
    }
    let result = on(call, params, |job| job.result())?;
    Ok(result.replacen('{', &format!(r#"{{"_meta":{meta},"#), 1))
}

/// Returns the extension, as both sides declare it.
fn extension() -> Value {
    json!({ (era::key("tasks")): {} })
}
