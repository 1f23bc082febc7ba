//! The memory limit of the control group of this process.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::config::defaults;

/// The directory of the kernel's control groups. Source: cgroups(7).
const ROOT: &str = "/sys/fs/cgroup";

/// The limit files of version 2 and version 1. Source: the kernel's "Control Group v2" and "Memory
/// Resource Controller".
const LIMITS: [&str; 3] = ["memory.max", "memory.high", "memory.limit_in_bytes"];

/// Returns the default size of the budget in bytes: a share of the memory limit of the control
/// group, or a constant without such a limit.
pub(super) fn default_max() -> usize {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    share_of(limit(Path::new(ROOT), &groups))
}

fn share_of(limit: Option<u64>) -> usize {
    // Version 1 writes a number near 2^63 for no limit.
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    let share = limit.map(|limit| limit / defaults::MEMORY_LIMIT_DIVISOR);
    let share = share.filter(|share| *share <= defaults::MEMORY_RANGE.1);
    share.unwrap_or(defaults::MEMORY_MAX).max(defaults::MEMORY_RANGE.0)
}

/// Returns the lowest limit of the `groups` of a process and of their ancestors.
fn limit(root: &Path, groups: &str) -> Option<u64> {
    // The format is hierarchy:controllers:path; version 2 has hierarchy 0 and no controllers.
    let places = groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let base = match controllers {
            "" => root.to_owned(),
            some if some.split(',').any(|name| name == "memory") => root.join("memory"),
            _ => return None,
        };
        Some((base, path.trim_start_matches('/').to_owned()))
    });
    places.filter_map(|(base, path)| lowest(&base, &path)).min()
}

fn lowest(base: &Path, path: &str) -> Option<u64> {
    let group = base.join(path);
    let above = group.ancestors().take_while(|group| group.starts_with(base)).map(PathBuf::from);
    above.flat_map(|group| LIMITS.map(|name| group.join(name))).filter_map(|file| read(&file)).min()
}

/// Returns the limit in a file, or `None` if it is `max`.
fn read(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_limit_of_a_group_and_its_ancestors_counts() {
        let root = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        };
        write("a.slice/b.service/memory.max", "max\n");
        write("a.slice/b.service/memory.high", "3000\n");
        write("a.slice/memory.max", "2000\n");
        write("memory/docker/x/memory.limit_in_bytes", "1000\n");
        let of = |groups: &str| limit(root.path(), groups);
        assert_eq!(of("0::/a.slice/b.service\n"), Some(2000));
        assert_eq!(of("0::/a.slice/b.service/../c\n0::/a.slice\n"), Some(2000));
        assert_eq!(of("5:cpu,memory:/docker/x\n0::/\n"), Some(1000));
        assert_eq!(of("5:cpu:/docker/x\n0::/elsewhere\n"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn half_of_the_limit_is_for_messages() {
        assert_eq!(share_of(Some(1 << 30)), 512 << 20);
        assert_eq!(share_of(None), defaults::MEMORY_MAX);
        assert_eq!(share_of(Some(9_223_372_036_854_771_712)), defaults::MEMORY_MAX);
        assert_eq!(
            share_of(Some(1 << 20)),
            defaults::MEMORY_RANGE.0,
            "the largest message fits in"
        );
    }
}
