//! `metamcp stdio`: MCP on standard input and output.

use std::path::PathBuf;

use serde_json::json;

use super::{FAILED, Failed, UNAVAILABLE, service};
use crate::{
    bridge::{self, AttachError, Target},
    config::LogLevel,
    report::chain,
    telemetry::log,
};

/// Serve a client that only speaks MCP over standard input and output
///
/// Passes its messages on to the running service, so that nothing is started a second time. A restart
/// of the service is not noticed: messages wait until it is back, for up to 40 s. Standard output
/// carries MCP and nothing else.
///
/// Exits with 69 when no service answers, and none can be started.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What the client sees: all servers (direct), their tools behind a few (meta), or what is at `/`
    #[arg(long, value_parser = ["direct", "meta", "root"], conflicts_with = "server")]
    view: Option<String>,
    /// Only this server, as it is
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// The control socket; by default that of the system, or else that of this user
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let _log = log::start(LogLevel::Info);
    let params = match (&args.server, &args.view) {
        (Some(server), _) => json!({ "server": server }),
        (None, view) => json!({ "view": view.as_deref().unwrap_or("root") }),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failed::new(FAILED, format!("start the runtime: {error}")))?;
    let target =
        Target { socket: service::socket(args.socket.as_deref()), params: params.to_string() };
    let bridged = runtime.block_on(bridge::run(&target, tokio::io::stdin(), tokio::io::stdout()));
    // A client that is there and says nothing would keep a blocking read, and so the runtime, waiting.
    runtime.shutdown_background();
    bridged.map_err(failed)
}

fn failed(error: AttachError) -> Failed {
    let text = chain(&error);
    match error {
        AttachError::Unreachable { .. } => Failed::new(UNAVAILABLE, text).hint(
            "Start it with `systemctl start metamcp` or `metamcp serve`, name its socket with --socket, or serve without it with --standalone.",
        ),
        AttachError::Refused { suggestion, .. } => {
            let failed = Failed::new(FAILED, text);
            match suggestion {
                Some(suggestion) => failed.hint(suggestion),
                None => failed,
            }
        }
    }
}
