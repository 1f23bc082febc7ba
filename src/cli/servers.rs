//! `metamcp servers`: all declared servers.

use serde_json::{Value, json};

use super::{
    Failed, output, server_report, service_target::OutputArgs, status_report, terminal::escape,
    text_table::TextTable,
};

/// List the servers and how each is connected
///
/// The JSON output also has each server's capabilities, version and instructions.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Show this server in full, with its last events
    #[arg(value_name = "SERVER")]
    server: Option<String>,
    /// Also measure the memory of each server's processes
    #[arg(long)]
    memory: bool,
    #[command(flatten)]
    common: OutputArgs,
}

/// The headings, each with its form for a narrow terminal.
const HEADINGS: [(&str, &str); 8] = [
    ("SERVER", "SERVER"),
    ("STATE", "STATE"),
    ("TRANSPORT", "OVER"),
    ("PROTOCOL", "PROTOCOL"),
    ("SHARING", "SHARING"),
    ("SOFTWARE", "SOFTWARE"),
    ("REQUESTS", "REQS"),
    ("PID", "PID"),
];

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    if let Some(server) = &args.server {
        return server_report::run(&args.common, server);
    }
    let params = if args.memory { json!({ "memory": true }) } else { json!({}) };
    let servers = args.common.target.ask("servers/list", &params)?;
    args.common.print(&servers, |servers| {
        let memory = args.memory.then_some(("MEMORY", "MEMORY"));
        let mut table = TextTable::whole(HEADINGS.into_iter().chain(memory));
        for server in output::items(servers) {
            let cells = [
                output::word(&server["name"]).into(),
                status_report::state(server),
                output::word(&server["transport"]).into(),
                protocol(server).into(),
                output::word(&server["sharing"]).into(),
                product(&server["serverInfo"]).into(),
                status_report::number(&server["requests"]),
                status_report::number(&server["pid"]),
            ];
            let memory = args.memory.then(|| status_report::memory_of(server));
            table.row(cells.into_iter().chain(memory));
        }
        output::table_or(&table, "No server is declared.\n");
    })
}

/// Returns the protocol version of a connected server; the last one of another is ignored.
fn protocol(server: &Value) -> String {
    match server["protocolVersion"].as_str().filter(|_| server["era"].is_string()) {
        Some(version) => escape(version),
        None => "-".to_owned(),
    }
}

/// Returns the name and version that a server reports.
fn product(info: &Value) -> String {
    let text = |member: &str| info[member].as_str().unwrap_or_default();
    match text("name") {
        "" => "-".to_owned(),
        name => escape(format!("{name} {}", text("version")).trim_end()),
    }
}
