//! The reasons why a process could not be confined.

use std::io;

use caps::errors::CapsError;
use landlock::RulesetError;
use rustix::process::{Pid, Resource};
use thiserror::Error;

use super::{ConfinementLayer, IsolationUnavailable};

/// An error of a layer. The process is only partly confined, and must end without running the code.
#[derive(Debug, Error)]
pub enum ConfineError {
    /// The kernel or a filter around this process lacks what confinement needs.
    #[error("this host cannot confine a process")]
    Unavailable(#[from] IsolationUnavailable),
    /// The restrictions of a thread do not cover those that run already.
    #[error("the process has {n_threads} threads, and confinement covers only the first")]
    SeveralThreads {
        /// The number of threads.
        n_threads: u32,
    },
    /// The threads of the process cannot be counted.
    #[error("cannot count the threads of this process in `/proc/self/task`")]
    UncountedThreads(#[source] io::Error),
    /// Inherited descriptors stay open.
    #[error("cannot close the inherited descriptors")]
    OpenDescriptors(#[source] io::Error),
    /// A limit stays where it is.
    #[error("cannot lower the limit on the resource {resource:?} to {maximum}")]
    ResourceLimit {
        /// The resource.
        resource: Resource,
        /// The limit.
        maximum: u64,
        /// The reason.
        source: io::Error,
    },
    /// The process would outlive its parent.
    #[error("cannot tie the life of this process to that of its parent")]
    ParentDeath(#[source] io::Error),
    /// The parent ended before the life of this process was tied to its own.
    #[error("the parent of this process is {}, and not {}", found.as_raw_nonzero(), expected.as_raw_nonzero())]
    OtherParent {
        /// The process that should be the parent.
        expected: Pid,
        /// The parent.
        found: Pid,
    },
    /// Other processes could read the memory of this one.
    #[error("cannot close the memory of this process to other processes")]
    ReadableMemory(#[source] io::Error),
    /// A program could give the process new privileges.
    #[error("cannot renounce new privileges")]
    NewPrivileges(#[source] io::Error),
    /// Capabilities remain.
    #[error("cannot drop the capabilities of this process")]
    Capabilities(#[source] CapsError),
    /// The process could make memory executable.
    #[error("cannot renounce executable memory")]
    ExecutableMemory(#[source] io::Error),
    /// Files and connections remain within reach.
    #[error("cannot deny files and connections with Landlock")]
    Landlock(#[source] RulesetError),
    /// Landlock reported success, and enforces nothing.
    #[error("Landlock does not enforce the denial of files")]
    LandlockUnenforced,
    /// The list of system calls is invalid.
    #[error("cannot compile the list of system calls")]
    InvalidRules(#[source] seccompiler::BackendError),
    /// All system calls remain allowed.
    #[error("cannot install the filter of system calls")]
    Filter(#[source] seccompiler::Error),
}

impl ConfineError {
    /// Returns the layer that failed.
    pub fn layer(&self) -> ConfinementLayer {
        match self {
            Self::Unavailable(_) | Self::SeveralThreads { .. } | Self::UncountedThreads(_) => {
                ConfinementLayer::Preconditions
            }
            Self::OpenDescriptors(_) => ConfinementLayer::Descriptors,
            Self::ResourceLimit { .. } => ConfinementLayer::Limits,
            Self::ParentDeath(_) | Self::OtherParent { .. } => ConfinementLayer::ParentDeath,
            Self::ReadableMemory(_) => ConfinementLayer::PrivateMemory,
            Self::NewPrivileges(_) => ConfinementLayer::NewPrivileges,
            Self::Capabilities(_) => ConfinementLayer::Capabilities,
            Self::ExecutableMemory(_) => ConfinementLayer::ExecutableMemory,
            Self::Landlock(_) | Self::LandlockUnenforced => ConfinementLayer::Landlock,
            Self::InvalidRules(_) | Self::Filter(_) => ConfinementLayer::SystemCalls,
        }
    }

    /// Returns the remedy for the operator.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "`metamcp doctor` checks it again.",
            Self::SeveralThreads { .. } | Self::InvalidRules(_) | Self::LandlockUnenforced => {
                "Report this as a bug of metamcp, which starts the process."
            }
            Self::UncountedThreads(_) => "Mount /proc where metamcp runs.",
            Self::OpenDescriptors(_) => {
                "Allow the system call close_range, in Linux since 5.9, to the service."
            }
            Self::ResourceLimit { .. } => "Allow the system call prlimit64 to the service.",
            Self::OtherParent { .. } => {
                "The service ended or was restarted meanwhile: repeat the call."
            }
            Self::ParentDeath(_)
            | Self::ReadableMemory(_)
            | Self::NewPrivileges(_)
            | Self::ExecutableMemory(_) => "Allow the system call prctl to the service.",
            Self::Capabilities(_) => "Allow the system call capset to the service.",
            Self::Landlock(_) => {
                "Allow the system calls landlock_create_ruleset and landlock_restrict_self to the service."
            }
            Self::Filter(_) => "Allow the system call seccomp to the service.",
        }
    }
}
