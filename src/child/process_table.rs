//! Processes as `/proc` shows them.
//!
//! Hand-made: `procfs` parses every field of a process, and five of them count here.

use std::{
    fs, io,
    os::{fd::OwnedFd, unix::fs::MetadataExt as _},
    path::PathBuf,
    thread,
    time::Duration,
};

use rustix::process::{
    Pid, PidfdFlags, Signal, geteuid, getuid, kill_process, pidfd_open, pidfd_send_signal,
};

/// The flag of a kernel thread. Source: `PF_KTHREAD` in Linux' `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The flag of a process that is about to end. Source: `PF_EXITING`, as above.
const EXITING: u64 = 0x0000_0004;

/// The longest wait for the environment of a new program during an exec. The kernel reads the
/// program from disk meanwhile.
pub(super) const EXEC_PATIENCE: Duration = Duration::from_secs(1);

/// The pause between two checks for the environment.
pub(super) const EXEC_PAUSE: Duration = Duration::from_millis(5);

/// A process that ran a moment ago. Another process may have its number by now, but never its
/// number and start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessEntry {
    pub(super) pid: Pid,
    /// The process that started it, or that has adopted it since; `None` if that is outside of this
    /// PID namespace.
    pub(super) parent: Option<Pid>,
    pub(super) group: i32,
    /// The start time, in ticks since the system booted.
    pub(super) started: u64,
    /// It is about to end: its memory may be gone while its files are still open.
    is_ending: bool,
}

/// A process that is pinned, so that a signal cannot reach another one.
#[derive(Debug)]
pub(super) struct PinnedProcess {
    pub(super) process: ProcessEntry,
    /// `None` if the kernel has no such handles: the process may end between check and signal.
    handle: Option<OwnedFd>,
}

impl ProcessEntry {
    /// Returns every process that runs.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Self::read(Pid::from_raw(pid)?).ok()?
        })
    }

    /// Returns the process of this number if it runs. Zombies and kernel threads do not count. A
    /// process that is about to end counts: it may still hold a socket when its memory is gone.
    pub(super) fn read(pid: Pid) -> io::Result<Option<Self>> {
        let stat = fs::read_to_string(path(pid, "stat"))?;
        Ok(Self::parse(pid, &stat))
    }

    /// Parses the `stat` of a process. Source: `proc_pid_stat(5)`.
    fn parse(pid: Pid, stat: &str) -> Option<Self> {
        // pid (name) state parent group session terminal its-group flags …; the name may hold
        // anything.
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        let is_dead = matches!(fields.next()?, "Z" | "X");
        let parent = Pid::from_raw(fields.next()?.parse().ok()?);
        let group = fields.next()?.parse().ok()?;
        let flags: u64 = fields.nth(3)?.parse().ok()?;
        let started = fields.nth(12)?.parse().ok()?;
        let (is_of_kernel, is_ending) = (flags & KERNEL_THREAD != 0, flags & EXITING != 0);
        (!is_dead && !is_of_kernel).then_some(Self { pid, parent, group, started, is_ending })
    }

    /// Returns the environment that it was started with, as `NAME=VALUE` and a NUL each, if
    /// readable. It is empty during an exec, and empty or missing when the process ends.
    pub(super) fn environment(&self) -> Option<Vec<u8>> {
        fs::read(path(self.pid, "environ")).ok()
    }

    /// Returns [`ProcessEntry::environment`] after a current exec; `None` if that takes too long.
    /// Blocks meanwhile.
    pub(super) fn settled_environment(&self) -> Option<Vec<u8>> {
        let n_looks = EXEC_PATIENCE.as_millis() / EXEC_PAUSE.as_millis();
        for _ in 0..n_looks {
            let environment = self.environment()?;
            if !environment.is_empty() || !self.is_execing() {
                return Some(environment);
            }
            thread::sleep(EXEC_PAUSE);
        }
        None
    }

    /// Returns whether an exec is under way, or has ended since [`ProcessEntry::environment`] was
    /// empty.
    pub(super) fn is_execing(&self) -> bool {
        let has_none = fs::read_to_string(path(self.pid, "stat")).is_ok_and(|stat| {
            // The 51st field is the end of the environment. Source: `proc_pid_stat(5)`.
            let mut fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
            fields.nth(48) == Some("0")
        });
        has_none || self.environment().is_some_and(|environment| !environment.is_empty())
    }

    /// Returns whether it is a process of this user that is about to end: its environment is no
    /// longer readable.
    pub(super) fn is_ending(&self) -> bool {
        matches!(Self::read(self.pid), Ok(Some(now)) if now.is_ending && now.started == self.started)
            && self.is_own_user()
    }

    /// Returns whether it is a process of this user.
    pub(super) fn is_own_user(&self) -> bool {
        fs::metadata(path(self.pid, "")).is_ok_and(|entry| entry.uid() == getuid().as_raw())
    }

    /// Returns whether it has the socket `inode` open; `None` if its files are not readable.
    pub(super) fn has_socket(&self, inode: u32) -> Option<bool> {
        let link = format!("socket:[{inode}]");
        let mut is_seen_whole = true;
        for file in fs::read_dir(path(self.pid, "fd")).ok()?.flatten() {
            match fs::read_link(file.path()) {
                Ok(to) if *to == *link => return Some(true),
                Ok(_) => {}
                // The file was closed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => is_seen_whole = false,
            }
        }
        is_seen_whole.then_some(false)
    }

    /// Returns whether it cannot descend from this process: it belongs to another user, or it has a
    /// capability outside of this bounding set in the same user namespace.
    pub(super) fn is_unrelated(&self) -> bool {
        let read =
            |process: &str, file: &str| fs::read_to_string(format!("/proc/{process}/{file}"));
        let its = self.pid.as_raw_nonzero().to_string();
        let (Ok(status), Ok(ours)) = (read(&its, "status"), read("self", "status")) else {
            return false;
        };
        let has_same_namespace = || {
            // A namespace that a process without capabilities creates has one user.
            let maps = (read(&its, "uid_map"), read("self", "uid_map"));
            matches!(maps, (Ok(its), Ok(ours)) if its == ours && !its.is_empty())
        };
        !has_user(&status, geteuid().as_raw())
            || (capabilities(&status, "CapPrm:") & !capabilities(&ours, "CapBnd:") != 0
                && has_same_namespace())
    }

    /// Returns whether it still runs.
    pub(super) fn runs(&self) -> bool {
        matches!(Self::read(self.pid), Ok(Some(now)) if now.started == self.started)
    }

    /// Pins it; `None` if it has ended.
    pub(super) fn pin(self) -> Option<PinnedProcess> {
        let handle = match pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(handle) => Some(handle),
            Err(rustix::io::Errno::SRCH) => return None,
            Err(_) => None,
        };
        // Only this check proves that the handle belongs to it.
        self.runs().then_some(PinnedProcess { process: self, handle })
    }
}

impl PinnedProcess {
    /// Sends it a signal.
    pub(super) fn signal(&self, signal: Signal) {
        // Fails if it has ended, or now belongs to another user.
        let _gone = match &self.handle {
            Some(handle) => pidfd_send_signal(handle, signal),
            None if self.process.runs() => kill_process(self.process.pid, signal),
            None => Ok(()),
        };
    }
}

/// Returns whether a process has the rights of `uid`. Source: `proc_pid_status(5)`.
fn has_user(status: &str, uid: u32) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    // Without the line, it may have them.
    line.is_none_or(|line| line.split_whitespace().any(|word| word.parse() == Ok(uid)))
}

/// Returns a set of capabilities in the `status` of a process, as bits; all if it is missing.
fn capabilities(status: &str, set: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(set));
    line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok()).unwrap_or(u64::MAX)
}

fn path(pid: Pid, file: &str) -> PathBuf {
    format!("/proc/{}/{file}", pid.as_raw_nonzero()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(stat: &str) -> Option<ProcessEntry> {
        ProcessEntry::parse(Pid::from_raw(7).expect("a number"), stat)
    }

    fn parse(stat: &str) -> Option<(i32, u64)> {
        process(stat).map(|process| (process.group, process.started))
    }

    #[test]
    fn the_stat_parser_accepts_any_process_name() {
        let rest = "5 5 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4242 8192 1 0";
        for name in ["sh", "a) S 1 9 (b", ") Z 1 2", ""] {
            assert_eq!(parse(&format!("7 ({name}) S 1 {rest}")), Some((5, 4242)), "{name}");
            assert_eq!(parse(&format!("7 ({name}) Z 1 {rest}")), None, "{name}");
        }
        assert!(!process(&format!("7 (sh) S 1 {rest}")).expect("it runs").is_ending);
        let thread_of_kernel = "7 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0";
        assert_eq!(parse(thread_of_kernel), None);
        // Its memory is gone, but its files may be open.
        let ends = "7 (sh) R 1 5 5 0 -1 4194316 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        assert_eq!(parse(ends), Some((5, 4242)));
        assert!(process(ends).expect("it runs").is_ending);
        assert_eq!(parse("7 (sh) S 1"), None);
    }

    #[test]
    fn the_user_and_the_capabilities_of_a_process_are_read() {
        let status = "Name:\tsh\nUid:\t1000\t1000\t7\t1000\nCapPrm:\t0000000000000400\nCapBnd:\t00000000000001ff\n";
        assert!(has_user(status, 1000) && has_user(status, 7) && has_user("", 8));
        assert!(!has_user(status, 100));
        let [permitted, bounding] = ["CapPrm:", "CapBnd:"].map(|set| capabilities(status, set));
        assert_eq!((permitted, bounding), (0x400, 0x1ff));
    }

    #[test]
    fn the_process_table_contains_this_process() {
        let pid = rustix::process::getpid();
        let ours = ProcessEntry::read(pid).expect("readable").expect("it runs");
        assert!(ours.runs() && ours.is_own_user());
        assert!(ProcessEntry::all().any(|process| process == ours));
        let later = ProcessEntry { started: ours.started + 1, ..ours };
        assert!(!later.runs() && later.pin().is_none(), "another process of the same number");
    }
}
