//! `metamcp calls`: who called what, how long it took, and why it failed.
//!
//! The running service has the records of the last calls in memory. Older ones are in the journal,
//! or in the file of a service without one.

use serde_json::{Value, json};

use super::{
    Failed,
    call_line::{client_name, target},
    file_calls,
    journal_calls::show_calls,
    output,
    service_ring::{self, EntrySource, RangeArgs, ServiceRing},
    service_target::ServiceTarget,
    terminal,
    text_table::CellColour,
};
use crate::{
    call_record::CallLog, server_name, session::state_directory, systemd::own_unit::SystemdUnit,
};

/// Show the last calls: who called what, how long it took, and why it failed
///
/// The running service keeps the records of its last calls in memory. Older records come from the
/// journal, if the service runs in a systemd unit. A record has no arguments and no result.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Args {
    /// Show only calls to this server
    #[arg(long, value_name = "NAME")]
    pub(super) server: Option<String>,
    /// Show only calls of this tool: `TOOL`, `SERVER/TOOL` or `SERVER__TOOL`
    #[arg(long, value_name = "TOOL")]
    pub(super) tool: Option<String>,
    /// Show only calls of the clients with this name
    #[arg(long, value_name = "NAME")]
    pub(super) client: Option<String>,
    /// Show only calls that failed or were cancelled
    #[arg(long)]
    pub(super) failed: bool,
    #[command(flatten)]
    pub(super) range: RangeArgs,
    /// Print one JSON object on each line
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) target: ServiceTarget,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let ring = ServiceRing {
        target: &args.target,
        range: &args.range,
        command: "calls",
        method: "daemon/calls",
        noun: "calls",
        name: "record",
        filter: json!({
            "server": args.server,
            "tool": args.tool,
            "client": args.client,
            "failed": args.failed.then_some(true),
        }),
        earlier: Some(&|file, page| file_calls::show_calls(args, file, Some(page))),
    };
    let journal = |unit: &SystemdUnit, page: Option<&Value>| {
        show_calls(&args.range, unit, &matches(args), page, |call| args.show(call))
    };
    match ring.run(|call| args.show(call))? {
        EntrySource::Shown => Ok(()),
        EntrySource::Journal(unit, page) => journal(&unit, page.as_ref()),
        EntrySource::Dead(error) => service_ring::of_dead_service(
            &args.target,
            error,
            "record",
            &state_directory().map(|state| CallLog::file_in(&state)).unwrap_or_default(),
            |unit| journal(unit, None),
            |file| {
                let shown = file.display();
                output::eprint(&format!(
                    "note: no service answers: these are the last records in `{shown}`\n"
                ));
                file_calls::show_calls(args, file, None)
            },
        ),
    }
}

impl Args {
    /// Prints a record.
    pub(super) fn show(&self, call: &Value) {
        output::print(&match self.json {
            true => format!("{call}\n"),
            false => rendered(call, terminal::is_coloured()),
        });
    }
}

/// Returns the matches for `journalctl`: alternatives with a `+` between them. Several values of one
/// field are alternatives, too.
///
/// A gap is always wanted: it may have hidden a call that is.
fn matches(args: &Args) -> Vec<String> {
    let (server, tool) = (args.server.as_deref(), args.tool.as_deref());
    // `SERVER__TOOL` may also be the whole name of a tool.
    let split = tool.and_then(server_name::split_tool);
    let split = split.filter(|(of, _)| server.is_none_or(|server| server == *of));
    let targets = [Some((server, tool)), split.map(|(server, tool)| (Some(server), Some(tool)))];
    let mut matches = Vec::new();
    for (server, tool) in targets.into_iter().flatten() {
        matches.extend(["MCP_RECORD=call", "MCP_RECORD=sum"].map(str::to_owned));
        let client = args.client.as_deref();
        let fields = [("MCP_SERVER", server), ("MCP_TOOL", tool), ("MCP_CLIENT", client)];
        matches.extend(
            fields.into_iter().filter_map(|(field, value)| Some(format!("{field}={}", value?))),
        );
        if args.failed {
            let outcomes = ["error", "tool_error", "cancelled"];
            matches.extend(outcomes.map(|outcome| format!("MCP_OUTCOME={outcome}")));
        }
        matches.push("+".to_owned());
    }
    matches.push("MCP_RECORD=gap".to_owned());
    matches
}

/// Returns the line of a record, a sum or a gap.
fn rendered(call: &Value, is_coloured: bool) -> String {
    let time = output::word(&call["time"]);
    if let Some(n_dropped) = call["dropped"].as_u64() {
        return format!("{time} {n_dropped} records were dropped\n");
    }
    let outcome = output::word(&call["outcome"]);
    let colour = match outcome.as_str() {
        "ok" => None,
        "cancelled" => Some(CellColour::Dim),
        "tool_error" => Some(CellColour::Yellow),
        _ => Some(CellColour::Red),
    };
    let shown = format!("{outcome:10}");
    let shown = match colour.filter(|_| is_coloured) {
        Some(colour) => colour.paint(&shown),
        None => shown,
    };
    let ms = call["durationMs"].as_f64().unwrap_or_default();
    let is_of_one =
        call["calls"].is_null() || ["server", "tool"].iter().any(|it| call[it].is_string());
    let mut line = format!(
        "{time} {shown} {:>10} {} for {}",
        format!("{ms:.1} ms"),
        if is_of_one { target(call) } else { "several tools".to_owned() },
        client_name(call),
    );
    if let Some(n_calls) = call["calls"].as_u64() {
        line.push_str(&format!(", {n_calls} calls together"));
    }
    let cause = call["cause"].as_str().map(terminal::escape);
    let error = match &call["error"] {
        Value::Null => None,
        Value::String(code) => Some(terminal::escape(code)),
        code => Some(code.to_string()),
    };
    match (cause, error) {
        (Some(cause), Some(error)) => line.push_str(&format!(": {cause} ({error})")),
        (None, Some(error)) => line.push_str(&format!(": error {error} of the server")),
        (_, None) => {}
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(more: &Value) -> Value {
        let mut call = json!({
            "time": "2026-11-26T23:02:16.848Z", "client": "claude-code", "clientVersion": "2.1.4",
            "server": "git", "tool": "log", "outcome": "ok", "durationMs": 12.345,
        });
        if let (Some(call), Some(more)) = (call.as_object_mut(), more.as_object()) {
            call.extend(more.clone());
        }
        call
    }

    #[test]
    fn a_record_is_one_line_with_its_cause() {
        let lines: String = [
            json!({}),
            json!({ "outcome": "tool_error", "client": "", "clientVersion": "" }),
            json!({ "outcome": "error", "error": -32602 }),
            json!({
                "outcome": "error", "error": "SERVER_TIMEOUT", "durationMs": 60_000.0,
                "cause": "request to server `git` failed: no answer\u{1b}[2J",
            }),
            json!({ "calls": 812, "durationMs": 3000.0 }),
            json!({ "calls": 9, "method": "tools/call", "server": null, "tool": null }),
            json!({ "dropped": 3 }),
        ]
        .iter()
        .map(|more| rendered(&call(more), false))
        .collect();
        insta::assert_snapshot!(lines, @r"
        2026-11-26T23:02:16.848Z ok            12.3 ms git__log for claude-code 2.1.4
        2026-11-26T23:02:16.848Z tool_error    12.3 ms git__log for a client without a name
        2026-11-26T23:02:16.848Z error         12.3 ms git__log for claude-code 2.1.4: error -32602 of the server
        2026-11-26T23:02:16.848Z error      60000.0 ms git__log for claude-code 2.1.4: request to server `git` failed: no answer\u{1b}[2J (SERVER_TIMEOUT)
        2026-11-26T23:02:16.848Z ok          3000.0 ms git__log for claude-code 2.1.4, 812 calls together
        2026-11-26T23:02:16.848Z ok            12.3 ms several tools for claude-code 2.1.4, 9 calls together
        2026-11-26T23:02:16.848Z 3 records were dropped
        ");
    }

    #[test]
    fn journalctl_finds_the_records_by_their_fields() {
        let of_tool = |server: Option<&str>, tool: &str| {
            let (server, tool) = (server.map(str::to_owned), Some(tool.to_owned()));
            matches(&Args { server, tool, ..Args::default() }).join(" ")
        };
        let failed = Args { failed: true, client: Some("agent".to_owned()), ..Args::default() };
        insta::assert_snapshot!(matches(&failed).join(" "), @"MCP_RECORD=call MCP_RECORD=sum MCP_CLIENT=agent MCP_OUTCOME=error MCP_OUTCOME=tool_error MCP_OUTCOME=cancelled + MCP_RECORD=gap");
        insta::assert_snapshot!(of_tool(Some("git"), "log"), @"MCP_RECORD=call MCP_RECORD=sum MCP_SERVER=git MCP_TOOL=log + MCP_RECORD=gap");
        insta::assert_snapshot!(of_tool(None, "git__log"), @"MCP_RECORD=call MCP_RECORD=sum MCP_TOOL=git__log + MCP_RECORD=call MCP_RECORD=sum MCP_SERVER=git MCP_TOOL=log + MCP_RECORD=gap");
        let of_another_server = of_tool(Some("jira"), "git__log");
        insta::assert_snapshot!(of_another_server, @"MCP_RECORD=call MCP_RECORD=sum MCP_SERVER=jira MCP_TOOL=git__log + MCP_RECORD=gap");
    }
}
