//! The protocol between metamcp and one side of a call, as spans name it.

use crate::{config::TransportConfig, protocol::version};

/// The transport and the protocol version of a client or a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerProtocol {
    /// The value of `network.transport`. Source: OpenTelemetry, semantic conventions for MCP.
    pub transport: Option<&'static str>,
    /// The version of MCP, if it is known.
    pub version: Option<&'static str>,
}

impl PeerProtocol {
    /// TCP, plain or with TLS.
    pub const TCP: &str = "tcp";
    /// Standard input and output.
    pub const PIPE: &str = "pipe";
    /// A socket in the file system.
    pub const UNIX: &str = "unix";

    /// Returns the protocol of a server that has negotiated `version`.
    pub fn of_server(transport: &TransportConfig, version: Option<&str>) -> Self {
        let transport = match transport {
            TransportConfig::Stdio { .. } => Self::PIPE,
            TransportConfig::Unit { .. } => Self::UNIX,
            TransportConfig::Http(_) => Self::TCP,
        };
        let known = |version| version::SERVED.into_iter().find(|served| *served == version);
        Self { transport: Some(transport), version: version.and_then(known) }
    }
}
