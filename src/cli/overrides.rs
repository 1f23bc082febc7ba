//! The flags that override the variables and the configuration file.

use std::path::Path;

use super::{Failed, quantity};
use crate::config::{SettingOrigin, SettingTarget, SourcedSetting};

/// A flag takes precedence over a variable `METAMCP_<SECTION>_<KEY>`, which precedes the file.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Configuration")]
pub(super) struct ConfigOverrides {
    /// Set any key of the configuration, as in `--set pool.size=30`; can be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The largest number of connections to servers (pool.size)
    #[arg(long, value_name = "NUMBER")]
    max_connections: Option<String>,
    /// The time after which an idle connection is closed, as in 5m; a number without a unit is in
    /// seconds, 0 is never (pool.idle_timeout)
    #[arg(long, value_name = "TIME")]
    idle_timeout: Option<String>,
    /// The number of failures in a row that opens a server's breaker; 0 is never
    /// (breaker.failure_threshold)
    #[arg(long, value_name = "NUMBER")]
    failure_threshold: Option<String>,
    /// The time for which it stays open, as in 30s; a number without a unit is in seconds
    /// (breaker.cooldown)
    #[arg(long, value_name = "TIME")]
    cooldown: Option<String>,
    /// The transport for clients; sse adds HTTP with SSE to streamable HTTP (listen.legacy_sse)
    #[arg(long, value_name = "NAME")]
    transport: Option<Transport>,
    /// The address to listen on (listen.http)
    #[arg(long, value_name = "ADDRESS")]
    host: Option<String>,
    /// The port to listen on (listen.http)
    #[arg(long, value_name = "PORT")]
    port: Option<String>,
    /// Refuse to serve without TLS; set it up with listen.tls, or with --tls-cert and --tls-key
    #[arg(long)]
    pub(super) tls: bool,
    /// The PEM file of the certificate (listen.tls.certificate)
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<String>,
    /// The PEM file of its private key (listen.tls.key)
    #[arg(long, value_name = "FILE")]
    tls_key: Option<String>,
    /// Disable sessions (listen.session)
    #[arg(long)]
    stateless: bool,
}

/// The transport between clients and the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Transport {
    /// Streamable HTTP.
    #[value(name = "streamable-http", aliases = ["streamable", "http"])]
    StreamableHttp,
    /// HTTP with SSE, in addition to streamable HTTP.
    Sse,
    /// Standard input and output.
    Stdio,
}

impl ConfigOverrides {
    /// Returns `true` if the service uses standard input and output.
    pub(super) fn is_stdio(&self) -> bool {
        self.transport == Some(Transport::Stdio)
    }

    /// Returns the settings of all flags.
    ///
    /// # Errors
    ///
    /// [`Failed`] when a `--set` has no `=`.
    pub(super) fn settings(&self) -> Result<Vec<SourcedSetting>, Failed> {
        let setting = |flag: &str, target: SettingTarget, value: String| {
            let origin = SettingOrigin::Flag(flag.to_owned());
            SourcedSetting { origin, target, value }
        };
        let key = |key: &str| SettingTarget::Key(key.split('.').map(str::to_owned).collect());
        let time = |text: &str| quantity::with_unit(text).into_owned();
        let mut settings = Vec::new();
        let plain = [
            ("--max-connections", "pool.size", self.max_connections.clone()),
            ("--idle-timeout", "pool.idle_timeout", self.idle_timeout.as_deref().map(time)),
            ("--failure-threshold", "breaker.failure_threshold", self.failure_threshold.clone()),
            ("--cooldown", "breaker.cooldown", self.cooldown.as_deref().map(time)),
            ("--tls-cert", "listen.tls.certificate", self.tls_cert.as_deref().map(file)),
            ("--tls-key", "listen.tls.key", self.tls_key.as_deref().map(file)),
            ("--stateless", "listen.session", self.stateless.then(|| "off".to_owned())),
        ];
        for (flag, path, value) in plain {
            settings.extend(value.map(|value| setting(flag, key(path), value)));
        }
        if self.transport == Some(Transport::Sse) {
            settings.push(setting("--transport", key("listen.legacy_sse"), "true".to_owned()));
        }
        let address = [
            ("--host", SettingTarget::Host, &self.host),
            ("--port", SettingTarget::Port, &self.port),
        ];
        for (flag, target, value) in address {
            settings.extend(value.clone().map(|value| setting(flag, target, value)));
        }
        for text in &self.set {
            let Some((key, value)) = text.split_once('=') else {
                return Err(Failed::usage(
                    format!("`--set {text}` has no `=`"),
                    "Write a key and a value, as in `--set pool.size=30`.",
                ));
            };
            let key = key.trim();
            let target = SettingTarget::Written(key.to_owned());
            settings.push(setting(&format!("--set {key}"), target, value.to_owned()));
        }
        Ok(settings)
    }
}

/// Resolves a path against the current directory; a credential reference is unchanged.
fn file(text: &str) -> String {
    if text.starts_with("credential:") {
        return text.to_owned();
    }
    std::path::absolute(Path::new(text))
        .map_or_else(|_| text.to_owned(), |path| path.display().to_string())
}
