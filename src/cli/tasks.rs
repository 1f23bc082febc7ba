//! `metamcp tasks` and `metamcp task`: all background calls, and one of them.

use serde_json::{Value, json, value::RawValue};

use super::{
    FAILED, Failed,
    call::result,
    output,
    service_target::{self, OutputArgs, ServiceTarget},
    text_table::{CellColour, TableCell, TextTable},
};
use crate::{config::defaults, control::socket_client::ControlClientError};

/// List the tasks: calls that continue without their callers
///
/// `metamcp call --async` starts one.
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
                table.row([
                    format!("{server}/{}", output::word(&task["taskId"])).into(),
                    output::word(&task["tool"]).into(),
                    status(&output::word(&task["status"])),
                    output::word(&task["createdAt"]).into(),
                    output::first_line(&task["statusMessage"]).into(),
                ]);
            }
        }
        output::table_or(&table, "There is no task.\n");
    })
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
/// Exits with 1 when the result is an error of the tool.
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
        let result = match args.wait {
            true => {
                params["wait"] = true.into();
                service_target::run(wait(target, &params))?
            }
            false => target.call_service("tasks/result", &params)?,
        };
        args.common.print(&result, |value| result::print(&result::parts(value)))?;
        let has_failed = service_target::value(&result)?["isError"] == true;
        return if has_failed { Err(Failed::printed(FAILED)) } else { Ok(()) };
    }
    let method = if args.cancel { "tasks/cancel" } else { "tasks/get" };
    let task = target.call_service(method, &params)?;
    args.common.print(&task, show)
}

/// Asks for the result until the task is finished; the service answers after a limited time.
async fn wait(target: &ServiceTarget, params: &Value) -> Result<Box<RawValue>, Failed> {
    let mut service = target.connect_running().await?;
    let params = params.to_string();
    loop {
        match service.ask("tasks/result", &params, defaults::CONTROL_CALL_TIMEOUT).await {
            Err(ControlClientError::Refused(refusal))
                if refusal.data.code == "TASK_NOT_FINISHED" => {}
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
