//! The key that signs session ids: a credential, or a generated key in the state directory.

use std::{
    ffi::OsString,
    fs, io,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use super::session_id::SessionSigner;
use crate::{
    config::{SecretValue, SessionConfig, SessionMode, defaults, secret::SecretError},
    error_report::chain,
    files,
};

/// The name of the generated key in the state directory.
const FILE: &str = "session.key";

type Key = [u8; defaults::SESSION_KEY_BYTES];

/// The reason why the operator's key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SessionKeyError {
    /// The credential cannot be read.
    #[error("cannot read the key for session ids")]
    Credential(#[source] SecretError),
    /// The credential of this name is too short: it has this many bytes.
    #[error(
        "the key for session ids in `credential:{}` has {} bytes and needs at least {}",
        .0,
        .1,
        defaults::SESSION_KEY_BYTES
    )]
    TooShort(String, usize),
}

/// The reason why no generated key can outlive the process.
#[derive(Debug, thiserror::Error)]
enum KeyStorageError {
    #[error("there is no state directory: $STATE_DIRECTORY, $XDG_STATE_HOME and $HOME are not set")]
    NoDirectory,
    #[error("cannot use `{}`", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{}` is not {} bytes long", path.display(), defaults::SESSION_KEY_BYTES)]
    Damaged { path: PathBuf },
    #[error("`{}` is not a private file of the user that runs metamcp", path.display())]
    Exposed { path: PathBuf },
}

impl SessionKeyError {
    /// Returns a hint for the operator.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Credential(error) => error.hint(),
            Self::TooShort(..) => {
                "Generate a key with `head -c 32 /dev/urandom`, or remove `listen.session_key`."
            }
        }
    }
}

impl KeyStorageError {
    fn hint(&self) -> &'static str {
        match self {
            Self::NoDirectory => "Add `StateDirectory=` to the unit, or set $XDG_STATE_HOME.",
            Self::Io { .. } => "Give the service write access to the directory.",
            Self::Damaged { .. } | Self::Exposed { .. } => {
                "Remove the file: metamcp then generates another key."
            }
        }
    }
}

impl SessionSigner {
    /// Returns the signer of this service, with the key that `config` names or with a generated one.
    ///
    /// If the generated key cannot be stored, it lasts as long as the process, and a warning is
    /// logged.
    ///
    /// # Errors
    ///
    /// [`SessionKeyError`] if the operator's key cannot be used.
    pub fn of_service(
        config: &SessionConfig,
        credentials: Option<&Path>,
    ) -> Result<Self, SessionKeyError> {
        if let Some(name) = &config.key {
            return load_credential(name, credentials).map(|key| Self::new(&key));
        }
        let directory = state_directory().ok_or(KeyStorageError::NoDirectory);
        let key = directory.and_then(|directory| load_or_create(&directory));
        Ok(Self::new(&key.unwrap_or_else(|error| {
            // Without sessions, there are no ids to sign.
            if config.mode != SessionMode::Off {
                let (reason, hint) = (chain(&error), error.hint());
                tracing::warn!(
                    reason,
                    hint,
                    "sessions of clients will end with this process: the key for session ids cannot be stored: {reason}. {hint}"
                );
            }
            random_key()
        })))
    }
}

/// Reads the operator's key. Drops a newline at the end if the key is long enough without it.
fn load_credential(name: &str, credentials: Option<&Path>) -> Result<Vec<u8>, SessionKeyError> {
    let mut key =
        SecretValue::read_credential(name, credentials).map_err(SessionKeyError::Credential)?;
    if key.len() > defaults::SESSION_KEY_BYTES && key.ends_with(b"\n") {
        key.pop();
    }
    match key.len() {
        n_bytes if n_bytes < defaults::SESSION_KEY_BYTES => {
            Err(SessionKeyError::TooShort(name.to_owned(), n_bytes))
        }
        _ => Ok(key),
    }
}

/// Returns the directory for persistent state, according to the environment.
pub fn state_directory() -> Option<PathBuf> {
    directory(|name| std::env::var_os(name))
}

/// Returns the directory for persistent state. Source: systemd.exec(5), `StateDirectory=`, and the
/// XDG Base Directory Specification.
fn directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| {
        let value = variable(name)?;
        // systemd separates several by colons. The first one belongs to the service.
        let first = std::env::split_paths(&value).next()?;
        first.is_absolute().then_some(first)
    };
    absolute("STATE_DIRECTORY")
        .or_else(|| absolute("XDG_STATE_HOME").map(|home| home.join("metamcp")))
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state/metamcp")))
}

/// Reads the generated key, and generates it if there is none. The first process to do so wins.
fn load_or_create(directory: &Path) -> Result<Key, KeyStorageError> {
    let path = directory.join(FILE);
    let failed = |source| KeyStorageError::Io { path: path.clone(), source };
    match read_key(&path) {
        Err(KeyStorageError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
        found => return found,
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    // Written completely before it gets its name, so that no process reads a part of it.
    let draft = directory.join(format!(".{FILE}.{}", uuid::Uuid::new_v4().simple()));
    let made = create_key(&draft).and_then(|()| fs::hard_link(&draft, &path));
    let removed = fs::remove_file(&draft);
    match made {
        Ok(()) => {
            tracing::info!(path = %path.display(), "generated a key for session ids in `{}`", path.display());
        }
        // Another instance was faster. Its key is used.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(error)),
    }
    removed.map_err(failed)?;
    read_key(&path)
}

fn create_key(path: &Path) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(&random_key())?;
    file.sync_all()
}

fn read_key(path: &Path) -> Result<Key, KeyStorageError> {
    let failed = |source| KeyStorageError::Io { path: path.to_owned(), source };
    let found = fs::symlink_metadata(path).map_err(failed)?;
    let user = rustix::process::geteuid().as_raw();
    if !found.is_file() || found.uid() != user || found.mode() & 0o077 != 0 {
        return Err(KeyStorageError::Exposed { path: path.to_owned() });
    }
    if found.len() != size_of::<Key>() as u64 {
        return Err(KeyStorageError::Damaged { path: path.to_owned() });
    }
    let key = files::bounded(path, size_of::<Key>() as u64).map_err(failed)?;
    Key::try_from(key).map_err(|_| KeyStorageError::Damaged { path: path.to_owned() })
}

fn random_key() -> Key {
    let mut key = Key::default();
    getrandom::fill(&mut key).expect("a system without randomness runs no service");
    key
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn credential(content: &[u8]) -> Result<Vec<u8>, SessionKeyError> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("k"), content).expect("written");
        load_credential("k", Some(directory.path()))
    }

    #[test]
    fn the_generated_key_is_created_once_and_is_private() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let directory = home.path().join("state/metamcp");
        let key = load_or_create(&directory).expect("made");
        assert_eq!(load_or_create(&directory).expect("read"), key);
        let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o777;
        assert_eq!((mode(&directory), mode(&directory.join(FILE))), (0o700, 0o600));
        assert_eq!(fs::read_dir(&directory).expect("readable").count(), 1, "no draft is left");
        assert_ne!(load_or_create(home.path()).expect("made"), key, "it is random");
    }

    #[test]
    fn processes_that_start_at_once_share_one_generated_key() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let keys: Vec<Key> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..16)
                .map(|_| scope.spawn(|| load_or_create(directory.path()).expect("a key")))
                .collect();
            starts.into_iter().map(|start| start.join().expect("no panic")).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);
    }

    #[test]
    fn an_exposed_or_damaged_key_is_neither_used_nor_replaced() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join(FILE);
        fs::write(&path, [1; 31]).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("ours");
        assert!(matches!(load_or_create(directory.path()), Err(KeyStorageError::Damaged { .. })));
        fs::write(&path, [1; 32]).expect("written");
        assert_eq!(load_or_create(directory.path()).expect("whole"), [1; 32]);
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
            assert!(
                matches!(load_or_create(directory.path()), Err(KeyStorageError::Exposed { .. })),
                "{mode:o}"
            );
        }
        fs::remove_file(&path).expect("ours");
        std::os::unix::fs::symlink("/etc/hostname", &path).expect("ours");
        assert!(
            matches!(load_or_create(directory.path()), Err(KeyStorageError::Exposed { .. })),
            "a link"
        );
        let nowhere = directory.path().join(FILE).join("below");
        assert!(matches!(load_or_create(&nowhere), Err(KeyStorageError::Io { .. })));
    }

    #[test]
    fn the_key_of_the_operator_may_be_any_bytes_of_sufficient_length() {
        assert_eq!(credential(&[0xff; 32]).expect("long enough"), [0xff; 32]);
        assert_eq!(credential(&[b'\n'; 32]).expect("not an editor's"), [b'\n'; 32]);
        let mut line = vec![b'x'; 40];
        line.push(b'\n');
        assert_eq!(credential(&line).expect("long enough"), [b'x'; 40]);
        let error = credential(b"short\n").expect_err("short");
        assert!(error.to_string().contains("has 6 bytes"), "{error}");
        assert!(error.hint().contains("/dev/urandom"));
        let error = load_credential("k", None).expect_err("no directory");
        assert!(error.hint().contains("LoadCredential="), "{}", error.hint());
    }

    #[test]
    fn the_state_directory_of_systemd_precedes_that_of_the_user() {
        let found = |variables: &[(&str, &str)]| {
            directory(|name| {
                let value = variables.iter().find(|(known, _)| *known == name)?.1;
                Some(value.into())
            })
        };
        let home = ("HOME", "/home/u");
        for (variables, expected) in [
            (&[("STATE_DIRECTORY", "/s/a:/s/b"), home][..], Some("/s/a")),
            (&[("XDG_STATE_HOME", "/x"), home], Some("/x/metamcp")),
            (&[("XDG_STATE_HOME", "x"), home], Some("/home/u/.local/state/metamcp")),
            (&[("STATE_DIRECTORY", ""), home], Some("/home/u/.local/state/metamcp")),
            (&[], None),
        ] {
            assert_eq!(found(variables).as_deref(), expected.map(Path::new), "{variables:?}");
        }
    }
}
