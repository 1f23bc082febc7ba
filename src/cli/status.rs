//! `metamcp status`: what the running service does.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{FAILED, Failed, UNAVAILABLE, output};
use crate::{
    control::client::{self, ClientError},
    daemon::listen::{SYSTEM_SOCKET, default_socket},
    report::chain,
};

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
    let socket = args.socket.clone().unwrap_or_else(nearest_socket);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failed::new(FAILED, format!("start the runtime: {error}")))?;
    let status = runtime.block_on(client::ask(&socket, "daemon/status")).map_err(failed)?;
    if args.json {
        output::print(&format!("{status:#}\n"));
    } else {
        show(&status);
    }
    Ok(())
}

fn nearest_socket() -> PathBuf {
    let system = Path::new(SYSTEM_SOCKET);
    if system.exists() { system.to_owned() } else { default_socket() }
}

fn failed(error: ClientError) -> Failed {
    match error {
        ClientError::Unreachable { .. } | ClientError::Silent { .. } => {
            Failed::new(UNAVAILABLE, chain(&error))
                .hint("Start it with `systemctl start metamcp` or `metamcp serve`, or name its socket with --socket.")
        }
        ClientError::Refused(_) | ClientError::Unreadable(_) => Failed::new(FAILED, chain(&error)),
    }
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
        status["uptime_ms"].as_u64().unwrap_or_default() / 1000,
        status["clients"],
        pool(&status["pool"]),
    ));
    let columns = [
        "name",
        "state",
        "transport",
        "protocol_version",
        "pid",
        "generation",
        "in_flight",
        "requests",
        "last_error",
    ];
    let mut rows = vec![columns.map(|column| column.replace('_', " ").to_uppercase())];
    for server in status["servers"].as_array().into_iter().flatten() {
        rows.push(columns.map(|column| match column {
            "protocol_version" => match (&server[column], &server["era"]) {
                (Value::Null, _) => "-".to_owned(),
                (version, era) => format!("{} ({})", text(version), text(era)),
            },
            "state" => format!("{}{}", text(&server[column]), breaker(&server["breaker"])),
            column => text(&server[column]),
        }));
    }
    output::table(&rows);
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
    match (breaker["state"].as_str(), breaker["next_probe_ms"].as_u64()) {
        (Some("open"), Some(wait_ms)) => {
            format!(" (breaker open, probe in {} s)", wait_ms.div_ceil(1000))
        }
        (Some("probe"), _) => " (breaker probes)".to_owned(),
        _ => String::new(),
    }
}
