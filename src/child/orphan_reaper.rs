//! Processes that come from a server and have lost their parent.
//!
//! The first process of the system would adopt such a process. Its origin would be unknown once it
//! has emptied its environment. So the service adopts and reaps it.

use std::{
    collections::BTreeSet,
    fs, io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::process::{
    Pid, WaitId, WaitIdOptions, WaitOptions, getpid, set_child_subreaper, waitid, waitpid,
};
use tokio::process::Child;

/// The processes that have their own waiter.
static AWAITED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// A process that `reap` leaves alone while this value exists.
#[derive(Debug)]
pub struct AwaitedChild(i32);

impl Drop for AwaitedChild {
    fn drop(&mut self) {
        awaited().remove(&self.0);
    }
}

/// Makes this process adopt orphans from now on.
pub fn adopt() {
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        tracing::warn!(%error, "metamcp cannot adopt the processes that servers leave behind: {error}");
    }
}

/// Starts a process by `spawn`; its caller waits for it.
///
/// # Errors
///
/// [`io::Error`] if it does not start.
pub fn spawn_awaited(
    spawn: impl FnOnce() -> io::Result<Child>,
) -> io::Result<(Child, Pid, AwaitedChild)> {
    // Under the lock, so that a process that ends at once is not taken for an orphan.
    let mut awaited = awaited();
    let child = spawn()?;
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let pid = pid.ok_or(io::ErrorKind::Other)?;
    let number = pid.as_raw_nonzero().get();
    awaited.insert(number);
    Ok((child, pid, AwaitedChild(number)))
}

/// Reaps the orphans that have ended. Scans `/proc` only if a child has ended.
pub fn reap() {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if !matches!(waitid(WaitId::All, options), Ok(Some(_))) {
        return;
    }
    let awaited = awaited();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok()).unwrap_or_default();
        if let Some(pid) = Pid::from_raw(number)
            && !awaited.contains(&number)
        {
            // Fails for every process that is not a child of this one.
            let _none_of_ours = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

fn awaited() -> MutexGuard<'static, BTreeSet<i32>> {
    AWAITED.lock().unwrap_or_else(PoisonError::into_inner)
}
