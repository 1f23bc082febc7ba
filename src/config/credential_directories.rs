//! The directories with credentials: the one that systemd fills, and the one beside the
//! configuration file.
//!
//! systemd's directory comes first. The other one can be written while the service runs, so a new
//! secret needs no restart.

use std::{
    fs,
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{PoisonError, RwLock},
};

use super::{defaults, secret::SecretError};

/// The name of the directory beside the configuration file.
const NAME: &str = "credentials";

/// The directory beside the configuration file of this process.
static BESIDE_CONFIG: RwLock<Option<PathBuf>> = RwLock::new(None);

/// Returns the directory that systemd's `LoadCredential=` fills, if there is one.
pub fn of_systemd() -> Option<PathBuf> {
    std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from)
}

/// Returns the directory for credentials beside the configuration file `file`.
pub fn beside(file: &Path) -> PathBuf {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    file.with_file_name(NAME)
}

/// Makes this process read credentials beside the configuration file `file` from now on.
pub fn follow_config(file: Option<&Path>) {
    *BESIDE_CONFIG.write().unwrap_or_else(PoisonError::into_inner) = file.map(beside);
}

/// Returns the directory beside the configuration file of this process, if it has a file.
pub fn beside_config() -> Option<PathBuf> {
    BESIDE_CONFIG.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Returns the path of the credential `name`: in the directory `systemd` if it is there, else beside
/// the configuration file.
pub(super) fn path_of(name: &str, systemd: Option<&Path>) -> Result<PathBuf, SecretError> {
    path_in(name, systemd, beside_config().as_deref())
}

fn path_in(
    name: &str,
    systemd: Option<&Path>,
    beside: Option<&Path>,
) -> Result<PathBuf, SecretError> {
    let in_systemd = systemd.map(|directory| directory.join(name));
    let Some(directory) = beside else {
        return in_systemd.ok_or_else(|| SecretError::NoDirectory { name: name.to_owned() });
    };
    if let Some(path) = in_systemd.filter(|path| path.exists()) {
        return Ok(path);
    }
    let path = directory.join(name);
    match path.try_exists() {
        Ok(false) => {
            let (name, directory) = (name.to_owned(), directory.to_owned());
            Err(SecretError::Missing { name, directory, is_unit: is_unit() })
        }
        // Opening it reports the error.
        Ok(true) | Err(_) => Ok(path),
    }
}

/// Returns whether systemd runs this process as a unit that can have credentials.
fn is_unit() -> bool {
    ["CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET"].iter().any(|name| std::env::var_os(name).is_some())
}

/// Reads a credential. A file beside the configuration must belong to root or to this user, and no
/// other user may write to it.
pub(super) fn read(path: &Path, systemd: Option<&Path>) -> io::Result<Vec<u8>> {
    let file = fs::File::open(path)?;
    if systemd.is_none_or(|directory| !path.starts_with(directory)) {
        let found = file.metadata()?;
        let is_owned = found.uid() == 0 || found.uid() == rustix::process::geteuid().as_raw();
        if !found.is_file() || !is_owned || found.mode() & 0o022 != 0 {
            let text = "it is not a regular file, or another user owns it or can write to it";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
    }
    let mut bytes = Vec::new();
    // The file may grow meanwhile.
    file.take(defaults::CREDENTIAL_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= defaults::CREDENTIAL_BYTES_MAX {
        return Ok(bytes);
    }
    let text = format!("it has more than {} bytes", defaults::CREDENTIAL_BYTES_MAX);
    Err(io::Error::new(io::ErrorKind::FileTooLarge, text))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_credential_of_systemd_precedes_the_one_beside_the_configuration() {
        let (systemd, beside) =
            (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("two"));
        let (systemd, beside) = (systemd.path(), beside.path());
        fs::write(systemd.join("both"), "s").expect("written");
        fs::write(beside.join("both"), "b").expect("written");
        fs::write(beside.join("own"), "b").expect("written");
        let path = |name, systemd| path_in(name, systemd, Some(beside));
        assert_eq!(path("both", Some(systemd)).expect("there"), systemd.join("both"));
        for systemd in [Some(systemd), None] {
            assert_eq!(path("own", systemd).expect("there"), beside.join("own"));
            let error = path("none", systemd).expect_err("nowhere");
            let expected = format!("there is no `credential:none` in `{}`", beside.display());
            assert_eq!(error.to_string(), expected);
        }
        assert!(matches!(path_in("own", None, None), Err(SecretError::NoDirectory { .. })));
    }

    #[test]
    fn a_credential_that_others_can_write_is_not_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("token");
        fs::write(&path, "secret").expect("written");
        for (mode, is_read) in [(0o600, true), (0o640, true), (0o660, false), (0o602, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("changed");
            assert_eq!(read(&path, None).is_ok(), is_read, "{mode:o}");
            assert!(read(&path, Some(directory.path())).is_ok(), "systemd's are its own");
        }
    }
}
