//! The removal of unneeded privileges before the first child could inherit them, and the protection
//! of the memory of this process.

use std::io;

use caps::{CapSet, Capability, errors::CapsError};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// The sets in the order in which they can be cleared: shrinking the bounding set takes
/// `CAP_SETPCAP` from the effective one.
const SETS: [CapSet; 5] =
    [CapSet::Ambient, CapSet::Bounding, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted];

/// Keeps all other processes of the same user out of this one. No debugger can attach; memory,
/// environment and open files are unreadable, and no core dump is written. A child becomes
/// accessible again when it executes its program. Source: `PR_SET_DUMPABLE` in prctl(2).
///
/// # Errors
///
/// [`io::Error`] if the system refuses.
pub fn forbid_dumps() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Drops every capability of this thread, and of all threads and children that it starts.
///
/// Call this while the process has one thread. Returns the number of capabilities held before.
/// Started as root, the service remains root for the file system only. A program that root executes
/// regains only what the bounding set still holds, which is nothing.
///
/// Leaves empty sets alone: under `SystemCallFilter=~@privileged`, any `capset` kills the process.
///
/// # Errors
///
/// [`CapsError`] if the system refuses; capabilities dropped before that stay dropped.
pub fn drop_all() -> Result<usize, CapsError> {
    let n_held = caps::read(None, CapSet::Permitted)?.len();
    let may_shrink = caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)?;
    for set in SETS {
        // An unprivileged thread cannot shrink its bounding set, and has no capability to lose.
        let may_clear = may_shrink || !matches!(set, CapSet::Bounding);
        if may_clear && !caps::read(None, set)?.is_empty() {
            caps::clear(None, set)?;
        }
    }
    Ok(n_held)
}
