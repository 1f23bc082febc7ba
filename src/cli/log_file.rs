//! The log file of a service that was started on demand and does not answer.

use std::{fs::File, io::Read as _, path::Path, time::SystemTime};

use super::{
    FAILED, Failed, auto_start,
    logs::{Args, LineLevel},
    output, service_target, terminal,
};
use crate::{config::defaults, server_name::ServerName, time_format};

/// Prints the end of a log file, and follows it with `--follow`.
///
/// # Errors
///
/// [`Failed`] when the file cannot be read, or when `args` need the journal.
pub(super) fn show(args: &Args, path: &Path, server: Option<&ServerName>) -> Result<(), Failed> {
    if args.range.since.is_some() {
        return Err(Failed::usage(
            "--since works only for a service that runs, or that logs to the journal",
            format!("Use --lines: the last service logged to `{}`.", path.display()),
        ));
    }
    let failed = |error: std::io::Error| {
        Failed::new(FAILED, format!("cannot read the log `{}`: {error}", path.display()))
    };
    let mut log = File::open(path).map_err(failed)?;
    let written = log.metadata().and_then(|found| found.modified()).map_err(failed)?;
    let text = auto_start::read_tail(&mut log).map_err(failed)?;
    output::eprint(&notice(path, &text, written));
    let is_wanted = |line: &&str| is_about(line, server) && has_level(line, args.level);
    let found: Vec<&str> = text.lines().filter(is_wanted).collect();
    let n_skipped = args.range.lines.map_or(0, |lines| found.len().saturating_sub(lines));
    found[n_skipped..].iter().for_each(|line| print(line));
    if !args.range.follow {
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
            text.lines().filter(is_wanted).for_each(print);
        }
    })
}

/// Returns the line that says which service the log is from.
fn notice(path: &Path, text: &str, written: SystemTime) -> String {
    let pid = text.lines().rev().find_map(|line| {
        let (_, after) = line.split_once(" serving: ")?;
        let (_, pid) = after.rsplit_once(" pid=")?;
        Some(pid.split_whitespace().next()?.to_owned())
    });
    let service = pid.map_or_else(|| "of an earlier one".to_owned(), |pid| format!("of pid {pid}"));
    format!(
        "note: no service answers: this is the log {service}, last written at {} (`{}`)\n",
        time_format::rfc3339_of(written),
        path.display()
    )
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

/// Returns `true` if a line has this level or a more severe one. The level is its second word.
fn has_level(line: &str, level: Option<LineLevel>) -> bool {
    let Some(level) = level else { return true };
    let word = line.split_whitespace().nth(1).unwrap_or_default().to_ascii_lowercase();
    LineLevel::ALL
        .into_iter()
        .find(|found| found.name() == word)
        .is_some_and(|found| found <= level)
}

fn print(line: &str) {
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
    fn a_log_line_is_matched_by_the_exact_server_name() {
        let server = ServerName::new("git").unwrap();
        assert!(is_about("INFO connected mcp_server=git generation=1", Some(&server)));
        assert!(is_about("INFO connected mcp_server=git", Some(&server)));
        assert!(!is_about("INFO connected mcp_server=github", Some(&server)));
        assert!(is_about("INFO anything", None));
    }

    #[test]
    fn a_log_line_is_matched_by_its_level() {
        let line = "2026-11-26T18:50:00.123456Z  WARN server `git` failed";
        assert!(has_level(line, None) && has_level(line, Some(LineLevel::Warn)));
        assert!(has_level(line, Some(LineLevel::Debug)));
        assert!(!has_level(line, Some(LineLevel::Error)));
    }

    #[test]
    fn the_log_of_a_dead_service_names_its_process() {
        let text = "2026-11-26T18:50:00Z  INFO serving: 0/1 servers up status=\"x\" pid=77\nlast";
        let said = notice(Path::new("/x/metamcp.log"), text, SystemTime::UNIX_EPOCH);
        assert!(said.contains("the log of pid 77, last written at 1970-01-01T00:00:00.000Z"));
    }
}
