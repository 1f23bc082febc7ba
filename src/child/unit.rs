//! A stdio server that is a systemd unit: an instance of a template. A socket unit with
//! `Accept=yes` starts one per connection, which becomes its standard input and output.
//!
//! The instance has its own user, limits and sandbox. It is not a child of metamcp, which can only
//! close the connection. If it does not exit when its input ends, systemd ends it by the limits of
//! its unit.

use std::{
    borrow::Cow,
    fs, io,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use rustix::io::Errno;
use tokio::{
    io::{AsyncRead, ReadBuf},
    net::{UnixStream, unix::OwnedReadHalf},
};
use tokio_util::sync::CancellationToken;

use super::{
    escalation::Escalation,
    launcher::{LaunchedServer, RunningServer, ServerPipes, StdioServerKind},
    process::ChildExit,
    unit_journal::UnitJournal,
};

/// A server that systemd runs.
#[derive(Clone, Debug)]
pub struct UnitServer {
    /// The path of the socket that starts it.
    pub socket: PathBuf,
    /// The name of its template, without `@` and suffix.
    pub name: Arc<str>,
}

/// The error of a connection attempt to the socket of a unit.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect to `{}`", unit.socket.display())]
pub struct UnitConnectError {
    unit: UnitServer,
    #[source]
    fault: UnitFault,
}

/// The reason why a connection attempt failed.
#[derive(Debug, thiserror::Error)]
enum UnitFault {
    #[error("there is no such socket")]
    Missing,
    /// The path is this kind of file instead.
    #[error("it is {0}, and not a stream socket")]
    NoSocket(&'static str),
    #[error("no process listens on this socket")]
    NoListener,
    #[error("the queue of this socket is full")]
    BacklogFull,
    #[error("metamcp may not use this socket")]
    Forbidden,
    #[error(transparent)]
    Os(io::Error),
}

impl UnitConnectError {
    fn new(unit: &UnitServer, source: io::Error) -> Self {
        let fault = match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => UnitFault::Missing,
            // The kernel also returns this for a file that is not a socket.
            io::ErrorKind::ConnectionRefused => {
                instead_of_socket(&unit.socket).map_or(UnitFault::NoListener, UnitFault::NoSocket)
            }
            _ if source.raw_os_error() == Some(Errno::PROTOTYPE.raw_os_error()) => {
                UnitFault::NoSocket("a socket of another type")
            }
            // The backlog is full: a nonblocking connect to a Unix socket fails instead of waiting.
            io::ErrorKind::WouldBlock => UnitFault::BacklogFull,
            io::ErrorKind::PermissionDenied => UnitFault::Forbidden,
            _ => UnitFault::Os(source),
        };
        Self { unit: unit.clone(), fault }
    }

    /// Returns whether another attempt right after this one may succeed without a change by the
    /// operator.
    pub fn is_transient(&self) -> bool {
        matches!(self.fault, UnitFault::BacklogFull | UnitFault::Os(_))
    }

    /// Returns whether the unit exists but accepts no connection at the moment. It accepts one as
    /// soon as systemd has taken the waiting connections.
    pub fn is_outage(&self) -> bool {
        matches!(self.fault, UnitFault::BacklogFull)
    }

    /// Returns whether no process listens: the unit was never set up, or is being changed.
    pub fn is_socket_unit_down(&self) -> bool {
        matches!(self.fault, UnitFault::Missing | UnitFault::NoListener)
    }

    /// Returns what the operator can do about the error.
    pub fn hint(&self) -> Cow<'static, str> {
        let name = &self.unit.name;
        match self.fault {
            UnitFault::Missing => format!(
                "Run `systemctl start {name}.socket`, and compare its `ListenStream=` with `socket`."
            ),
            UnitFault::NoSocket(_) => format!(
                "Set `socket` to the path that `ListenStream=` in `{name}.socket` names."
            ),
            UnitFault::NoListener => {
                format!("Run `systemctl restart {name}.socket`: the socket unit is no longer running.")
            }
            UnitFault::BacklogFull => format!(
                "Call again. If this persists, see `systemctl status {name}.socket`, and raise its `Backlog=`."
            ),
            UnitFault::Forbidden => format!(
                "Set the same group as `SocketGroup=` in `{name}.socket` and as `SupplementaryGroups=` in `metamcp.service`."
            ),
            UnitFault::Os(_) => format!("See `systemctl status {name}.socket`."),
        }
        .into()
    }
}

/// Returns the kind of file at `path`, if it is not a socket.
fn instead_of_socket(path: &Path) -> Option<&'static str> {
    let found = fs::metadata(path).ok()?.file_type();
    if found.is_socket() {
        None
    } else if found.is_dir() {
        Some("a directory")
    } else if found.is_fifo() {
        Some("a named pipe")
    } else if found.is_file() {
        Some("a file")
    } else {
        Some("a device")
    }
}

/// Connects to the socket of `unit`, which makes systemd start an instance.
pub(super) async fn launch(unit: &UnitServer) -> Result<LaunchedServer, UnitConnectError> {
    // Before the connection: later entries belong to the instance.
    let journal = UnitJournal::since_now(&unit.name);
    let stream = UnixStream::connect(&unit.socket)
        .await
        .map_err(|source| UnitConnectError::new(unit, source))?;
    let (output, input) = stream.into_split();
    let ended = CancellationToken::new();
    let output = Output { half: output, ended: ended.clone() };
    // Dropping the write half ends the server's input and leaves its output open.
    let pipes = ServerPipes { stdin: Box::new(input), stdout: Box::new(output), stderr: None };
    let instance = Instance { name: Arc::clone(&unit.name), ended, journal };
    Ok(LaunchedServer { running: Box::new(instance), pipes })
}

/// The output of the server; its end is the end of the server.
struct Output {
    half: OwnedReadHalf,
    ended: CancellationToken,
}

impl AsyncRead for Output {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n_before = buffer.filled().len();
        let polled = Pin::new(&mut self.half).poll_read(context, buffer);
        let has_ended = match &polled {
            Poll::Pending => false,
            Poll::Ready(Ok(())) => buffer.filled().len() == n_before,
            Poll::Ready(Err(_)) => true,
        };
        if has_ended {
            self.ended.cancel();
        }
        polled
    }
}

/// The instance that serves this connection.
#[derive(Debug)]
struct Instance {
    name: Arc<str>,
    ended: CancellationToken,
    journal: UnitJournal,
}

impl RunningServer for Instance {
    fn kind(&self) -> StdioServerKind {
        StdioServerKind::Unit(Arc::clone(&self.name))
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn wait(&mut self) -> BoxFuture<'_, ChildExit> {
        Box::pin(async {
            self.ended.cancelled().await;
            ChildExit::Unknown
        })
    }

    fn last_lines(&mut self, is_only_instance: bool) -> BoxFuture<'_, Vec<String>> {
        Box::pin(self.journal.last_lines(is_only_instance))
    }

    /// Waits as long as for a child, but sends no signals, as there is no process to signal.
    fn terminate(
        mut self: Box<Self>,
        skip_drain: CancellationToken,
    ) -> BoxFuture<'static, ChildExit> {
        Box::pin(async move {
            tokio::select! {
                biased;
                exit = self.wait() => exit,
                () = Escalation::new(skip_drain).end() => ChildExit::Pending,
            }
        })
    }
}

#[cfg(test)]
mod tests;
