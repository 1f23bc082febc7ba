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
    process::{Child, Exit, Program},
    unit::{self, ConnectError, Unit},
};

/// Where a stdio server lives.
#[derive(Clone)]
pub enum Home {
    /// In a process of ours.
    Program(Program),
    /// In a unit of systemd.
    Unit(Unit),
}

/// What a stdio server is to the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A process of ours.
    Process,
    /// An instance of the unit template of this name.
    Unit(Arc<str>),
}

impl fmt::Display for Kind {
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
    fn launch<'a>(&'a self, home: &'a Home) -> BoxFuture<'a, Result<Launched, LaunchError>>;
}

/// A stdio server that has just started.
pub struct Launched {
    /// Who lives there.
    pub tenant: Box<dyn Tenant>,
    /// What it is spoken to over.
    pub pipes: Pipes,
}

/// The pipes of a stdio server.
pub struct Pipes {
    /// Where it reads. Dropping it ends its input.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// Where it writes.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Where it complains, if that comes to us.
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
}

/// A stdio server that runs, and its end.
pub trait Tenant: fmt::Debug + Send {
    /// Returns what it is.
    fn kind(&self) -> Kind;

    /// Returns its process id, where we know it.
    fn pid(&self) -> Option<u32>;

    /// Waits until it ends by itself.
    ///
    /// # Cancel safety
    ///
    /// Safe: it can be called again.
    fn wait(&mut self) -> BoxFuture<'_, Exit>;

    /// Returns what it wrote at last, oldest first, where that does not come over a pipe. It has
    /// ended; what it wrote is looked for within about a second.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    fn last_words(&mut self, _is_alone: bool) -> BoxFuture<'_, Vec<String>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Sees it off, as [`super::ladder`] says, at its leisure until `hurry` is cancelled. The caller has
    /// dropped its standard input before.
    ///
    /// # Cancel safety
    ///
    /// Dropping it halfway leaves the end to the system.
    fn see_off(self: Box<Self>, hurry: CancellationToken) -> BoxFuture<'static, Exit>;
}

/// Why a stdio server did not start.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Its program did not start.
    #[error(transparent)]
    Program(#[from] SpawnError),
    /// Its socket could not be connected to.
    #[error(transparent)]
    Unit(#[from] ConnectError),
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
    pub fn is_unset(&self) -> bool {
        match self {
            Self::Program(_) => false,
            Self::Unit(error) => error.is_unset(),
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
pub struct Host;

impl Launcher for Host {
    fn launch<'a>(&'a self, home: &'a Home) -> BoxFuture<'a, Result<Launched, LaunchError>> {
        Box::pin(async move {
            match home {
                Home::Program(program) => {
                    let (child, pipes) = Child::spawn(program)?;
                    let pipes = Pipes {
                        stdin: Box::new(pipes.stdin),
                        stdout: Box::new(pipes.stdout),
                        stderr: Some(Box::new(pipes.stderr)),
                    };
                    Ok(Launched { tenant: Box::new(child), pipes })
                }
                Home::Unit(unit) => Ok(unit::launch(unit).await?),
            }
        })
    }
}

impl Tenant for Child {
    fn kind(&self) -> Kind {
        Kind::Process
    }

    fn pid(&self) -> Option<u32> {
        Some(Self::pid(self))
    }

    fn wait(&mut self) -> BoxFuture<'_, Exit> {
        Box::pin(Self::wait(self))
    }

    fn see_off(self: Box<Self>, hurry: CancellationToken) -> BoxFuture<'static, Exit> {
        Box::pin(Self::see_off(*self, hurry))
    }
}
