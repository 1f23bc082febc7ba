//! The resource usage of a process, as counted by the kernel.

use std::{fs, time::Duration};

/// The memory of a process, in KiB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// All resident memory, including pages of the program's file.
    pub(crate) resident: f64,
    /// The memory that the process has written: heap and stacks.
    pub(crate) anonymous: f64,
}

/// Returns the processor time of all running threads of some processes.
///
/// The scheduler counts nanoseconds per thread.
pub(crate) fn cpu(pids: &[u32]) -> Duration {
    let threads = pids
        .iter()
        .flat_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs"));
    let nanoseconds = threads.filter_map(Result::ok).filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// Returns the memory of a process.
pub(crate) fn memory(pid: u32) -> Memory {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("the process runs");
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let number = line.and_then(|line| line.trim().strip_suffix("kB"));
        number.and_then(|number| number.trim().parse().ok()).expect("the kernel reports it")
    };
    Memory { resident: field("Rss"), anonymous: field("Anonymous") }
}
