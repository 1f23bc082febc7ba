//! The relation of a process to the servers of this service.
//!
//! Three things identify a server and its descendants. They descend from this process, which adopts
//! their orphans. Their environment has its marker. Under systemd, they are in the control group of
//! its unit. A process can escape one of these, so each of them counts.
//!
//! Everything here blocks.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::{
    io::Errno,
    process::{Pid, getpid, test_kill_process},
};

use super::{
    environment_marker::{ChildMarker, ServiceMarker},
    process_table::ProcessEntry,
};
use crate::systemd::own_unit;

/// The maximum number of ancestors to examine. More than all shells and supervisors between an
/// operator and the first process.
const ANCESTORS_MAX: usize = 256;

/// The number of attempts to read the ancestors, as one of them may end meanwhile.
const LOOKS_MAX: usize = 3;

/// Set once this process has started a server.
static HAS_STARTED_ONE: AtomicBool = AtomicBool::new(false);

/// The process of a client, as it was when it was examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownClientProcess(ProcessEntry);

/// The relation of a process to the servers of this service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerRelation {
    /// It comes from no server of this service.
    Stranger,
    /// It is a server of this service, or comes from one.
    Server(ServerAncestry),
    /// It has ended, or its environment is not readable, so it may be one.
    Hidden,
}

/// The known traces of the server that a process comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerAncestry {
    /// The child of this process among its ancestors.
    child: Option<Pid>,
    marker: Option<ChildMarker>,
}

/// Records that this process starts a server.
pub(super) fn note_server_started() {
    HAS_STARTED_ONE.store(true, Ordering::Relaxed);
}

/// Returns whether any process can be a server of this service.
pub fn has_started_servers() -> bool {
    HAS_STARTED_ONE.load(Ordering::Relaxed)
}

impl ServerAncestry {
    /// Returns whether it leads to the server with this process id.
    pub fn is_server(&self, pid: u32) -> bool {
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
        self.child == Some(pid) || (self.marker.is_some() && marker_of(pid) == self.marker)
    }
}

/// Returns one of the processes that have the socket `inode` open, and its relation to the servers.
/// A process that is not a stranger comes first.
pub fn of_socket(inode: u32) -> (Option<i32>, ServerRelation) {
    let mut found = None;
    for process in ProcessEntry::all().filter(|process| process.has_socket(inode) == Some(true)) {
        let process = KnownClientProcess(process);
        let relation = process.relation();
        if relation != ServerRelation::Stranger {
            return (Some(process.pid()), relation);
        }
        found = Some(process.pid());
    }
    // A server may hide a socket that no process shows: in a thread with its own file table, or in
    // a message in transit.
    (found, if found.is_some() { ServerRelation::Stranger } else { ServerRelation::Hidden })
}

fn marker_of(pid: Pid) -> Option<ChildMarker> {
    ProcessEntry::read(pid)
        .ok()
        .flatten()
        .and_then(|process| ChildMarker::find(&process.environment()?))
}

impl KnownClientProcess {
    /// Returns the process with this number as it is now; `None` if it has ended or is hidden.
    pub fn lookup(pid: i32) -> Option<Self> {
        ProcessEntry::read(Pid::from_raw(pid)?).ok().flatten().map(Self)
    }

    /// Returns its process id.
    pub fn pid(&self) -> i32 {
        self.0.pid.as_raw_nonzero().get()
    }

    /// Returns its relation to the servers of this service.
    pub fn relation(&self) -> ServerRelation {
        if self.0.pid == getpid() {
            return ServerRelation::Stranger;
        }
        // Another process may have this number by now.
        if !self.0.runs() {
            return ServerRelation::Hidden;
        }
        let marker = match self.0.settled_environment() {
            Some(environment) => our_marker(&environment),
            None if self.0.is_unrelated() => None,
            None => return ServerRelation::Hidden,
        };
        let found = (0..LOOKS_MAX).find_map(|_| self.ancestry().ok());
        let Some(ServerAncestry { child, marker: inherited }) =
            found.or_else(|| marker.map(|_| ServerAncestry { child: None, marker }))
        else {
            return ServerRelation::Hidden;
        };
        let marker = marker.or(inherited);
        match child.is_some() || marker.is_some() || own_unit::shares_our_group(self.pid()) {
            true => ServerRelation::Server(ServerAncestry { child, marker }),
            false => ServerRelation::Stranger,
        }
    }

    /// Returns the child and the marker of this service among its ancestors.
    fn ancestry(&self) -> Result<ServerAncestry, Vanished> {
        let mut found = ServerAncestry { child: None, marker: None };
        let mut process = self.0;
        for _ in 0..ANCESTORS_MAX {
            if process.parent == Some(getpid()) {
                found.child = Some(process.pid);
                return Ok(found);
            }
            let Some(parent) = process.parent else { return Ok(found) };
            process = match ProcessEntry::read(parent) {
                Ok(Some(parent)) => parent,
                // A process of another user that `/proc` hides is not a child of this one.
                _ if test_kill_process(parent) == Err(Errno::PERM) => return Ok(found),
                Ok(None) | Err(_) => return Err(Vanished),
            };
            let environment = process.settled_environment().unwrap_or_default();
            found.marker = found.marker.or(our_marker(&environment));
        }
        Ok(found)
    }
}

/// An ancestor ended while it was examined.
#[derive(Debug)]
struct Vanished;

/// Returns the marker in an environment, if it is one of this service.
fn our_marker(environment: &[u8]) -> Option<ChildMarker> {
    let ours = ServiceMarker::ours()?;
    ChildMarker::find(environment).filter(|marker| *marker.service() == ours)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use tokio::io::{AsyncBufReadExt as _, BufReader};

    use super::*;
    use crate::child::{Child, ChildProgram};

    fn seen(pid: i32) -> KnownClientProcess {
        KnownClientProcess::lookup(pid).expect("it runs")
    }

    /// Starts a server that runs `script`, and returns the process with the number that it prints.
    async fn server(script: &str) -> (Child, tokio::process::ChildStdin, KnownClientProcess) {
        let program = ChildProgram {
            command: "/bin/sh".into(),
            args: ["-c".to_owned(), format!("{script}; read x")].into(),
            env: BTreeMap::new(),
            cwd: None,
        };
        let (child, pipes) = Child::spawn(&program).expect("starts");
        let mut lines = BufReader::new(pipes.stdout).lines();
        let line = lines.next_line().await.expect("readable").expect("a line");
        (child, pipes.stdin, seen(line.parse().expect("a number")))
    }

    /// Examines a process until its kinship is as wanted, for ten seconds at most.
    async fn until(
        process: &KnownClientProcess,
        wanted: impl Fn(&ServerRelation) -> bool,
    ) -> Option<ServerRelation> {
        let looking = async {
            loop {
                let relation = process.relation();
                if wanted(&relation) {
                    return relation;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), looking).await.ok()
    }

    #[tokio::test]
    async fn a_server_process_is_recognised_in_another_session_environment_or_parent() {
        for script in [
            "echo $$",
            // With another session and group.
            "setsid sleep 600 & echo $!",
            // With another environment.
            "env -i sleep 600 & echo $!",
            // With another parent: the marker remains.
            "sh -c 'setsid sleep 600 >/dev/null & echo $!'",
        ] {
            let (child, input, process) = server(script).await;
            // During an exec, it is hidden for a moment.
            let seen =
                until(&process, |relation| matches!(relation, ServerRelation::Server(_))).await;
            let Some(ServerRelation::Server(lineage)) = seen else { panic!("{script}") };
            assert!(lineage.is_server(child.pid()), "{script}");
            assert!(!lineage.is_server(std::process::id()), "{script}");
            drop(input);
            child.terminate(crate::child::escalation::cancelled_token()).await;
            // A killed process remains until its new parent reaps it.
            let gone = until(&process, |relation| *relation == ServerRelation::Hidden).await;
            assert!(gone.is_some(), "it has ended: {script}");
        }
    }

    #[test]
    fn this_process_and_its_ancestors_are_not_servers() {
        let ours = seen(getpid().as_raw_nonzero().get());
        assert_eq!(ours.relation(), ServerRelation::Stranger);
        let parent = ours.0.parent.expect("a test is started by something");
        assert_eq!(seen(parent.as_raw_nonzero().get()).relation(), ServerRelation::Stranger);
    }

    #[tokio::test]
    async fn a_socket_belongs_to_the_processes_that_have_it_open_and_to_none_once_it_is_closed() {
        use std::os::{fd::AsFd as _, unix::fs::MetadataExt as _};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
        let client = std::net::TcpStream::connect(listener.local_addr().expect("bound"));
        let client = client.expect("connects");
        let file = client.as_fd().try_clone_to_owned().map(std::fs::File::from).expect("open");
        let inode = u32::try_from(file.metadata().expect("open").ino()).expect("small");
        let own = getpid().as_raw_nonzero().get();
        assert_eq!(of_socket(inode), (Some(own), ServerRelation::Stranger));
        drop((client, file));
        assert_eq!(of_socket(inode), (None, ServerRelation::Hidden));
    }
}
