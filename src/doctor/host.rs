//! The checks of the host: its clock and its memory.

use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, SystemTime},
};

use tokio::time;

use super::finding::{
    Finding,
    FindingArea::{Clock, Memory},
};
use crate::{
    child::{Child, ChildProgram},
    config::defaults,
};

/// The publication time of the newest protocol version that metamcp speaks, in seconds since 1970.
/// A clock that shows an earlier time is wrong.
const PROTOCOL_PUBLISHED: Duration = Duration::from_secs(1_785_196_800);

pub(super) async fn clock(found: &mut Vec<Finding>) {
    // Files in a Nix store have a modification time in 1970.
    let program = std::env::current_exe().and_then(fs::metadata).and_then(|file| file.modified());
    let built = program.unwrap_or(SystemTime::UNIX_EPOCH);
    let earliest = built.max(SystemTime::UNIX_EPOCH + PROTOCOL_PUBLISHED);
    let synchronised = output("timedatectl", &["show", "--property=NTPSynchronized", "--value"]);
    found.push(judged(SystemTime::now() < earliest, synchronised.await.as_deref()));
}

fn judged(is_past: bool, synchronised: Option<&str>) -> Finding {
    if is_past {
        return Finding::error(Clock, "the clock is behind the build time of this program")
            .because("Certificates are not valid yet, and files that expire are kept for years.")
            .fix("Run `timedatectl set-ntp true`.")
            .nix("services.timesyncd.enable = true;");
    }
    match synchronised.map(str::trim) {
        Some("no") => Finding::note(Clock, "the clock is not synchronised")
            .fix("Run `timedatectl set-ntp true`.")
            .nix("services.timesyncd.enable = true;"),
        Some("yes") => Finding::ok(Clock, "the clock is synchronised"),
        Some(_) | None => Finding::ok(Clock, "the clock shows a plausible time"),
    }
}

pub(super) fn memory(found: &mut Vec<Finding>) {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    found.extend(available(&text).map(memory_of));
}

/// Returns the available memory in bytes. Source: proc(5), `/proc/meminfo`, "MemAvailable".
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

fn memory_of(available: u64) -> Finding {
    let what = format!("{} MB of memory are available", available >> 20);
    if available < defaults::DOCTOR_MEMORY_MIN {
        return Finding::warning(Memory, what)
            .because("When a server starts, the system may kill it or another process.")
            .fix("Close idle servers sooner with `pool.idle_timeout`, or allow fewer connections with `pool.size`.")
            .nix("services.metamcp.settings.pool.idle_timeout = \"1m\";");
    }
    Finding::ok(Memory, what)
}

/// Runs a program and returns its output; `None` on failure or timeout.
pub(super) async fn output(command: &str, args: &[&str]) -> Option<String> {
    let program = ChildProgram {
        command: command.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: BTreeMap::new(),
        cwd: None,
    };
    let run = Child::output(&program, defaults::DOCTOR_ANSWER_BYTES_MAX);
    time::timeout(defaults::DOCTOR_PROGRAM_TIMEOUT, run).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::FindingSeverity;

    #[test]
    fn a_clock_that_is_behind_the_build_time_is_an_error() {
        assert_eq!(judged(true, Some("yes")).level, FindingSeverity::Error);
        assert_eq!(judged(false, Some("no\n")).level, FindingSeverity::Note);
        assert_eq!(judged(false, Some("yes\n")).what, "the clock is synchronised");
        assert_eq!(judged(false, None).level, FindingSeverity::Ok);
    }

    #[test]
    fn little_memory_is_a_warning() {
        let text = "MemTotal:  24684000 kB\nMemAvailable:     1024 kB\n";
        assert_eq!(available(text), Some(1 << 20));
        assert_eq!(memory_of(1 << 20).level, FindingSeverity::Warning);
        assert_eq!(memory_of(1 << 30).level, FindingSeverity::Ok);
        assert_eq!(available("nonsense"), None);
    }
}
