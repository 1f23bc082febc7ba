//! `metamcp doctor`: a diagnosis of the installation, with a fix for each problem.

use std::{path::PathBuf, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{
    CANCELLED, FAILED, Failed, USAGE, output, quantity,
    service_target::{self, OutputArgs},
    terminal,
};
use crate::{
    doctor::{DoctorRequest, ReportPart, examine},
    error_report::chain,
    server_name::ServerName,
};

mod repair;
mod report_text;

/// Find out what is wrong, and what to do about it
///
/// Examines the configuration, the sockets, permissions, the unit, the clock and the memory. It
/// also connects to each server separately, as the service does, and shows the duration of each
/// phase and the first lines of the server's output. Each finding is printed as soon as it is known.
/// It asks the running service for its user, PATH and files, and says where they differ from those
/// of this shell. Nothing is changed without `--fix` or a question, and no secret is printed.
/// Exits with 1 when it finds an error.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The configuration file; default: METAMCP_CONFIG, then the installed service's, this user's,
    /// or this host's
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Examine only this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Do not start or connect to any server: report the states of servers in the running service
    #[arg(long, conflicts_with = "server")]
    no_dial: bool,
    /// The time that each server may take: 500ms, 30s, 5m; a number without a unit is in seconds. All
    /// of them together take at most six times as long
    #[arg(long, value_name = "TIME", value_parser = quantity::time_limit, default_value = PROBE_TIMEOUT)]
    timeout: Duration,
    /// Create a missing group and remove a stale socket without asking
    #[arg(long, conflicts_with = "json")]
    fix: bool,
    /// Name the option of the NixOS module that fixes a problem, if there is one
    #[arg(long)]
    nix: bool,
    #[command(flatten)]
    common: OutputArgs,
}

/// [`defaults::DOCTOR_PROBE_TIMEOUT`] as text.
const PROBE_TIMEOUT: &str = "10s";

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let server = args.server.as_deref().map(ServerName::new).transpose();
    let request = DoctorRequest {
        file: args.config.clone(),
        socket: args.common.target.socket.clone(),
        default_socket: args.common.target.path(),
        server: server.map_err(|error| Failed::new(USAGE, chain(&error)))?,
        probes_servers: !args.no_dial,
        probe_timeout: args.timeout,
    };
    let mut show = |part: ReportPart<'_>| {
        if !args.common.json {
            output::print(&report_text::part(part, args.nix, terminal::is_coloured()));
        }
    };
    let (report, was_stopped, n_failed) = service_target::run(async {
        let closing = CancellationToken::new();
        let mut examining = std::pin::pin!(examine(&request, &closing, &mut show));
        let mut was_stopped = false;
        let examined = tokio::select! {
            examined = &mut examining => examined,
            // The examination ends the processes that it has started.
            _ = tokio::signal::ctrl_c() => {
                was_stopped = true;
                closing.cancel();
                examining.await
            }
        };
        let report = examined.map_err(|error| Failed::usage(chain(&error), error.hint()))?;
        let n_failed = match args.common.json || was_stopped {
            true => 0,
            false => {
                output::print(&report_text::verdict(&report));
                repair::apply(&report, args.fix).await
            }
        };
        Ok((report, was_stopped, n_failed))
    })?;
    if args.common.json {
        let text = serde_json::to_string(&report).map_err(|error| {
            Failed::new(FAILED, format!("cannot write the report as JSON: {error}"))
        })?;
        output::json(&text);
    }
    match (was_stopped, report.has_errors() || n_failed > 0) {
        (true, _) => Err(Failed::printed(CANCELLED)),
        (false, true) => Err(Failed::printed(FAILED)),
        (false, false) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::defaults;

    #[test]
    fn the_default_time_of_a_probe_is_the_documented_one() {
        assert_eq!(quantity::time_limit(PROBE_TIMEOUT), Ok(defaults::DOCTOR_PROBE_TIMEOUT));
    }
}
