//! Reads the configuration again: what did not change is not touched.

use std::sync::Arc;

use super::Daemon;
use crate::{
    config::{
        load::{self, LoadError},
        secret::credentials_directory,
    },
    report::chain,
    systemd::notify,
    tls::Identity,
};

impl Daemon {
    /// Applies the configuration file as it is now, or keeps the old one when it has a mistake.
    pub(super) fn reload(&mut self) {
        notify::reloading();
        self.notice = self.replace_config().err();
        notify::ready(&self.status_line());
    }

    pub(super) fn replace_config(&self) -> Result<(), String> {
        let Some(path) = &self.source else {
            tracing::info!("nothing to reload: there is no configuration file");
            return Ok(());
        };
        let new = load::file(path).map_err(|error| {
            let text = chain(&error);
            tracing::error!(error = text, "configuration refused, the old one stays in force");
            // Where, not what: the status line is for everybody.
            match &error {
                LoadError::Content(found) => format!(
                    "configuration refused, see {}:{}:{}",
                    found.path.display(),
                    found.line,
                    found.column
                ),
                LoadError::Read { .. } => format!("configuration refused: {text}"),
            }
        })?;
        // Read again also when only the files have changed: a certificate is renewed in place.
        let credentials = credentials_directory();
        let identity = Identity::wanted(new.listen.tls.as_ref(), credentials.as_deref());
        let identity = identity.map_err(|error| {
            let (text, hint) = (chain(&error), error.hint());
            tracing::error!(error = text, hint, "certificate refused, all stays as it was");
            format!("configuration refused: {text}")
        })?;
        let old = self.views.config();
        if (new.listen.http, &new.listen.control) != (old.listen.http, &old.listen.control) {
            tracing::warn!("new addresses take effect with the next restart");
        }
        if new.listen.session.key != old.listen.session.key {
            tracing::warn!("another key for session ids takes effect with the next restart");
        }
        if new.catalog.cache != old.catalog.cache {
            tracing::warn!("another directory for cached lists takes effect with the next restart");
        }
        self.log.set(new.service.log_level);
        if self.tls.replace(identity) {
            let tls = new.listen.tls.is_some();
            tracing::info!(tls, "another certificate for new connections");
        }
        let new = Arc::new(new);
        let diff = self.provisioner.reload(&new, old.service.max_total_timeout);
        tracing::info!(
            added = ?diff.added, removed = ?diff.removed, changed = ?diff.changed,
            "configuration reloaded"
        );
        self.views.sessions().apply(&new.listen.session);
        self.views.sessions().tell_as(&new.tools);
        self.views.sessions().tell_again();
        self.views.sessions().let_go(&diff.removed);
        self.views.replaced(&diff);
        self.views.apply(new);
        self.tasks.reconfigured();
        Ok(())
    }
}
