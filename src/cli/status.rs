//! `metamcp status`: what the running service does.

use std::path::PathBuf;

use serde_json::Value;

use super::{Failed, output, service};

/// Show the running service and its servers
///
/// Exits with 69 when no service answers.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print the whole status as JSON
    #[arg(long)]
    json: bool,
    /// The control socket; by default that of the system, or else that of this user
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let status =
        service::ask(args.socket.as_deref(), "daemon/status", None)?.map_err(service::failed)?;
    if args.json {
        output::print(&format!("{status:#}\n"));
    } else {
        show(&status);
    }
    Ok(())
}

fn show(status: &Value) {
    let text = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    output::print(&format!(
        "metamcp {}, pid {}, up {} s, {} clients, {}\n\n",
        text(&status["version"]),
        status["pid"],
        status["uptime"].as_u64().unwrap_or_default() / 1000,
        status["clients"],
        pool(&status["pool"]),
    ));
    let titles = [
        ("name", "NAME"),
        ("state", "STATE"),
        ("transport", "TRANSPORT"),
        ("protocolVersion", "PROTOCOL VERSION"),
        ("pid", "PID"),
        ("generation", "GENERATION"),
        ("inFlight", "IN FLIGHT"),
        ("requests", "REQUESTS"),
        ("error", "LAST ERROR"),
    ];
    let columns = titles.map(|(column, _)| column);
    let mut rows = vec![titles.map(|(_, title)| title.to_owned())];
    for server in status["servers"].as_array().into_iter().flatten() {
        rows.push(columns.map(|column| match column {
            "protocolVersion" => match (&server[column], &server["era"]) {
                // What it spoke the last time says nothing about now.
                (Value::Null, _) | (_, Value::Null) => "-".to_owned(),
                (version, era) => format!("{} ({})", text(version), text(era)),
            },
            "state" => format!("{}{}", text(&server[column]), breaker(&server["breaker"])),
            column => text(&server[column]),
        }));
    }
    output::table(&rows);
    let findings = [
        ("quarantined", "Items that clients are not shown", quarantined as fn(&Value) -> String),
        ("collisions", "Items that are called the same in the merged view", collision),
    ];
    for (name, title, line) in findings {
        let found = status[name].as_array().map(Vec::as_slice).unwrap_or_default();
        if !found.is_empty() {
            output::print(&format!("\n{title}:\n"));
            found.iter().for_each(|found| output::print(&format!("  {}\n", line(found))));
        }
    }
}

/// Says which item clients are not shown, and why.
fn quarantined(found: &Value) -> String {
    let [server, list, item, reason] =
        ["server", "list", "item", "reason"].map(|name| output::word(&found[name]));
    format!("{server}: {list} `{item}`: {reason}")
}

/// Says which item of the merged view is there once although two servers have it.
pub(super) fn collision(found: &Value) -> String {
    let [list, item, server, left_out] =
        ["list", "item", "server", "leftOut"].map(|name| output::word(&found[name]));
    match server == left_out {
        true => format!("{list} `{item}`: one of two of `{server}` is left out"),
        false => {
            format!("{list} `{item}`: that of `{server}` is shown, that of `{left_out}` left out")
        }
    }
}

/// Returns how full the pool is.
fn pool(pool: &Value) -> String {
    let taken = format!("{} of {} connections", pool["connections"], pool["size"]);
    match pool["waiting"].as_u64() {
        None | Some(0) => taken,
        Some(n_waiting) => format!("{taken}, {n_waiting} more waited for"),
    }
}

/// Returns what is to be said of a server's breaker: nothing while requests pass.
fn breaker(breaker: &Value) -> String {
    match (breaker["state"].as_str(), breaker["nextProbeMs"].as_u64()) {
        (Some("open"), Some(wait_ms)) => {
            format!(" (breaker open, probe in {} s)", wait_ms.div_ceil(1000))
        }
        (Some("probe"), _) => " (breaker probes)".to_owned(),
        _ => String::new(),
    }
}
