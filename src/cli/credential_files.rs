//! The files of credentials beside a configuration file.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown},
    path::{Path, PathBuf},
};

use nix::unistd::Group;

use super::{FAILED, Failed, output};
use crate::{config::credential_directories, files};

/// The group of the system's service, which its package for Debian makes.
const CREDENTIALS_GROUP: &str = "metamcp-service";

/// The directory of systemd with the credentials of the running service, which only root and the
/// service can read.
const LOADED: &str = "/run/credentials/metamcp.service";

/// The files of credentials beside a configuration file.
pub(super) struct CredentialFiles {
    directory: PathBuf,
    /// The group of a service of another user, which must read the files.
    group: Option<u32>,
    /// The files are for a service of another user.
    is_for_other: bool,
    written: Vec<PathBuf>,
}

impl CredentialFiles {
    /// Returns the files beside `config`, for a service with this user and group, if it is known.
    pub(super) fn beside(config: &Path, service: Option<(u32, u32)>) -> Self {
        let own = rustix::process::geteuid().as_raw();
        let is_root = own == 0;
        let is_for_other = match service {
            Some((uid, _)) => uid != own,
            None => is_root,
        };
        let directory = credential_directories::beside(config);
        let of_directory = || directory.metadata().ok().map(|found| found.gid());
        let named = || Group::from_name(CREDENTIALS_GROUP).ok().flatten().map(|it| it.gid.as_raw());
        let of_service = || service.map(|(_, gid)| gid);
        let group = of_directory().filter(|gid| *gid != 0).or_else(named).or_else(of_service);
        let group = group.filter(|_| is_root && is_for_other);
        Self { directory, group, is_for_other, written: Vec::new() }
    }

    /// Returns the file of a credential that the service has.
    pub(super) fn existing(&self, name: &str) -> Option<PathBuf> {
        let files = [Path::new(LOADED).join(name), self.directory.join(name)];
        files.into_iter().find(|file| file.exists())
    }

    /// Writes a credential that only its owner and the group of the service can read.
    ///
    /// # Errors
    ///
    /// [`Failed`] if that is impossible.
    pub(super) fn write(&mut self, name: &str, value: &str) -> Result<(), Failed> {
        let path = self.directory.join(name);
        self.try_write(&path, value).map_err(|error| {
            Failed::new(
                FAILED,
                format!("cannot write the credential `{}`: {error}", path.display()),
            )
        })?;
        output::eprint(&format!("credential `{name}` is written to `{}`\n", path.display()));
        if self.is_for_other && self.group.is_none() {
            output::eprint(&format!(
                "warning: only this user can read it; make it readable for the group of the service: `chgrp GROUP {0} {1} && chmod g+rX {0} {1}`\n",
                self.directory.display(),
                path.display(),
            ));
        }
        self.written.push(path);
        Ok(())
    }

    fn try_write(&self, path: &Path, value: &str) -> io::Result<()> {
        let is_new = !self.directory.exists();
        if is_new {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        }
        files::replace(path, value.as_bytes())?;
        if let Some(group) = self.group {
            if is_new {
                chown(&self.directory, None, Some(group))?;
                fs::set_permissions(&self.directory, Permissions::from_mode(0o750))?;
            }
            chown(path, None, Some(group))?;
            fs::set_permissions(path, Permissions::from_mode(0o640))?;
        }
        Ok(())
    }

    /// Removes the files that this command has written.
    pub(super) fn undo(&self) {
        for path in &self.written {
            let _gone = fs::remove_file(path);
        }
    }
}
