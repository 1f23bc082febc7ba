//! The start, the pipes and the end of a stdio server.
//!
//! The traits hide from a connection what runs the server: a child process, a systemd unit, or, in
//! tests, a task.

use std::{borrow::Cow, fmt, sync::Arc};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{
    SpawnError,
    process::{Child, ChildExit, ChildProgram},
    unit::{self, UnitConnectError, UnitServer},
};

/// The place where a stdio server runs.
#[derive(Clone)]
pub enum LaunchSite {
    /// A child process.
    Program(ChildProgram),
    /// A systemd unit.
    Unit(UnitServer),
}

/// The kind of a stdio server, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StdioServerKind {
    /// A child process.
    Process,
    /// An instance of the unit template of this name.
    Unit(Arc<str>),
}

impl fmt::Display for StdioServerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process => f.write_str("process"),
            Self::Unit(name) => write!(f, "unit `{name}`"),
        }
    }
}

/// A starter of stdio servers.
pub trait Launcher: fmt::Debug + Send + Sync {
    /// Starts the server at `site`. Cancel safe: a started server ends.
    ///
    /// # Errors
    ///
    /// [`LaunchError`] when it did not start; nothing is left behind then.
    fn launch<'a>(
        &'a self,
        site: &'a LaunchSite,
    ) -> BoxFuture<'a, Result<LaunchedServer, LaunchError>>;
}

/// A stdio server that has just started.
pub struct LaunchedServer {
    /// The running server.
    pub running: Box<dyn RunningServer>,
    /// Its pipes.
    pub pipes: ServerPipes,
}

/// The pipes of a stdio server.
pub struct ServerPipes {
    /// Its standard input. Dropping it ends the input.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Its standard error, if metamcp receives it.
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
}

/// A running stdio server.
pub trait RunningServer: fmt::Debug + Send {
    /// Returns the kind of the server.
    fn kind(&self) -> StdioServerKind;

    /// Returns its process id, if known.
    fn pid(&self) -> Option<u32>;

    /// Waits until it ends by itself. Cancel safe: you can call it again.
    fn wait(&mut self) -> BoxFuture<'_, ChildExit>;

    /// Returns the last lines that the server wrote before it ended, oldest first, if they do not
    /// come over a pipe. Takes at most about a second. Cancel safe.
    fn last_lines(&mut self, _is_only_instance: bool) -> BoxFuture<'_, Vec<String>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Ends the server as [`super::escalation`] says, with the long waits until `skip_drain` is
    /// cancelled. The caller must have dropped its standard input. Not cancel safe: the end is left
    /// to the system.
    fn terminate(self: Box<Self>, skip_drain: CancellationToken) -> BoxFuture<'static, ChildExit>;
}

/// The error of a stdio server that did not start.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Its program did not start.
    #[error(transparent)]
    Program(#[from] SpawnError),
    /// The connection to its socket failed.
    #[error(transparent)]
    Unit(#[from] UnitConnectError),
}

impl LaunchError {
    /// Returns what the operator can do about the error.
    pub fn hint(&self) -> Cow<'static, str> {
        match self {
            Self::Program(error) => error.hint(),
            Self::Unit(error) => error.hint(),
        }
    }

    /// Returns whether another attempt right after this one may succeed without a change by the
    /// operator.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Program(error) => error.is_transient(),
            Self::Unit(error) => error.is_transient(),
        }
    }

    /// Returns whether no process listens on the socket of the unit.
    pub fn is_socket_unit_down(&self) -> bool {
        matches!(self, Self::Unit(error) if error.is_socket_unit_down())
    }

    /// Returns whether the server exists but is not ready, and may be a moment later.
    pub fn is_outage(&self) -> bool {
        // A program that did not start does not exist.
        matches!(self, Self::Unit(error) if error.is_outage())
    }
}

/// The launcher of this host: it spawns programs and connects to units.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostLauncher;

impl Launcher for HostLauncher {
    fn launch<'a>(
        &'a self,
        site: &'a LaunchSite,
    ) -> BoxFuture<'a, Result<LaunchedServer, LaunchError>> {
        Box::pin(async move {
            match site {
                LaunchSite::Program(program) => {
                    let (child, pipes) = Child::spawn(program)?;
                    let pipes = ServerPipes {
                        stdin: Box::new(pipes.stdin),
                        stdout: Box::new(pipes.stdout),
                        stderr: Some(Box::new(pipes.stderr)),
                    };
                    Ok(LaunchedServer { running: Box::new(child), pipes })
                }
                LaunchSite::Unit(unit) => Ok(unit::launch(unit).await?),
            }
        })
    }
}

impl RunningServer for Child {
    fn kind(&self) -> StdioServerKind {
        StdioServerKind::Process
    }

    fn pid(&self) -> Option<u32> {
        Some(Self::pid(self))
    }

    fn wait(&mut self) -> BoxFuture<'_, ChildExit> {
        Box::pin(Self::wait(self))
    }

    fn terminate(self: Box<Self>, skip_drain: CancellationToken) -> BoxFuture<'static, ChildExit> {
        Box::pin(Self::terminate(*self, skip_drain))
    }
}
