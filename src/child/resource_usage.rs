//! The memory and the processor time of processes, as the kernel counts them.
//!
//! The memory of a process is the proportional set size: memory that it shares with others, such as the
//! code of a runtime, is divided among them, so that sums are correct. For a systemd unit, it is
//! the use of its cgroup. Everything here blocks, and stops at a given time.

use std::{collections::HashMap, fs, iter::Sum, path::Path, time::Duration};

use tokio::time::Instant;

/// The directory of the cgroups of system units. Source: systemd's cgroup delegation documentation.
const SYSTEM_UNITS: &str = "/sys/fs/cgroup/system.slice";

/// The maximum depth of template instances below that directory. Source: systemd.slice(5): the
/// instances of a template have their own slice.
const LEVELS_MAX: usize = 2;

/// The resources that processes use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    /// The memory, in bytes.
    pub memory_bytes: u64,
    /// The processor time since the start of each process that still runs.
    pub cpu: Duration,
}

impl Sum for ResourceUsage {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            memory_bytes: sum.memory_bytes + one.memory_bytes,
            cpu: sum.cpu + one.cpu,
        })
    }
}

/// Returns the resources of this process alone.
pub fn of_this_process() -> Option<ResourceUsage> {
    of_process("self")
}

/// Returns the resources of each of `roots` with all its descendants. Processes that are not
/// readable, or not measured in time, are missing.
pub fn of_trees(roots: &[u32], until: Instant) -> HashMap<u32, ResourceUsage> {
    let mut parents: HashMap<u32, Vec<u32>> = HashMap::new();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        if Instant::now() >= until {
            return HashMap::new();
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let Some((parent, group)) = parent_and_group(&stat) else { continue };
        parents.entry(parent).or_default().push(pid);
        // An orphan is still in the group of the child that it came from.
        if group != pid && group != parent {
            parents.entry(group).or_default().push(pid);
        }
    }
    let tree = |root: u32| {
        let (mut found, mut next) = (vec![root], 0);
        while let Some(pid) = found.get(next).copied() {
            next += 1;
            for child in parents.get(&pid).into_iter().flatten() {
                if !found.contains(child) {
                    found.push(*child);
                }
            }
        }
        found
    };
    let mut measured = HashMap::new();
    for root in roots {
        let mut found = Vec::new();
        for pid in tree(*root) {
            if Instant::now() >= until {
                return measured;
            }
            found.extend(of_process(&pid.to_string()));
        }
        if !found.is_empty() {
            measured.insert(*root, found.into_iter().sum());
        }
    }
    measured
}

/// Returns the resources of all instances of the unit template `name`, if readable.
pub fn of_unit(name: &str, until: Instant) -> Option<ResourceUsage> {
    instances(Path::new(SYSTEM_UNITS), &format!("{name}@"), LEVELS_MAX, until)
}

fn instances(
    directory: &Path,
    prefix: &str,
    n_levels: usize,
    until: Instant,
) -> Option<ResourceUsage> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).ok()?.flatten() {
        if Instant::now() >= until {
            return None;
        }
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(prefix) && name.ends_with(".service") {
            found.extend(of_cgroup(&entry.path()));
        } else if n_levels > 1 && name.ends_with(".slice") {
            found.extend(instances(&entry.path(), prefix, n_levels - 1, until));
        }
    }
    (!found.is_empty()).then(|| found.into_iter().sum())
}

/// Reads the resources of a control group. Source: the kernel, "Control Group v2".
fn of_cgroup(directory: &Path) -> Option<ResourceUsage> {
    let memory = fs::read_to_string(directory.join("memory.current")).ok()?;
    let cpu = fs::read_to_string(directory.join("cpu.stat")).unwrap_or_default();
    let micros = cpu.lines().find_map(|line| line.strip_prefix("usage_usec "));
    let micros = micros.and_then(|micros| micros.trim().parse().ok()).unwrap_or_default();
    Some(ResourceUsage {
        memory_bytes: memory.trim().parse().ok()?,
        cpu: Duration::from_micros(micros),
    })
}

/// Reads the parent and the group of a process. Source: `proc_pid_stat(5)`.
fn parent_and_group(stat: &str) -> Option<(u32, u32)> {
    // pid (name) state parent group …; the name may hold anything.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn of_process(process: &str) -> Option<ResourceUsage> {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let cpu = cpu_time(&stat, rustix::param::clock_ticks_per_second()).unwrap_or_default();
    Some(ResourceUsage { memory_bytes: pss(&rollup)?, cpu })
}

/// Reads the processor time of a process, and of its children that have ended, at so many ticks in
/// a second. Source: `proc_pid_stat(5)`.
fn cpu_time(stat: &str, ticks_per_second: u64) -> Option<Duration> {
    // Fields 14 to 17; the first one here is the third.
    let fields = stat.rsplit_once(") ")?.1.split(' ').skip(11).take(4);
    let ticks: u64 = fields.map(|ticks| ticks.parse::<u64>().unwrap_or_default()).sum();
    Some(Duration::from_millis(ticks * 1000 / ticks_per_second.max(1)))
}

/// Reads the proportional set size, in bytes. Source: `proc_pid_smaps(5)`.
fn pss(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_reader_parses_the_files_of_the_kernel() {
        let rollup = "55d0-7ffd ---p 00000000 00:00 0 [rollup]\nRss: 9000 kB\nPss:   4321 kB\nPss_Dirty: 1 kB\n";
        assert_eq!(pss(rollup), Some(4321 << 10));
        assert_eq!(pss(""), None);
        assert_eq!(parent_and_group("7 (a) b) S 5 6 7 0"), Some((5, 6)));
        assert_eq!(parent_and_group("7 (a"), None);
        let stat = "7 (a) b) S 5 6 7 0 -1 4 10 0 0 0 150 30 15 5 20 0 1";
        assert_eq!(cpu_time(stat, 100), Some(Duration::from_secs(2)));
        assert_eq!(cpu_time("7 (a", 100), None);
    }

    #[test]
    fn the_process_tree_contains_its_root() {
        let until = Instant::now() + Duration::from_secs(60);
        let us = std::process::id();
        let (alone, tree) = (of_this_process().expect("readable"), of_trees(&[us], until));
        assert!(alone.memory_bytes > 1 << 20 && tree.contains_key(&us), "{alone:?} {tree:?}");
        assert!(of_trees(&[us], Instant::now()).is_empty(), "there is no time left");
        assert!(of_trees(&[u32::MAX], until).is_empty(), "there is no such process");
    }

    #[test]
    fn instances_of_a_template_are_found_in_its_slice() {
        let directory = tempfile::tempdir().expect("a directory");
        for (path, bytes) in [
            ("system-git.slice/git@1-2.service", "100\n"),
            ("system-git.slice/git@3-4.service", "20\n"),
            ("git@5.service", "3\n"),
            ("git.service", "1000\n"),
            ("system-github.slice/github@1.service", "1000\n"),
        ] {
            let path = directory.path().join(path);
            fs::create_dir_all(&path).expect("made");
            fs::write(path.join("memory.current"), bytes).expect("written");
            fs::write(path.join("cpu.stat"), "usage_usec 1000\nuser_usec 1\n").expect("written");
        }
        let until = Instant::now() + Duration::from_secs(60);
        let expected = ResourceUsage { memory_bytes: 123, cpu: Duration::from_millis(3) };
        assert_eq!(instances(directory.path(), "git@", LEVELS_MAX, until), Some(expected));
        assert_eq!(instances(directory.path(), "hub@", LEVELS_MAX, until), None);
    }
}
