//! The limit on open file descriptors: raised for the service, and restored for its children.
//!
//! A program that calls `select()` fails with descriptors from 1,024 on. So each child gets back
//! the soft limit that the service was started with.

use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// The limits at the start of the service, recorded when they are raised.
static INHERITED: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit to the hard one.
pub fn raise_limit() {
    let inherited = *INHERITED.get_or_init(|| getrlimit(Resource::Nofile));
    let (from, to) = (inherited.current, inherited.maximum);
    match setrlimit(Resource::Nofile, Rlimit { current: to, ..inherited }) {
        Ok(()) => tracing::debug!(from, to, "limit on descriptors raised from {from:?} to {to:?}"),
        Err(error) => tracing::warn!(
            %error,
            "limit on descriptors stays at {from:?}, so metamcp serves fewer clients at a time: {error}"
        ),
    }
}

/// Gives the new process `pid` the limits that the service was started with.
pub fn restore(pid: Pid) {
    if let Some(inherited) = INHERITED.get()
        && inherited.current != inherited.maximum
        && let Err(error) = prlimit(Some(pid), Resource::Nofile, *inherited)
    {
        // The process has ended, or belongs to another user by now.
        let pid = pid.as_raw_nonzero();
        tracing::debug!(%error, pid, "child {pid} keeps the raised limit on descriptors: {error}");
    }
}

/// Returns the maximum number of open descriptors of the service.
pub fn limit() -> usize {
    let current = getrlimit(Resource::Nofile).current;
    current.and_then(|current| usize::try_from(current).ok()).unwrap_or(usize::MAX)
}
