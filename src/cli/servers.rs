//! `metamcp servers`: all declared servers.

use serde_json::{Value, json};

use super::{
    Failed, output,
    service_target::OutputArgs,
    status_report,
    terminal::escape,
    text_table::{TableCell, TextTable},
};

/// List the servers and how each is connected
///
/// The JSON output also has each server's capabilities, version and instructions.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Also measure the memory of each server's processes
    #[arg(long)]
    memory: bool,
    #[command(flatten)]
    reader: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let params = if args.memory { json!({ "memory": true }) } else { json!({}) };
    let servers = args.reader.target.ask("servers/list", &params)?;
    args.reader.print(&servers, |servers| {
        let mut table = TextTable::headed([
            "SERVER",
            "STATE",
            "TRANSPORT",
            "PROTOCOL",
            "SHARING",
            "IS",
            "REQUESTS",
            "PID",
        ]);
        for server in servers.as_array().into_iter().flatten() {
            table.row([
                output::word(&server["name"]).into(),
                status_report::state(server),
                output::word(&server["transport"]).into(),
                protocol(server).into(),
                output::word(&server["sharing"]).into(),
                product(&server["serverInfo"]).into(),
                TableCell::from(status_report::number(&server["requests"])).number(),
                TableCell::from(status_report::number(&server["pid"])).number(),
            ]);
        }
        output::table_or(&table, "No server is declared.\n");
        Ok(())
    })
}

/// Returns the protocol version of a connected server; the last one of another is ignored.
fn protocol(server: &Value) -> String {
    match (server["protocolVersion"].as_str(), server["era"].as_str()) {
        (Some(version), Some(_)) => escape(version),
        (_, None) | (None, _) => "-".to_owned(),
    }
}

/// Returns the name and version that a server reports.
fn product(info: &Value) -> String {
    let [name, version] =
        ["name", "version"].map(|member| info[member].as_str().unwrap_or_default());
    match name.is_empty() {
        true => "-".to_owned(),
        false => escape(format!("{name} {version}").trim_end()),
    }
}
