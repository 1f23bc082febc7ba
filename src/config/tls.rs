//! The certificate and key for TLS: `listen.tls`.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::{SecretValue, diagnostic::ConfigProblem, secret::SecretError};

/// The locations of certificate and key: `listen.tls`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// The server's certificate, followed by those of its issuers.
    pub certificate: PemSource,
    /// The private key of the first certificate.
    pub key: PemSource,
}

/// The location of a PEM text.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// [`SecretError`] if there is no credentials directory.
    pub fn path(&self, credentials: Option<&Path>) -> Result<PathBuf, SecretError> {
        match (self, credentials) {
            (Self::File(path), _) => Ok(path.clone()),
            (Self::Credential(name), Some(directory)) => Ok(directory.join(name)),
            (Self::Credential(name), None) => Err(SecretError::NoDirectory { name: name.clone() }),
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

/// [`TlsConfig`] as written in the file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, extend("required" = ["certificate", "key"]))]
pub(super) struct TlsTable {
    /// The certificate of the service, followed by those of its issuers: the absolute path of a PEM
    /// file, or `credential:NAME`.
    #[schemars(with = "Option<String>", regex(pattern = "^(/.*|credential:[^./][^/]*)$"))]
    certificate: Option<Spanned<String>>,
    /// The private key, in the same form.
    #[schemars(with = "Option<String>", regex(pattern = "^(/.*|credential:[^./][^/]*)$"))]
    key: Option<Spanned<String>>,
}

/// The help that shows how to write a location.
const EXAMPLES: &str =
    "write the absolute path of a PEM file, or the name of a credential as in \"credential:tls\"";

impl TlsTable {
    pub(super) fn checked(
        table: Option<Spanned<Self>>,
    ) -> Result<Option<TlsConfig>, ConfigProblem> {
        let Some(table) = table else { return Ok(None) };
        let place = table.span();
        let Self { certificate, key } = table.into_inner();
        let source = |value: Option<Spanned<String>>, name: &str| match value {
            Some(value) => source(value, name),
            None => Err(ConfigProblem::at(place.clone(), format!("`tls` has no `{name}`"))
                .help(format!("add `{name}`: {EXAMPLES}"))),
        };
        let certificate = source(certificate, "certificate")?;
        Ok(Some(TlsConfig { certificate, key: source(key, "key")? }))
    }
}

fn source(value: Spanned<String>, name: &str) -> Result<PemSource, ConfigProblem> {
    let span = value.span();
    let problem = |fault| Err(ConfigProblem::at(span, format!("`{name}` {fault}")).help(EXAMPLES));
    if value.get_ref().contains("-----BEGIN") {
        return problem("is a PEM text itself");
    }
    match SecretValue::checked(value)? {
        SecretValue::Credential(credential) => Ok(PemSource::Credential(credential)),
        SecretValue::Env(_) => problem("cannot be in a variable"),
        SecretValue::Literal(path) if Path::new(&path).is_absolute() && !path.contains('\0') => {
            Ok(PemSource::File(path.into()))
        }
        SecretValue::Literal(_) => problem("is not an absolute path"),
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
