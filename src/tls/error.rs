//! The errors of loading a TLS certificate, with their remedies.

use std::io;

use tokio_rustls::rustls;

use crate::config::{defaults, secret::SecretError, tls::PemSource};

/// The reason why a certificate and its key are unusable. Never holds the content of a file.
#[derive(Debug, thiserror::Error)]
pub enum TlsIdentityError {
    /// A credential cannot be found.
    #[error("find `{option}`")]
    Reference {
        /// The configuration key.
        option: String,
        /// The reason.
        source: SecretError,
    },
    /// A file is not usable.
    #[error("use `{place}` as `{option}`")]
    File {
        /// The configuration key.
        option: String,
        /// The location of the file.
        place: PemSource,
        /// The mistake in the file.
        source: PemError,
    },
    /// The key does not belong to the certificate.
    #[error("the key `{key}` is not that of the first certificate in `{certificate}`")]
    Mismatch {
        /// The location of the certificate.
        certificate: PemSource,
        /// The location of the key.
        key: PemSource,
    },
    /// The TLS library cannot be set up.
    #[error("prepare TLS")]
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
    #[error("its key is of a kind that is not known here")]
    Key,
}

impl TlsIdentityError {
    /// Returns the remedy for the operator.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Reference { source, .. } => source.hint(),
            Self::File { source, place: PemSource::Credential(_), .. } => match source {
                PemError::Read(_) => {
                    "Add `LoadCredential=NAME:/path` to the unit, or the name to `services.metamcp.credentials`."
                }
                other => other.hint(),
            },
            Self::File { source, place: PemSource::File(_), .. } => source.hint(),
            Self::Mismatch { .. } => {
                "Renew both together, and let the server's own certificate stand before those of its issuers."
            }
            Self::Provider(_) => "This is a mistake of the program: report it.",
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
            Self::Damaged(_) | Self::Certificate => "Make or fetch it again.",
            Self::NoCertificate(_) => {
                "`certificate` is the server's certificate, and after it those of its issuers."
            }
            Self::NoKey(_) => "`key` is the private key: PKCS#8, PKCS#1 or SEC1.",
            Self::Encrypted => {
                "Nobody could type the passphrase: write the key without one, with `openssl pkey -in OLD -out NEW`."
            }
            Self::Key => {
                "Use a key for ECDSA with P-256 or P-384, for Ed25519, or for RSA with 2048 bits or more."
            }
        }
    }
}
