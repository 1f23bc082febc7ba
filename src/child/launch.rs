//! How a stdio server comes to be, how it is spoken to and how it ends.
//!
//! What is behind the traits is no matter to a connection: a process that we spawned, a unit that
//! systemd started, or, in tests, a task.

use std::{borrow::Cow, fmt, sync::Arc};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{
    SpawnError,
    process::{Child, ChildExit, ChildProgram},
    unit::{self, UnitConnectError, UnitServer},
};

/// Where a stdio server lives.
#[derive(Clone)]
pub enum LaunchSite {
    /// In a process of ours.
    Program(ChildProgram),
    /// In a unit of systemd.
    Unit(UnitServer),
}

/// What a stdio server is to the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StdioServerKind {
    /// A process of ours.
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

/// Brings stdio servers to life.
pub trait Launcher: fmt::Debug + Send + Sync {
    /// Starts the server at `home`.
    ///
    /// # Errors
    ///
    /// [`LaunchError`] when it did not start; nothing is left behind then.
    ///
    /// # Cancel safety
    ///
    /// Safe: what was started ends.
    fn launch<'a>(
        &'a self,
        home: &'a LaunchSite,
    ) -> BoxFuture<'a, Result<LaunchedServer, LaunchError>>;
}

/// A stdio server that has just started.
pub struct LaunchedServer {
    /// Who lives there.
    pub tenant: Box<dyn RunningServer>,
    /// What it is spoken to over.
    pub pipes: ServerPipes,
}

/// The pipes of a stdio server.
pub struct ServerPipes {
    /// Where it reads. Dropping it ends its input.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// Where it writes.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Where it complains, if that comes to us.
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
}

/// A stdio server that runs, and its end.
pub trait RunningServer: fmt::Debug + Send {
    /// Returns what it is.
    fn kind(&self) -> StdioServerKind;

    /// Returns its process id, where we know it.
    fn pid(&self) -> Option<u32>;

    /// Waits until it ends by itself.
    ///
    /// # Cancel safety
    ///
    /// Safe: it can be called again.
    fn wait(&mut self) -> BoxFuture<'_, ChildExit>;

    /// Returns what it wrote at last, oldest first, where that does not come over a pipe. It has
    /// ended; what it wrote is looked for within about a second.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    fn last_words(&mut self, _is_alone: bool) -> BoxFuture<'_, Vec<String>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Sees it off, as [`super::escalation`] says, at its leisure until `hurry` is cancelled. The caller has
    /// dropped its standard input before.
    ///
    /// # Cancel safety
    ///
    /// Dropping it halfway leaves the end to the system.
    fn see_off(self: Box<Self>, hurry: CancellationToken) -> BoxFuture<'static, ChildExit>;
}

/// Why a stdio server did not start.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Its program did not start.
    #[error(transparent)]
    Program(#[from] SpawnError),
    /// Its socket could not be connected to.
    #[error(transparent)]
    Unit(#[from] UnitConnectError),
}

impl LaunchError {
    /// What the operator can do about it.
    pub fn hint(&self) -> Cow<'static, str> {
        match self {
            Self::Program(error) => error.hint(),
            Self::Unit(error) => error.hint(),
        }
    }

    /// Tells whether another attempt right after this one may fare better: not where somebody has to
    /// change something first.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Program(error) => error.may_pass(),
            Self::Unit(error) => error.may_pass(),
        }
    }

    /// Tells whether it is a unit at whose socket nobody listens.
    pub fn is_socket_unit_down(&self) -> bool {
        match self {
            Self::Program(_) => false,
            Self::Unit(error) => error.is_socket_unit_down(),
        }
    }

    /// Tells whether it is there and not ready, so that it may be a moment later.
    pub fn is_outage(&self) -> bool {
        match self {
            // A program that was not started is nowhere.
            Self::Program(_) => false,
            Self::Unit(error) => error.is_outage(),
        }
    }
}

/// This host: it spawns programs and connects to units.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostLauncher;

impl Launcher for HostLauncher {
    fn launch<'a>(
        &'a self,
        home: &'a LaunchSite,
    ) -> BoxFuture<'a, Result<LaunchedServer, LaunchError>> {
        Box::pin(async move {
            match home {
                LaunchSite::Program(program) => {
                    let (child, pipes) = Child::spawn(program)?;
                    let pipes = ServerPipes {
                        stdin: Box::new(pipes.stdin),
                        stdout: Box::new(pipes.stdout),
                        stderr: Some(Box::new(pipes.stderr)),
                    };
                    Ok(LaunchedServer { tenant: Box::new(child), pipes })
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

    fn see_off(self: Box<Self>, hurry: CancellationToken) -> BoxFuture<'static, ChildExit> {
        Box::pin(Self::terminate(*self, hurry))
    }
}
