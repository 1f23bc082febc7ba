//! The sockets that systemd opened for metamcp, each with its `FileDescriptorName=`.

use std::{net::TcpListener, os::unix::net::UnixListener};

use listenfd::ListenFd;

/// The name of the HTTP sockets.
pub const HTTP: &str = "http";
/// The name of the control socket.
pub const CONTROL: &str = "control";

/// The name of the sockets for metrics.
pub const METRICS: &str = "metrics";

/// The sockets passed to this process.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    /// TCP listeners named `http`; a socket unit may have several addresses.
    pub http: Vec<TcpListener>,
    /// Unix listeners named `control`.
    pub control: Vec<UnixListener>,
    /// TCP listeners named `metrics`.
    pub metrics: Vec<TcpListener>,
}

/// The reason why an inherited socket is unusable.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InheritError {
    /// The name of the socket is unknown.
    #[error("inherited socket {index} is named `{name}`, not `http`, `control` or `metrics`")]
    Name {
        /// The position of the socket, from 0.
        index: usize,
        /// The `FileDescriptorName=` of the socket.
        name: String,
    },
    /// The family or type of the socket does not match its name.
    #[error("inherited socket {index}, named `{name}`, is not {wanted}")]
    Kind {
        /// The position of the socket, from 0.
        index: usize,
        /// The `FileDescriptorName=` of the socket.
        name: &'static str,
        /// The expected kind of socket.
        wanted: &'static str,
    },
}

impl InheritError {
    fn of(index: usize, name: &str) -> Self {
        match name {
            HTTP => Self::Kind { index, name: HTTP, wanted: "a TCP listener" },
            METRICS => Self::Kind { index, name: METRICS, wanted: "a TCP listener" },
            CONTROL => Self::Kind { index, name: CONTROL, wanted: "a Unix listener" },
            _ => Self::Name { index, name: name.to_owned() },
        }
    }

    /// Returns the remedy for the operator.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Name { .. } => {
                "Set `FileDescriptorName=http`, `=control` or `=metrics` in the socket unit."
            }
            Self::Kind { .. } => {
                "Set `ListenStream=ADDRESS:PORT` for `http` and `metrics`, and `ListenStream=/PATH` for `control`."
            }
        }
    }
}

impl InheritedSockets {
    /// Takes every socket passed to this process, and removes the variables that count them. The
    /// variable with the names remains; children do not receive it.
    ///
    /// Call this first. It changes the environment, which is sound only while the process has one
    /// thread, and a socket that is not taken would leak into every child. Without names (systemd
    /// older than 227, or another manager) the family tells the sockets apart.
    ///
    /// # Errors
    ///
    /// [`InheritError`] for a socket that metamcp cannot use.
    pub fn take() -> Result<Self, InheritError> {
        // `listenfd` ignores names: a variable lists them in the same order.
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':');
        let mut passed = ListenFd::from_env();
        let mut inherited = Self::default();
        for index in 0..passed.len() {
            let name = names.next().unwrap_or_default();
            let is_unnamed = matches!(name, "" | "unknown");
            let unix = |passed: &mut ListenFd| passed.take_unix_listener(index).ok().flatten();
            let tcp = |passed: &mut ListenFd| passed.take_tcp_listener(index).ok().flatten();
            if (is_unnamed || name == CONTROL)
                && let Some(listener) = unix(&mut passed)
            {
                inherited.control.push(listener);
            } else if (is_unnamed || name == HTTP)
                && let Some(listener) = tcp(&mut passed)
            {
                inherited.http.push(listener);
            } else if name == METRICS
                && let Some(listener) = tcp(&mut passed)
            {
                inherited.metrics.push(listener);
            } else {
                return Err(InheritError::of(index, name));
            }
        }
        Ok(inherited)
    }

    /// Returns `true` if no socket was passed, as when the service is started from a shell.
    pub fn is_empty(&self) -> bool {
        self.http.is_empty() && self.control.is_empty() && self.metrics.is_empty()
    }
}
