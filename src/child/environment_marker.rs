//! The marker that identifies the descendants of a child.

use std::{
    fmt, fs,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::{
    io::Errno,
    process::{Pid, getpid, test_kill_process},
};

use super::{environment::MARKER, process_table::ProcessEntry};

/// One process of the service on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServiceMarker {
    pid: Pid,
    started: u64,
    /// The PID namespace of `pid`.
    namespace: u64,
}

/// The marker in the environment of all descendants of one child: the service and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChildMarker {
    service: ServiceMarker,
    number: u64,
}

impl ServiceMarker {
    /// Returns this service; `None` without `/proc`, and its children are then not marked.
    pub(super) fn ours() -> Option<Self> {
        static OURS: OnceLock<Option<ServiceMarker>> = OnceLock::new();
        *OURS.get_or_init(|| {
            let pid = getpid();
            let started = ProcessEntry::read(pid).ok()??.started;
            let link = fs::read_link("/proc/self/ns/pid").ok()?;
            let namespace = link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?;
            Some(Self { pid, started, namespace: namespace.parse().ok()? })
        })
    }

    /// Returns whether the service has provably ended. In another PID namespace that is unknown,
    /// and the result is `false`.
    pub(super) fn has_ended(&self) -> bool {
        if Self::ours().is_none_or(|ours| ours.namespace != self.namespace) {
            return false;
        }
        match ProcessEntry::read(self.pid) {
            Ok(now) => now.is_none_or(|now| now.started != self.started),
            // `/proc` may hide it from this user.
            Err(_) => test_kill_process(self.pid) == Err(Errno::SRCH),
        }
    }
}

impl ChildMarker {
    /// Returns a marker that no other child has, of any service.
    pub(super) fn next() -> Option<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        ServiceMarker::ours().map(|service| Self { service, number })
    }

    /// Returns the service that started the child.
    pub(super) fn service(&self) -> &ServiceMarker {
        &self.service
    }

    /// Finds the marker in the environment of a process.
    pub(super) fn find(environment: &[u8]) -> Option<Self> {
        let mut variables = environment.split(|byte| *byte == 0);
        let value = variables
            .find_map(|variable| variable.strip_prefix(MARKER.as_bytes())?.strip_prefix(b"="))?;
        Self::parse(std::str::from_utf8(value).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let mut next = || parts.next()?.parse::<u64>().ok();
        let (pid, number, started, namespace) = (next()?, next()?, next()?, next()?);
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        let marker = Self { service: ServiceMarker { pid, started, namespace }, number };
        parts.next().is_none().then_some(marker)
    }
}

impl fmt::Display for ChildMarker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { service: ServiceMarker { pid, started, namespace }, number } = self;
        write!(f, "{}.{number}.{started}.{namespace}", pid.as_raw_nonzero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_marker_is_found_in_an_environment() {
        let marker = ChildMarker::next().expect("there is /proc");
        let environment = format!("PATH=/bin\0METAMCP_CHILD={marker}\0A=b\0");
        assert_eq!(ChildMarker::find(environment.as_bytes()), Some(marker));
        assert_ne!(ChildMarker::next(), Some(marker));
        for other in [
            "",
            "METAMCP_CHILD=\0",
            "METAMCP_CHILD=1.2.3\0",
            "METAMCP_CHILD=1.2.3.4.5\0",
            "METAMCP_CHILD=0.2.3.4\0",
            "METAMCP_CHILD=-1.2.3.4\0",
            "METAMCP_CHILDREN=1.2.3.4\0",
            "X=METAMCP_CHILD=1.2.3.4\0",
        ] {
            assert_eq!(ChildMarker::find(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_service_counts_as_ended_only_with_proof() {
        let ours = *ChildMarker::next().expect("there is /proc").service();
        assert!(!ours.has_ended());
        let before = ServiceMarker { started: ours.started - 1, ..ours };
        assert!(before.has_ended(), "another process has its number");
        let elsewhere = ServiceMarker { namespace: 1, ..before };
        assert!(!elsewhere.has_ended(), "its number means nothing here");
    }
}
