//! The state of the service in readable form. Pure.

use serde_json::Value;

use super::{
    call_line::named_client,
    output, quantity,
    terminal::{cut, wrap},
    text_table::{CellColour, TableCell, TextTable},
};
use crate::time_format;

/// Returns the output of `metamcp status`, limited to `size`: columns and lines.
pub(super) fn render(status: &Value, size: Option<(usize, usize)>, is_coloured: bool) -> String {
    let columns = size.map(|(columns, _)| columns);
    let mut text = header(status, columns, is_coloured);
    text.push('\n');
    text.push_str(&servers(status).render(columns, is_coloured));
    let clients = clients(status);
    if !clients.is_empty() {
        text.push('\n');
        text.push_str(&clients.render(columns, is_coloured));
        let shown = output::items(&status["clientSessions"]).iter();
        let n_shown: u64 = shown.filter_map(|client| client["sessions"].as_u64()).sum();
        let n_left = status["sessions"].as_u64().unwrap_or_default().saturating_sub(n_shown);
        if n_left > 0 {
            text.push_str(&format!("… and {n_left} more\n"));
        }
    }
    let mut below = Vec::new();
    below.extend(memory(&status["memory"]));
    below.extend(messages(&status["memoryBudget"]));
    for (name, title, line) in [
        ("quarantined", "Items hidden from clients", quarantined as fn(&Value) -> String),
        ("collisions", "Items with the same name in the merged view", collision),
    ] {
        let found = output::items(&status[name]);
        if !found.is_empty() {
            below.push(format!("{title}:"));
            below.extend(found.iter().map(|found| format!("  {}", line(found))));
        }
    }
    let costs: Vec<String> =
        output::items(&status["tokenCosts"]).iter().filter_map(token_cost).collect();
    if !costs.is_empty() {
        below.push("Tokens of tool lists and searches, at 4.2 bytes each:".to_owned());
        below.extend(costs);
    }
    if !below.is_empty() {
        text.push('\n');
    }
    for line in below {
        push_wrapped(&mut text, &line, columns);
    }
    match size {
        Some((columns, lines)) if text.lines().count() > lines => shorten(&text, lines, columns),
        _ => text,
    }
}

/// Returns what the view of a client costs it, and whether the other one would cost less.
fn token_cost(cost: &Value) -> Option<String> {
    let number = |name: &str| cost[name].as_u64().unwrap_or_default();
    let client = named_client(&cost["client"], &cost["version"]);
    let (view, cheaper) = (cost["view"].as_str()?, cost["cheaper"].as_str()?);
    let (here, there) = match view {
        "direct" => (number("directTokens"), number("metaTokens")),
        _ => (number("metaTokens"), number("directTokens")),
    };
    let other = if view == "direct" { "meta" } else { "direct" };
    let verdict = match cheaper == view {
        true => format!("`/{other}` would cost more: {}", grouped(there)),
        false => format!("`/{other}` would cost less: {}", grouped(there)),
    };
    Some(format!(
        "  {client}: the list has {}; {} so far read {}; {verdict}",
        grouped(number("listTokens")),
        quantity::count(usize::try_from(number("calls")).ok()?, "call"),
        grouped(here),
    ))
}

/// Returns a number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|it| std::str::from_utf8(it).ok()).collect();
    groups.join(",")
}

/// Appends a line, wrapped to the width of the terminal with the indentation of its beginning.
fn push_wrapped(text: &mut String, line: &str, columns: Option<usize>) {
    let Some(columns) = columns else { return text.push_str(&format!("{line}\n")) };
    let indent = line.len() - line.trim_start().len();
    let indent = if columns > 4 * indent { indent } else { 0 };
    for piece in wrap(line.trim_start(), columns - indent) {
        text.push_str(&format!("{}{piece}\n", " ".repeat(indent)));
    }
}

/// Returns the first lines, and the number of lines omitted.
fn shorten(text: &str, lines: usize, columns: usize) -> String {
    let n_kept = lines.saturating_sub(1);
    let n_left = text.lines().count() - n_kept;
    let mut kept: String = text.split_inclusive('\n').take(n_kept).collect();
    kept.push_str(&format!("{}\n", cut(&format!("… {n_left} more lines"), columns)));
    kept
}

fn header(status: &Value, columns: Option<usize>, is_coloured: bool) -> String {
    let name = format!("metamcp {}", output::word(&status["version"]));
    let n_sessions = status["sessions"].as_u64().and_then(|n| usize::try_from(n).ok());
    let line = format!(
        "{name}, pid {}, up {}, {}, {}",
        status["pid"],
        time_format::in_two_units(status["uptime"].as_u64().unwrap_or_default()),
        quantity::count(n_sessions.unwrap_or_default(), "client session"),
        pool(&status["pool"]),
    );
    let mut text = String::new();
    push_wrapped(&mut text, &line, columns);
    match text.strip_prefix(&name).filter(|_| is_coloured) {
        Some(rest) => CellColour::Bold.paint(&name) + rest,
        None => text,
    }
}

/// Returns the number of connections in the pool, its size and the number of waiters.
fn pool(pool: &Value) -> String {
    let taken = format!("{} of {} connections", pool["connections"], pool["size"]);
    match pool["waiting"].as_u64() {
        None | Some(0) => taken,
        Some(n_waiting) => format!("{taken}, {n_waiting} waiting"),
    }
}

/// The headings of the servers, each with its form for a narrow terminal.
const SERVER_HEADINGS: [(&str, &str); 8] = [
    ("SERVER", "SERVER"),
    ("STATE", "STATE"),
    ("ERA", "ERA"),
    ("LAST SEEN", "SEEN"),
    ("IN FLIGHT", "CALLS"),
    ("RESTARTS", "RESTARTS"),
    ("MEMORY", "MEMORY"),
    ("LAST ERROR", "ERROR"),
];

fn servers(status: &Value) -> TextTable {
    let mut table = TextTable::whole(SERVER_HEADINGS).with_notes();
    for server in output::items(&status["servers"]) {
        let in_flight = server["inFlight"].as_u64().unwrap_or_default();
        let restarts = server["restartCount"].as_u64().unwrap_or_default();
        let coloured = |n: u64, colour| {
            let cell = TableCell::from(n.to_string()).number();
            if n > 0 { cell.colour(colour) } else { cell }
        };
        table.row([
            output::word(&server["name"]).into(),
            state(server),
            match server["era"].as_str() {
                Some(era) => output::word(&era.into()).into(),
                None => TableCell::from("-").colour(CellColour::Dim),
            },
            health(server),
            coloured(in_flight, CellColour::Green),
            coloured(restarts, CellColour::Yellow),
            memory_of(server),
            last_error(server),
        ]);
    }
    table
}

/// Returns the memory of a server's processes.
pub(super) fn memory_of(server: &Value) -> TableCell {
    match server["memoryBytes"].as_u64() {
        Some(bytes) => TableCell::from(quantity::size(bytes)).number(),
        None => TableCell::from("-").number().colour(CellColour::Dim),
    }
}

/// Returns the clients that are present, by name.
fn clients(status: &Value) -> TextTable {
    let headings = [
        ("CLIENT", "CLIENT"),
        ("SESSIONS", "SESSIONS"),
        ("ERA", "ERA"),
        ("OVER", "OVER"),
        ("LAST CALL", "CALL"),
    ];
    let mut table = TextTable::whole(headings);
    for client in output::items(&status["clientSessions"]) {
        let last_call = match client["lastCallAgoMs"].as_u64() {
            Some(ago_ms) => ago(ago_ms),
            None => TableCell::from("none yet").short("-").colour(CellColour::Dim),
        };
        table.row([
            client_name(client).into(),
            number(&client["sessions"]),
            output::word(&client["era"]).into(),
            output::word(&client["transport"]).into(),
            last_call,
        ]);
    }
    table
}

/// Returns the name and version of a client as it gives them.
fn client_name(client: &Value) -> String {
    let [name, version] = ["name", "version"].map(|member| output::word(&client[member]));
    match name.as_str() {
        "" => "(gives no name)".to_owned(),
        _ => format!("{name} {version}").trim_end().to_owned(),
    }
}

fn ago(ms: u64) -> TableCell {
    let time = time_format::in_two_units(ms);
    TableCell::from(format!("{time} ago")).short(time)
}

/// Returns the state of a server, coloured.
pub(super) fn state(server: &Value) -> TableCell {
    if server["status"] == "needs login" {
        return TableCell::from("needs login").short("login").colour(CellColour::Yellow);
    }
    let state = output::word(&server["state"]);
    let n_connections = server["connections"].as_u64().unwrap_or_default();
    if state == "idle" && n_connections == 0 && server["generation"] == 0 {
        return TableCell::from("never started").short("unused").colour(CellColour::Dim);
    }
    let colour = match state.as_str() {
        "active" => CellColour::Green,
        "idle" if n_connections > 0 => CellColour::Green,
        "connecting" => CellColour::Yellow,
        "failed" => CellColour::Red,
        _ => CellColour::Dim,
    };
    TableCell::from(state).colour(colour)
}

/// Returns the time since the last sign of life or ping, or the number of pings missed since.
fn health(server: &Value) -> TableCell {
    let missed = server["consecutiveFailures"].as_u64().unwrap_or_default();
    match (missed, server["lastHealthCheckAgoMs"].as_u64()) {
        (_, None) => TableCell::from("-").colour(CellColour::Dim),
        (0, Some(ago_ms)) => ago(ago_ms),
        (1, Some(_)) => {
            TableCell::from("1 ping missed").short("1 missed").colour(CellColour::Yellow)
        }
        (missed, Some(_)) => TableCell::from(format!("{missed} pings missed"))
            .short(format!("{missed} missed"))
            .colour(CellColour::Red),
    }
}

/// Returns the cause of the last error of the server, and then the state of its breaker.
fn last_error(server: &Value) -> TableCell {
    let cause = server["cause"].as_str().or(server["error"].as_str()).unwrap_or_default();
    let cause = output::word(&cause.into());
    let breaker = breaker(server);
    let is_past = server["state"] != "failed" && server["breaker"]["state"] != "open";
    let parts: Vec<String> =
        [Some(cause).filter(|cause| !cause.is_empty()), breaker].into_iter().flatten().collect();
    let colour = if is_past { CellColour::Dim } else { CellColour::Red };
    TableCell::from(parts.join("; ")).colour(colour)
}

/// Returns the state of a breaker that refuses requests.
pub(super) fn breaker(server: &Value) -> Option<String> {
    let breaker = &server["breaker"];
    match (breaker["state"].as_str(), breaker["nextProbeMs"].as_u64()) {
        (Some("open"), Some(0)) => Some("breaker open, the next request is tried".to_owned()),
        (Some("open"), Some(wait_ms)) => {
            Some(format!("breaker open, next attempt in {} s", wait_ms.div_ceil(1000)))
        }
        (Some("probe"), _) => Some("breaker open, an attempt runs".to_owned()),
        _ => None,
    }
}

/// Returns the memory of the service and the servers, and the memory saved by sharing.
fn memory(memory: &Value) -> Option<String> {
    let size = |member: &str| memory[member].as_u64().map(quantity::size);
    let mut line = format!("Memory: service {}", size("ownBytes")?);
    if let Some(servers) = size("serversBytes") {
        line.push_str(&format!(", servers {servers}"));
    }
    if let Some(saved) = size("savedBytes").filter(|_| memory["savedBytes"] != 0) {
        line.push_str(&format!("; sharing the servers saves {saved}"));
    }
    Some(line)
}

/// Returns the memory of messages, and the number of messages refused for lack of it.
fn messages(budget: &Value) -> Option<String> {
    let size = |member: &str| budget[member].as_u64().map(quantity::size);
    let (used, max, peak) = (size("usedBytes")?, size("maxBytes")?, size("peakBytes")?);
    let mut line = format!("Messages: {used} of {max}, peak {peak}");
    if let Some(refused) = budget["refused"].as_u64().filter(|refused| *refused > 0) {
        line.push_str(&format!("; {refused} refused: raise service.memory_max"));
    }
    Some(line)
}

/// Describes an item that is hidden from clients, and the reason.
fn quarantined(found: &Value) -> String {
    let [server, list, item, reason] =
        ["server", "list", "item", "reason"].map(|name| output::word(&found[name]));
    format!("{server}: {list} `{item}`: {reason}")
}

/// Describes an item of the merged view that two servers have.
pub(super) fn collision(found: &Value) -> String {
    let [list, item, server, left_out] =
        ["list", "item", "server", "leftOut"].map(|name| output::word(&found[name]));
    match server == left_out {
        true => format!("{list} `{item}`: `{server}` has two, and one is hidden"),
        false => format!("{list} `{item}`: from `{server}` shown, from `{left_out}` hidden"),
    }
}

/// Returns a number, or `-` if there is none.
pub(super) fn number(value: &Value) -> TableCell {
    let text = value.as_u64().map_or_else(|| "-".to_owned(), |number| number.to_string());
    TableCell::from(text).number()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::terminal::width;

    fn status() -> Value {
        json!({
            "version": "1.2.3", "pid": 77, "uptime": 273_600_000, "clients": 9, "sessions": 4,
            "clientSessions": [
                { "name": "claude-code", "version": "2.1.329", "era": "legacy", "transport": "http",
                  "sessions": 3, "lastCallAgoMs": 3_000, "servers": ["git"] },
                { "name": "a\u{1b}[2J", "version": "", "era": "modern", "transport": "stdio", "sessions": 1,
                  "servers": [] },
            ],
            "pool": { "connections": 2, "size": 20, "waiting": 1 },
            "servers": [
                { "name": "git", "state": "active", "era": "legacy", "inFlight": 2, "restartCount": 0,
                  "connections": 1, "memoryBytes": 12_900_000, "breaker": { "state": "normal" },
                  "lastHealthCheckAgoMs": 12_345, "consecutiveFailures": 0 },
                { "name": "lab", "state": "active", "era": "modern", "inFlight": 1, "restartCount": 0,
                  "connections": 1, "breaker": { "state": "normal" },
                  "lastHealthCheckAgoMs": 9_000, "consecutiveFailures": 2 },
                { "name": "notes", "state": "idle", "inFlight": 0, "restartCount": 0, "connections": 0,
                  "generation": 0, "status": "configured", "breaker": { "state": "normal" } },
                { "name": "maps", "state": "failed", "inFlight": 0, "restartCount": 3, "connections": 0,
                  "error": "the process ended\u{1b}[2J with exit status 1: no such key, and more",
                  "breaker": { "state": "open", "nextProbeMs": 11_001 } },
            ],
            "memory": { "ownBytes": 20 << 20, "serversBytes": 12_900_000, "savedBytes": 38_700_000 },
            "memoryBudget": { "usedBytes": 0, "peakBytes": 60 << 20, "maxBytes": 64 << 20, "refused": 3 },
            "quarantined": [],
            "collisions": [
                { "list": "tools", "item": "a__b", "server": "a", "leftOut": "a__" },
            ],
        })
    }

    #[test]
    fn the_cheaper_view_is_named_for_each_client_also_for_one_without_a_name() {
        let cost = |client: &str, version: &str, cheaper: &str| {
            let cost = json!({
                "client": client, "version": version, "view": "direct", "cheaper": cheaper,
                "listTokens": 12_345, "calls": 1, "directTokens": 24_690, "metaTokens": 1_500,
            });
            token_cost(&cost).unwrap()
        };
        assert_eq!(
            cost("claude-code", "2.1", "meta"),
            "  claude-code 2.1: the list has 12,345; 1 call so far read 24,690; `/meta` would cost less: 1,500"
        );
        let unnamed = cost("", "", "direct");
        assert!(unnamed.starts_with("  a client without a name: the list"), "{unnamed}");
        assert!(unnamed.ends_with("`/meta` would cost more: 1,500"), "{unnamed}");
    }

    #[test]
    fn the_status_report_shows_servers_memory_and_collisions() {
        insta::assert_snapshot!(render(&status(), None, false), @r"
        metamcp 1.2.3, pid 77, up 3 d 4 h, 4 client sessions, 2 of 20 connections, 1 waiting

        SERVER  STATE          ERA     LAST SEEN       IN FLIGHT  RESTARTS    MEMORY  LAST ERROR
        git     active         legacy  12 s ago                2         0  12.3 MiB
        lab     active         modern  2 pings missed          1         0         -
        notes   never started  -       -                       0         0         -
        maps    failed         -       -                       0         3         -  the process ended\u{1b}[2J with exit status 1: no such key, and more; breaker open, next attempt in 12 s

        CLIENT               SESSIONS  ERA     OVER   LAST CALL
        claude-code 2.1.329         3  legacy  http   3 s ago
        a\u{1b}[2J                  1  modern  stdio  none yet

        Memory: service 20.0 MiB, servers 12.3 MiB; sharing the servers saves 36.9 MiB
        Messages: 0 B of 64.0 MiB, peak 60.0 MiB; 3 refused: raise service.memory_max
        Items with the same name in the merged view:
          tools `a__b`: from `a` shown, from `a__` hidden
        ");
    }

    #[test]
    fn the_status_report_of_a_narrow_terminal_keeps_every_column_and_the_whole_cause() {
        let shown = [60, 80, 120].map(|columns| render(&status(), Some((columns, 100)), false));
        insta::assert_snapshot!(shown.join("\n----\n"), @r"
        metamcp 1.2.3, pid 77, up 3 d 4 h, 4 client sessions, 2 of
        20 connections, 1 waiting

        SERVER  STATE   ERA     SEEN      CALLS  RESTARTS    MEMORY
        git     active  legacy  12 s          2         0  12.3 MiB
        lab     active  modern  2 missed      1         0         -
        notes   unused  -       -             0         0         -
        maps    failed  -       -             0         3         -
          the process ended\u{1b}[2J with exit status 1: no such
          key, and more; breaker open, next attempt in 12 s

        CLIENT               SESSIONS  ERA     OVER   LAST CALL
        claude-code 2.1.329         3  legacy  http   3 s ago
        a\u{1b}[2J                  1  modern  stdio  none yet

        Memory: service 20.0 MiB, servers 12.3 MiB; sharing the
        servers saves 36.9 MiB
        Messages: 0 B of 64.0 MiB, peak 60.0 MiB; 3 refused: raise
        service.memory_max
        Items with the same name in the merged view:
          tools `a__b`: from `a` shown, from `a__` hidden

        ----
        metamcp 1.2.3, pid 77, up 3 d 4 h, 4 client sessions, 2 of 20 connections, 1
        waiting

        SERVER  STATE          ERA     LAST SEEN       IN FLIGHT  RESTARTS    MEMORY
        git     active         legacy  12 s ago                2         0  12.3 MiB
        lab     active         modern  2 pings missed          1         0         -
        notes   never started  -       -                       0         0         -
        maps    failed         -       -                       0         3         -
          the process ended\u{1b}[2J with exit status 1: no such key, and more; breaker
          open, next attempt in 12 s

        CLIENT               SESSIONS  ERA     OVER   LAST CALL
        claude-code 2.1.329         3  legacy  http   3 s ago
        a\u{1b}[2J                  1  modern  stdio  none yet

        Memory: service 20.0 MiB, servers 12.3 MiB; sharing the servers saves 36.9 MiB
        Messages: 0 B of 64.0 MiB, peak 60.0 MiB; 3 refused: raise service.memory_max
        Items with the same name in the merged view:
          tools `a__b`: from `a` shown, from `a__` hidden

        ----
        metamcp 1.2.3, pid 77, up 3 d 4 h, 4 client sessions, 2 of 20 connections, 1 waiting

        SERVER  STATE          ERA     LAST SEEN       IN FLIGHT  RESTARTS    MEMORY
        git     active         legacy  12 s ago                2         0  12.3 MiB
        lab     active         modern  2 pings missed          1         0         -
        notes   never started  -       -                       0         0         -
        maps    failed         -       -                       0         3         -
          the process ended\u{1b}[2J with exit status 1: no such key, and more; breaker open, next attempt in 12 s

        CLIENT               SESSIONS  ERA     OVER   LAST CALL
        claude-code 2.1.329         3  legacy  http   3 s ago
        a\u{1b}[2J                  1  modern  stdio  none yet

        Memory: service 20.0 MiB, servers 12.3 MiB; sharing the servers saves 36.9 MiB
        Messages: 0 B of 64.0 MiB, peak 60.0 MiB; 3 refused: raise service.memory_max
        Items with the same name in the merged view:
          tools `a__b`: from `a` shown, from `a__` hidden
        ");
    }

    #[test]
    fn the_status_report_fits_into_the_terminal() {
        for columns in 1..120 {
            for line in render(&status(), Some((columns, 100)), false).lines() {
                assert!(width(line) <= columns, "{columns}: {line}");
            }
        }
        for lines in 1..20 {
            let n_lines = render(&status(), Some((80, lines)), true).lines().count();
            assert!(n_lines <= lines, "{n_lines} of {lines}");
        }
    }
}
