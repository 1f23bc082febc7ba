//! The errors of a start of the service, each with a hint.

use std::{fmt, io, net::SocketAddr, path::PathBuf};

use crate::{
    config::{ExposedListener, defaults},
    session::signing_key::SessionKeyError,
};

/// A process id in a message.
struct PidSuffix(Option<u32>);

impl fmt::Display for PidSuffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |pid| write!(f, " (pid {pid})"))
    }
}

/// The reason why the service does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The TCP address cannot be listened on.
    #[error("cannot listen on {0}")]
    Http(SocketAddr, #[source] io::Error),
    /// The TCP address for metrics cannot be listened on.
    #[error("cannot listen on {0} for metrics")]
    Metrics(SocketAddr, #[source] io::Error),
    /// Another service already answers at this socket, with this process id if known.
    #[error("another metamcp{} already answers at `{}`", PidSuffix(*.1), .0.display())]
    Running(PathBuf, Option<u32>),
    /// Another service exists, but does not answer likewise.
    #[error(
        "another metamcp{} does not answer at `{}` within {} s: it is starting, stopping or hanging",
        PidSuffix(*.1), .0.display(), defaults::RUNNING_SERVICE_TIMEOUT.as_secs()
    )]
    Silent(PathBuf, Option<u32>),
    /// The lock file cannot be used.
    #[error("cannot lock `{}`", .0.display())]
    Lock(PathBuf, #[source] io::Error),
    /// The control socket cannot be created.
    #[error("cannot create the control socket `{}`", .0.display())]
    Control(PathBuf, #[source] io::Error),
    /// The group cannot get access to the control socket.
    #[error("cannot give the group `{0}` access to the control socket")]
    Group(String, #[source] io::Error),
    /// The path of the control socket holds another kind of file.
    #[error("`{}` exists and is not a socket", .0.display())]
    NotASocket(PathBuf),
    /// The directory of the control socket belongs to another user.
    #[error("the directory `{}` belongs to another user", .0.display())]
    ForeignDirectory(PathBuf),
    /// An address would be open to all clients.
    #[error(transparent)]
    Exposed(#[from] ExposedListener),
    /// An inherited socket cannot be used.
    #[error("cannot use an inherited socket")]
    Inherited(#[source] io::Error),
    /// Signals cannot be caught.
    #[error("cannot catch signals")]
    Signals(#[source] io::Error),
    /// The key for session ids cannot be used.
    #[error(transparent)]
    SessionKey(#[from] SessionKeyError),
}

impl StartError {
    /// Returns what the operator can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Http(_, source) if source.kind() == io::ErrorKind::AddrInUse => {
                "Another program listens there, perhaps another metamcp: run `metamcp status`, or set `listen.http`."
            }
            Self::Http(..) => "Check `listen.http`.",
            Self::Metrics(..) => {
                "Check `listen.metrics`. Run `ss -ltnp` to see the program that may listen there."
            }
            Self::Running(..) => {
                "Run `metamcp status`, or set `listen.control` and `listen.http` for a second service."
            }
            Self::Silent(..) => {
                "Wait a moment and run `metamcp status`. If the other service hangs, end it with `kill`."
            }
            Self::Control(..)
            | Self::Lock(..)
            | Self::NotASocket(_)
            | Self::ForeignDirectory(_) => {
                "Set `listen.control` to a path in a directory of your own."
            }
            Self::Group(..) => {
                "Create the group, and put the user of the service into it, or unset `listen.control_group`."
            }
            Self::SessionKey(error) => error.hint(),
            Self::Exposed(error) => error.hint(),
            Self::Inherited(_) | Self::Signals(_) => "Check the limits of the service.",
        }
    }
}
