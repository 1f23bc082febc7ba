//! The fixes that `metamcp doctor` applies itself, after a question or with `--fix`.

use std::io::{BufRead as _, IsTerminal as _, stdin};

use crate::{
    cli::{output, terminal},
    daemon::control_socket,
    doctor::{self, DoctorReport, Repair},
};

/// Applies the fixes of a report: all of them with `--fix`, else those that the user confirms on a
/// terminal. Returns the number of fixes that failed.
pub(super) async fn apply(report: &DoctorReport, fixes_all: bool) -> usize {
    let is_interactive = stdin().is_terminal() && terminal::is_stdout_terminal();
    let mut n_failed = 0;
    for repair in report.findings.iter().filter_map(|finding| finding.repair.as_ref()) {
        let is_wanted = fixes_all || is_interactive && is_confirmed(&question(repair));
        if !is_wanted {
            continue;
        }
        match run(repair).await {
            Ok(done) => output::print(&format!("{done}\n")),
            Err(reason) => {
                n_failed += 1;
                output::print(&format!("not fixed: {reason}\n"));
            }
        }
    }
    n_failed
}

fn question(repair: &Repair) -> String {
    match repair {
        Repair::RemoveSocket(path) => format!("Remove the socket `{}`?", path.display()),
        Repair::MakeGroup(group) => format!("Create the group `{group}`?"),
    }
}

fn is_confirmed(question: &str) -> bool {
    output::print(&format!("{question} [y/N] "));
    let mut line = String::new();
    let read = stdin().lock().read_line(&mut line);
    read.is_ok() && matches!(line.trim(), "y" | "Y" | "yes")
}

/// Applies a fix, and returns the sentence that reports it.
async fn run(repair: &Repair) -> Result<String, String> {
    match repair {
        Repair::RemoveSocket(path) => {
            let removed = control_socket::remove_stale(path).await;
            removed.map(|()| format!("The socket `{}` is removed.", path.display()))
        }
        Repair::MakeGroup(group) if !rustix::process::geteuid().is_root() => {
            Err(format!("only root may create a group. Run `sudo groupadd --system {group}`."))
        }
        Repair::MakeGroup(group) => match doctor::make_group(group).await {
            true => Ok(format!(
                "The group `{group}` exists now. Add a user to it with `sudo usermod -aG {group} USER`."
            )),
            false => Err(format!(
                "the group `{group}` could not be created. Run `sudo groupadd --system {group}`."
            )),
        },
    }
}
