//! The reload of the configuration, which leaves unchanged parts alone.

use std::{fs, io, path::Path, sync::Arc};

use super::Daemon;
use crate::{
    bearer_token::BearerToken,
    config::{
        Config, ExecuteConfig, ListenConfig, credential_directories, defaults, load::LoadError,
        secret::credentials_directory,
    },
    control::{NamedFile, ReloadError},
    error_report::chain,
    reconfigure::{ConfigChange, Reconfigure, ServerDiff},
    server_name::ServerName,
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
        // The checks read credentials beside the new file.
        credential_directories::follow_config(Some(&path));
        let applied = self.apply(&path, bytes.as_deref());
        self.notice = applied.as_ref().err().map(ReloadError::notice);
        if applied.is_ok() {
            self.board.follow_config(Some(&path));
            self.source.file = Some(path);
        } else {
            credential_directories::follow_config(self.source.file.as_deref());
        }
        applied
    }

    /// Applies the file at `path`; `bytes` is its content, if it was already read. Changes nothing
    /// until the file is checked, and those that it names.
    fn apply(&self, path: &Path, bytes: Option<&[u8]>) -> Result<ServerDiff, ReloadError> {
        // Variables and flags keep their values of the start.
        let loaded = match bytes {
            Some(bytes) => self.source.load_read(path, bytes),
            None => check_file(path).and_then(|()| self.source.load()),
        };
        let new = loaded.map(|loaded| Arc::new(loaded.config));
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
        // Until the end: between the comparison and the change, no client adds a server.
        let _lock = self.pool.lock_servers();
        let servers = self.provisioner.servers_under(&new);
        let diff = self.pool.compare(&servers);
        let (old, identity) = (self.forwarder.config(), identity.map(Arc::new));
        let change = ConfigChange { old, new, servers, diff, identity, token };
        self.parts().iter().for_each(|part| part.reconfigure(&change));
        Ok(change.diff)
    }

    /// Returns the parts that a reload reaches, in its order. Without `..`: a new field does not
    /// compile until it is named here, and a named part not until the list has it.
    #[deny(unused_variables, reason = "a reload would forget the part")]
    fn parts(&self) -> [&dyn Reconfigure; 14] {
        let Self {
            log,
            memory,
            tls,
            token,
            logins,
            provisioner,
            pool,
            sessions,
            catalog,
            forwarder,
            tasks,
            // A reload does not concern these.
            source: _,
            records: _,
            server_announcements: _,
            client_announcements: _,
            upkeep: _,
            views: _,
            operators: _,
            board: _,
            liveness: _,
            listeners: _,
            signals: _,
            command_sender: _,
            commands: _,
            control: _,
            notice: _,
            is_launched: _,
        } = self;
        [
            &RestartWarnings,
            // Before servers start, which log and take memory.
            log,
            memory,
            &**tls,
            &**token,
            // Before servers are connected with the new settings.
            &**logins,
            &**provisioner,
            &**pool,
            &ReloadRecord,
            // The next two look up servers in the pool.
            &**sessions,
            &**catalog,
            &**forwarder,
            // Reads the configuration of the forwarder.
            &**tasks,
            &IsolationWarning,
        ]
    }
}

/// The log lines about changes that only a restart applies.
struct RestartWarnings;

impl Reconfigure for RestartWarnings {
    fn reconfigure(&self, change: &ConfigChange) {
        for subject in awaiting_restart(&change.old, &change.new) {
            tracing::warn!("the new {subject} at the next restart");
        }
    }
}

/// Returns the changes that only a restart applies.
fn awaiting_restart(old: &Config, new: &Config) -> impl Iterator<Item = &'static str> {
    // Without `..`: a new section does not compile until it is named here. A reload applies those
    // that need no restart, by a part or at each use.
    let Config {
        listen,
        catalog,
        service: _,
        pool: _,
        breaker: _,
        tools: _,
        execute: _,
        search: _,
        auth: _,
        tasks: _,
        telemetry,
        provision: _,
        servers: _,
        disabled: _,
    } = new;
    let before = &old.listen;
    let addresses = |listen: &ListenConfig| (listen.http, listen.control.clone(), listen.metrics);
    let changes = [
        (addresses(listen) != addresses(before), "addresses take effect"),
        (listen.control_group != before.control_group, "group of the control socket takes effect"),
        (listen.session_key != before.session_key, "key for session ids takes effect"),
        (telemetry.otlp != old.telemetry.otlp, "address of the collector takes effect"),
        (catalog.cache != old.catalog.cache, "directory for cached lists takes effect"),
    ];
    changes.into_iter().filter_map(|(is_changed, subject)| is_changed.then_some(subject))
}

/// The log line about scripts that run without isolation, at each start and each reload.
pub(super) struct IsolationWarning;

impl IsolationWarning {
    pub(super) fn log(config: &ExecuteConfig) {
        if let Some(warning) = config.warning() {
            tracing::warn!("{warning}");
        }
    }
}

impl Reconfigure for IsolationWarning {
    fn reconfigure(&self, change: &ConfigChange) {
        Self::log(&change.new.execute);
    }
}

/// The log line about the servers that a reload changed.
struct ReloadRecord;

impl Reconfigure for ReloadRecord {
    fn reconfigure(&self, change: &ConfigChange) {
        let ServerDiff { added, removed, changed } = &change.diff;
        let part = |verb: &str, names: &[ServerName]| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            (!names.is_empty()).then(|| format!("{verb} {}", names.join(", ")))
        };
        let parts = [part("added", added), part("removed", removed), part("changed", changed)];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let servers =
            if parts.is_empty() { "no server changed".to_owned() } else { parts.join("; ") };
        tracing::info!(?added, ?removed, ?changed, "configuration reloaded: {servers}");
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

/// Refuses a file that is not a configuration by its type or size. Reading a pipe without a writer
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::config::{load::parsed, schema::schema};

    /// Adds the paths of the keys below `schema` that only a restart applies.
    fn collect(schema: &Value, path: &str, found: &mut Vec<String>) {
        if schema["x-reload"] == "restart" {
            found.push(path.to_owned());
        }
        for (name, key) in schema["properties"].as_object().into_iter().flatten() {
            collect(key, format!("{path}.{name}").trim_start_matches('.'), found);
        }
    }

    #[test]
    fn a_reload_warns_of_each_key_that_only_a_restart_applies() {
        let mut keys = Vec::new();
        collect(&schema(), "", &mut keys);
        assert!(keys.len() >= 5, "{keys:?}");
        let old = parsed("");
        for key in keys {
            let value = match key.as_str() {
                "listen.http" | "listen.metrics" => "127.0.0.1:1",
                "listen.session_key" => "credential:key",
                "listen.control_group" => "operators",
                "telemetry.otlp" => "http://127.0.0.1:4318",
                _ => "/elsewhere",
            };
            let new = parsed(&format!("{key} = \"{value}\"\n"));
            assert_eq!(awaiting_restart(&old, &new).count(), 1, "{key}");
        }
        assert_eq!(awaiting_restart(&old, &old).count(), 0);
    }
}
