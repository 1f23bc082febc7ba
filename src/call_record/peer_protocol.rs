//! The protocol between metamcp and one side of a call, as spans name it.

use crate::{config::TransportConfig, protocol::version};

/// The transport and the protocol version of a client or a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerProtocol {
    transport: Option<PeerTransport>,
    version: Option<&'static str>,
}

/// The transport below HTTP or MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerTransport {
    /// TCP, plain or with TLS.
    Tcp,
    /// Standard input and output.
    Pipe,
    /// A socket in the file system.
    Unix,
}

impl PeerProtocol {
    /// Returns the protocol of a client or a server that has negotiated `version`.
    pub fn new(transport: Option<PeerTransport>, version: Option<&'static str>) -> Self {
        Self { transport, version }
    }

    /// Returns the value of `network.transport`. Source: OpenTelemetry, semantic conventions for MCP.
    pub fn transport(self) -> Option<&'static str> {
        self.transport.map(|transport| match transport {
            PeerTransport::Tcp => "tcp",
            PeerTransport::Pipe => "pipe",
            PeerTransport::Unix => "unix",
        })
    }

    /// Returns the version of MCP, if it is known.
    pub fn version(self) -> Option<&'static str> {
        self.version
    }

    /// Returns the protocol of a server that has negotiated `version`.
    pub fn of_server(transport: &TransportConfig, version: Option<&str>) -> Self {
        let transport = match transport {
            TransportConfig::Stdio { .. } => PeerTransport::Pipe,
            TransportConfig::Unit { .. } => PeerTransport::Unix,
            TransportConfig::Http(_) => PeerTransport::Tcp,
        };
        let known = |version| version::SERVED.into_iter().find(|served| *served == version);
        Self::new(Some(transport), version.and_then(known))
    }
}
