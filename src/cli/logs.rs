//! `metamcp logs`: the log of the service.
//!
//! The running service has the last lines in memory. Older ones, and those of a service that does not
//! answer, are in the journal, if it runs in a unit, or in the file of a service started on demand.

use std::{os::unix::process::CommandExt as _, path::Path, time::Duration};

use serde_json::{Value, json, value::RawValue};

use super::{
    FAILED, Failed, UNAVAILABLE, USAGE, auto_start, log_file, output,
    service_target::{self, ServiceTarget},
    terminal,
    text_table::CellColour,
};
use crate::{
    config::defaults,
    control::socket_client::{ControlClientError, ControlConnection},
    daemon::control_socket::{SYSTEM_SOCKET, default_socket},
    error_report::chain,
    server_name::ServerName,
    systemd::own_unit::SystemdUnit,
    time_format,
};

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
    /// Show only lines of this level and more severe ones
    #[arg(long, value_name = "LEVEL")]
    pub(super) level: Option<LineLevel>,
    /// Continue with new lines until ctrl-c
    #[arg(short, long)]
    pub(super) follow: bool,
    /// Show only the last N lines
    #[arg(short = 'n', long, value_name = "N")]
    pub(super) lines: Option<usize>,
    /// Show only lines since this time: 90 (seconds), "10m", "2h ago", "1w", or a time as the log
    /// shows it; for the journal also "2026-01-31 09:00" or "yesterday"
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) since: Option<String>,
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
    let server = args.server.as_deref().map(ServerName::new).transpose();
    let server = server.map_err(|error| Failed::new(USAGE, chain(&error)))?;
    let found = service_target::run(of_service(args)).map_err(|failed| match failed.code {
        UNAVAILABLE if args.follow => {
            Failed::new(UNAVAILABLE, "the log ends here: the service has stopped")
                .hint("Run `metamcp logs` to see the log after it has started again.")
        }
        _ => failed,
    })?;
    match found {
        LogSource::Shown => Ok(()),
        LogSource::Journal(unit) => Err(journal(args, &unit, server.as_ref())),
        LogSource::Dead(error) => of_dead_service(args, server.as_ref(), error),
    }
}

/// The place of the lines that are wanted.
enum LogSource {
    /// They are shown already.
    Shown,
    /// The journal has them.
    Journal(SystemdUnit),
    /// No service answers.
    Dead(ControlClientError),
}

/// Shows the lines that the running service has, if it has all that are wanted.
async fn of_service(args: &Args) -> Result<LogSource, Failed> {
    let mut service = match open(&args.target).await {
        Ok(service) => service,
        Err(error) => return dead(error),
    };
    let mut params = json!({ "server": args.server, "level": args.level.map(LineLevel::name) });
    let since_ms = args.since.as_deref().map(since_ms);
    let page = match since_ms {
        Some(None) => None,
        _ => {
            let mut first = params.clone();
            first["lines"] = json!(args.lines);
            first["since"] = json!(since_ms.flatten());
            match ask(&mut service, &first).await {
                Ok(page) => Some(page),
                Err(error) => return dead(error),
            }
        }
    };
    let is_whole = page.as_ref().is_some_and(|page| {
        let is_cut = page["isCut"] == true && (args.since.is_some() || args.lines.is_some());
        let n_kept = page["keptMax"].as_u64().unwrap_or_default();
        !is_cut && args.lines.is_none_or(|lines| lines as u64 <= n_kept)
    });
    if !is_whole {
        match unit_of_service(&mut service).await {
            Ok(None) => {}
            Ok(Some(unit)) => return Ok(LogSource::Journal(unit)),
            Err(error) => return dead(error),
        }
    }
    let Some(mut page) = page else { return Err(unknown_time(args)) };
    if !is_whole {
        output::eprint(&format!(
            "note: the service keeps its last {} lines at most, and has no journal with older ones\n",
            page["keptMax"]
        ));
    }
    loop {
        show(&page);
        if !args.follow {
            return Ok(LogSource::Shown);
        }
        params["after"] = page["next"].clone();
        params["wait"] = json!(FOLLOW_WAIT.as_millis() as u64);
        page = ask(&mut service, &params).await.map_err(service_target::failed)?;
    }
}

/// The time that one request of `--follow` waits for a line.
const FOLLOW_WAIT: Duration = Duration::from_secs(30);

async fn open(target: &ServiceTarget) -> Result<ControlConnection, ControlClientError> {
    let opened = ControlConnection::open(&target.path()).await;
    if let (Err(ControlClientError::Unreachable(..)), None) = (&opened, &target.socket)
        && let Some(socket) = auto_start::configured_socket()
    {
        return ControlConnection::open(&socket).await;
    }
    opened
}

/// Returns the source of the lines without a service; another error is the failure of the command.
fn dead(error: ControlClientError) -> Result<LogSource, Failed> {
    match error {
        ControlClientError::Unreachable(..)
        | ControlClientError::Lost(..)
        | ControlClientError::Silent { .. } => Ok(LogSource::Dead(error)),
        error => Err(service_target::failed(error)),
    }
}

async fn ask(service: &mut ControlConnection, params: &Value) -> Result<Value, ControlClientError> {
    let mut params = params.clone();
    if let Some(members) = params.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    let timeout = FOLLOW_WAIT + defaults::CONTROL_TIMEOUT;
    value(&service.ask("daemon/logs", &params.to_string(), timeout).await?)
}

async fn unit_of_service(
    service: &mut ControlConnection,
) -> Result<Option<SystemdUnit>, ControlClientError> {
    let status = service.ask("daemon/status", "{}", defaults::CONTROL_TIMEOUT).await?;
    Ok(value(&status)?["pid"].as_u64().and_then(SystemdUnit::of_process))
}

fn value(answer: &RawValue) -> Result<Value, ControlClientError> {
    serde_json::from_str(answer.get()).map_err(ControlClientError::Unreadable)
}

/// Returns the time that a `--since` names, in milliseconds since 1970: as the log shows it, or
/// relative to now. A number without a unit is in seconds.
fn since_ms(text: &str) -> Option<u64> {
    if let Some(time) = time_format::parse_rfc3339(text.trim()) {
        return Some(time);
    }
    let text = text.trim().trim_start_matches('-');
    let text = text.strip_suffix("ago").unwrap_or(text).trim();
    let (number, unit) =
        text.split_at(text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len()));
    let unit_ms = match unit.trim() {
        "ms" => 1,
        "" | "s" | "sec" | "second" | "seconds" => 1000,
        "m" | "min" | "minute" | "minutes" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        "w" | "week" | "weeks" => 7 * 86_400_000,
        _ => return None,
    };
    let ago = number.parse::<u64>().ok()?.checked_mul(unit_ms)?;
    Some(time_format::now_ms().saturating_sub(ago))
}

fn unknown_time(args: &Args) -> Failed {
    Failed::usage(
        format!("`--since {}` is not a time", args.since.as_deref().unwrap_or_default()),
        "Write a number of seconds, `10m`, `2h`, `1w`, `10 minutes ago`, or a time as the log shows it: only the journal takes other times.",
    )
}

/// Prints the lines of a page, and the number of lines lost before it.
fn show(page: &Value) {
    let n_lost = page["lost"].as_u64().unwrap_or_default();
    if n_lost > 0 {
        let noun = if n_lost == 1 { "line was" } else { "lines were" };
        output::eprint(&format!("… {n_lost} {noun} lost\n"));
    }
    let is_coloured = terminal::is_coloured();
    let text: String =
        output::items(&page["lines"]).iter().map(|line| rendered(line, is_coloured)).collect();
    output::print(&text);
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

/// Shows the log of a service that does not answer.
fn of_dead_service(
    args: &Args,
    server: Option<&ServerName>,
    error: ControlClientError,
) -> Result<(), Failed> {
    let named = args.target.socket.as_deref();
    let is_usual = named.is_none_or(|socket| socket == Path::new(SYSTEM_SOCKET));
    let warn_of_hang = || {
        if matches!(error, ControlClientError::Silent { .. }) {
            output::eprint(&format!("warning: {}\n", chain(&error)));
            output::hint(&format!("hint: {}\n", error.hint().unwrap_or_default()));
        }
    };
    if let Some(unit) = SystemdUnit::installed().filter(|_| is_usual) {
        warn_of_hang();
        output::eprint(&format!(
            "note: no service answers: this is the journal of {}\n",
            unit.name
        ));
        return Err(journal(args, &unit, server));
    }
    let is_launched = named.is_none_or(|socket| {
        socket == default_socket() || Some(socket) == auto_start::configured_socket().as_deref()
    });
    let path = auto_start::log_file();
    if is_launched && path.exists() {
        warn_of_hang();
        return log_file::show(args, &path, server);
    }
    Err(service_target::failed(error).detail("there is no log of an earlier service here"))
}

/// Becomes `journalctl`; returns only if that fails.
fn journal(args: &Args, unit: &SystemdUnit, server: Option<&ServerName>) -> Failed {
    #[expect(
        clippy::disallowed_methods,
        reason = "this process becomes journalctl, which starts no child"
    )]
    let mut journalctl = std::process::Command::new("journalctl");
    journalctl.args(arguments(args, unit, server));
    let error = journalctl.exec();
    Failed::new(FAILED, format!("cannot run journalctl: {error}"))
        .hint(format!("Install journalctl, or read the journal of unit `{}` otherwise.", unit.name))
}

/// Returns the arguments for `journalctl`.
fn arguments(args: &Args, unit: &SystemdUnit, server: Option<&ServerName>) -> Vec<String> {
    let kind = if unit.is_of_user { "--user-unit" } else { "--unit" };
    let mut arguments = vec![format!("{kind}={}", unit.name)];
    if args.follow {
        arguments.push("--follow".to_owned());
    }
    if let Some(lines) = args.lines {
        arguments.push(format!("--lines={lines}"));
    }
    if let Some(since) = &args.since {
        // The journal knows no durations like `10m` without a sign.
        let since = since_ms(since).map_or(since.clone(), |ms| format!("@{}", ms / 1000));
        arguments.push(format!("--since={since}"));
    }
    if let Some(level) = args.level {
        arguments.push(format!("--priority={}", level.priority()));
    }
    // The journal stores the field under its name in capitals.
    arguments.extend(server.map(|server| format!("MCP_SERVER={server}")));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cli_asks_journalctl_for_the_unit_the_level_and_the_server() {
        let unit = SystemdUnit { name: "metamcp.service".to_owned(), is_of_user: true };
        let server = ServerName::new("git").unwrap();
        let args = Args {
            follow: true,
            lines: Some(5),
            level: Some(LineLevel::Warn),
            since: Some("yesterday".to_owned()),
            ..Args::default()
        };
        assert_eq!(
            arguments(&args, &unit, Some(&server)),
            [
                "--user-unit=metamcp.service",
                "--follow",
                "--lines=5",
                "--since=yesterday",
                "--priority=warning",
                "MCP_SERVER=git"
            ]
        );
    }

    #[test]
    fn a_time_ago_is_written_with_or_without_words() {
        let now = time_format::now_ms();
        for text in ["10m", "-10m", "10 min ago", "600s", " 10m ago ", "600", "10 minutes ago"] {
            let ago = now - since_ms(text).expect(text);
            assert!((590_000..=600_000).contains(&ago), "{text}: {ago}");
        }
        assert_eq!(since_ms("2026-11-26T23:59:00Z"), Some(1_795_737_540_000));
        assert_eq!(since_ms("2026-11-26T23:59:00.123+01:00"), Some(1_795_733_940_123));
        assert!(now - since_ms("1w").expect("a week") <= 7 * 86_400_000);
        assert!(now - since_ms("1d").expect("a day") <= 86_400_000);
        for text in ["2026-01-31 09:00", "yesterday", "", "10 parsecs", "99999999999999999d"] {
            assert_eq!(since_ms(text), None, "{text}");
        }
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
