//! The processes that descend from one child, and their termination.
//!
//! A process that leaves its group, as daemons do, keeps the environment that it was started with.
//! The marker in that environment identifies its child. metamcp scans `/proc` when a child ends,
//! and not while it runs.

use std::{collections::HashSet, time::Duration};

use rustix::process::{Pid, Signal, getpid};
use tokio::{
    task,
    time::{self, Instant},
};

use super::{
    environment_marker::{ChildMarker, ServiceMarker},
    escalation::{Escalation, EscalationStep, cancelled_token},
    process_table::{EXEC_PATIENCE, EXEC_PAUSE, PinnedProcess, ProcessEntry},
};
use crate::config::defaults;

/// The longest pause between two checks whether a process still runs.
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// A set of related processes.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProcessDescendants {
    /// The processes of one child: those in its group, and those with its marker.
    Child {
        /// The process group; its number is the process id of the child.
        group: Pid,
        /// The marker of the child; `None` without `/proc`.
        marker: Option<ChildMarker>,
        /// The start time of the child: its descendants are not older.
        since: u64,
    },
    /// The marked processes of this user that belong to a service that has ended.
    Orphans,
}

/// The result of one scan.
struct Scan {
    members: Vec<PinnedProcess>,
    /// A process that could not be classified may be a member.
    has_unclassified: bool,
}

impl ProcessDescendants {
    /// Returns whether `process` belongs to the set; `None` if that cannot be determined now.
    ///
    /// Once the child is reaped and its group is empty, the kernel can reuse the number of the
    /// group. So a process of the group does not count if it is older than the child, or has the
    /// marker of another child. If another process leads the group by now, only the marker counts.
    /// Otherwise no marker is needed: some servers start processes with an empty environment.
    fn has(&self, process: &ProcessEntry) -> Option<bool> {
        if let Self::Child { group, marker, since } = self {
            if process.started < *since {
                return Some(false);
            }
            if process.group == group.as_raw_nonzero().get() && !is_led_anew(*group, *since) {
                let its_marker = process.environment().and_then(|found| ChildMarker::find(&found));
                return Some(its_marker.is_none() || its_marker == *marker);
            }
        }
        let Some(environment) = process.environment() else {
            return if process.is_ending() { None } else { Some(false) };
        };
        if environment.is_empty() && process.is_execing() {
            return None;
        }
        let Some(marker) = ChildMarker::find(&environment) else { return Some(false) };
        Some(match self {
            Self::Child { marker: ours, .. } => *ours == Some(marker),
            Self::Orphans => {
                let service = marker.service();
                ServiceMarker::ours().is_some_and(|ours| ours != *service)
                    && process.is_own_user()
                    && service.has_ended()
            }
        })
    }

    /// Scans for members on a blocking thread.
    async fn scan(self) -> Scan {
        let scanning = task::spawn_blocking(move || self.scan_now());
        scanning.await.unwrap_or(Scan { members: Vec::new(), has_unclassified: true })
    }

    fn scan_now(self) -> Scan {
        let mut found = Scan { members: Vec::new(), has_unclassified: false };
        for process in ProcessEntry::all() {
            match self.has(&process) {
                Some(true) => found.members.extend(process.pin()),
                Some(false) => {}
                None => found.has_unclassified = true,
            }
        }
        found
    }

    /// Waits until no member runs, and sends `signal`, if any, to running members. Cancel safe.
    pub(super) async fn wait_until_gone(self, signal: Option<Signal>) {
        let doubt_ends = Instant::now() + EXEC_PATIENCE;
        loop {
            let Scan { members, has_unclassified } = self.scan().await;
            if members.is_empty() {
                if !has_unclassified || Instant::now() >= doubt_ends {
                    return;
                }
                time::sleep(EXEC_PAUSE).await;
                continue;
            }
            if let Some(signal) = signal {
                members.iter().for_each(|member| member.signal(signal));
            }
            // They are not direct children: no event reports their end.
            let mut pause = Duration::from_millis(1);
            while members.iter().any(|member| member.process.runs()) {
                time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }

    /// Sends `signal` to all members, except those in the group `but`.
    pub(super) async fn signal(self, signal: Signal, but: Option<Pid>) {
        let but = but.map(|group| group.as_raw_nonzero().get());
        let members = self.scan().await.members.into_iter();
        members
            .filter(|member| Some(member.process.group) != but)
            .for_each(|member| member.signal(signal));
    }
}

/// Returns whether the leader of `group` is another process than the one started at `since`.
fn is_led_anew(group: Pid, since: u64) -> bool {
    matches!(ProcessEntry::read(group), Ok(Some(leader)) if leader.started != since)
}

impl EscalationStep {
    pub(super) fn signal(self) -> Signal {
        match self {
            Self::Terminate => Signal::TERM,
            Self::Kill => Signal::KILL,
        }
    }
}

/// Terminates the processes that a killed service left behind. They hold resources that new
/// children need, and without a service manager nothing else ends them.
///
/// It ends only processes of this user with the marker of a service that has provably ended. Not
/// cancel safe: some of these processes may keep running.
pub async fn terminate_orphans() {
    let orphans = ProcessDescendants::Orphans;
    let n_processes = orphans.scan().await.members.len();
    if n_processes == 0 {
        return;
    }
    tracing::warn!(n_processes, "ending {n_processes} servers that a killed metamcp left behind");
    let mut escalation = Escalation::new(cancelled_token());
    while let Some(step) = tokio::select! {
        biased;
        () = orphans.wait_until_gone(None) => return,
        step = escalation.next() => step,
    } {
        orphans.signal(step.signal(), None).await;
    }
    let end = orphans.wait_until_gone(Some(Signal::KILL));
    if time::timeout(defaults::AFTER_KILL, end).await.is_err() {
        tracing::error!("servers of a killed metamcp still run after SIGKILL");
    }
}

/// The number of scans, as processes may start others while they are killed. One that starts them
/// faster than that is left to the service manager.
const KILL_ROUNDS: usize = 10;

/// Kills every descendant of this process, orphans included (see [`super::orphan_reaper`]). Blocks
/// for some scans of `/proc`.
pub fn kill_descendants() {
    for _ in 0..KILL_ROUNDS {
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
    use std::{
        collections::BTreeMap,
        process::{Command, Stdio},
    };

    use tokio::io::{AsyncBufReadExt as _, BufReader};

    use super::*;
    use crate::child::{Child, ChildProgram};

    fn running(pid: i32) -> ProcessEntry {
        let pid = Pid::from_raw(pid).expect("a number");
        ProcessEntry::read(pid).expect("readable").expect("it runs")
    }

    #[tokio::test]
    async fn a_process_group_with_a_reused_id_is_left_alone() {
        let shell = ChildProgram {
            command: "/bin/sh".into(),
            args: ["-c", "sleep 600 & echo $!; env -i sleep 600 & echo $!; read x"]
                .map(str::to_owned)
                .into(),
            env: BTreeMap::new(),
            cwd: None,
        };
        let (child, pipes) = Child::spawn(&shell).expect("starts");
        let mut lines = BufReader::new(pipes.stdout).lines();
        let mut next = async || {
            let line = lines.next_line().await.expect("readable").expect("a line");
            running(line.parse().expect("a number"))
        };
        let (marked, bare) = (next().await, next().await);
        while !bare.environment().is_some_and(|found| found.is_empty()) || bare.is_execing() {
            tokio::task::yield_now().await;
        }
        // While a program is started, its process has no environment either.
        let is_sleep = |process: &ProcessEntry| {
            let comm = std::fs::read_to_string(format!("/proc/{}/comm", process.pid));
            comm.is_ok_and(|comm| comm == "sleep\n")
        };
        while !is_sleep(&marked) || marked.environment().is_none_or(|found| found.is_empty()) {
            tokio::task::yield_now().await;
        }
        let leader = running(marked.group);
        let (group, since, marker) = (leader.pid, leader.started, ChildMarker::next());
        let environment = leader.environment().expect("readable");
        let ours = ChildMarker::find(&environment);
        for (marker, since, expected) in [
            (ours, since, [true, true, true]),
            // All of them are older.
            (ours, u64::MAX, [false, false, false]),
            // Another process leads the group: only the marker counts.
            (ours, since - 1, [true, true, false]),
            (marker, since - 1, [false, false, false]),
            (marker, since, [false, false, true]),
        ] {
            let descendants = ProcessDescendants::Child { group, marker, since };
            let found =
                [&leader, &marked, &bare].map(|process| descendants.has(process) == Some(true));
            assert_eq!(found, expected, "{descendants:?}");
        }
        drop(pipes.stdin);
        child.terminate(cancelled_token()).await;
        assert!(!bare.runs() && !marked.runs());
    }

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
