//! The reasons why a connection to an origin cannot be made, with their remedies.

use std::{io, sync::Arc, time::Duration};

use super::{AddressRefusal, BrokenConnection, Origin, ProxyRefusal, TlsFailure};
use crate::{fault_class::Fault, time_format::to_the_millisecond, tls::TlsIdentityError};

/// The reason why a connection to an origin cannot be made. Nothing was sent then. Never holds a
/// secret.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DialError {
    /// The name of the host has no address.
    #[error("the name `{host}` cannot be resolved: {why}")]
    Unresolved {
        /// The host.
        host: String,
        /// The reason.
        why: String,
    },
    /// The host accepts no connection at this port.
    #[error("`{origin}` refuses connections")]
    Refused {
        /// The origin.
        origin: Origin,
    },
    /// The network reports an error.
    #[error("`{origin}` cannot be reached: {why}")]
    Network {
        /// The origin.
        origin: Origin,
        /// The reason.
        why: String,
    },
    /// Connecting took too long.
    #[error("`{origin}` has not {step} within {}", to_the_millisecond(*after))]
    Timeout {
        /// The origin.
        origin: Origin,
        /// The step that took too long.
        step: DialStep,
        /// The timeout.
        after: Duration,
    },
    /// metamcp refuses to connect to the address.
    #[error("metamcp does not connect to `{origin}`")]
    Forbidden {
        /// The origin.
        origin: Origin,
        /// The reason.
        source: AddressRefusal,
    },
    /// The proxy opened no tunnel.
    #[error("the proxy `{proxy}` between metamcp and `{origin}` {why}")]
    Proxy {
        /// The proxy.
        proxy: String,
        /// The origin.
        origin: Origin,
        /// The reason.
        why: ProxyRefusal,
    },
    /// The proxy cannot be reached.
    #[error("the proxy between metamcp and `{origin}` is not available")]
    ProxyAbsent {
        /// The origin.
        origin: Origin,
        /// The reason.
        source: Box<DialError>,
    },
    /// TLS fails.
    #[error("cannot speak TLS with `{origin}`")]
    Tls {
        /// The origin.
        origin: Origin,
        /// The reason.
        source: TlsFailure,
    },
    /// The connection ended before a request was sent.
    #[error("`{origin}` closed the connection before a request was sent: {why}")]
    Closed {
        /// The origin.
        origin: Origin,
        /// The reason.
        why: String,
    },
    /// The host has no room for a further request.
    #[error("`{origin}` refuses further requests at present")]
    Busy {
        /// The origin.
        origin: Origin,
    },
    /// The system trusts no issuer of certificates.
    #[error("cannot find the certificates of issuers that this system trusts")]
    NoTrust {
        /// The reason.
        source: Arc<io::Error>,
    },
    /// A declared certificate or key is not usable.
    #[error(transparent)]
    Certificate(Arc<TlsIdentityError>),
    /// No connection was made so far, while the attempt continues.
    #[error("no connection within {}", to_the_millisecond(*.0))]
    Pending(Duration),
}

/// A step of connecting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialStep {
    /// Resolving the name of the host.
    Resolve,
    /// TCP.
    Connect,
    /// The tunnel through a proxy.
    Tunnel,
    /// The handshake of TLS.
    Tls,
}

impl DialStep {
    /// Returns the name of the step.
    pub fn name(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Tunnel => "tunnel",
            Self::Tls => "TLS",
        }
    }
}

impl std::fmt::Display for DialStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Resolve => "been resolved to an address",
            Self::Connect => "accepted a connection",
            Self::Tunnel => "been reached by the proxy",
            Self::Tls => "finished the TLS handshake",
        })
    }
}

impl From<TlsIdentityError> for DialError {
    fn from(error: TlsIdentityError) -> Self {
        Self::Certificate(Arc::new(error))
    }
}

impl DialError {
    /// Returns the code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unresolved { .. } | Self::Timeout { step: DialStep::Resolve, .. } => {
                "NAME_UNRESOLVED"
            }
            Self::Refused { .. }
            | Self::Network { .. }
            | Self::Timeout { .. }
            | Self::Closed { .. }
            | Self::Busy { .. }
            | Self::Pending(_) => "UNREACHABLE",
            Self::Forbidden { .. } => "ADDRESS_FORBIDDEN",
            Self::Proxy { .. } | Self::ProxyAbsent { .. } => "PROXY_FAILED",
            Self::Tls { .. } => "TLS_FAILED",
            Self::NoTrust { .. } => "NO_TRUST",
            Self::Certificate(_) => "CERTIFICATE_UNUSABLE",
        }
    }

    /// Returns the remedy for the operator.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unresolved { .. } | Self::Timeout { step: DialStep::Resolve, .. } => {
                "Check the host in the URL, and the name servers of this host. Behind a proxy, set `proxy`."
            }
            Self::Refused { .. } | Self::Closed { .. } | Self::Pending(_) => {
                "Check its host and port, and that it is running."
            }
            Self::Busy { .. } => "Try later: it is overloaded, or allows only few calls at a time.",
            Self::Network { .. } | Self::Timeout { .. } => {
                "Check its host and port, the network and the firewall. Behind a proxy, set `proxy`."
            }
            Self::Forbidden { .. } => {
                "A server named this address, and only declared URLs may lead to private networks or this host."
            }
            Self::Proxy { why, .. } => why.hint(),
            Self::ProxyAbsent { .. } => "Check `proxy`, and that the proxy is running.",
            Self::Tls { source, .. } => source.hint(),
            Self::NoTrust { .. } => {
                "Install the certificates of the system, or set SSL_CERT_FILE to a PEM file."
            }
            Self::Certificate(error) => error.hint(),
        }
    }

    /// Returns the kind of the failure.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Forbidden { .. } | Self::NoTrust { .. } | Self::Certificate(_) => Fault::Other,
            _ => Fault::Offline,
        }
    }

    /// Returns whether the host accepts connections, but has no room for a further request.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }

    /// Returns whether another connection, or another attempt on this one, may succeed at once.
    pub(super) fn is_passing(&self) -> bool {
        self.is_busy() || matches!(self, Self::Closed { .. })
    }

    /// Returns whether waiting does not help: the configuration, a certificate or a policy is the
    /// cause.
    pub fn is_lasting(&self) -> bool {
        matches!(
            self,
            Self::Forbidden { .. }
                | Self::Tls { .. }
                | Self::NoTrust { .. }
                | Self::Certificate(_)
                | Self::Proxy { why: ProxyRefusal::Login | ProxyRefusal::Forbidden, .. }
        )
    }
}

/// The reason why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpSendError {
    /// No connection can be made, and nothing was sent.
    #[error(transparent)]
    Dial(Arc<DialError>),
    /// The connection broke after the request was sent, at least in part.
    #[error(transparent)]
    BrokenOff(BrokenConnection),
}
