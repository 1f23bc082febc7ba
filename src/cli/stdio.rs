//! `metamcp stdio`: MCP on standard input and output.

use std::{io, os::unix::net::UnixStream, path::PathBuf};

use serde_json::json;
use tokio::runtime::Builder;

use super::{FAILED, Failed, UNAVAILABLE, configuration, runtime, serve, service_target};
use crate::{
    bridge::{self, BridgeTarget},
    config::{self, ConfigSources, LogLevel, defaults},
    confine::privilege_drop,
    control::socket_client::ControlClientError,
    daemon::{Daemon, Listeners},
    error_report::chain,
    ingress::stdio_pipe::ClientPipe,
    memory_budget::MeteredLines,
    peer_process::ConnectedClient,
    telemetry::log,
    view::ViewChoice,
};

/// Serve a client that only speaks MCP over standard input and output
///
/// Forwards its messages to the running service, so that no server is started twice. The client
/// does not notice a restart of the service: messages wait for up to 40 s until it is back.
/// Standard output carries MCP only.
///
/// Exits with 69 when no service answers and none can be started.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The client's view: all servers (direct), a few tools for all (meta), or as at `/` (root)
    #[arg(long, value_parser = ["direct", "meta", "root"], conflicts_with = "server")]
    view: Option<String>,
    /// Show only this server, unchanged
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    #[command(flatten)]
    target: service_target::ServiceTarget,
    /// Run the servers in this process, for this client alone, without a service
    #[arg(long)]
    standalone: bool,
    /// The configuration file for --standalone; default: METAMCP_CONFIG, then this user's, then
    /// this host's
    #[arg(long, value_name = "FILE", requires = "standalone")]
    config: Option<PathBuf>,
}

impl Args {
    fn choice(&self) -> ViewChoice<'_> {
        match (&self.server, self.view.as_deref()) {
            (Some(server), _) => ViewChoice::Server(server),
            (None, view) => view.and_then(ViewChoice::named).unwrap_or(ViewChoice::Root),
        }
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    if args.standalone {
        let file = args.config.clone().or_else(config::usual_file);
        let file = file.ok_or_else(configuration::no_file)?;
        return standalone(configuration::without_flags(file), args.choice());
    }
    let mut socket = args.target.path();
    if UnixStream::connect(&socket).is_err()
        && let Some(launched) = service_target::run(args.target.launched())?
    {
        socket = launched;
    }
    let params = match args.choice() {
        ViewChoice::Server(server) => json!({ "server": server }),
        view => json!({ "view": view.name() }),
    };
    let _log = log::start(LogLevel::Info);
    let runtime = runtime(Builder::new_current_thread())?;
    let target = BridgeTarget { socket, params: params.to_string() };
    let bridged = runtime.block_on(bridge::run(&target, tokio::io::stdin(), tokio::io::stdout()));
    // The blocking read of an idle client would keep the runtime waiting.
    runtime.shutdown_background();
    bridged.map_err(failed)
}

/// Serves the client on standard input and output with its own servers, declared by `sources`;
/// SIGHUP reloads them.
pub(super) fn standalone(sources: ConfigSources, choice: ViewChoice<'_>) -> Result<(), Failed> {
    serve::forbid_dumps()?;
    // Capabilities are inherited by threads, so the process must have one thread.
    privilege_drop::drop_all()
        .map_err(|error| Failed::new(FAILED, format!("cannot drop capabilities: {error}")))?;
    let config = configuration::load(&sources)?.config;
    let log = log::start(config.service.log_level);
    let runtime = runtime(Builder::new_multi_thread())?;
    let served = runtime.block_on(async move {
        let daemon = Daemon::build(config, sources, None, None, Listeners::none(), log);
        let daemon =
            daemon.map_err(|error| Failed::new(FAILED, chain(&error)).hint(error.hint()))?;
        let pipe = ClientPipe {
            reader: tokio::io::stdin(),
            lines: MeteredLines::new(defaults::BODY_BYTES_MAX),
            writer: tokio::io::stdout(),
            holder: ConnectedClient::of_own_user().holder,
            reports_end: false,
        };
        let served = Box::pin(daemon.run_for_client(choice, pipe)).await;
        served.map_err(|error| {
            let error = error.to_rpc();
            let failed = Failed::new(FAILED, error.message);
            match error.suggestion {
                Some(suggestion) => failed.hint(suggestion),
                None => failed,
            }
        })
    });
    runtime.shutdown_background();
    served
}

fn failed(error: ControlClientError) -> Failed {
    match error {
        ControlClientError::Unreachable(_, ref source)
            if source.kind() != io::ErrorKind::PermissionDenied =>
        {
            Failed::new(UNAVAILABLE, chain(&error)).hint(
                "Start it with `systemctl start metamcp` or `metamcp serve`, name its socket with --socket, or run without a service with --standalone.",
            )
        }
        error => service_target::failed(error),
    }
}
