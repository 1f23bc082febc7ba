//! The confinement of this process before it runs untrusted code.
//!
//! A process calls [`confine`] once, while it has one thread, and keeps descriptor 0: the socket to
//! the process that spawned it. There is no way back. [`Restrictions`] is the policy and
//! [`isolation_support`] tells beforehand whether this host can enforce it.
//!
//! | layer, in this order | stops |
//! |---|---|
//! | descriptors closed, except for 0 and a `/dev/null` as 2 | files and sockets that the parent left open |
//! | resource limits, hard and soft | exhausted memory and processor time; with 0: files, processes, core dumps, locked memory |
//! | `PR_SET_PDEATHSIG` | a process that outlives its parent |
//! | not dumpable | debuggers and readers of `/proc/PID/mem` of the same user |
//! | no new privileges | programs with set-user-ID or file capabilities |
//! | no capabilities, in all sets | the rights of root, except for the files of root |
//! | `PR_SET_MDWE` (Linux 6.3) | memory that becomes executable: shellcode |
//! | Landlock (Linux 5.13) | opening, creating, changing files; from 6.7 on TCP; from 6.12 on signals and abstract sockets |
//! | no further descriptors (`RLIMIT_NOFILE` 0) | sockets, pipes and handles of any kind |
//! | list of system calls (seccomp) | all other interfaces of the kernel: the process is killed |
//!
//! The last layer alone would suffice; the others remain if one of the 16 allowed calls is misused or
//! the filter has a gap. None needs a namespace, a capability or root, and all work inside the
//! sandbox of the service's unit. A control group is the caller's business:
//! `src/script/sandbox_cgroup.rs`.
//!
//! Consequences for the confined code:
//!
//! - It uses `read` and `write` on descriptor 0. `recv`, `send`, `poll` and vectored writes are not on
//!   the list: the standard library's `UnixStream` receives with `recv`, and a `File` reads.
//! - Exhausted memory is an error of the allocator. A panic or an abort is a death by `SIGSYS`,
//!   because both make other calls: a panic hook that exits makes it a status.
//! - The environment stays in memory: spawn the process with an empty one.
//! - Local time is that of the zone at the confinement.
//! - The kernel sends the death signal when the *thread* that spawned the process ends. So a thread
//!   spawns it that lives as long as the process should.

mod confine_error;
mod isolation_support;
mod kernel_calls;
mod landlock_domain;
mod open_descriptors;
pub mod privilege_drop;
mod restrictions;
mod system_call_rules;

use std::{fmt, io};

use rustix::{
    fs::{AtFlags, CWD, StatxFlags, statx},
    process::{
        Pid, Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal,
        setrlimit,
    },
    thread::set_no_new_privs,
};

pub use self::{
    confine_error::ConfineError,
    isolation_support::{IsolationSupport, IsolationUnavailable, isolation_support},
    restrictions::{ResourceLimit, Restrictions},
    system_call_rules::{ArgumentCondition, SystemCallRule},
};

/// A layer of the confinement, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfinementLayer {
    /// The conditions that are checked before anything is given up.
    Preconditions,
    /// Inherited descriptors.
    Descriptors,
    /// Limits on resources.
    Limits,
    /// The tie to the parent.
    ParentDeath,
    /// The memory that other processes cannot read.
    PrivateMemory,
    /// The renunciation of new privileges.
    NewPrivileges,
    /// The capabilities.
    Capabilities,
    /// The renunciation of executable memory.
    ExecutableMemory,
    /// The denial of files and connections.
    Landlock,
    /// The list of system calls.
    SystemCalls,
}

/// The confinement that is in force, as far as it depends on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfinementReport {
    /// The version of Landlock's interface.
    pub landlock_version: i32,
    /// True if the kernel refuses memory that becomes executable, besides the filter.
    pub refuses_executable_memory: bool,
    /// The number of capabilities that the process had.
    pub n_capabilities_dropped: usize,
}

impl fmt::Display for ConfinementReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { landlock_version, refuses_executable_memory, n_capabilities_dropped } = self;
        let memory = if *refuses_executable_memory { "refused" } else { "filtered" };
        write!(
            f,
            "Landlock {landlock_version}, executable memory {memory}, {n_capabilities_dropped} capabilities dropped"
        )
    }
}

/// Confines this process for good.
///
/// Call this while the process has one thread and owns no value for a descriptor other than 0 and
/// 2: all others are closed.
///
/// # Errors
///
/// [`ConfineError`] if a layer cannot be applied. The process must then end without running the
/// code: earlier layers stay.
pub fn confine(restrictions: &Restrictions) -> Result<ConfinementReport, ConfineError> {
    let IsolationSupport { landlock_version } = isolation_support()?;
    let filter =
        system_call_rules::compile(&restrictions.system_calls, isolation_support::architecture()?)
            .map_err(ConfineError::InvalidRules)?;
    check_threads()?;
    kernel_calls::keep_freed_memory();
    kernel_calls::read_time_zone();
    open_descriptors::close_inherited().map_err(ConfineError::OpenDescriptors)?;
    // Landlock needs one descriptor for a moment.
    let (descriptors, others): (Vec<_>, Vec<_>) =
        restrictions.limits.iter().partition(|limit| limit.resource == Resource::Nofile);
    lower(&others)?;
    tie_to_parent(restrictions.parent)?;
    privilege_drop::forbid_dumps().map_err(ConfineError::ReadableMemory)?;
    set_no_new_privs(true).map_err(|errno| ConfineError::NewPrivileges(errno.into()))?;
    let n_capabilities_dropped = privilege_drop::drop_all().map_err(ConfineError::Capabilities)?;
    let refuses_executable_memory =
        kernel_calls::refuse_executable_memory().map_err(ConfineError::ExecutableMemory)?;
    landlock_domain::enter()?;
    lower(&descriptors)?;
    seccompiler::apply_filter(&filter).map_err(ConfineError::Filter)?;
    Ok(ConfinementReport { landlock_version, refuses_executable_memory, n_capabilities_dropped })
}

/// Checks that the process has one thread, by the links to the directory of its threads.
fn check_threads() -> Result<(), ConfineError> {
    let directory = statx(CWD, "/proc/self/task", AtFlags::empty(), StatxFlags::NLINK)
        .map_err(|errno| ConfineError::UncountedThreads(errno.into()))?;
    // The directory has two links besides those of the threads.
    match directory.stx_nlink.saturating_sub(2) {
        1 => Ok(()),
        n_threads => Err(ConfineError::SeveralThreads { n_threads }),
    }
}

/// Lowers the soft and the hard limits. A limit that is lower already stays.
fn lower(limits: &[&ResourceLimit]) -> Result<(), ConfineError> {
    for &&ResourceLimit { resource, maximum } in limits {
        let lowest = getrlimit(resource).maximum.map_or(maximum, |current| current.min(maximum));
        let limit = Rlimit { current: Some(lowest), maximum: Some(lowest) };
        setrlimit(resource, limit).map_err(|errno| ConfineError::ResourceLimit {
            resource,
            maximum,
            source: errno.into(),
        })?;
    }
    Ok(())
}

/// Has the kernel kill this process when `parent` ends, a part of [`confine`].
///
/// # Errors
///
/// [`ConfineError`] if the parent has ended, or is another one.
pub fn tie_to_parent(parent: Pid) -> Result<(), ConfineError> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|errno| ConfineError::ParentDeath(errno.into()))?;
    // The parent may have ended before.
    match getppid() {
        Some(found) if found == parent => Ok(()),
        Some(found) => Err(ConfineError::OtherParent { expected: parent, found }),
        None => Err(ConfineError::ParentDeath(io::ErrorKind::NotFound.into())),
    }
}
