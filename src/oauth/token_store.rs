//! The files of logins and registrations, in a directory that only the user of the service can read.
//!
//! All functions here block.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use zeroize::Zeroizing;

use super::{
    login_record::{HOST_PRINCIPAL, LoginRecord, digest},
    registration::OAuthClient,
};
use crate::{
    config::defaults,
    files::{self, FileReadError},
    server_name::ServerName,
};

/// The name of the directory.
const DIRECTORY: &str = "oauth";

/// The age from which the draft of a file is certainly abandoned.
const DRAFT_AGE: Duration = Duration::from_secs(60 * 60);

/// The files of logins and registrations. Without a directory, nothing is stored.
#[derive(Debug)]
pub(super) struct TokenStore {
    directory: Option<PathBuf>,
}

/// The registration at one authorization server, for one redirect address.
#[derive(Debug, Serialize, Deserialize)]
struct StoredRegistration {
    issuer: String,
    redirect_url: String,
    client: OAuthClient,
}

/// The authorization server that an operator's `client_id` belongs to.
#[derive(Debug, Serialize, Deserialize)]
struct IssuerBinding {
    issuer: String,
}

impl TokenStore {
    pub(super) fn new(state_directory: Option<&Path>) -> Self {
        let directory = state_directory.map(|state| state.join(DIRECTORY));
        if let Some(directory) = &directory {
            files::tidy(directory, DRAFT_AGE);
        }
        Self { directory }
    }

    /// Returns all stored logins.
    pub(super) fn logins(&self) -> Vec<LoginRecord> {
        let entries = self.directory.as_ref().and_then(|directory| fs::read_dir(directory).ok());
        let names = entries.into_iter().flatten().flatten().take(defaults::OAUTH_FILES_MAX);
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let logins = names.filter(|name| name.starts_with("login-") && name.ends_with(".json"));
        logins.filter_map(|name| self.read(&name)).collect()
    }

    /// Stores a login durably, and removes the one that it replaces.
    pub(super) fn put_login(
        &self,
        login: &LoginRecord,
        replaced: Option<&LoginRecord>,
    ) -> io::Result<()> {
        let (name, text) = (login.file_name(), Self::without_configured_secret(login));
        self.write(&name, &text)?;
        match replaced.map(LoginRecord::file_name) {
            Some(old) if old != name => self.remove(&old),
            _ => Ok(()),
        }
    }

    /// Reads a login again: another process may have refreshed it.
    pub(super) fn login(&self, known: &LoginRecord) -> Option<LoginRecord> {
        self.read(&known.file_name())
    }

    pub(super) fn remove_login(&self, login: &LoginRecord) -> io::Result<()> {
        self.remove(&login.file_name())
    }

    /// Removes all logins at a server.
    pub(super) fn remove_logins(&self, server: &ServerName) -> io::Result<()> {
        let logins =
            self.logins().into_iter().filter(|login| login.basis.server == server.as_str());
        logins.map(|login| self.remove_login(&login)).fold(Ok(()), io::Result::and)
    }

    /// Returns the registration at `issuer` for a redirect address.
    pub(super) fn registration(&self, issuer: &str, redirect_url: &str) -> Option<OAuthClient> {
        let found: StoredRegistration = self.read(&registration_name(issuer, redirect_url))?;
        (found.issuer == issuer && found.redirect_url == redirect_url).then_some(found.client)
    }

    pub(super) fn put_registration(
        &self,
        issuer: &str,
        redirect_url: &str,
        client: &OAuthClient,
    ) -> io::Result<()> {
        let stored = StoredRegistration {
            issuer: issuer.to_owned(),
            redirect_url: redirect_url.to_owned(),
            client: client.clone(),
        };
        self.write(&registration_name(issuer, redirect_url), &stored)
    }

    pub(super) fn remove_registration(&self, issuer: &str, redirect_url: &str) -> io::Result<()> {
        self.remove(&registration_name(issuer, redirect_url))
    }

    /// Returns the authorization server that the `client_id` of a server was used with.
    pub(super) fn bound_issuer(&self, server: &ServerName, client_id: &str) -> Option<String> {
        self.read::<IssuerBinding>(&binding_name(server, client_id)).map(|found| found.issuer)
    }

    pub(super) fn bind_issuer(
        &self,
        server: &ServerName,
        client_id: &str,
        issuer: &str,
    ) -> io::Result<()> {
        self.write(&binding_name(server, client_id), &IssuerBinding { issuer: issuer.to_owned() })
    }

    pub(super) fn remove_binding(&self, server: &ServerName, client_id: &str) -> io::Result<()> {
        self.remove(&binding_name(server, client_id))
    }

    /// Drops the secret that an operator keeps elsewhere.
    fn without_configured_secret(login: &LoginRecord) -> LoginRecord {
        let mut stored = login.clone();
        let client = &mut stored.basis.client;
        if client.source == super::registration::ClientIdSource::Configured {
            client.secret = None;
        }
        stored
    }

    /// Reads a file. A damaged one is set aside and counts as missing.
    fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let path = self.directory.as_ref()?.join(name);
        let reason = match files::content(&path, defaults::OAUTH_FILE_BYTES_MAX) {
            Ok(None) => return None,
            Ok(Some(bytes)) => match serde_json::from_slice(&Zeroizing::new(bytes)) {
                Ok(found) => return Some(found),
                Err(error) => {
                    format!("it is damaged at line {}, column {}", error.line(), error.column())
                }
            },
            // The file may be whole: another attempt may read it.
            Err(FileReadError::Io(error)) => {
                let path = path.display();
                tracing::warn!(%path, %error, "a stored login cannot be read now: `{path}`: {error}");
                return None;
            }
            Err(error) => error.to_string(),
        };
        let aside = path.with_extension("damaged");
        let moved = fs::rename(&path, &aside).is_ok();
        let (path, aside) = (path.display(), aside.display());
        tracing::warn!(
            %path, reason, moved,
            "a stored login cannot be used: `{path}`: {reason}. It is kept as `{aside}`. Run `metamcp auth` to see which servers need a login"
        );
        None
    }

    /// Writes a file so that it survives a crash of the host.
    fn write(&self, name: &str, content: &impl Serialize) -> io::Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        let bytes = Zeroizing::new(serde_json::to_vec(content)?);
        if bytes.len() > defaults::OAUTH_FILE_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        files::replace(&directory.join(name), &bytes)?;
        let permissions = fs::metadata(directory)?.permissions();
        if permissions.mode() & 0o077 != 0 {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
        }
        // The rename itself must reach the disk, too.
        fs::File::open(directory)?.sync_all()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        match fs::remove_file(directory.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn registration_name(issuer: &str, redirect_url: &str) -> String {
    format!("client-{}.json", digest(&[HOST_PRINCIPAL, issuer, redirect_url]))
}

fn binding_name(server: &ServerName, client_id: &str) -> String {
    format!("issuer-{}.json", digest(&[HOST_PRINCIPAL, server.as_str(), client_id]))
}
