//! Every process that comes from this one.

use std::collections::HashSet;

use rustix::process::{Pid, Signal, getpid};

use super::process_table::ProcessEntry;

/// How often it is looked for processes that were started while others were killed. Ours: one that
/// starts others faster than they are killed is left to the service manager.
const ROUNDS: usize = 10;

/// Kills every process that descends from this one; orphans do as well, see [`super::orphan_reaper`]. Blocks for
/// some looks at `/proc`.
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

/// Returns those of `all` that come from `root`, by whatever way.
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
        let mut told = [0];
        std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut told).expect("told");
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
