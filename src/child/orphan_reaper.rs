//! Processes that come from a server and whose own parent has ended.
//!
//! Such a process would belong to the first process of the system, and nothing would tell any more where
//! it comes from once it has emptied its environment. The service takes it over instead, and reaps it.

use std::{
    collections::BTreeSet,
    fs, io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::process::{
    Pid, WaitId, WaitIdOptions, WaitOptions, getpid, set_child_subreaper, waitid, waitpid,
};
use tokio::process::Child;

/// The processes that have a waiter of their own.
static AWAITED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// A process that is not reaped here as long as this lives.
#[derive(Debug)]
pub(super) struct AwaitedChild(i32);

impl Drop for AwaitedChild {
    fn drop(&mut self) {
        awaited().remove(&self.0);
    }
}

/// Has this process take over orphans from now on.
pub fn adopt() {
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        tracing::warn!(%error, "processes that servers leave behind are not taken over");
    }
}

/// Starts a process by `spawn`, which is waited for elsewhere.
pub(super) fn spawn_awaited(
    spawn: impl FnOnce() -> io::Result<Child>,
) -> io::Result<(Child, Pid, AwaitedChild)> {
    // Under the lock, so that one that ends at once is not taken for an orphan.
    let mut awaited = awaited();
    let child = spawn()?;
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let pid = pid.ok_or(io::ErrorKind::Other)?;
    let number = pid.as_raw_nonzero().get();
    awaited.insert(number);
    Ok((child, pid, AwaitedChild(number)))
}

/// Reaps the orphans that have ended. Takes a moment only where a process has.
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
            // Fails for all that are no children of ours.
            let _none_of_ours = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

fn awaited() -> MutexGuard<'static, BTreeSet<i32>> {
    AWAITED.lock().unwrap_or_else(PoisonError::into_inner)
}
