//! `metamcp logs`: the log of the service.
//!
//! The journal has the log of a service in a unit: this process becomes `journalctl`. A service
//! started on demand writes a file.

use std::{fs::File, io::Read as _, os::unix::process::CommandExt as _, path::Path};

use super::{
    FAILED, Failed, USAGE, auto_start, output, service_target, service_target::ServiceTarget,
    terminal,
};
use crate::{
    config::defaults, daemon::control_socket::SYSTEM_SOCKET, error_report::chain,
    server_name::ServerName, systemd::own_unit::SystemdUnit,
};

/// Show what the service has logged
///
/// Reads the journal with `journalctl` if the service runs in a systemd unit, else the file of a
/// service started on demand, `$XDG_STATE_HOME/metamcp/metamcp.log`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Show only lines about this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Continue with new lines until ctrl-c
    #[arg(short, long)]
    follow: bool,
    /// Show only the last N lines
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<usize>,
    /// Show only lines since this time, in journalctl syntax: "10 min ago", "2026-01-31 09:00"
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    #[command(flatten)]
    target: ServiceTarget,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let server = args.server.as_deref().map(ServerName::new).transpose();
    let server = server.map_err(|error| Failed::new(USAGE, chain(&error)))?;
    match unit(&args.target)? {
        Some(unit) => Err(journal(args, &unit, server.as_ref())),
        None => file(args, &auto_start::log_file(), server.as_ref()),
    }
}

/// Returns the unit of the service that answers, else of the installed one.
fn unit(target: &ServiceTarget) -> Result<Option<SystemdUnit>, Failed> {
    // A service that does not answer may have logged the reason.
    let status = service_target::ask(Some(&target.path()), "daemon/status", Some("{}"))?.ok();
    if let Some(pid) = status.and_then(|status| status["pid"].as_u64()) {
        return Ok(SystemdUnit::of_process(pid));
    }
    let is_usual = target.socket.as_deref().is_none_or(|socket| socket == Path::new(SYSTEM_SOCKET));
    Ok(SystemdUnit::installed().filter(|_| is_usual))
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
        arguments.push(format!("--since={since}"));
    }
    // The journal stores the field under its name in capitals.
    arguments.extend(server.map(|server| format!("MCP_SERVER={server}")));
    arguments
}

/// Prints the end of a log file, and follows it with `--follow`.
fn file(args: &Args, path: &Path, server: Option<&ServerName>) -> Result<(), Failed> {
    if args.since.is_some() {
        return Err(Failed::usage(
            "--since works only for a service that logs to the journal",
            format!("Use --lines: this service logs to `{}`.", path.display()),
        ));
    }
    let failed = |error: std::io::Error| {
        Failed::new(FAILED, format!("cannot read the log `{}`: {error}", path.display())).hint(
            "Look at the standard error output of the service: only a service started on demand writes this file.",
        )
    };
    let mut log = File::open(path).map_err(failed)?;
    let text = auto_start::read_tail(&mut log).map_err(failed)?;
    let found: Vec<&str> = text.lines().filter(|line| is_about(line, server)).collect();
    let n_skipped = args.lines.map_or(0, |lines| found.len().saturating_sub(lines));
    found[n_skipped..].iter().for_each(|line| show(line));
    if !args.follow {
        return Ok(());
    }
    service_target::run(async {
        let mut rest = Vec::new();
        loop {
            tokio::time::sleep(defaults::LOG_FOLLOW_INTERVAL).await;
            let piece = (&mut log).take(defaults::LOG_TAIL_BYTES);
            { piece }.read_to_end(&mut rest).map_err(failed)?;
            let Some(end) = memchr::memrchr(b'\n', &rest) else { continue };
            let whole: Vec<u8> = rest.drain(..=end).collect();
            let text = String::from_utf8_lossy(&whole).into_owned();
            text.lines().filter(|line| is_about(line, server)).for_each(show);
        }
    })
}

/// Returns `true` if a line has the field of this server.
fn is_about(line: &str, server: Option<&ServerName>) -> bool {
    server.is_none_or(|server| {
        let field = format!("mcp_server={server}");
        line.match_indices(&field).any(|(at, _)| {
            let next = line[at + field.len()..].chars().next();
            next.is_none_or(|next| next.is_whitespace())
        })
    })
}

fn show(line: &str) {
    match terminal::is_stdout_terminal() {
        // A log file has no colours, so escaping loses nothing.
        true => output::print(&format!("{}\n", terminal::escape(line))),
        false => output::print(&format!("{line}\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cli_asks_journalctl_for_the_unit_and_the_server() {
        let unit = SystemdUnit { name: "metamcp.service".to_owned(), is_of_user: true };
        let server = ServerName::new("git").unwrap();
        let args = Args {
            server: None,
            follow: true,
            lines: Some(5),
            since: Some("-1h".to_owned()),
            target: ServiceTarget::default(),
        };
        assert_eq!(
            arguments(&args, &unit, Some(&server)),
            [
                "--user-unit=metamcp.service",
                "--follow",
                "--lines=5",
                "--since=-1h",
                "MCP_SERVER=git"
            ]
        );
    }

    #[test]
    fn a_log_line_is_matched_by_the_exact_server_name() {
        let server = ServerName::new("git").unwrap();
        assert!(is_about("INFO connected mcp_server=git generation=1", Some(&server)));
        assert!(is_about("INFO connected mcp_server=git", Some(&server)));
        assert!(!is_about("INFO connected mcp_server=github", Some(&server)));
        assert!(is_about("INFO anything", None));
    }
}
