//! The last lines or records that the running service has in memory, as commands ask for them.
//!
//! Older ones, and those of a service that does not answer, are in the journal, if the service runs
//! in a unit.

use std::{io, os::unix::process::CommandExt as _, path::Path, process::Command, time::Duration};

use serde_json::{Value, json};

use super::{
    FAILED, Failed, UNAVAILABLE, auto_start, output,
    service_target::{self, ServiceTarget},
};
use crate::{
    config::defaults,
    control::socket_client::{ControlClientError, ControlConnection, value},
    daemon::control_socket::{SYSTEM_SOCKET, default_socket},
    error_report::chain,
    systemd::own_unit::SystemdUnit,
    time_format,
};

/// The choice of entries, the same for lines and records.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct RangeArgs {
    /// Continue with new ones until ctrl-c
    #[arg(short, long)]
    pub(super) follow: bool,
    /// Show only the last N
    #[arg(short = 'n', long, value_name = "N")]
    pub(super) lines: Option<usize>,
    /// Show only those since this time: 90 (seconds), "10m", "2h ago", "1w", or a time as the log
    /// shows it; for the journal also "2026-01-31 09:00" or "yesterday"
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) since: Option<String>,
}

/// The entries that a command asks for.
pub(super) struct ServiceRing<'a> {
    pub(super) target: &'a ServiceTarget,
    pub(super) range: &'a RangeArgs,
    /// The command that shows them.
    pub(super) command: &'static str,
    /// The method of the control interface.
    pub(super) method: &'static str,
    /// The member of its answer that has the entries, and their name in sentences.
    pub(super) noun: &'static str,
    /// The whole of them, in sentences.
    pub(super) name: &'static str,
    /// Its parameters, but for the range. Those that are `null` are left out.
    pub(super) filter: Value,
    /// Shows the entries in the file of a service without a journal, but for those in its answer.
    /// `None` if those of earlier services are not wanted.
    pub(super) earlier: Option<ShowEarlier<'a>>,
}

/// Shows entries in a file: those that are not in the answer of the service.
type ShowEarlier<'a> = &'a dyn Fn(&Path, &Value) -> Result<(), Failed>;

/// The place of the entries that are wanted.
pub(super) enum EntrySource {
    /// They are shown already.
    Shown,
    /// The journal has them, or those before the ones in the answer of the service.
    Journal(SystemdUnit, Option<Value>),
    /// No service answers.
    Dead(ControlClientError),
}

/// The time that one request of `--follow` waits for an entry.
const FOLLOW_WAIT: Duration = Duration::from_secs(30);

/// The number of entries below which a service may have started too late to have those of interest.
const FEW: usize = 10;

impl ServiceRing<'_> {
    /// Shows the entries that the running service has, by `show`, if it has all that are wanted.
    ///
    /// # Errors
    ///
    /// [`Failed`] if the service refuses, or ends while the command follows it.
    pub(super) fn run(&self, show: impl Fn(&Value)) -> Result<EntrySource, Failed> {
        service_target::run(self.of_service(show))
    }

    /// Returns the failure of a service that ended while the command followed it.
    fn ended(&self, error: ControlClientError) -> Failed {
        if !matches!(error, ControlClientError::Lost(..)) {
            return service_target::failed(error);
        }
        let text = format!("the {} ends here: the service has stopped", self.name);
        Failed::new(UNAVAILABLE, text).hint(format!(
            "Run `metamcp {}` to see the {} after it has started again.",
            self.command, self.name
        ))
    }

    async fn of_service(&self, show: impl Fn(&Value)) -> Result<EntrySource, Failed> {
        let range = self.range;
        let mut service = match open(self.target).await {
            Ok(service) => service,
            Err(error) => return dead(error),
        };
        let since_ms = range.since.as_deref().map(since_ms);
        let page = match since_ms {
            Some(None) => None,
            _ => {
                let first = json!({ "lines": range.lines, "since": since_ms.flatten() });
                match self.ask(&mut service, first).await {
                    Ok(page) => Some(page),
                    Err(error) => return dead(error),
                }
            }
        };
        let is_whole = page.as_ref().is_some_and(|page| {
            let is_cut = page["isCut"] == true && (range.since.is_some() || range.lines.is_some());
            let n_kept = page["keptMax"].as_u64().unwrap_or_default();
            !is_cut && range.lines.is_none_or(|lines| lines as u64 <= n_kept)
        });
        let is_cut =
            !is_whole || page.as_ref().is_some_and(|page| self.goes_back(page, since_ms.flatten()));
        if is_cut {
            match unit_of_service(&mut service).await {
                Ok(None) => {}
                Ok(Some(unit)) => return Ok(EntrySource::Journal(unit, page)),
                Err(error) => return dead(error),
            }
        }
        let Some(mut page) = page else { return Err(unknown_time(range)) };
        let file = page["file"].as_str().map(Path::new);
        if let (Some(earlier), Some(file), true) = (self.earlier, file, is_cut) {
            // Those that the service has are worth showing, too.
            if let Err(failed) = earlier(file, &page) {
                output::eprint(&format!(
                    "note: calls of an earlier service are missing: {}\n",
                    failed.text
                ));
            }
        } else if !is_whole {
            output::eprint(&format!(
                "note: the service keeps its last {} {} at most, and has no journal with older ones\n",
                page["keptMax"], self.noun
            ));
        }
        let n_found = output::items(&page[self.noun]).len();
        if self.earlier.is_some() && !is_cut && !range.follow && n_found < FEW {
            let started_ms = page["startedMs"].as_i64().unwrap_or_default();
            output::eprint(&format!(
                "note: the service started at {}: add `--since 1d` for the {} before\n",
                time_format::rfc3339(started_ms, 0),
                self.noun
            ));
        }
        if page["enabled"] == false {
            output::eprint(&format!(
                "note: the service writes no {}: `telemetry.enabled` is false\n",
                self.noun
            ));
        }
        loop {
            let n_lost = page["lost"].as_u64().unwrap_or_default();
            if n_lost > 0 {
                output::eprint(&format!("… {n_lost} {} were lost\n", self.noun));
            }
            output::items(&page[self.noun]).iter().for_each(&show);
            if !range.follow {
                return Ok(EntrySource::Shown);
            }
            let next = json!({ "after": page["next"], "wait": FOLLOW_WAIT.as_millis() as u64 });
            page = self.ask(&mut service, next).await.map_err(|error| self.ended(error))?;
        }
    }

    /// Returns whether entries of earlier services are wanted beside those in the answer.
    fn goes_back(&self, page: &Value, since_ms: Option<u64>) -> bool {
        let has_fewer = |lines| output::items(&page[self.noun]).len() < lines;
        self.earlier.is_some()
            && (since_ms < page["startedMs"].as_u64() && since_ms.is_some()
                || self.range.lines.is_some_and(has_fewer))
    }

    async fn ask(
        &self,
        service: &mut ControlConnection,
        range: Value,
    ) -> Result<Value, ControlClientError> {
        let mut params = self.filter.clone();
        if let (Value::Object(params), Value::Object(range)) = (&mut params, range) {
            params.extend(range);
            params.retain(|_, value| !value.is_null());
        }
        let timeout = FOLLOW_WAIT + defaults::CONTROL_TIMEOUT;
        value(&service.ask(self.method, &params.to_string(), timeout).await?)
    }
}

async fn open(target: &ServiceTarget) -> Result<ControlConnection, ControlClientError> {
    let opened = ControlConnection::open(&target.path()).await;
    if let (Err(ControlClientError::Unreachable(..)), None) = (&opened, &target.socket)
        && let Some(socket) = auto_start::configured_socket()
    {
        return ControlConnection::open(&socket).await;
    }
    opened
}

/// Returns the source of the entries without a service; another error is the failure of the command.
fn dead(error: ControlClientError) -> Result<EntrySource, Failed> {
    match error {
        ControlClientError::Unreachable(..)
        | ControlClientError::Lost(..)
        | ControlClientError::Silent { .. } => Ok(EntrySource::Dead(error)),
        error => Err(service_target::failed(error)),
    }
}

async fn unit_of_service(
    service: &mut ControlConnection,
) -> Result<Option<SystemdUnit>, ControlClientError> {
    let status = service.ask("daemon/status", "{}", defaults::CONTROL_TIMEOUT).await?;
    Ok(value(&status)?["pid"].as_u64().and_then(SystemdUnit::of_process))
}

/// Shows what a service that does not answer has left: in the journal of the unit, by `journal`, or
/// in the file at `file` of a service without one, by `of_file`.
pub(super) fn of_dead_service(
    target: &ServiceTarget,
    error: ControlClientError,
    name: &str,
    file: &Path,
    journal: impl FnOnce(&SystemdUnit) -> Result<(), Failed>,
    of_file: impl FnOnce(&Path) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let named = target.socket.as_deref();
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
        return journal(&unit);
    }
    let is_launched = named.is_none_or(|socket| {
        socket == default_socket() || Some(socket) == auto_start::configured_socket().as_deref()
    });
    if is_launched && file.exists() {
        warn_of_hang();
        return of_file(file);
    }
    let text = match file.exists() {
        // Perhaps of another service: the socket was named.
        true => format!("the {name} of a service of this user is in `{}`", file.display()),
        false => format!("there is no {name} of an earlier service here"),
    };
    Err(service_target::failed(error).detail(text))
}

/// Becomes `journalctl` for `unit`, the range and these matches; returns only if that fails.
pub(super) fn become_journalctl(
    range: &RangeArgs,
    unit: &SystemdUnit,
    matches: &[String],
) -> Failed {
    let error = journalctl(range, unit, matches).exec();
    no_journalctl(&error, unit)
}

/// Returns `journalctl` for `unit`, the range and these matches.
#[expect(
    clippy::disallowed_methods,
    reason = "this process becomes journalctl, or reads its output to the end"
)]
pub(super) fn journalctl(range: &RangeArgs, unit: &SystemdUnit, matches: &[String]) -> Command {
    let mut journalctl = Command::new("journalctl");
    journalctl.args(journal_arguments(range, unit)).args(matches);
    journalctl
}

/// Returns the failure of a host without `journalctl`.
pub(super) fn no_journalctl(error: &io::Error, unit: &SystemdUnit) -> Failed {
    Failed::new(FAILED, format!("cannot run journalctl: {error}"))
        .hint(format!("Install journalctl, or read the journal of unit `{}` otherwise.", unit.name))
}

/// Returns the arguments of `journalctl` for a unit and a range.
fn journal_arguments(range: &RangeArgs, unit: &SystemdUnit) -> Vec<String> {
    let kind = if unit.is_of_user { "--user-unit" } else { "--unit" };
    let mut arguments = vec![format!("{kind}={}", unit.name)];
    if range.follow {
        arguments.push("--follow".to_owned());
    }
    if let Some(lines) = range.lines {
        arguments.push(format!("--lines={lines}"));
    }
    if let Some(since) = &range.since {
        // The journal knows no durations like `10m` without a sign.
        let since = since_ms(since).map_or(since.clone(), |ms| format!("@{}", ms / 1000));
        arguments.push(format!("--since={since}"));
    }
    arguments
}

/// Returns the time that a `--since` names, in milliseconds since 1970: as the log shows it, or
/// relative to now. A number without a unit is in seconds.
pub(super) fn since_ms(text: &str) -> Option<u64> {
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

/// Returns the failure of a time that only the journal knows.
pub(super) fn unknown_time(range: &RangeArgs) -> Failed {
    Failed::usage(
        format!("`--since {}` is not a time", range.since.as_deref().unwrap_or_default()),
        "Write a number of seconds, `10m`, `2h`, `1w`, `10 minutes ago`, or a time as the log shows it: only the journal takes other times.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journalctl_gets_the_unit_and_the_range() {
        let unit = SystemdUnit { name: "metamcp.service".to_owned(), is_of_user: true };
        let range = RangeArgs { follow: true, lines: Some(5), since: Some("yesterday".to_owned()) };
        assert_eq!(
            journal_arguments(&range, &unit),
            ["--user-unit=metamcp.service", "--follow", "--lines=5", "--since=yesterday"]
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
}
