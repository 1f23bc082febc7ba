//! A control group for each sandbox, where systemd has delegated the service's own group to it.
//!
//! It is a layer beside the limits of the process itself: the kernel counts all memory that the
//! process takes, and ends only that process. Sources: "Control Group v2" of the kernel, and "Control
//! Group APIs and Delegation" of systemd.

use std::{
    collections::VecDeque,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use rustix::{fs::getxattr, process::Pid};

use crate::systemd::own_unit;

/// The directory of all groups. Source: cgroups(7).
const MOUNT: &str = "/sys/fs/cgroup";

/// The attribute that is `1` if systemd leaves a group to its processes, from version 251 on. All
/// groups of a user are writable, and those without it belong to the user's manager.
const DELEGATE_ATTRIBUTE: &str = "user.delegate";

/// The controllers that sandboxes need.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// The group that the service moves itself to. A group with processes can have no groups with these
/// controllers within, and `DelegateSubgroup=` of systemd 254 is the other way out.
const SERVICE_GROUP: &str = "service";

/// The begin of the names of the groups of sandboxes.
const SANDBOX_PREFIX: &str = "sandbox-";

/// The memory of a sandbox besides that of its engine, in bytes: its data, its stack, page tables,
/// messages, and the gaps between allocations. An idle one takes 3 MiB altogether.
const PROCESS_BYTES: usize = 32 << 20;

/// The pause before a group that still has a process is removed again.
const REMOVAL_PERIOD: Duration = Duration::from_millis(5);

/// The control group that systemd has delegated to this service.
pub(super) struct DelegatedCgroup {
    path: PathBuf,
    n_created: AtomicU64,
    /// The groups to remove once their processes have ended.
    ended: mpsc::Sender<PathBuf>,
}

/// The control group of one sandbox. Dropping it removes it, once its process has ended.
pub(super) struct SandboxCgroup {
    path: PathBuf,
    ended: mpsc::Sender<PathBuf>,
}

impl DelegatedCgroup {
    /// Returns the group that is delegated to this process, if there is one. The first call
    /// prepares it, which may move this process within the group.
    pub(super) fn of_service() -> Option<&'static Self> {
        static DELEGATED: OnceLock<Option<DelegatedCgroup>> = OnceLock::new();
        let find = || {
            let own = own_unit::group_of_main_process()?;
            let own = Path::new(MOUNT).join(own.trim_start_matches('/'));
            let (path, is_own) = delegated(&own, is_delegated)?;
            let prepared = Self::prepare(path, is_own);
            let report = |error: &io::Error| {
                tracing::debug!(%error, "the delegated control group cannot be used: {error}");
            };
            prepared.inspect_err(report).ok()
        };
        DELEGATED.get_or_init(find).as_ref()
    }

    /// Enables the controllers for groups within `path`. With `has_service`, this process moves to
    /// a group of its own before.
    fn prepare(path: &Path, has_service: bool) -> io::Result<Self> {
        let offered = fs::read_to_string(path.join("cgroup.controllers"))?;
        if let Some(missing) = missing_controller(&offered) {
            return Err(io::Error::other(format!("it lacks the controller `{missing}`")));
        }
        for entry in fs::read_dir(path)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(SANDBOX_PREFIX) {
                // Of a service that was killed, and its sandboxes with it.
                let _in_use = fs::remove_dir(entry.path());
            }
        }
        if has_service {
            let group = path.join(SERVICE_GROUP);
            match fs::create_dir(&group) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => fs::write(group.join("cgroup.procs"), std::process::id().to_string())?,
            }
        }
        let enabled = CONTROLLERS.map(|controller| format!("+{controller}")).join(" ");
        fs::write(path.join("cgroup.subtree_control"), enabled)?;
        let (ended, groups) = mpsc::channel();
        thread::Builder::new().name("control-groups".to_owned()).spawn(|| remove_all(groups))?;
        Ok(Self { path: path.to_owned(), n_created: AtomicU64::new(0), ended })
    }

    /// Moves a process that waits for its script to a group of its own, with memory for an engine
    /// of `engine_bytes`. Takes milliseconds.
    pub(super) fn isolate(&self, process: Pid, engine_bytes: usize) -> io::Result<SandboxCgroup> {
        let number = self.n_created.fetch_add(1, Ordering::Relaxed);
        let path = self.path.join(format!("{SANDBOX_PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&path)?;
        let group = SandboxCgroup { path, ended: self.ended.clone() };
        for (file, value) in settings(engine_bytes) {
            let file = group.path.join(file);
            match fs::write(&file, value) {
                // A kernel without accounting of swap has no such file.
                Err(_) if file.ends_with("memory.swap.max") && !file.exists() => {}
                written => written?,
            }
        }
        fs::write(group.path.join("cgroup.procs"), process.to_string())?;
        Ok(group)
    }
}

impl SandboxCgroup {
    /// Returns whether the kernel has ended the process because it needed more memory.
    pub(super) fn has_exhausted_memory(&self) -> bool {
        let events = fs::read_to_string(self.path.join("memory.events")).unwrap_or_default();
        n_killed(&events) > 0
    }
}

impl Drop for SandboxCgroup {
    fn drop(&mut self) {
        let _ending = self.ended.send(std::mem::take(&mut self.path));
    }
}

/// Returns the delegated group of a process in the group `own`, and whether it is `own`. The group
/// around it is delegated if the unit has `DelegateSubgroup=`.
fn delegated(own: &Path, is_delegated: impl Fn(&Path) -> bool) -> Option<(&Path, bool)> {
    match own.parent() {
        _ if is_delegated(own) => Some((own, true)),
        Some(unit) if is_delegated(unit) => Some((unit, false)),
        _ => None,
    }
}

fn is_delegated(group: &Path) -> bool {
    let mut value = [0; 2];
    matches!(getxattr(group, DELEGATE_ATTRIBUTE, &mut value), Ok(1)) && value[0] == b'1'
}

/// Returns a controller that is not among the `offered` ones of a group.
fn missing_controller(offered: &str) -> Option<&'static str> {
    CONTROLLERS
        .into_iter()
        .find(|controller| !offered.split_whitespace().any(|it| it == *controller))
}

/// Returns the settings of the group of a sandbox, each with its file.
fn settings(engine_bytes: usize) -> [(&'static str, String); 4] {
    [
        ("memory.max", engine_bytes.saturating_add(PROCESS_BYTES).to_string()),
        ("memory.swap.max", "0".to_owned()),
        ("memory.oom.group", "1".to_owned()),
        ("pids.max", "1".to_owned()),
    ]
}

/// Returns the number of processes that a lack of memory has ended, from `memory.events`.
fn n_killed(events: &str) -> u64 {
    let number = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Removes each group once it has no process.
#[expect(clippy::needless_pass_by_value, reason = "the thread owns the receiver")]
fn remove_all(ended: mpsc::Receiver<PathBuf>) {
    let mut groups = VecDeque::new();
    loop {
        let next = match groups.is_empty() {
            true => ended.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
            false => ended.recv_timeout(REMOVAL_PERIOD),
        };
        match next {
            Ok(group) => groups.push_back(group),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
        let is_busy = |group: &PathBuf| {
            let removed = fs::remove_dir(group);
            removed.is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy)
        };
        groups.retain(is_busy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_the_process_or_the_one_around_it_is_delegated() {
        let unit = Path::new("/cgroup/system.slice/metamcp.service");
        let of_unit = |group: &Path| group == unit;
        assert_eq!(delegated(unit, of_unit), Some((unit, true)));
        assert_eq!(delegated(&unit.join("main"), of_unit), Some((unit, false)));
        assert_eq!(delegated(&unit.join("main/deeper"), of_unit), None);
        assert_eq!(delegated(unit, |_| false), None);
        let temporary = tempfile::tempdir().unwrap();
        assert!(!is_delegated(temporary.path()), "a writable directory alone is no sign");
    }

    #[test]
    fn a_sandbox_gets_a_group_with_limits_that_is_removed_at_its_end() {
        let temporary = tempfile::tempdir().unwrap();
        let unit = temporary.path();
        fs::create_dir(unit.join("sandbox-1-0")).unwrap();
        fs::write(unit.join("cgroup.controllers"), "cpu pids\n").unwrap();
        let refused = DelegatedCgroup::prepare(unit, true).err().unwrap().to_string();
        assert_eq!(refused, "it lacks the controller `memory`");
        assert!(!unit.join("service").exists(), "the process has stayed");
        fs::write(unit.join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        let cgroup = DelegatedCgroup::prepare(unit, true).unwrap();
        let read = |path: PathBuf| fs::read_to_string(path).unwrap();
        assert!(!unit.join("sandbox-1-0").exists(), "the group of an earlier service");
        assert_eq!(read(unit.join("service/cgroup.procs")), std::process::id().to_string());
        assert_eq!(read(unit.join("cgroup.subtree_control")), "+memory +pids");

        let sandbox = cgroup.isolate(Pid::from_raw(7).expect("a number"), 1 << 20).unwrap();
        let path = sandbox.path.clone();
        for (file, expected) in [
            ("memory.max", "34603008"),
            ("memory.swap.max", "0"),
            ("memory.oom.group", "1"),
            ("pids.max", "1"),
            ("cgroup.procs", "7"),
        ] {
            assert_eq!(read(path.join(file)), expected, "{file}");
            fs::remove_file(path.join(file)).unwrap();
        }
        assert!(!sandbox.has_exhausted_memory());
        drop(sandbox);
        while path.exists() {
            thread::yield_now();
        }
    }

    #[test]
    fn only_a_process_that_was_ended_has_exhausted_its_memory() {
        assert_eq!(n_killed("low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 1\n"), 1);
        assert_eq!(n_killed("low 0\nhigh 0\nmax 12\noom 1\noom_kill 0\noom_group_kill 0\n"), 0);
        assert_eq!(n_killed(""), 0);
    }
}
