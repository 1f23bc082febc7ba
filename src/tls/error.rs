//! The errors of loading a TLS certificate, with their remedies.

use std::io;

use tokio_rustls::rustls;

use crate::config::{defaults, secret::SecretError, tls::PemSource};

/// The reason why a certificate and its key are unusable. Never holds the content of a file.
#[derive(Debug, thiserror::Error)]
pub enum TlsIdentityError {
    /// A credential cannot be found.
    #[error("cannot find `{option}`")]
    Reference {
        /// The configuration key.
        option: &'static str,
        /// The reason.
        source: SecretError,
    },
    /// A file is not usable.
    #[error("cannot use `{place}` as `{option}`")]
    File {
        /// The configuration key.
        option: &'static str,
        /// The location of the file.
        place: PemSource,
        /// The mistake in the file.
        source: PemError,
    },
    /// The key does not belong to the certificate.
    #[error("the key `{key}` does not belong to the first certificate in `{certificate}`")]
    Mismatch {
        /// The location of the certificate.
        certificate: PemSource,
        /// The location of the key.
        key: PemSource,
    },
    /// The TLS library cannot be set up.
    #[error("cannot prepare TLS")]
    Provider(#[source] rustls::Error),
}

/// The mistake in a file.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(io::Error),
    /// The file is a directory, a device or a pipe.
    #[error("it is not a regular file")]
    NotAFile,
    /// The file is far larger than any certificate chain.
    #[error("it is larger than {} bytes", defaults::PEM_BYTES_MAX)]
    TooLarge,
    /// The file has no section.
    #[error("it is not PEM: no line begins with `-----BEGIN`")]
    NotPem,
    /// A section is malformed.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    /// The file has other sections only.
    #[error("it has no certificate, but {0}")]
    NoCertificate(&'static str),
    /// The file has other sections only.
    #[error("it has no private key, but {0}")]
    NoKey(&'static str),
    /// The key is protected by a passphrase.
    #[error("its key is encrypted")]
    Encrypted,
    /// The first certificate cannot be parsed.
    #[error("its first certificate cannot be read")]
    Certificate,
    /// The key is of an unsupported kind.
    #[error("its key is of an unsupported kind")]
    Key,
}

impl TlsIdentityError {
    /// Returns the remedy for the operator.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Reference { source, .. } => source.hint(),
            Self::File { source: PemError::Read(_), place: PemSource::Credential(_), .. } => {
                "Add `LoadCredential=NAME:/path` to the unit, or the name to `services.metamcp.credentials`."
            }
            Self::File { source, .. } => source.hint(),
            Self::Mismatch { .. } => {
                "Renew both together, and put the server's own certificate before those of its issuers."
            }
            Self::Provider(_) => "Report this as a bug of metamcp.",
        }
    }
}

impl PemError {
    fn hint(&self) -> &'static str {
        match self {
            Self::Read(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                "Let the user of the service read it, or have systemd read it: `LoadCredential=NAME:/path` in the unit, and `credential:NAME` here."
            }
            Self::Read(_) | Self::NotAFile | Self::TooLarge => {
                "Write the path of a PEM file, or `credential:NAME`."
            }
            Self::NotPem => {
                "Convert it with `openssl x509 -inform DER` or `openssl pkey -inform DER`."
            }
            Self::Damaged(_) | Self::Certificate => "Create or fetch it again.",
            Self::NoCertificate(_) => {
                "Put the server's own certificate into it, and after that those of its issuers."
            }
            Self::NoKey(_) => "Put the private key into it, as PKCS#8, PKCS#1 or SEC1.",
            Self::Encrypted => {
                "Write the key without a passphrase: `openssl pkey -in OLD -out NEW`."
            }
            Self::Key => {
                "Use a key for ECDSA with P-256 or P-384, for Ed25519, or for RSA with 2048 bits or more."
            }
        }
    }
}
