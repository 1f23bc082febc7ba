//! `metamcp tasks` and `metamcp task`: all background calls and scripts, and one of them.

use serde::Deserialize as _;
use serde_json::{Value, json, value::RawValue};

use super::{
    FAILED, Failed,
    call::result,
    output, run,
    service_target::{self, OutputArgs},
    text_table::{CellColour, TableCell, TextTable},
};
use crate::{
    config::defaults,
    control::socket_client::{ControlClientError, ServiceError, ServiceErrorData},
};

/// List the tasks: calls and scripts that continue without their callers
///
/// `metamcp call --async` and `metamcp run --async` start one.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// List only the tasks of this server
    server: Option<String>,
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let params = json!({ "server": args.server });
    let listed = args.common.target.call_service("tasks/list", &params)?;
    args.common.print(&listed, |listed| {
        let mut table = TextTable::headed(["TASK", "TOOL", "STATUS", "CREATED", "MESSAGE"]);
        for of_server in output::items(listed) {
            let server = output::word(&of_server["server"]);
            for task in output::items(&of_server["tasks"]) {
                let id = output::word(&task["taskId"]);
                let is_script = task["script"] == true;
                table.row([
                    if is_script { id.into() } else { format!("{server}/{id}").into() },
                    if is_script {
                        script_name(task).into()
                    } else {
                        output::word(&task["tool"]).into()
                    },
                    status(&output::word(&task["status"])),
                    output::word(&task["createdAt"]).into(),
                    output::first_line(&task["statusMessage"]).into(),
                ]);
            }
        }
        output::table_or(&table, "There is no task.\n");
    })
}

/// Returns the name of a script, which `object` has if its operator gave one.
fn script_name(object: &Value) -> String {
    if object["name"].is_string() { output::word(&object["name"]) } else { "<script>".to_owned() }
}

/// Returns the status of a task, in the colour for success, failure or attention.
pub(super) fn status(status: &str) -> TableCell {
    let cell = TableCell::from(status);
    match status {
        "completed" => cell.colour(CellColour::Green),
        "failed" | "unknown_outcome" => cell.colour(CellColour::Red),
        "input_required" | "unreachable" => cell.colour(CellColour::Yellow),
        "cancelled" => cell.colour(CellColour::Dim),
        _ => cell,
    }
}

/// Show a task, take its result, or cancel it
///
/// Exits with 1 when the result is an error of the tool, or the script has failed.
#[derive(Debug, clap::Args)]
pub(super) struct TaskArgs {
    /// The task: `ID`, or `SERVER/ID`
    #[arg(value_name = "ID")]
    task: String,
    /// Print its result, if it is finished
    #[arg(long)]
    result: bool,
    /// Cancel it, also at the server
    #[arg(long, conflicts_with_all = ["result", "wait"])]
    cancel: bool,
    /// Wait until it is finished, and print its result
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn inspect(args: &TaskArgs) -> Result<(), Failed> {
    let mut params = match args.task.split_once('/') {
        Some((server, id)) => json!({ "server": server, "taskId": id }),
        None => json!({ "taskId": args.task }),
    };
    let target = &args.common.target;
    if args.result || args.wait {
        if args.wait {
            params["wait"] = true.into();
        }
        let result = service_target::run(result(&args.common, &params, args.wait))?;
        return print_result(&result, &args.common);
    }
    let method = if args.cancel { "tasks/cancel" } else { "tasks/get" };
    let task = target.call_service(method, &params)?;
    args.common.print(&task, show)
}

/// Prints the result of a call or a script.
fn print_result(result: &RawValue, common: &OutputArgs) -> Result<(), Failed> {
    let value = service_target::value(result)?;
    let is_of_script = value.get("content").is_none() && value.get("toolCalls").is_some();
    match common.json {
        false if is_of_script => run::print_result(result)?,
        _ => common.print(result, |value| result::print(&result::parts(value)))?,
    }
    if value["isError"] == true { Err(Failed::printed(FAILED)) } else { Ok(()) }
}

/// Asks for the result. With `is_waiting`, asks until the task is finished; the service answers
/// after a limited time.
async fn result(
    common: &OutputArgs,
    params: &Value,
    is_waiting: bool,
) -> Result<Box<RawValue>, Failed> {
    let mut service = common.target.connect_running().await?;
    let params = params.to_string();
    loop {
        match service.ask("tasks/result", &params, defaults::CONTROL_CALL_TIMEOUT).await {
            Err(ControlClientError::Refused(refusal))
                if is_waiting && refusal.data.code == "TASK_NOT_FINISHED" => {}
            Err(ControlClientError::Refused(refusal)) if refusal.data.context["script"] == true => {
                // The task has failed with the error of the script.
                let ServiceError { message, data } = *refusal;
                let name = script_name(&data.context);
                let data = ServiceErrorData::deserialize(&data.context["data"]).unwrap_or_default();
                return Err(run::failure(&name, &ServiceError { message, data }, common.json));
            }
            answer => return answer.map_err(service_target::failed),
        }
        // If the service answers without waiting, the pause limits the rate of requests.
        tokio::time::sleep(defaults::WATCH_INTERVAL).await;
    }
}

fn show(task: &Value) {
    let mut table = TextTable::default();
    for (member, title) in [
        ("taskId", "Task"),
        ("server", "Server"),
        ("tool", "Tool"),
        ("name", "Script"),
        ("status", "Status"),
        ("statusMessage", "Message"),
        ("createdAt", "Created"),
        ("lastUpdatedAt", "Updated"),
    ] {
        let text = output::word(&task[member]);
        if !text.is_empty() {
            let cell: TableCell = if member == "status" { status(&text) } else { text.into() };
            table.row([title.into(), cell]);
        }
    }
    let progress = &task["progress"];
    if let Some(done) = progress["progress"].as_f64() {
        let of = progress["total"].as_f64().map(|total| format!(" of {total}"));
        let message = output::word(&progress["message"]);
        let text = format!("{done}{}  {message}", of.unwrap_or_default());
        table.row(["Progress".into(), text.trim_end().into()]);
    }
    output::table(&table);
}
