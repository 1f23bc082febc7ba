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
    let raised = Rlimit { current: inherited.maximum, ..inherited };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::debug!(
            from = inherited.current,
            to = raised.current,
            "soft limit of descriptors raised"
        ),
        Err(error) => tracing::warn!(
            %error,
            "cannot raise the soft limit of descriptors ({:?}): fewer clients are served at a time",
            inherited.current
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
        tracing::debug!(%error, pid = pid.as_raw_nonzero(), "child keeps the raised limit of descriptors");
    }
}

/// Returns the maximum number of open descriptors of the service.
pub fn limit() -> usize {
    let current = getrlimit(Resource::Nofile).current;
    current.and_then(|current| usize::try_from(current).ok()).unwrap_or(usize::MAX)
}
