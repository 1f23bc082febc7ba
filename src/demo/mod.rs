//! Three small MCP servers for trials of metamcp: `metamcp demo-server NAME`.
//!
//! Each is an ordinary stdio server built on rmcp, independent of metamcp. `clock` shows that all
//! clients share one process. `scratch` shows that they share its state, by tools, resources and a
//! prompt. `patience` shows that progress and cancellation reach the right call.
//!
//! A server exits when its standard input ends; `connection` implements this.

mod clock;
mod connection;
mod patience;
mod scratch;
mod tool;

use std::{fmt, str::FromStr};

use rmcp::service::ServerInitializeError;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinError,
};

use self::{clock::ClockServer, patience::PatienceServer, scratch::ScratchServer};

/// One of the demonstration servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demo {
    /// The time of day, the uptime and the identity of the process.
    Clock,
    /// An in-memory store whose entries are also resources.
    Scratch,
    /// A slow count with progress and cancellation.
    Patience,
}

impl Demo {
    /// All demonstration servers, in display order.
    pub const ALL: [Self; 3] = [Self::Clock, Self::Scratch, Self::Patience];

    /// Returns the name by which the server is started.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Scratch => "scratch",
            Self::Patience => "patience",
        }
    }

    /// Serves standard input and output until the input ends.
    ///
    /// Returns promptly at the end of the input: calls in flight are abandoned. Signals keep their
    /// default disposition. Not cancel safe: calls in flight, and messages read but not answered,
    /// are lost.
    ///
    /// # Errors
    ///
    /// [`DemoError::Handshake`] when the client does not speak MCP, [`DemoError::Stopped`] when the
    /// service task panicked. A client that disconnects is not an error.
    pub async fn serve(self) -> Result<(), DemoError> {
        self.serve_over(tokio::io::stdin(), tokio::io::stdout()).await
    }

    /// Serves `reader` and `writer` like [`Demo::serve`].
    ///
    /// # Errors
    ///
    /// As [`Demo::serve`].
    ///
    /// # Cancel safety
    ///
    /// As [`Demo::serve`].
    pub async fn serve_over<R, W>(self, reader: R, writer: W) -> Result<(), DemoError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        match self {
            Self::Clock => connection::serve(self, reader, writer, |_| ClockServer::new()).await,
            Self::Scratch => connection::serve(self, reader, writer, ScratchServer::new).await,
            Self::Patience => connection::serve(self, reader, writer, PatienceServer::new).await,
        }
    }
}

impl fmt::Display for Demo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Demo {
    type Err = UnknownDemo;

    fn from_str(name: &str) -> Result<Self, UnknownDemo> {
        Self::ALL
            .into_iter()
            .find(|demo| demo.name() == name)
            .ok_or_else(|| UnknownDemo { name: name.to_owned() })
    }
}

/// The error for an unknown name of a demonstration server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no demo server is called `{name}`: use one of {}", names())]
pub struct UnknownDemo {
    /// The requested name.
    pub name: String,
}

/// The reason why a demonstration server ended early.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The client did not complete the MCP handshake.
    #[error("demo server `{demo}` has no client: the MCP handshake failed")]
    Handshake {
        /// The server that was running.
        demo: Demo,
        /// The handshake error from rmcp.
        source: Box<ServerInitializeError>,
    },
    /// The task that serves the connection panicked.
    #[error("demo server `{demo}` stopped early")]
    Stopped {
        /// The server that was running.
        demo: Demo,
        /// The panic.
        source: JoinError,
    },
}

/// Returns the names of all demonstration servers, for messages.
fn names() -> String {
    Demo::ALL.map(|demo| format!("`{demo}`")).join(", ")
}

#[cfg(test)]
mod tests;
