//! The policy: everything that a process gives up.

use rustix::process::{Pid, Resource};

use super::system_call_rules::{SystemCallRule, script_calls};

/// The address space of a script's process, in bytes, with the program and its libraries. Chosen
/// for metamcp: an engine has a limit of its own, and refuses memory long before this.
const SCRIPT_ADDRESS_SPACE_BYTES: u64 = 256 << 20;

/// The processor time of a script's process, in seconds: the longest time that a script may take,
/// and some for the start. The service ends it before, unless the service itself has ended.
const SCRIPT_CPU_SECONDS: u64 = 130;

/// The largest stack of a script's process, in bytes: the usual one.
const SCRIPT_STACK_BYTES: u64 = 8 << 20;

/// The restrictions of a process: the policy, which [`confine`](super::confine) applies.
///
/// Descriptors, privileges, executable memory, files and connections are given up without a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restrictions {
    /// The parent, whose end also ends this process.
    pub parent: Pid,
    /// The upper limits of resources.
    pub limits: Vec<ResourceLimit>,
    /// The system calls that remain allowed.
    pub system_calls: Vec<SystemCallRule>,
}

/// An upper limit on a resource, which the process cannot raise again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceLimit {
    /// The resource.
    pub resource: Resource,
    /// The largest amount, in the unit of getrlimit(2).
    pub maximum: u64,
}

impl Restrictions {
    /// Returns the restrictions of a process that runs scripts of a model and talks over
    /// descriptor 0. `parent` is the process that spawned it.
    pub fn script_sandbox(parent: Pid) -> Self {
        let limits = [
            (Resource::As, SCRIPT_ADDRESS_SPACE_BYTES),
            (Resource::Cpu, SCRIPT_CPU_SECONDS),
            (Resource::Stack, SCRIPT_STACK_BYTES),
            (Resource::Core, 0),
            (Resource::Fsize, 0),
            (Resource::Memlock, 0),
            (Resource::Msgqueue, 0),
            (Resource::Nofile, 0),
            (Resource::Nproc, 0),
        ];
        Self {
            parent,
            limits: limits.map(|(resource, maximum)| ResourceLimit { resource, maximum }).into(),
            system_calls: script_calls(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script_sandbox() -> Restrictions {
        Restrictions::script_sandbox(Pid::INIT)
    }

    fn limit(restrictions: &Restrictions, resource: Resource) -> Vec<u64> {
        let limits = restrictions.limits.iter();
        limits.filter(|limit| limit.resource == resource).map(|limit| limit.maximum).collect()
    }

    #[test]
    fn a_script_has_no_files_processes_or_locked_memory() {
        let restrictions = script_sandbox();
        for resource in [
            Resource::Core,
            Resource::Fsize,
            Resource::Memlock,
            Resource::Msgqueue,
            Resource::Nofile,
            Resource::Nproc,
        ] {
            assert_eq!(limit(&restrictions, resource), [0], "{resource:?}");
        }
        for resource in [Resource::As, Resource::Cpu, Resource::Stack] {
            let limit = limit(&restrictions, resource);
            assert!(limit.len() == 1 && limit[0] > 0, "{resource:?}: {limit:?}");
        }
    }
}
