//! The reload of the configuration, which leaves unchanged parts alone.

use std::{fs, io, path::Path, sync::Arc};

use super::Daemon;
use crate::{
    bearer_token::BearerToken,
    config::{Config, defaults, diff::ServerDiff, load::LoadError, secret::credentials_directory},
    control::{NamedFile, ReloadError},
    error_report::chain,
    systemd::notify,
    tls::TlsIdentity,
};

impl Daemon {
    /// Applies the configuration file as it is now, or keeps the old configuration if it is
    /// invalid. With `from`, reads that file instead; if it is applied, later reloads read it, too.
    ///
    /// # Errors
    ///
    /// [`ReloadError`] if the old configuration stays in force.
    pub(super) fn reload(&mut self, from: Option<NamedFile>) -> Result<ServerDiff, ReloadError> {
        notify::reloading();
        let replaced = self.replace_config(from);
        notify::ready(&self.status_line());
        replaced
    }

    /// Reloads like [`Daemon::reload`], without notifying the service manager.
    pub(super) fn replace_config(
        &mut self,
        from: Option<NamedFile>,
    ) -> Result<ServerDiff, ReloadError> {
        let named = from.map(|named| (named.path, Some(named.bytes)));
        let known = || self.source.file.clone().map(|path| (path, None));
        let Some((path, bytes)) = named.or_else(known) else {
            tracing::info!("nothing to reload: there is no configuration file");
            return Err(ReloadError::NoFile);
        };
        let applied = self.apply(&path, bytes.as_deref());
        self.notice = applied.as_ref().err().map(ReloadError::notice);
        if applied.is_ok() {
            self.source.file = Some(path);
        }
        applied
    }

    /// Applies the file at `path`; `bytes` is its content, if it was already read.
    fn apply(&self, path: &Path, bytes: Option<&[u8]>) -> Result<ServerDiff, ReloadError> {
        // Variables and flags keep their values of the start.
        let loaded = match bytes {
            Some(bytes) => self.source.load_read(path, bytes),
            None => check_file(path).and_then(|()| self.source.load()),
        };
        let new = loaded.map(|loaded| loaded.config);
        let new = new.inspect_err(|error| log_refusal("configuration", error, None))?;
        // Loaded even if only these files have changed: a certificate is renewed in place.
        let credentials = credentials_directory();
        let identity =
            TlsIdentity::load_configured(new.listen.tls.as_ref(), credentials.as_deref())
                .inspect_err(|error| log_refusal("certificate", error, Some(error.hint())))?;
        let token = BearerToken::load_configured(new.listen.token.as_ref(), credentials.as_deref())
            .inspect_err(|error| log_refusal("token", error, Some(error.hint())))?;
        // The current addresses: others take effect at the next restart.
        for address in self.listeners.addresses() {
            new.listen.may_use(*address).inspect_err(|error| {
                log_refusal("configuration", error, Some(error.hint()));
            })?;
        }
        let old = self.forwarder.config();
        warn_of_restart(&old, &new);
        self.log.set(new.service.log_level);
        super::budget_for(&new);
        if self.tls.replace(identity) {
            let tls = new.listen.tls.is_some();
            tracing::info!(tls, "new connections use the new `listen.tls`");
        }
        if self.token.replace(token) {
            let token = new.listen.token.is_some();
            tracing::info!(token, "new requests are checked against the new `listen.token`");
        }
        let new = Arc::new(new);
        let diff = self.provisioner.reload(&new, old.service.max_total_timeout);
        tracing::info!(
            added = ?diff.added, removed = ?diff.removed, changed = ?diff.changed,
            "configuration reloaded"
        );
        self.forwarder.sessions().apply(&new.listen.session);
        self.forwarder.sessions().set_notice_policy(&new.tools);
        self.forwarder.sessions().reconcile_redeclared();
        self.forwarder.sessions().release(&diff.removed);
        self.catalog.replaced(&diff);
        self.catalog.apply(&new);
        self.forwarder.apply(new);
        self.tasks.reconfigured();
        Ok(diff)
    }
}

/// Logs the reason why the old configuration stays in force.
fn log_refusal(subject: &str, error: &dyn std::error::Error, hint: Option<&str>) {
    let text = chain(error);
    tracing::error!(
        error = text,
        hint,
        "{subject} refused, the old configuration stays in force: {text}"
    );
}

/// Logs the changes that only a restart applies.
fn warn_of_restart(old: &Config, new: &Config) {
    if (new.listen.http, &new.listen.control) != (old.listen.http, &old.listen.control) {
        tracing::warn!("the new addresses take effect at the next restart");
    }
    if new.listen.session.key != old.listen.session.key {
        tracing::warn!("the new key for session ids takes effect at the next restart");
    }
    if new.catalog.cache != old.catalog.cache {
        tracing::warn!("the new directory for cached lists takes effect at the next restart");
    }
}

/// Refuses a file that is no configuration by its type or size. Reading a pipe without a writer
/// would block the main loop, and a huge file would take all memory.
fn check_file(path: &Path) -> Result<(), LoadError> {
    let failed = |source| LoadError::Read { path: path.to_owned(), source };
    let found = fs::metadata(path).map_err(failed)?;
    if found.is_file() && found.len() <= defaults::CONFIG_BYTES_MAX {
        return Ok(());
    }
    let text = format!("it is not a regular file of at most {} bytes", defaults::CONFIG_BYTES_MAX);
    Err(failed(io::Error::new(io::ErrorKind::InvalidInput, text)))
}
