//! The state of one server in readable form.

use serde_json::{Value, json, value::RawValue};

use super::{
    Failed, output, quantity,
    service_target::OutputArgs,
    status_report,
    terminal::{self, wrap},
    text_table::CellColour,
};
use crate::{config::defaults, time_format};

/// Prints the state of the server called `name`, with its last events.
///
/// # Errors
///
/// [`Failed`] when no service answers, or when it has no such server.
pub(super) fn run(args: &OutputArgs, name: &str) -> Result<(), Failed> {
    let params = json!({ "server": name, "memory": true });
    let found = args.target.call_service("servers/list", &params)?;
    // An invalid answer is reported when it is read as a value.
    let only = serde_json::from_str::<[Box<RawValue>; 1]>(found.get()).map(|[only]| only);
    args.print(&only.unwrap_or(found), |server| {
        let columns = terminal::size().map(|(columns, _)| columns);
        output::print(&render(server, columns, terminal::is_coloured()));
    })
}

/// The width of the names of facts, in columns.
const LABEL_WIDTH: usize = 10;

/// Returns the state of a server, within the number of `columns`.
fn render(server: &Value, columns: Option<usize>, is_coloured: bool) -> String {
    let name = output::word(&server["name"]);
    let mut text = match is_coloured {
        true => format!("{}\n", CellColour::Bold.paint(&name)),
        false => format!("{name}\n"),
    };
    for (label, fact) in facts(server) {
        push_fact(&mut text, label, &fact, columns);
    }
    let events = output::items(&server["events"]);
    if events.is_empty() {
        push_fact(&mut text, "events", "none since the service started", columns);
        return text;
    }
    text.push_str("\nEvents:\n");
    let n_left_out = events.len().saturating_sub(defaults::SERVER_EVENTS_SHOWN);
    for event in &events[n_left_out..] {
        let line = format!("{}  {}", time(&event["time"]), described(event));
        let width = columns.unwrap_or(usize::MAX).saturating_sub(4);
        let mut indent = "  ";
        for piece in wrap(&line, width) {
            text.push_str(&format!("{indent}{piece}\n"));
            indent = "    ";
        }
    }
    text
}

fn push_fact(text: &mut String, label: &str, fact: &str, columns: Option<usize>) {
    let width = columns.unwrap_or(usize::MAX).saturating_sub(LABEL_WIDTH + 4);
    let mut label = label;
    for line in wrap(fact, width) {
        text.push_str(&format!("  {label:LABEL_WIDTH$}  {line}\n"));
        label = "";
    }
}

/// Returns the facts about a server, those that explain a failure first.
fn facts(server: &Value) -> Vec<(&'static str, String)> {
    let word = |member: &str| output::word(&server[member]);
    let number = |member: &str| server[member].as_u64().unwrap_or_default();
    let count = |member: &str, noun: &str| {
        quantity::count(usize::try_from(number(member)).unwrap_or(usize::MAX), noun)
    };
    let state = status_report::state(server).text().to_owned();
    let breaker = status_report::breaker(server);
    let mut facts = vec![(
        "state",
        [Some(state), breaker].into_iter().flatten().collect::<Vec<_>>().join("; "),
    )];
    if server["error"].is_string() {
        facts.push(("cause", word(if server["cause"].is_string() { "cause" } else { "error" })));
        facts.push(("error", format!("{}: {}", time(&server["errorTime"]), word("error"))));
    }
    if let Some(last) = output::items(&server["stderr"]).last() {
        facts.push(("stderr", format!("… {}", output::word(last))));
    }
    let mut connection = format!("{}, {}", word("transport"), word("sharing"));
    match (server["era"].as_str(), server["protocolVersion"].as_str()) {
        (Some(_), Some(_)) => {
            connection.push_str(&format!(", {} ({})", word("protocolVersion"), word("era")));
        }
        (None, Some(_)) => connection.push_str(&format!(", last {}", word("protocolVersion"))),
        _ => {}
    }
    if let Some(pid) = server["pid"].as_u64() {
        connection.push_str(&format!(", pid {pid}"));
    }
    facts.push(("transport", connection));
    let software = ["name", "version"].map(|member| output::word(&server["serverInfo"][member]));
    if server["serverInfo"].is_object() {
        facts.push(("software", software.join(" ")));
    }
    facts.push((
        "use",
        format!(
            "{}, {}, {} in flight, {} since the connection began",
            count("clientSessions", "client session"),
            count("connections", "connection"),
            count("inFlight", "request"),
            count("requests", "request"),
        ),
    ));
    facts.push(("health", health(server)));
    facts.push(("restarts", number("restartCount").to_string()));
    if let Some(bytes) = server["memoryBytes"].as_u64() {
        facts.push(("memory", quantity::size(bytes)));
    }
    facts
}

fn health(server: &Value) -> String {
    let Some(ago_ms) = server["lastHealthCheckAgoMs"].as_u64() else {
        return "not connected".to_owned();
    };
    let missed = server["consecutiveFailures"].as_u64().unwrap_or_default();
    let seen = format!("last message or ping {} ago", time_format::in_two_units(ago_ms));
    match missed {
        0 => seen,
        _ => format!("{seen}, {missed} unanswered since"),
    }
}

/// Returns a time of the service without its fraction of a second.
fn time(value: &Value) -> String {
    let text = output::word(value);
    match text.split_once('.') {
        Some((seconds, _)) => format!("{} UTC", seconds.replace('T', " ")),
        None => text,
    }
}

/// Describes an event.
fn described(event: &Value) -> String {
    let details = output::word(&event["details"]);
    let text = match event["event"].as_str().unwrap_or_default() {
        "connected" => "connected",
        "connect-failed" => "could not be connected",
        "ended" => "ended",
        "closed-idle" => "closed by metamcp: it was idle",
        "breaker-opened" => "breaker opened",
        "breaker-closed" => "breaker closed: the server works",
        "list-changed" => "list changed",
        "reloaded" => "reloaded: its configuration has changed",
        _ => return format!("{}: {details}", output::word(&event["event"])),
    };
    if details.is_empty() { text.to_owned() } else { format!("{text}: {details}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Value {
        let time = |seconds: u32| format!("2026-11-26T18:50:{seconds:02}.123Z");
        let mut events: Vec<Value> = (0..12)
            .map(|seconds| json!({ "time": time(seconds), "event": "list-changed", "details": "tools/list" }))
            .collect();
        events.push(json!({ "time": time(12), "event": "ended", "details": "its process exited with code 1 (last output: `GITHUB_TOKEN is not set`)" }));
        events.push(json!({ "time": time(13), "event": "breaker-opened", "details": "its process exited\u{1b}[2J" }));
        json!({
            "name": "git", "state": "failed", "status": "error", "transport": "stdio",
            "sharing": "shared", "protocolVersion": "2025-06-18", "clientSessions": 2,
            "connections": 0, "inFlight": 0, "requests": 0, "restartCount": 3, "generation": 4,
            "cause": "its process exited with code 1 (last output: `GITHUB_TOKEN is not set`)",
            "error": "the server's process exited with code 1 (last output: `GITHUB_TOKEN is not set`)",
            "errorTime": time(12), "stderr": ["a", "GITHUB_TOKEN is not set"],
            "serverInfo": { "name": "git-mcp", "version": "1.0" },
            "breaker": { "state": "open", "nextProbeMs": 11_001 },
            "events": events,
        })
    }

    #[test]
    fn the_report_of_a_server_shows_the_cause_first_and_the_last_ten_events() {
        let shown = [60, 80, 120].map(|columns| render(&server(), Some(columns), false));
        for (text, columns) in shown.iter().zip([60, 80, 120]) {
            assert!(text.lines().all(|line| terminal::width(line) <= columns), "{text}");
        }
        insta::assert_snapshot!(shown.join("----\n"), @r"
        git
          state       failed; breaker open, next attempt in 12 s
          cause       its process exited with code 1 (last output:
                      `GITHUB_TOKEN is not set`)
          error       2026-11-26 18:50:12 UTC: the server's process
                      exited with code 1 (last output: `GITHUB_TOKEN
                      is not set`)
          stderr      … GITHUB_TOKEN is not set
          transport   stdio, shared, last 2025-06-18
          software    git-mcp 1.0
          use         2 client sessions, 0 connections, 0 requests
                      in flight, 0 requests since the connection
                      began
          health      not connected
          restarts    3

        Events:
          2026-11-26 18:50:04 UTC list changed: tools/list
          2026-11-26 18:50:05 UTC list changed: tools/list
          2026-11-26 18:50:06 UTC list changed: tools/list
          2026-11-26 18:50:07 UTC list changed: tools/list
          2026-11-26 18:50:08 UTC list changed: tools/list
          2026-11-26 18:50:09 UTC list changed: tools/list
          2026-11-26 18:50:10 UTC list changed: tools/list
          2026-11-26 18:50:11 UTC list changed: tools/list
          2026-11-26 18:50:12 UTC ended: its process exited with
            code 1 (last output: `GITHUB_TOKEN is not set`)
          2026-11-26 18:50:13 UTC breaker opened: its process
            exited\u{1b}[2J
        ----
        git
          state       failed; breaker open, next attempt in 12 s
          cause       its process exited with code 1 (last output: `GITHUB_TOKEN is not
                      set`)
          error       2026-11-26 18:50:12 UTC: the server's process exited with code 1
                      (last output: `GITHUB_TOKEN is not set`)
          stderr      … GITHUB_TOKEN is not set
          transport   stdio, shared, last 2025-06-18
          software    git-mcp 1.0
          use         2 client sessions, 0 connections, 0 requests in flight, 0 requests
                      since the connection began
          health      not connected
          restarts    3

        Events:
          2026-11-26 18:50:04 UTC list changed: tools/list
          2026-11-26 18:50:05 UTC list changed: tools/list
          2026-11-26 18:50:06 UTC list changed: tools/list
          2026-11-26 18:50:07 UTC list changed: tools/list
          2026-11-26 18:50:08 UTC list changed: tools/list
          2026-11-26 18:50:09 UTC list changed: tools/list
          2026-11-26 18:50:10 UTC list changed: tools/list
          2026-11-26 18:50:11 UTC list changed: tools/list
          2026-11-26 18:50:12 UTC ended: its process exited with code 1 (last output:
            `GITHUB_TOKEN is not set`)
          2026-11-26 18:50:13 UTC breaker opened: its process exited\u{1b}[2J
        ----
        git
          state       failed; breaker open, next attempt in 12 s
          cause       its process exited with code 1 (last output: `GITHUB_TOKEN is not set`)
          error       2026-11-26 18:50:12 UTC: the server's process exited with code 1 (last output: `GITHUB_TOKEN is not set`)
          stderr      … GITHUB_TOKEN is not set
          transport   stdio, shared, last 2025-06-18
          software    git-mcp 1.0
          use         2 client sessions, 0 connections, 0 requests in flight, 0 requests since the connection began
          health      not connected
          restarts    3

        Events:
          2026-11-26 18:50:04 UTC list changed: tools/list
          2026-11-26 18:50:05 UTC list changed: tools/list
          2026-11-26 18:50:06 UTC list changed: tools/list
          2026-11-26 18:50:07 UTC list changed: tools/list
          2026-11-26 18:50:08 UTC list changed: tools/list
          2026-11-26 18:50:09 UTC list changed: tools/list
          2026-11-26 18:50:10 UTC list changed: tools/list
          2026-11-26 18:50:11 UTC list changed: tools/list
          2026-11-26 18:50:12 UTC ended: its process exited with code 1 (last output: `GITHUB_TOKEN is not set`)
          2026-11-26 18:50:13 UTC breaker opened: its process exited\u{1b}[2J
        ");
    }

    #[test]
    fn the_report_of_a_server_that_was_never_started_is_short() {
        let server = json!({
            "name": "git", "state": "idle", "status": "configured", "transport": "http",
            "sharing": "shared", "connections": 0, "generation": 0,
        });
        insta::assert_snapshot!(render(&server, None, false), @r"
        git
          state       never started
          transport   http, shared
          use         0 client sessions, 0 connections, 0 requests in flight, 0 requests since the connection began
          health      not connected
          restarts    0
          events      none since the service started
        ");
    }
}
