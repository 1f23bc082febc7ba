//! The descendants of this process, and their termination.

use std::collections::HashSet;

use rustix::process::{Pid, Signal, getpid};

use super::process_table::ProcessEntry;

/// The number of scans, as processes may start others while they are killed. One that starts them
/// faster than that is left to the service manager.
const ROUNDS: usize = 10;

/// Kills every descendant of this process, orphans included (see [`super::orphan_reaper`]). Blocks
/// for some scans of `/proc`.
pub fn kill_descendants() {
    for _ in 0..ROUNDS {
        let found = descendants(getpid(), &ProcessEntry::all().collect::<Vec<_>>());
        if found.is_empty() {
            return;
        }
        for held in found.into_iter().filter_map(ProcessEntry::pin) {
            held.signal(Signal::KILL);
        }
    }
}

/// Returns the members of `all` that descend from `root`, at any depth.
fn descendants(root: Pid, all: &[ProcessEntry]) -> Vec<ProcessEntry> {
    let mut known = HashSet::from([root]);
    loop {
        let n_before = known.len();
        let children = all
            .iter()
            .filter(|process| process.parent.is_some_and(|parent| known.contains(&parent)));
        let children: Vec<Pid> = children.map(|process| process.pid).collect();
        known.extend(children);
        if known.len() == n_before {
            known.remove(&root);
            return all.iter().filter(|process| known.contains(&process.pid)).copied().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn grandchildren_in_a_session_of_their_own_are_descendants() {
        #[expect(clippy::disallowed_methods, reason = "the test reaps it")]
        let mut child = Command::new("sh")
            .args(["-c", "setsid sleep 600 & setsid sleep 600 & echo; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut line)
            .expect("a line");
        let pid = Pid::from_child(&child);

        let found = descendants(pid, &ProcessEntry::all().collect::<Vec<_>>());

        let n_found = found.len();
        for held in found.into_iter().filter_map(ProcessEntry::pin) {
            held.signal(Signal::KILL);
        }
        child.kill().expect("killed");
        child.wait().expect("reaped");
        assert_eq!(n_found, 2);
    }
}
