//! The reasons why TLS with an origin fails, in words of operators.

use std::{error::Error, io};

use tokio_rustls::rustls::{
    self, AlertDescription, CertificateError, InvalidMessage, PeerIncompatible, pki_types::UnixTime,
};

use crate::time_format;

/// The reason why TLS with an origin fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsFailure {
    /// The certificate has expired.
    #[error("its certificate has expired{}", on(*.0))]
    Expired(Option<u64>),
    /// The certificate is not valid yet.
    #[error("its certificate is not valid yet{}", from(*.0))]
    NotYetValid(Option<u64>),
    /// The certificate is for other names.
    #[error("its certificate is for {}, and not for `{expected}`", listed(presented))]
    WrongName {
        /// The name in the URL.
        expected: String,
        /// The names in the certificate.
        presented: Vec<String>,
    },
    /// No trusted authority has issued the certificate.
    #[error("no authority that metamcp trusts has issued its certificate")]
    UnknownIssuer,
    /// The certificate is unusable for another reason.
    #[error("its certificate is not usable: {0}")]
    Certificate(String),
    /// The server speaks only versions below 1.2.
    #[error("it speaks only a version of TLS below 1.2")]
    OldVersion,
    /// The server speaks no TLS.
    #[error("it does not speak TLS")]
    NoTls,
    /// The server requires a certificate of metamcp.
    #[error("it requires a certificate of metamcp")]
    ClientCertificateRequired,
    /// The server does not accept the certificate of metamcp.
    #[error("it does not accept the certificate of metamcp: {0}")]
    ClientCertificateRefused(String),
    /// The server ended the connection during the handshake.
    #[error("it hung up during the handshake")]
    HungUp,
    /// Another failure.
    #[error("{0}")]
    Other(String),
}

impl TlsFailure {
    /// Returns the reason for an error of a handshake with the host `expected`.
    pub(super) fn of_handshake(error: &io::Error, expected: &str) -> Self {
        match found_in(error) {
            Some(error) => Self::of(&error, expected),
            None if is_hang_up(error) => Self::HungUp,
            None => Self::Other(error.to_string()),
        }
    }

    /// Returns the reason for an error of the TLS library.
    pub(super) fn of(error: &rustls::Error, expected: &str) -> Self {
        match error {
            rustls::Error::InvalidCertificate(error) => Self::of_certificate(error, expected),
            rustls::Error::AlertReceived(alert) => Self::of_alert(*alert, error),
            rustls::Error::PeerIncompatible(
                PeerIncompatible::ServerDoesNotSupportTls12Or13
                | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
            )
            | rustls::Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion) => {
                Self::OldVersion
            }
            rustls::Error::InvalidMessage(_) => Self::NoTls,
            _ => Self::Other(error.to_string()),
        }
    }

    fn of_certificate(error: &CertificateError, host: &str) -> Self {
        match error {
            CertificateError::Expired => Self::Expired(None),
            CertificateError::ExpiredContext { not_after, .. } => {
                Self::Expired(Some(UnixTime::as_secs(not_after)))
            }
            CertificateError::NotValidYet => Self::NotYetValid(None),
            CertificateError::NotValidYetContext { not_before, .. } => {
                Self::NotYetValid(Some(UnixTime::as_secs(not_before)))
            }
            CertificateError::NotValidForName => {
                Self::WrongName { expected: host.to_owned(), presented: Vec::new() }
            }
            CertificateError::NotValidForNameContext { presented, .. } => {
                Self::WrongName { expected: host.to_owned(), presented: presented.clone() }
            }
            // A trusted authority of the same name has another key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::UnknownIssuer,
            // The text of an error of the library webpki, which has no other form here.
            error if error.to_string().contains("CaUsedAsEndEntity") => {
                Self::Certificate("it is that of an authority, and not of a server".to_owned())
            }
            error => Self::Certificate(error.to_string()),
        }
    }

    fn of_alert(alert: AlertDescription, error: &rustls::Error) -> Self {
        match alert {
            AlertDescription::ProtocolVersion => Self::OldVersion,
            AlertDescription::CertificateRequired => Self::ClientCertificateRequired,
            AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::AccessDenied => Self::ClientCertificateRefused(error.to_string()),
            _ => Self::Other(error.to_string()),
        }
    }

    /// Returns the remedy for the operator.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Expired(_) => {
                "Renew the certificate of the server, or check the clock of this host."
            }
            Self::NotYetValid(_) => {
                "Check the clock of this host, and that of the host that issued the certificate."
            }
            Self::WrongName { .. } => {
                "Write a name of the certificate into `url`, or have one issued for this name."
            }
            Self::UnknownIssuer => {
                "Name the PEM file of its authority in `tls = { ca = \"/path\" }` of this server, or in SSL_CERT_FILE. A server must also send the certificates between its own and that of the authority."
            }
            Self::Certificate(_) => "Have another certificate issued for the server.",
            Self::OldVersion => "Let the server speak TLS 1.2 or 1.3.",
            Self::NoTls => "Write `http://` if the server speaks no TLS, or check the port.",
            Self::ClientCertificateRequired => {
                "Set `tls = { certificate = \"/path\", key = \"/path\" }` of this server."
            }
            Self::ClientCertificateRefused(_) => {
                "Have a certificate issued that the server trusts, and name it in `tls` of this server."
            }
            Self::HungUp | Self::Other(_) => "See the log of the server, and check the port.",
        }
    }
}

/// Finds the error of the TLS library in the chain of causes of an error.
fn found_in(error: &(dyn Error + 'static)) -> Option<rustls::Error> {
    let mut next = Some(error);
    while let Some(cause) = next {
        let mut found = cause;
        // The error that an I/O error wraps is not among its sources.
        while let Some(inner) = found.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            found = inner;
        }
        if let Some(found) = found.downcast_ref::<rustls::Error>() {
            return Some(found.clone());
        }
        next = cause.source();
    }
    None
}

/// Returns the refusal of metamcp's certificate in an I/O error on an established TLS connection.
/// Servers that require one say so only after the handshake of TLS 1.3, and have read no request
/// then. Before any other alert, a server may have executed one.
pub(super) fn later_failure(error: &io::Error) -> Option<rustls::Error> {
    found_in(error).filter(|error| {
        matches!(
            TlsFailure::of(error, ""),
            TlsFailure::ClientCertificateRequired | TlsFailure::ClientCertificateRefused(_)
        )
    })
}

fn is_hang_up(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}

fn on(seconds: Option<u64>) -> String {
    seconds.map(|seconds| format!(" on {}", date(seconds))).unwrap_or_default()
}

fn from(seconds: Option<u64>) -> String {
    seconds.map(|seconds| format!(", only from {}", date(seconds))).unwrap_or_default()
}

fn date(seconds: u64) -> String {
    let ms = i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
    time_format::rfc3339(ms, 0)
}

fn listed(names: &[String]) -> String {
    /// The names that an error lists.
    const SHOWN_MAX: usize = 4;
    let shown: Vec<String> = names
        .iter()
        .take(SHOWN_MAX)
        .map(|name| {
            // The library writes `DnsName("host")` and `IpAddress(127.0.0.1)`.
            let name = name.split_once('(').map_or(name.as_str(), |(_, name)| name);
            format!("`{}`", name.trim_matches(['"', ')']).escape_debug())
        })
        .collect();
    match (shown.is_empty(), names.len() > SHOWN_MAX) {
        (true, _) => "other names".to_owned(),
        (false, false) => shown.join(", "),
        (false, true) => format!("{} and others", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refused_certificate_shows_that_no_request_was_read() {
        let later =
            |alert| later_failure(&io::Error::other(rustls::Error::AlertReceived(alert))).is_some();
        for alert in [AlertDescription::CertificateRequired, AlertDescription::UnknownCA] {
            assert!(later(alert), "{alert:?}");
        }
        for alert in [
            AlertDescription::InternalError,
            AlertDescription::BadRecordMac,
            AlertDescription::UserCanceled,
            AlertDescription::HandshakeFailure,
        ] {
            assert!(!later(alert), "{alert:?}");
        }
        assert!(later_failure(&io::ErrorKind::ConnectionReset.into()).is_none());
    }
}
