//! Sockets that systemd opened for us, told apart by `FileDescriptorName=`.

use std::{net::TcpListener, os::unix::net::UnixListener};

/// The name of the sockets that speak HTTP.
pub const HTTP: &str = "http";
/// The name of the control socket.
pub const CONTROL: &str = "control";

/// The sockets that were passed to us.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    /// TCP listeners named `http`; a socket unit may have several addresses.
    pub http: Vec<TcpListener>,
    /// Unix listeners named `control`.
    pub control: Vec<UnixListener>,
}

/// Why an inherited socket is of no use.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InheritError {
    /// A name that we do not know.
    #[error("inherited socket {index} is named `{name}`")]
    Name {
        /// Its place, from 0.
        index: usize,
        /// Its `FileDescriptorName=`.
        name: String,
    },
    /// A socket of another family or type than its name asks for.
    #[error("inherited socket {index}, named `{name}`, is not {wanted}")]
    Kind {
        /// Its place, from 0.
        index: usize,
        /// Its `FileDescriptorName=`.
        name: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
}

impl InheritError {
    /// What the operator can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Name { .. } => "Set `FileDescriptorName=http` or `=control` in the socket unit.",
            Self::Kind { .. } => {
                "`http` takes `ListenStream=ADDRESS:PORT`, `control` takes `ListenStream=/PATH`."
            }
        }
    }
}

impl InheritedSockets {
    /// Takes every socket that was passed to this process, and removes the variables that count
    /// them; the one with their names stays, and is on no child's list.
    ///
    /// To be called first of all: it changes the environment, which is sound only while the
    /// process has one thread, and a socket that is not taken would leak into every child.
    /// Without names (systemd older than 227, or another manager) the family tells them apart.
    ///
    /// # Errors
    ///
    /// [`InheritError`] for a socket that we would not know what to do with.
    pub fn take() -> Result<Self, InheritError> {
        // `listenfd` knows no names: they stand in a variable in the same order.
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':');
        let mut passed = listenfd::ListenFd::from_env();
        let mut inherited = Self::default();
        for index in 0..passed.len() {
            match names.next().unwrap_or_default() {
                HTTP => match passed.take_tcp_listener(index) {
                    Ok(Some(listener)) => inherited.http.push(listener),
                    _ => {
                        return Err(InheritError::Kind {
                            index,
                            name: HTTP,
                            wanted: "a TCP listener",
                        });
                    }
                },
                CONTROL => match passed.take_unix_listener(index) {
                    Ok(Some(listener)) => inherited.control.push(listener),
                    _ => {
                        return Err(InheritError::Kind {
                            index,
                            name: CONTROL,
                            wanted: "a Unix listener",
                        });
                    }
                },
                "" | "unknown" => {
                    if let Ok(Some(listener)) = passed.take_unix_listener(index) {
                        inherited.control.push(listener);
                    } else if let Ok(Some(listener)) = passed.take_tcp_listener(index) {
                        inherited.http.push(listener);
                    } else {
                        return Err(InheritError::Name { index, name: String::new() });
                    }
                }
                name => return Err(InheritError::Name { index, name: name.to_owned() }),
            }
        }
        Ok(inherited)
    }

    /// Tells whether nothing was passed: the service was started from a shell.
    pub fn is_empty(&self) -> bool {
        self.http.is_empty() && self.control.is_empty()
    }
}
