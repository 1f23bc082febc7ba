//! `metamcp top`: the calls that run and those of the last minute, drawn again each second.

use serde_json::{Value, json};

use super::{
    Failed,
    call_line::{client_name, target},
    output,
    service_target::OutputArgs,
    terminal,
    text_table::{CellColour, TableCell, TextTable},
    watched_report::WatchedReport,
};
use crate::config::defaults;

/// Show the calls that run and those of the last minute, by tool and client
///
/// Draws them again each second until ctrl-c. Into a pipe, prints them once.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    if args.common.json || !terminal::is_stdout_terminal() {
        let top = args.common.target.call_service("daemon/top", &json!({}))?;
        return args.common.print(&top, |top| output::print(&render(top, None, false)));
    }
    WatchedReport {
        target: &args.common.target,
        method: "daemon/top",
        params: json!({}),
        interval: defaults::TOP_INTERVAL,
        render: |top: &Value| render(top, terminal::size(), terminal::is_coloured()),
    }
    .run()
}

/// Returns the report for a terminal of `size`: columns and lines.
fn render(top: &Value, size: Option<(usize, usize)>, is_coloured: bool) -> String {
    if top["enabled"] == false {
        return "The service observes no calls: `telemetry.enabled` is false.\n".to_owned();
    }
    let columns = size.map(|(columns, _)| columns);
    let (running, recent) = (output::items(&top["running"]), output::items(&top["lastMinute"]));
    let mut text = match running.len() {
        0 => "No call runs.\n".to_owned(),
        _ => {
            let mut table = TextTable::of_numbers(["RUNNING", "FOR", "CLIENT"].map(|it| (it, it)));
            for call in running {
                table.row([
                    target(call).into(),
                    duration(&call["ageMs"]).number(),
                    client_name(call).into(),
                ]);
            }
            table.render(columns, is_coloured)
        }
    };
    text.push('\n');
    if recent.is_empty() {
        text.push_str("No call ended in the last minute.\n");
    } else {
        let mut table = TextTable::of_numbers([
            ("LAST MINUTE", "MINUTE"),
            ("CALLS", "CALLS"),
            ("FAILED", "FAIL"),
            ("AVERAGE", "AVG"),
            ("LONGEST", "MAX"),
            ("CLIENT", "CLIENT"),
        ]);
        for totals in recent {
            let failed = TableCell::from(totals["failed"].to_string()).number();
            table.row([
                target(totals).into(),
                TableCell::from(totals["calls"].to_string()).number(),
                if totals["failed"] == 0 { failed } else { failed.colour(CellColour::Red) },
                duration(&totals["averageMs"]).number(),
                duration(&totals["longestMs"]).number(),
                client_name(totals).into(),
            ]);
        }
        text.push_str(&table.render(columns, is_coloured));
    }
    let Some((_, lines)) = size else { return text };
    text.lines().take(lines).map(|line| format!("{line}\n")).collect()
}

fn duration(ms: &Value) -> TableCell {
    let ms = ms.as_f64().unwrap_or_default();
    TableCell::from(match ms {
        ms if ms < 1000.0 => format!("{ms:.1} ms"),
        ms => format!("{:.1} s", ms / 1000.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_names_running_calls_and_those_of_the_last_minute() {
        let top = json!({
            "running": [
                { "client": "claude-code", "clientVersion": "2.1.4", "server": "git", "tool": "log",
                  "ageMs": 61_000.0 },
            ],
            "lastMinute": [
                { "client": "claude-code", "clientVersion": "2.1.4", "server": "git", "tool": "log",
                  "calls": 812, "failed": 0, "averageMs": 3.1, "longestMs": 40.0 },
                { "client": "", "clientVersion": "", "tool": "mcp_discover",
                  "calls": 2, "failed": 1, "averageMs": 1.0, "longestMs": 1500.0 },
            ],
        });
        insta::assert_snapshot!(render(&top, None, false), @"
        RUNNING      FOR  CLIENT
        git__log  61.0 s  claude-code 2.1.4

        LAST MINUTE   CALLS  FAILED  AVERAGE  LONGEST  CLIENT
        git__log        812       0   3.1 ms  40.0 ms  claude-code 2.1.4
        mcp_discover      2       1   1.0 ms    1.5 s  a client without a name
        ");
        let off = json!({ "enabled": false });
        assert!(render(&off, None, false).contains("`telemetry.enabled` is false"));
        let empty = json!({ "running": [], "lastMinute": [] });
        insta::assert_snapshot!(render(&empty, None, false), @"
        No call runs.

        No call ended in the last minute.
        ");
    }

    #[test]
    fn a_long_name_of_a_tool_hides_no_number_at_any_width() {
        let long = "W".repeat(250);
        let call = |tool: &str, calls: u64| {
            json!({ "client": "claude-code", "clientVersion": "2.1.4", "server": "git",
                "tool": tool, "calls": calls, "failed": 3, "averageMs": 3.1, "longestMs": 40.0,
                "ageMs": 61_000.0 })
        };
        let top = json!({
            "running": [call(&long, 1), call("log", 1)],
            "lastMinute": [call(&long, 812), call("log", 913)],
        });
        for columns in [40, 80, 120] {
            let shown = render(&top, Some((columns, 24)), false);
            assert!(shown.lines().all(|line| terminal::width(line) <= columns), "{shown}");
            for (part, n_times) in
                [("812", 1), ("913", 1), ("3.1 ms", 2), ("40.0 ms", 2), ("61.0 s", 2), ("  cl", 4)]
            {
                assert_eq!(shown.matches(part).count(), n_times, "{part} at {columns}: {shown}");
            }
        }
        insta::assert_snapshot!(render(&top, Some((40, 24)), false), @"
        RUNNING             FOR  CLIENT
        git__WWWWWWWWW…  61.0 s  claude-code 2.…
        git__log         61.0 s  claude-code 2.…

        MINUTE      CALLS  FAIL     AVG      MAX
        git__WWWW…    812     3  3.1 ms  40.0 ms
          claude-code 2.1.4
        git__log      913     3  3.1 ms  40.0 ms
          claude-code 2.1.4
        ");
    }
}
