//! The steps of one attempt to connect to an origin, for the diagnosis of a host.

use std::{
    future::Future,
    time::{Duration, SystemTime},
};

use tokio::time::{self, Instant};
use tokio_rustls::rustls::{ClientConnection, ProtocolVersion};

use super::{DialError, DialStep, Origin, certificate_expiry};
use crate::config::defaults;

/// The steps of one attempt to connect to an origin, as far as it got.
#[derive(Clone, Debug, Default)]
pub struct DialTrace {
    /// The steps in their order, with their durations. If the attempt failed, the last one failed.
    pub steps: Vec<(DialStep, Duration)>,
    /// The TLS connection, if there is one.
    pub tls: Option<TlsSummary>,
    /// The reason for a failure.
    pub error: Option<DialError>,
}

/// The properties of an established TLS connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSummary {
    /// The version of TLS: `TLS 1.3`.
    pub version: &'static str,
    /// The protocol that both sides agreed on by ALPN.
    pub protocol: Option<String>,
    /// The time at which the certificate of the server expires, if it can be read.
    pub expires: Option<SystemTime>,
}

impl DialTrace {
    /// Runs one step within its time, and records its duration.
    pub(super) async fn step<T>(
        &mut self,
        origin: &Origin,
        step: DialStep,
        work: impl Future<Output = T>,
    ) -> Result<T, DialError> {
        let begin = Instant::now();
        let after = defaults::CONNECT_TIMEOUT;
        let timeout = |_| DialError::Timeout { origin: origin.clone(), step, after };
        let done = time::timeout(after, work).await.map_err(timeout);
        self.steps.push((step, begin.elapsed()));
        done
    }
}

impl TlsSummary {
    /// Returns the properties of a connection after its handshake.
    pub(super) fn of(connection: &ClientConnection) -> Self {
        let certificate = connection.peer_certificates().and_then(|chain| chain.first());
        let protocol = connection.alpn_protocol();
        Self {
            version: match connection.protocol_version() {
                Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
                Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
                Some(_) | None => "TLS",
            },
            protocol: protocol.map(|name| String::from_utf8_lossy(name).into_owned()),
            expires: certificate.and_then(|certificate| certificate_expiry::read(certificate)),
        }
    }
}
