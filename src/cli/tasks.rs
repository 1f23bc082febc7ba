//! `metamcp tasks`: all background calls.

use serde_json::json;

use super::{
    Failed, output,
    service_target::OutputArgs,
    text_table::{CellColour, TableCell, TextTable},
};

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
