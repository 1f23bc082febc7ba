//! Why there is no certificate to show, with the remedy.

use std::io;

use tokio_rustls::rustls;

use crate::config::{defaults, secret::SecretError, tls::PemSource};

/// Why a certificate and its key are of no use. Never holds what is in a file.
#[derive(Debug, thiserror::Error)]
pub enum TlsIdentityError {
    /// A credential is not to be found.
    #[error("find `{option}`")]
    Reference {
        /// The key of the configuration.
        option: String,
        /// Why.
        source: SecretError,
    },
    /// A file is not what it should be.
    #[error("use `{place}` as `{option}`")]
    File {
        /// The key of the configuration.
        option: String,
        /// Where the file is.
        place: PemSource,
        /// What is wrong with it.
        source: PemError,
    },
    /// The two do not belong together.
    #[error("the key `{key}` is not that of the first certificate in `{certificate}`")]
    Mismatch {
        /// Where the certificate is.
        certificate: PemSource,
        /// Where the key is.
        key: PemSource,
    },
    /// The TLS library refuses itself.
    #[error("prepare TLS")]
    Provider(#[source] rustls::Error),
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    /// It cannot be read.
    #[error(transparent)]
    Read(io::Error),
    /// It is a directory, a device or a pipe.
    #[error("it is not a regular file")]
    NotAFile,
    /// It is far larger than any chain of certificates.
    #[error("it is larger than {} bytes", defaults::PEM_BYTES_MAX)]
    TooLarge,
    /// It has no section.
    #[error("it is not PEM: no line begins with `-----BEGIN`")]
    NotPem,
    /// A section is broken.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    /// It has other sections.
    #[error("it has no certificate, but {0}")]
    NoCertificate(&'static str),
    /// It has other sections.
    #[error("it has no private key, but {0}")]
    NoKey(&'static str),
    /// There is a passphrase.
    #[error("its key is encrypted")]
    Encrypted,
    /// What calls itself a certificate is none.
    #[error("its first certificate cannot be read")]
    Certificate,
    /// What calls itself a key is none that we could sign with.
    #[error("its key is of a kind that is not known here")]
    Key,
}

impl TlsIdentityError {
    /// What the operator can do about it.
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
