//! Values that may be references: to a systemd credential or an environment variable.

use std::{
    fmt, fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use serde::Deserialize;

use super::{credential_directories, defaults, refusal::Refusal};

/// A reference in words.
pub(super) const REFERENCE: &str = "reference to a secret, credential:NAME or env:NAME";

/// The help for a secret that is in the file itself.
pub(super) const REFERENCE_HELP: &str =
    "write \"credential:NAME\" or \"env:NAME\", because other users may read the file";

/// The tables of a server whose values may be secrets.
pub(crate) const SECRET_TABLES: [&str; 2] = ["env", "headers"];

/// The words that look like secrets, from a file that `nix/secret-lookalikes.nix` reads too.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretWords {
    /// The parts of names whose values are secret, even if they are ordinary words.
    pub certain_parts: Vec<String>,
    /// The parts of names whose values may be secret.
    pub name_parts: Vec<String>,
    /// The whole words of names whose values may be secret.
    pub name_words: Vec<String>,
    /// The prefixes of tokens that well-known issuers use.
    pub token_prefixes: Vec<String>,
}

/// The words of this version.
pub static SECRET_WORDS: LazyLock<SecretWords> = LazyLock::new(|| {
    serde_json::from_str(include_str!("secret_words.json")).expect("a file of this crate")
});

/// Returns the directory that systemd's `LoadCredential=` fills, if there is one.
pub fn credentials_directory() -> Option<PathBuf> {
    credential_directories::of_systemd()
}

/// Returns the names of the credentials in `directory` that every user of this host can read.
pub fn exposed_credentials(directory: &Path) -> Vec<String> {
    let mode = |path: &Path| path.metadata().map_or(0, |found| found.permissions().mode());
    let is_exposed = |path: &Path| path.is_file() && mode(path) & 0o004 != 0;
    // Other users cannot reach files in a directory that they cannot search.
    if mode(directory) & 0o001 == 0 {
        return Vec::new();
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let exposed = entries.take(defaults::CREDENTIALS_MAX).filter(|entry| is_exposed(&entry.path()));
    let mut names: Vec<String> =
        exposed.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A literal value, or a reference to one.
///
/// `credential:NAME` is the file NAME in the directory that systemd's `LoadCredential=` fills, or
/// else in the directory `credentials` beside the configuration file.
/// `env:NAME` is a variable of the service's environment. Any other text is a literal. References
/// keep secrets out of configuration files, which on NixOS every user can read.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum SecretValue {
    /// The value itself.
    Literal(String),
    /// The name of a systemd credential.
    Credential(String),
    /// The name of an environment variable.
    Env(String),
}

/// The reason why a reference cannot be resolved. It never holds a value.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// No credentials directory: not started by systemd, or without `LoadCredential=`.
    #[error("`credential:{name}` needs $CREDENTIALS_DIRECTORY, which is not set")]
    NoDirectory {
        /// The credential's name.
        name: String,
    },
    /// No directory has the file.
    #[error("there is no `credential:{name}` in `{}`", directory.display())]
    Missing {
        /// The credential's name.
        name: String,
        /// The directory beside the configuration file.
        directory: PathBuf,
        /// systemd runs the service as a unit, which can load credentials.
        is_unit: bool,
    },
    /// The file cannot be read.
    #[error("cannot read `credential:{name}`")]
    Credential {
        /// The credential's name.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The name would leave the directory.
    #[error("`credential:{name}` is not a credential name")]
    Name {
        /// The offending name.
        name: String,
    },
    /// The variable is not set, or not UTF-8.
    #[error("the variable `{name}` is not set")]
    Env {
        /// The variable's name.
        name: String,
    },
}

impl SecretError {
    /// Returns the remedy for the operator.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing { is_unit: false, .. } => {
                "Write the value into a file of that name there, and make it private: `chmod 600 FILE`."
            }
            Self::Missing { is_unit: true, .. } => {
                "Write the value into a file of that name there, or add `LoadCredential=NAME:/path` to the unit."
            }
            Self::NoDirectory { .. } | Self::Credential { .. } => {
                "Add `LoadCredential=NAME:/path` to the unit, or NAME to `services.metamcp.credentials`."
            }
            Self::Name { .. } => "Write the plain name of a file after `credential:`.",
            Self::Env { .. } => "Set the variable in the environment of the service.",
        }
    }
}

impl From<String> for SecretValue {
    fn from(text: String) -> Self {
        if let Some(name) = text.strip_prefix("credential:") {
            Self::Credential(name.to_owned())
        } else if let Some(name) = text.strip_prefix("env:") {
            Self::Env(name.to_owned())
        } else {
            Self::Literal(text)
        }
    }
}

impl SecretValue {
    /// Returns the value. A credential loses one trailing newline, because editors add one.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if a reference cannot be resolved.
    pub fn resolve(&self, credentials: Option<&Path>) -> Result<String, SecretError> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Env(name) => {
                std::env::var(name).map_err(|_| SecretError::Env { name: name.clone() })
            }
            Self::Credential(name) => {
                let bytes = Self::read_credential(name, credentials)?;
                let value = str::from_utf8(&bytes).map_err(|error| SecretError::Credential {
                    name: name.clone(),
                    source: io::Error::new(io::ErrorKind::InvalidData, error),
                })?;
                Ok(value.strip_suffix('\n').unwrap_or(value).to_owned())
            }
        }
    }

    /// Reads the bytes of the credential `name`, which need not be UTF-8.
    ///
    /// # Errors
    ///
    /// [`SecretError`] if it cannot be read.
    pub fn read_credential(name: &str, credentials: Option<&Path>) -> Result<Vec<u8>, SecretError> {
        let name = name.to_owned();
        if !Self::is_credential_name(&name) {
            return Err(SecretError::Name { name });
        }
        let path = credential_directories::path_of(&name, credentials)?;
        credential_directories::read(&path, credentials)
            .map_err(|source| SecretError::Credential { name, source })
    }

    /// Returns whether `name` is a plain file name.
    pub fn is_credential_name(name: &str) -> bool {
        !name.is_empty()
            && name.len() <= defaults::CREDENTIAL_NAME_BYTES_MAX
            && !name.contains(['/', '\0'])
            && !name.starts_with('.')
    }

    /// Reads a value that may be a reference, and checks the name of a credential.
    pub(super) fn checked(text: String) -> Result<Self, Refusal> {
        let value = Self::from(text);
        value.check_name()?;
        Ok(value)
    }

    /// Checks that a credential has a plain file name, and that a variable can have its name. Neither
    /// is shown: the value itself may stand in the place of the name.
    pub(super) fn check_name(&self) -> Result<(), Refusal> {
        match self {
            Self::Credential(name) if !Self::is_credential_name(name) => Err(Refusal::new(
                "the text after `credential:` is not a credential name",
                "write the plain name of a file, as in \"credential:NAME\"",
            )),
            Self::Env(name) if !Self::is_variable_name(name) => Err(Refusal::new(
                "the text after `env:` is not the name of a variable",
                "write letters, digits and `_`, as in \"env:METAMCP_TOKEN\"",
            )),
            _ => Ok(()),
        }
    }

    /// Returns whether `name` can be the name of a variable of a unit: systemd takes no others.
    fn is_variable_name(name: &str) -> bool {
        let is_part = |found: char| found.is_ascii_alphanumeric() || found == '_';
        name.chars().all(is_part) && name.starts_with(|first: char| !first.is_ascii_digit())
    }

    /// Returns whether the name of a variable or header suggests a secret.
    pub fn is_secret_name(key: &str) -> bool {
        let key = key.to_ascii_uppercase();
        SECRET_WORDS.certain_parts.iter().any(|part| key.contains(part))
    }

    /// Returns whether the value is a reference.
    pub fn is_reference(&self) -> bool {
        !matches!(self, Self::Literal(_))
    }
}

impl fmt::Debug for SecretValue {
    /// Prints references, and hides literals, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(_) => f.write_str("[literal]"),
            Self::Credential(name) => write!(f, "credential:{name}"),
            Self::Env(name) => write!(f, "env:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_that_every_user_can_read_are_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let put = |name: &str, mode: u32| {
            let path = directory.path().join(name);
            fs::write(&path, "s3cret").expect("written");
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
        };
        put("own", 0o600);
        put("group", 0o640);
        put("two", 0o644);
        put("one", 0o604);
        let open = |mode| {
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(directory.path(), mode).expect("changed");
        };
        open(0o700);
        assert!(exposed_credentials(directory.path()).is_empty(), "no other user reaches them");
        open(0o755);
        assert_eq!(exposed_credentials(directory.path()), ["one", "two"]);
    }

    #[test]
    fn a_credential_is_read_from_its_directory() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("token"), "s3cret\n").expect("written");
        let secret = SecretValue::from("credential:token".to_owned());

        assert_eq!(secret.resolve(Some(directory.path())).expect("readable"), "s3cret");
        assert!(matches!(secret.resolve(None), Err(SecretError::NoDirectory { .. })));
    }

    #[test]
    fn a_credential_name_cannot_leave_its_directory() {
        let secret = SecretValue::from("credential:../passwd".to_owned());
        assert!(matches!(secret.resolve(Some(Path::new("/etc"))), Err(SecretError::Name { .. })));
    }

    #[test]
    fn debug_output_hides_literals() {
        assert_eq!(format!("{:?}", SecretValue::from("hunter2".to_owned())), "[literal]");
        assert_eq!(format!("{:?}", SecretValue::from("env:TOKEN".to_owned())), "env:TOKEN");
    }
}
