//! The errors of a start of the service, each with a hint.

use std::{fmt, io, net::SocketAddr, path::PathBuf};

use crate::{
    config::{ExposedListener, defaults},
    session::signing_key::SessionKeyError,
};

/// A process id, as a message shows it.
struct Shown(Option<u32>);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |pid| write!(f, " (pid {pid})"))
    }
}

/// The reason why the service does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The TCP address cannot be listened on.
    #[error("listen on {address}")]
    Http {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// Another service already answers.
    #[error("another metamcp{} already answers at `{}`", Shown(*pid), path.display())]
    Running {
        /// The socket.
        path: PathBuf,
        /// Its process id, if known.
        pid: Option<u32>,
    },
    /// Another service exists, but does not answer.
    #[error(
        "another metamcp{} is there, and does not answer at `{}` within {} s: it starts, stops or hangs",
        Shown(*pid), path.display(), defaults::PROBE_PATIENCE.as_secs()
    )]
    Silent {
        /// The socket.
        path: PathBuf,
        /// Its process id, if known.
        pid: Option<u32>,
    },
    /// The lock file cannot be used.
    #[error("lock `{}`", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The control socket cannot be created.
    #[error("make the control socket `{}`", path.display())]
    Control {
        /// The socket.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The group cannot get access to the control socket.
    #[error("let the group `{group}` use the control socket")]
    Group {
        /// The group.
        group: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The path of the control socket holds another kind of file.
    #[error("`{}` is there already, and is not a socket", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The directory of the control socket belongs to another user.
    #[error("the directory `{}` is not ours", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
    },
    /// An address would be open to everybody.
    #[error(transparent)]
    Exposed(#[from] ExposedListener),
    /// An inherited socket cannot be used.
    #[error("use an inherited socket")]
    Inherited(#[source] io::Error),
    /// Signals cannot be caught.
    #[error("catch signals")]
    Signals(#[source] io::Error),
    /// The key for session ids cannot be used.
    #[error(transparent)]
    SessionKey(#[from] SessionKeyError),
}

impl StartError {
    /// Returns what the operator can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Http { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                "Another program listens there, perhaps metamcp itself: see `metamcp status`, or set `listen.http`."
            }
            Self::Http { .. } => "Check `listen.http`.",
            Self::Running { .. } => {
                "See `metamcp status`, or set `listen.control` and `listen.http` for a second one."
            }
            Self::Silent { .. } => {
                "Wait a moment and see `metamcp status`; end one that hangs with `kill`."
            }
            Self::Control { .. }
            | Self::Lock { .. }
            | Self::NotASocket { .. }
            | Self::Foreign { .. } => "Set `listen.control` to a path in a directory of your own.",
            Self::Group { .. } => {
                "Create the group, and put the user of the service into it, or unset `listen.control_group`."
            }
            Self::SessionKey(error) => error.hint(),
            Self::Exposed(error) => error.hint(),
            Self::Inherited(_) | Self::Signals(_) => "Check the limits of the service.",
        }
    }
}
