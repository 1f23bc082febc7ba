//! The lock that allows one service per control socket, where no service manager does.
//!
//! Only the lock on the file counts: the kernel releases it when the process ends, however it ends.
//! The number in the file is for people. It is reported only while the process that wrote it runs,
//! as numbers are reused.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, OFlags, flock};

/// The lock, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct InstanceLock {
    file: File,
}

/// The reason why the lock is not taken.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds it, with this process id if known.
    Held(Option<u32>),
    /// The file cannot be used.
    Unusable(io::Error),
}

/// The maximum number of bytes to read from the file: two numbers.
const CONTENT_BYTES_MAX: u64 = 64;

/// Returns the lock file of a control socket. Two services may have sockets with different names in
/// one directory.
pub fn path_of(socket: &Path) -> PathBuf {
    match socket.file_name() {
        Some(name) if name != "control.sock" => socket.with_extension("lock"),
        _ => socket.with_file_name("metamcp.lock"),
    }
}

impl InstanceLock {
    /// Takes the lock, and writes the id of this process into the file.
    ///
    /// # Errors
    ///
    /// [`LockError`] if another process holds it, or the file cannot be used.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.custom_flags(flags).open(path).map_err(LockError::Unusable)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(LockError::Held(holder(&mut file))),
            Err(errno) => return Err(LockError::Unusable(errno.into())),
        }
        let pid = std::process::id();
        let started = started(pid).unwrap_or_default();
        let written = file.set_len(0).and_then(|()| writeln!(file, "{pid} {started}"));
        written.map_err(LockError::Unusable)?;
        Ok(Self { file })
    }

    /// Clears the file, so that it no longer names this process.
    pub fn clean_up(&self) {
        if let Err(error) = self.file.set_len(0) {
            tracing::debug!(%error, "cannot clear the lock file: {error}");
        }
    }
}

/// Returns the process id in a lock file, if the process that wrote it still runs.
fn holder(file: &mut File) -> Option<u32> {
    let mut content = String::new();
    file.take(CONTENT_BYTES_MAX).read_to_string(&mut content).ok()?;
    let (pid, since) = content.trim().split_once(' ')?;
    let (pid, since): (u32, u64) = (pid.parse().ok()?, since.parse().ok()?);
    (started(pid) == Some(since)).then_some(pid)
}

/// Returns the start of a process, in ticks since boot. Source: proc_pid_stat(5), field 22.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in parentheses, which may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_service_learns_the_holder_of_the_lock_and_gets_it_after_its_end() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("metamcp.lock");
        let first = InstanceLock::take(&path).expect("it is free");
        let Err(LockError::Held(holder)) = InstanceLock::take(&path) else { panic!("it is held") };
        assert_eq!(holder, Some(std::process::id()));
        drop(first);
        let again = InstanceLock::take(&path).expect("it is free again");
        again.clean_up();
        assert_eq!(fs::read_to_string(&path).expect("readable"), "");
    }

    #[test]
    fn a_reused_process_id_is_not_reported_as_the_holder() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("metamcp.lock");
        let _held = InstanceLock::take(&path).expect("it is free");
        for content in [format!("{} 1", std::process::id()), "1 1".to_owned(), "x".to_owned()] {
            fs::write(&path, content).expect("written");
            let Err(LockError::Held(holder)) = InstanceLock::take(&path) else {
                panic!("it is held")
            };
            assert_eq!(holder, None);
        }
    }

    #[test]
    fn a_lock_file_of_a_killed_service_does_not_block_the_next_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("metamcp.lock");
        // A process with that number runs: this one.
        let (pid, since) = (std::process::id(), started(std::process::id()).expect("it runs"));
        fs::write(&path, format!("{pid} {since}")).expect("written");
        drop(InstanceLock::take(&path).expect("it is free"));
        std::os::unix::fs::symlink(&path, directory.path().join("link")).expect("linked");
        let linked = InstanceLock::take(&directory.path().join("link"));
        assert!(matches!(linked, Err(LockError::Unusable(_))), "{linked:?}");
    }

    #[test]
    fn each_control_socket_has_its_own_lock_file() {
        for (socket, lock) in [
            ("/run/metamcp/control.sock", "/run/metamcp/metamcp.lock"),
            ("/run/metamcp/second.sock", "/run/metamcp/second.lock"),
        ] {
            assert_eq!(path_of(Path::new(socket)), Path::new(lock));
        }
    }
}
