//! The result of connecting to one server, as the report shows it.

use serde::Serialize;

use super::{login_probe::ProbedLogin, network_probe::ProbedTls, probe_phase::ProbePhase};
use crate::server_name::ServerName;

/// The public result of a probe.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbedConnection {
    /// The server.
    pub server: ServerName,
    /// The transport.
    pub transport: &'static str,
    /// The duration of each phase, in order.
    pub phases: Vec<ProbePhase>,
    /// The TLS connection, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<ProbedTls>,
    /// The login, if the server requires one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<ProbedLogin>,
    /// The negotiated version of the protocol, if the handshake succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The number of its tools, if listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// The first lines of its standard error, with secrets redacted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
    /// The first lines on its standard output that are not messages, with secrets redacted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<String>,
    /// The exit status of its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
}
