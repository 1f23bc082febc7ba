//! `metamcp status`: the state of the running service.

use serde_json::{Value, json};

use super::{
    Failed, output, server_report, service_target::OutputArgs, status_report, terminal,
    watched_report::WatchedReport,
};
use crate::config::defaults;

/// Show the running service and its servers
///
/// The memory of a server includes all its processes. The saved memory is that of each shared server,
/// times the number of client sessions that have called it or read from it, but one. Exits with 69
/// when no service answers.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Show this server in full, with its last events
    #[arg(value_name = "SERVER")]
    server: Option<String>,
    /// Refresh every 2 s, until ctrl-c
    #[arg(long, conflicts_with_all = ["json", "server"])]
    watch: bool,
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    if args.watch {
        let render = |status: &Value| {
            status_report::render(status, terminal::size(), terminal::is_coloured())
        };
        return WatchedReport {
            target: &args.common.target,
            method: "daemon/status",
            params: json!({ "memory": true }),
            interval: defaults::WATCH_INTERVAL,
            render,
        }
        .run();
    }
    if let Some(server) = &args.server {
        return server_report::run(&args.common, server);
    }
    let status = args.common.target.call_service("daemon/status", &json!({ "memory": true }))?;
    args.common.print(&status, |status| {
        let columns = terminal::size().map(|(columns, _)| (columns, usize::MAX));
        output::print(&status_report::render(status, columns, terminal::is_coloured()));
    })
}
