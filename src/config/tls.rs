//! The certificate and key for TLS: `listen.tls`.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    SecretValue, credential_directories,
    refusal::{KEY, Refusal},
    secret::SecretError,
};

/// The locations of certificate and key: `listen.tls`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "TlsTable")]
pub struct TlsConfig {
    /// The server's certificate, followed by those of its issuers.
    pub certificate: PemSource,
    /// The private key of the first certificate.
    pub key: PemSource,
}

/// The location of a PEM text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum PemSource {
    /// An absolute path.
    File(PathBuf),
    /// The name of a systemd credential.
    Credential(String),
}

impl PemSource {
    /// Returns the path of the file.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if no directory has the credential.
    pub fn path(&self, credentials: Option<&Path>) -> Result<PathBuf, SecretError> {
        match self {
            Self::File(path) => Ok(path.clone()),
            Self::Credential(name) => credential_directories::path_of(name, credentials),
        }
    }
}

impl fmt::Display for PemSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Credential(name) => write!(f, "credential:{name}"),
        }
    }
}

/// [`TlsConfig`] as written in the file, because a missing key has its own remedy.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["certificate", "key"]))]
pub(super) struct TlsTable {
    /// The certificate of the service, followed by those of its issuers: the absolute path of a PEM
    /// file, or `credential:NAME`.
    #[schemars(with = "Option<String>", title = PEM, regex(pattern = PEM_PATTERN))]
    certificate: Option<PemSource>,
    /// The private key, in the same form.
    #[schemars(with = "Option<String>", title = PEM, regex(pattern = PEM_PATTERN))]
    key: Option<PemSource>,
}

/// The pattern of the location of a PEM file.
pub(super) const PEM_PATTERN: &str = "^(/.*|credential:[^./][^/]*)$";

/// [`PEM_PATTERN`] in words.
pub(super) const PEM: &str = "absolute path as a string, or credential:NAME";

/// The help that shows how to write a location.
const EXAMPLES: &str =
    "write the absolute path of a PEM file, or the name of a credential as in \"credential:tls\"";

impl TryFrom<TlsTable> for TlsConfig {
    type Error = Refusal;

    fn try_from(table: TlsTable) -> Result<Self, Refusal> {
        let found = |source: Option<PemSource>, key: &str| {
            let help = || format!("add `{key}`: {EXAMPLES}");
            source.ok_or_else(|| Refusal::new(format!("`tls` has no `{key}`"), help()))
        };
        let certificate = found(table.certificate, "certificate")?;
        Ok(Self { certificate, key: found(table.key, "key")? })
    }
}

impl TryFrom<String> for PemSource {
    type Error = Refusal;

    fn try_from(text: String) -> Result<Self, Refusal> {
        let refused = |fault| Err(Refusal::new(format!("`{KEY}` {fault}"), EXAMPLES));
        if text.contains("-----BEGIN") {
            return refused("is a PEM text itself");
        }
        match SecretValue::checked(text)? {
            SecretValue::Credential(credential) => Ok(Self::Credential(credential)),
            SecretValue::Env(_) => refused("cannot be in a variable"),
            SecretValue::Literal(path)
                if Path::new(&path).is_absolute() && !path.contains('\0') =>
            {
                Ok(Self::File(path.into()))
            }
            SecretValue::Literal(_) => refused("is not an absolute path"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_a_file_in_its_directory_and_a_path_is_itself() {
        let credential = PemSource::Credential("tls".into());
        let directory = Path::new("/run/credentials/metamcp.service");
        assert_eq!(credential.path(Some(directory)).expect("a path"), directory.join("tls"));
        assert!(matches!(credential.path(None), Err(SecretError::NoDirectory { .. })));
        let file = PemSource::File("/etc/chain.pem".into());
        assert_eq!(file.path(None).expect("a path"), Path::new("/etc/chain.pem"));
    }
}
