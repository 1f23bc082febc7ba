//! Gives up the privileges that nothing here needs, before the first child could inherit them.

use caps::{CapSet, Capability, errors::CapsError};

/// The sets in the order in which they can be cleared: shrinking the bounding set takes
/// `CAP_SETPCAP` from the effective one.
const SETS: [CapSet; 5] =
    [CapSet::Ambient, CapSet::Bounding, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted];

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
