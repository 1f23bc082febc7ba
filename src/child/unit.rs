//! A stdio server that is a unit of systemd: an instance of a template that a socket unit with
//! `Accept=yes` starts for each connection, whose standard input and output it is.
//!
//! It has a user, limits and a sandbox of its own, and we no power over it but to hang up: it is
//! not our process. One that does not leave when its input ends is systemd's to end, by the limits
//! of its unit.

use std::{
    borrow::Cow,
    fmt, fs, io,
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
    launch::{LaunchedServer, RunningServer, ServerPipes, StdioServerKind},
    process::ChildExit,
    unit_journal::UnitJournal,
};

/// A server that systemd runs.
#[derive(Clone, Debug)]
pub struct UnitServer {
    /// The socket that starts it.
    pub socket: PathBuf,
    /// The name of its template, without `@` and suffix.
    pub name: Arc<str>,
}

/// Why a socket cannot be connected to.
#[derive(Debug, thiserror::Error)]
#[error("connect to `{}`{fault}", unit.socket.display())]
pub struct UnitConnectError {
    unit: UnitServer,
    fault: Fault,
    #[source]
    source: Option<io::Error>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Missing,
    /// What is there instead.
    NoSocket(&'static str),
    Deserted,
    Full,
    Forbidden,
    Os,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSocket(what) => {
                return write!(f, ": it is {what} and no socket for connections");
            }
            Self::Missing => ": there is no such socket",
            Self::Deserted => ": nobody listens on this socket",
            Self::Full => ": as many connections wait at this socket as may",
            Self::Forbidden => ": the service may not use this socket",
            Self::Os => "",
        })
    }
}

impl UnitConnectError {
    fn new(unit: &UnitServer, source: io::Error) -> Self {
        let fault = match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Fault::Missing,
            // Said of whatever is no socket, too.
            io::ErrorKind::ConnectionRefused => match instead_of_socket(&unit.socket) {
                Some(what) => Fault::NoSocket(what),
                None => Fault::Deserted,
            },
            _ if source.raw_os_error() == Some(Errno::PROTOTYPE.raw_os_error()) => {
                Fault::NoSocket("a socket of another type")
            }
            // A socket of this kind does not have a connection wait until there is room for it.
            io::ErrorKind::WouldBlock => Fault::Full,
            io::ErrorKind::PermissionDenied => Fault::Forbidden,
            _ => Fault::Os,
        };
        // What has a name is said once.
        let source = (fault == Fault::Os).then_some(source);
        Self { unit: unit.clone(), fault, source }
    }

    /// Tells whether another attempt right after this one may fare better: not where somebody has to
    /// change something first.
    pub fn may_pass(&self) -> bool {
        match self.fault {
            Fault::Full | Fault::Os => true,
            Fault::Missing | Fault::NoSocket(_) | Fault::Deserted | Fault::Forbidden => false,
        }
    }

    /// Tells whether the unit is there and takes no connection just now: it takes one as soon as
    /// systemd comes round to those that wait.
    pub fn is_outage(&self) -> bool {
        self.fault == Fault::Full
    }

    /// Tells whether nobody listens: the unit was never set up, or is just being changed.
    pub fn is_socket_unit_down(&self) -> bool {
        match self.fault {
            Fault::Missing | Fault::Deserted => true,
            Fault::NoSocket(_) | Fault::Full | Fault::Forbidden | Fault::Os => false,
        }
    }

    /// What the operator can do about it.
    pub fn hint(&self) -> Cow<'static, str> {
        let name = &self.unit.name;
        match self.fault {
            Fault::Missing => format!(
                "Start its socket unit, `systemctl start {name}.socket`, and compare its `ListenStream=` with `socket`."
            ),
            Fault::NoSocket(_) => format!(
                "Write the path that `ListenStream=` in `{name}.socket` has as `socket`."
            ),
            Fault::Deserted => {
                format!("Its socket unit does not run any more: `systemctl restart {name}.socket`.")
            }
            Fault::Full => format!(
                "Call again: systemd accepts no connections just now. See `systemctl status {name}.socket`, and its `Backlog=`."
            ),
            Fault::Forbidden => format!(
                "Give the socket a group, `SocketGroup=` in `{name}.socket`, and the service the same group, `SupplementaryGroups=` in `metamcp.service`."
            ),
            Fault::Os => format!("See `systemctl status {name}.socket`."),
        }
        .into()
    }
}

/// Returns what is at `path`, if that is no socket.
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

/// Connects to the socket of `unit`, upon which systemd starts it.
pub(super) async fn launch(unit: &UnitServer) -> Result<LaunchedServer, UnitConnectError> {
    // Before the connection: what happens from now on is the instance's.
    let journal = UnitJournal::since_now(&unit.name);
    let stream = UnixStream::connect(&unit.socket)
        .await
        .map_err(|source| UnitConnectError::new(unit, source))?;
    let (output, input) = stream.into_split();
    let ended = CancellationToken::new();
    let output = Output { half: output, ended: ended.clone() };
    // Dropped, the writing half ends the server's input and leaves its output open.
    let pipes = ServerPipes { stdin: Box::new(input), stdout: Box::new(output), stderr: None };
    let instance = Instance { name: Arc::clone(&unit.name), ended, journal };
    Ok(LaunchedServer { tenant: Box::new(instance), pipes })
}

/// What the server writes; its end is the end of the server.
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

/// The instance that serves our connection.
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

    fn last_words(&mut self, is_alone: bool) -> BoxFuture<'_, Vec<String>> {
        Box::pin(self.journal.last_lines(is_alone))
    }

    /// There is no ladder to go down, as there is nothing to signal; it has as long as a child.
    fn see_off(mut self: Box<Self>, hurry: CancellationToken) -> BoxFuture<'static, ChildExit> {
        Box::pin(async move {
            tokio::select! {
                biased;
                exit = self.wait() => exit,
                () = Escalation::new(hurry).end() => ChildExit::Pending,
            }
        })
    }
}

#[cfg(test)]
mod tests;
