//! Gives up the privileges that nothing here needs, before the first child could inherit them, and
//! keeps other processes out of the memory of this one.

use std::io;

use caps::{CapSet, Capability, errors::CapsError};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// The sets in the order in which they can be cleared: shrinking the bounding set takes
/// `CAP_SETPCAP` from the effective one.
const SETS: [CapSet; 5] =
    [CapSet::Ambient, CapSet::Bounding, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted];

/// Keeps every other process of our user out of this one: none attaches to it as a debugger or reads
/// its memory, its environment and its open files, and no core dump has them. A child gets that right
/// back when it executes its program. Source: `PR_SET_DUMPABLE` in prctl(2).
///
/// # Errors
///
/// [`io::Error`] when the system refuses.
pub fn forbid_dumps() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Drops every capability of this thread, and so of every thread and child that it starts.
///
/// To be called while the process has one thread. Returns how many capabilities were held.
/// Started as root, the service stays root for the file system and loses the rest; a program
/// that root executes regains only what the bounding set still holds, which is nothing.
///
/// A set that is empty already is not touched: under `SystemCallFilter=~@privileged` even an idle
/// `capset` would end the process.
///
/// # Errors
///
/// [`CapsError`] when the system refuses; what was dropped until then stays dropped.
pub fn drop_all() -> Result<usize, CapsError> {
    let n_held = caps::read(None, CapSet::Permitted)?.len();
    let may_shrink = caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)?;
    for set in SETS {
        // An unprivileged thread cannot shrink its bounding set, and holds nothing to lose.
        let may_clear = may_shrink || !matches!(set, CapSet::Bounding);
        if may_clear && !caps::read(None, set)?.is_empty() {
            caps::clear(None, set)?;
        }
    }
    Ok(n_held)
}
