//! `metamcp logs`: the log of the service.
//!
//! The running service has the last lines in memory. Older ones, and those of a service that does not
//! answer, are in the journal, if it runs in a unit, or in the file of a service started on demand.

use serde_json::{Value, json};

use super::{
    Failed, USAGE, auto_start, calls, log_file, output,
    service_ring::{self, EntrySource, RangeArgs, ServiceRing},
    service_target::ServiceTarget,
    terminal,
    text_table::CellColour,
};
use crate::{error_report::chain, server_name::ServerName, systemd::own_unit::SystemdUnit};

/// Show what the service has logged
///
/// Asks the running service, which keeps its last lines in memory. Older lines come from the journal,
/// if the service runs in a systemd unit. If no service answers, shows the log of the last one: from
/// the journal, or from the file of a service started on demand,
/// `$XDG_STATE_HOME/metamcp/metamcp.log`.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Args {
    /// Show only lines about this server
    #[arg(long, value_name = "NAME")]
    pub(super) server: Option<String>,
    /// Show the calls of the clients with this name, as `metamcp calls` does
    #[arg(long, value_name = "NAME", conflicts_with = "level")]
    client: Option<String>,
    /// Show the calls of this tool, as `metamcp calls` does
    #[arg(long, value_name = "TOOL", conflicts_with = "level")]
    tool: Option<String>,
    /// Show only lines of this level and more severe ones
    #[arg(long, value_name = "LEVEL")]
    pub(super) level: Option<LineLevel>,
    #[command(flatten)]
    pub(super) range: RangeArgs,
    #[command(flatten)]
    target: ServiceTarget,
}

/// The level of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(super) enum LineLevel {
    /// Only errors.
    Error,
    /// Also warnings.
    Warn,
    /// Also what the service does.
    Info,
    /// Also details.
    Debug,
    /// Everything.
    Trace,
}

impl LineLevel {
    pub(super) const ALL: [Self; 5] =
        [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];

    /// Returns the name in the configuration and in the log.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    /// Returns the priority in the journal. Source: syslog(3).
    fn priority(self) -> &'static str {
        match self {
            Self::Error => "err",
            Self::Warn => "warning",
            Self::Info => "info",
            Self::Debug | Self::Trace => "debug",
        }
    }

    fn colour(self) -> Option<CellColour> {
        match self {
            Self::Error => Some(CellColour::Red),
            Self::Warn => Some(CellColour::Yellow),
            Self::Info => None,
            Self::Debug | Self::Trace => Some(CellColour::Dim),
        }
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    if args.client.is_some() || args.tool.is_some() {
        return calls::run(&args.of_calls());
    }
    let server = args.server.as_deref().map(ServerName::new).transpose();
    let server = server.map_err(|error| Failed::new(USAGE, chain(&error)))?;
    let ring = ServiceRing {
        target: &args.target,
        range: &args.range,
        command: "logs",
        method: "daemon/logs",
        noun: "lines",
        name: "log",
        filter: json!({ "server": args.server, "level": args.level.map(LineLevel::name) }),
        earlier: None,
    };
    let is_coloured = terminal::is_coloured();
    let journal = |unit: &SystemdUnit| {
        Err(service_ring::become_journalctl(&args.range, unit, &matches(args)))
    };
    match ring.run(|line| output::print(&rendered(line, is_coloured)))? {
        EntrySource::Shown => Ok(()),
        EntrySource::Journal(unit, _) => journal(&unit),
        EntrySource::Dead(error) => service_ring::of_dead_service(
            &args.target,
            error,
            "log",
            &auto_start::log_file(),
            journal,
            |file| log_file::show(args, file, server.as_ref()),
        ),
    }
}

/// Returns one line of the log.
fn rendered(line: &Value, is_coloured: bool) -> String {
    let name = line["level"].as_str().unwrap_or_default();
    let level = LineLevel::ALL.into_iter().find(|level| level.name() == name);
    let mut text = format!("{:5} {}", name.to_uppercase(), output::word(&line["text"]));
    if line["fields"].is_string() {
        text.push_str(&format!("  {}", output::word(&line["fields"])));
    }
    let text = match level.and_then(LineLevel::colour).filter(|_| is_coloured) {
        Some(colour) => colour.paint(&text),
        None => text,
    };
    format!("{} {text}\n", output::word(&line["time"]))
}

impl Args {
    /// Returns the choice of calls of a client or a tool.
    fn of_calls(&self) -> calls::Args {
        calls::Args {
            server: self.server.clone(),
            tool: self.tool.clone(),
            client: self.client.clone(),
            range: self.range.clone(),
            target: self.target.clone(),
            ..calls::Args::default()
        }
    }
}

/// Returns the matches for `journalctl`.
fn matches(args: &Args) -> Vec<String> {
    let level = args.level.map(|level| format!("--priority={}", level.priority()));
    // The journal stores the field under its name in capitals.
    let server = args.server.as_ref().map(|server| format!("MCP_SERVER={server}"));
    level.into_iter().chain(server).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cli_asks_journalctl_for_the_level_and_the_server() {
        let level = Some(LineLevel::Warn);
        let args = Args { level, server: Some("git".to_owned()), ..Args::default() };
        assert_eq!(matches(&args), ["--priority=warning", "MCP_SERVER=git"]);
    }

    #[test]
    fn a_log_line_shows_its_level_and_cannot_steer_the_terminal() {
        let line = json!({
            "time": "2026-11-26T18:50:00.123Z", "level": "warn", "server": "git",
            "text": "server `git`\u{1b}[2J failed", "fields": "n=7",
        });
        insta::assert_snapshot!(rendered(&line, false), @r"2026-11-26T18:50:00.123Z WARN  server `git`\u{1b}[2J failed  n=7");
        assert!(rendered(&line, true).contains("\u{1b}[33mWARN"));
    }
}
