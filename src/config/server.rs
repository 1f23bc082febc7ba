//! The declaration of one server: how to reach it and when to start it.

use std::{collections::BTreeMap, ops::Range, path::PathBuf, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::{
    ClientTlsConfig, HealthConfig, HttpServerConfig, LifecycleConfig, ProxyConfig, RecordedText,
    SecretValue, ServerAuth, SharingMode,
    client_tls::ClientTlsTable,
    defaults,
    diagnostic::ConfigProblem,
    duration::{self, AnyDuration},
    health::HealthTable,
    http_server::HttpServerTable,
    keyword::NamedValue,
    lifecycle, proxy,
    reload_effect::ReloadEffect,
    server_auth,
    sharing::{self, MaxConnections},
    socket, url, variables,
};

/// A declared server: one `[servers.NAME]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// The transport to the server.
    pub transport: TransportConfig,
    /// The time at which it is connected.
    pub start: StartPolicy,
    /// The clients that share a connection to it.
    pub sharing: SharingMode,
    /// The time that an idle connection is kept.
    pub lifecycle: LifecycleConfig,
    /// The longest time from the start of the server to the end of its handshake.
    pub start_timeout: Duration,
    /// The liveness checks of the server.
    pub health: HealthConfig,
    /// The requests that are sent a second time.
    pub retry: RetryPolicy,
    /// The part of arguments and results that the records of calls have.
    pub record_texts: RecordedText,
    /// The era of the protocol in which metamcp speaks to it.
    pub era: EraChoice,
}

impl ServerConfig {
    /// Returns a server with this transport, and defaults for everything else.
    pub fn new(transport: TransportConfig) -> Self {
        Self {
            health: transport.default_health(),
            transport,
            start: StartPolicy::Lazy,
            sharing: SharingMode::Shared,
            lifecycle: LifecycleConfig::Pooled,
            start_timeout: defaults::START_TIMEOUT,
            retry: RetryPolicy::Safe,
            record_texts: RecordedText::None,
            era: EraChoice::Auto,
        }
    }

    /// Returns whether metamcp reconnects the server by itself after a failed attempt or a lost
    /// connection. An idle connection that was closed is not replaced.
    pub fn is_reconnected(&self) -> bool {
        self.sharing == SharingMode::Shared
            && matches!(self.lifecycle, LifecycleConfig::KeepAlive { .. })
    }

    /// Returns whether the server is meant to stay connected.
    pub fn is_keep_alive(&self) -> bool {
        self.sharing == SharingMode::Shared
            && self.lifecycle == LifecycleConfig::KeepAlive { idle_timeout: None }
    }
}

/// The transport to a server.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one for each server, in an `Arc`")]
pub enum TransportConfig {
    /// A child process that speaks over its standard input and output.
    Stdio {
        /// The program: a path, or a name that is looked up in `PATH`.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables in addition to the inherited ones.
        env: BTreeMap<String, SecretValue>,
        /// Its working directory; `None` is that of the service.
        cwd: Option<PathBuf>,
    },
    /// A unit that systemd starts for each connection to a socket, which is its stdin and stdout.
    Unit {
        /// The path of the socket.
        socket: PathBuf,
        /// The name of the unit's template, without `@` and suffix.
        unit: String,
    },
    /// A streamable HTTP endpoint.
    Http(HttpServerConfig),
}

/// The time at which a server is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StartPolicy {
    /// At its first request.
    #[default]
    Lazy,
    /// With the service, in the background; again when it fails.
    Eager,
    /// Before the first client is accepted; again when it fails.
    Prewarm,
}

/// The requests that are sent a second time within one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RetryPolicy {
    /// A request that provably was not executed, only reads, or is declared idempotent.
    #[default]
    Safe,
    /// Every request that failed by the server's fault, once. The server may execute it twice.
    Vital,
    /// As `vital` until the server has been connected again, then as `safe`.
    Fresh,
    /// No request.
    Never,
}

/// The era of the protocol in which metamcp speaks to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EraChoice {
    /// The newest one that the server understands; metamcp asks the server.
    #[default]
    Auto,
    /// The era with an `initialize` handshake; metamcp never asks for a newer one.
    Legacy,
    /// The era without a handshake, from protocol version 2026-07-28.
    Modern,
}

impl TransportConfig {
    /// Returns the name of the transport for status output.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Unit { .. } => "unit",
            Self::Http(_) => "http",
        }
    }

    /// Returns the liveness checks of a server with this transport and no others declared.
    fn default_health(&self) -> HealthConfig {
        HealthConfig::every(match self {
            Self::Stdio { .. } | Self::Unit { .. } => defaults::HEALTH_INTERVAL,
            Self::Http(_) => defaults::HEALTH_INTERVAL_UPSTREAM,
        })
    }
}

/// The keys that choose a transport, each with the keys that only this transport has.
pub(super) const TRANSPORTS: [(&str, &[&str]); 3] = [
    ("command", &["args", "env", "cwd"]),
    ("url", &["headers", "forward_headers", "auth", "tls", "proxy"]),
    ("socket", &["unit"]),
];

/// The keys that only a server under `[provision.servers]` has.
pub(super) const PROVISION_KEYS: [&str; 3] = ["namespace", "description", "keywords"];

/// The keys that only a server under `[servers]` has.
pub(super) const DECLARED_KEYS: [&str; 1] = ["enabled"];

/// The pattern of a namespace.
const NAMESPACE: &str = "^@?[A-Za-z0-9_.-]+(/@?[A-Za-z0-9_.-]+)*$";

/// The table as written in the file.
// Not a `ServerConfig`: defaults depend on other keys and on `[health]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-reload" = ReloadEffect::Reconnect))]
pub(super) struct ServerTable {
    /// A program to run as a child that speaks MCP over stdin and stdout: a path, or a name that is
    /// looked up in `PATH`.
    #[schemars(with = "String", length(min = 1))]
    command: Option<Spanned<String>>,
    /// The arguments of `command`.
    #[schemars(with = "Vec<String>")]
    args: Option<Spanned<Vec<String>>>,
    /// The variables of `command` in addition to the inherited ones: texts, `credential:NAME` or
    /// `env:NAME`.
    #[schemars(with = "BTreeMap<String, String>")]
    env: Option<variables::VariableTable>,
    /// The working directory of `command`.
    #[schemars(with = "String")]
    cwd: Option<Spanned<PathBuf>>,
    /// The URL of an endpoint, instead of `command`: of streamable HTTP, or of the HTTP with SSE of
    /// version 2024-11-05.
    #[schemars(
        with = "String",
        title = url::TITLE,
        regex(pattern = url::PATTERN)
    )]
    url: Option<Spanned<String>>,
    /// The headers to send to `url`: texts, `credential:NAME` or `env:NAME`.
    #[schemars(with = "BTreeMap<String, String>")]
    headers: Option<variables::VariableTable>,
    /// The headers of a client's request that metamcp passes on to this server. It never passes on
    /// `Authorization`, `Cookie`, and headers of one hop.
    #[schemars(with = "Vec<String>", length(max = defaults::FORWARDED_HEADERS_MAX))]
    forward_headers: Option<Spanned<Vec<Spanned<String>>>>,
    /// The login at `url`: a word, or a table with the settings of OAuth. Without it, `auto`.
    #[schemars(schema_with = "server_auth::schema")]
    auth: Option<Spanned<ServerAuth>>,
    /// The trusted authorities, and the certificate of metamcp, for an https `url`.
    #[schemars(with = "ClientTlsTable")]
    tls: Option<Spanned<ClientTlsConfig>>,
    /// The proxy for requests to `url` and to its authorization server. Without it,
    /// `service.proxy`, and for a `url` on loopback `none`.
    #[schemars(with = "String", title = proxy::TITLE, regex(pattern = proxy::PATTERN))]
    proxy: Option<ProxyConfig>,
    /// The absolute path of the socket of a unit that systemd starts for each connection, instead
    /// of `command`.
    #[schemars(with = "String", title = socket::TITLE, regex(pattern = "^/."), length(max = defaults::SOCKET_PATH_BYTES_MAX))]
    socket: Option<Spanned<PathBuf>>,
    /// The name of the template of the unit behind `socket`, without `@`. Without it,
    /// `metamcp-server-` and the name of the socket, without its suffix.
    #[schemars(
        with = "String",
        title = "name of a unit, without @ and suffix",
        regex(pattern = "^[A-Za-z0-9:_.-]+$")
    )]
    unit: Option<Spanned<String>>,
    /// The keys of `[health]` that differ for this server.
    #[schemars(with = "HealthTable")]
    health: Option<HealthTable>,
    /// If `false`, the server is disabled: metamcp checks its declaration, never starts it, and hides
    /// it from clients.
    #[schemars(with = "bool", extend("default" = true))]
    pub(super) enabled: Option<Spanned<bool>>,
    /// The time at which metamcp connects the server.
    #[schemars(with = "StartPolicy", extend("default" = "lazy"))]
    start: Option<Spanned<NamedValue<StartPolicy>>>,
    /// The clients that share a connection to the server.
    #[schemars(with = "sharing::SharingName", extend("default" = "shared"))]
    sharing: Option<NamedValue<sharing::SharingName>>,
    /// The largest number of connections if `sharing` is `exclusive` (default 4) or `session`
    /// (default 16).
    #[schemars(with = "MaxConnections")]
    max_connections: Option<Spanned<MaxConnections>>,
    /// The time that an idle connection is kept: a word, or a table with the word as `mode`.
    /// Without it, `pool.idle_timeout`, or for ever if `start` is not `lazy`.
    #[schemars(schema_with = "lifecycle::schema")]
    lifecycle: Option<Spanned<lifecycle::LifecycleValue>>,
    /// The longest time from the start of the server to the end of its handshake.
    #[schemars(with = "AnyDuration", extend("default" = duration::text(defaults::START_TIMEOUT)))]
    start_timeout: Option<AnyDuration>,
    /// The requests that metamcp sends a second time within one call.
    #[schemars(with = "RetryPolicy", extend("default" = "safe"))]
    retry: Option<NamedValue<RetryPolicy>>,
    /// The part of the arguments and the result that the records of calls to the server have.
    #[schemars(with = "RecordedText", extend("default" = "none"))]
    record_texts: Option<NamedValue<RecordedText>>,
    /// The era of the protocol in which metamcp speaks to the server.
    #[schemars(with = "EraChoice", extend("default" = "auto"))]
    era: Option<NamedValue<EraChoice>>,
    // Only for a server under `[provision.servers]`. They are here because serde does not combine
    // `flatten` with `deny_unknown_fields`.
    /// The owner of the server, as in `internal/github`. metamcp never starts one without it.
    #[schemars(with = "String", title = "namespace, as in internal/github", regex(pattern = NAMESPACE), length(max = defaults::NAMESPACE_BYTES_MAX), extend("x-reload" = ReloadEffect::AtOnce))]
    pub(super) namespace: Option<Spanned<String>>,
    /// The purpose of the server, by which metamcp finds it.
    #[schemars(with = "String", length(min = 1, max = defaults::DESCRIPTION_BYTES_MAX), extend("x-reload" = ReloadEffect::AtOnce))]
    pub(super) description: Option<Spanned<String>>,
    /// Further words by which metamcp finds it.
    #[schemars(with = "Vec<String>", length(max = defaults::KEYWORDS_MAX), extend("default" = [], "x-reload" = ReloadEffect::AtOnce))]
    pub(super) keywords: Option<Spanned<Vec<Spanned<String>>>>,
}

impl ServerTable {
    /// Returns whether metamcp serves the server.
    pub(super) fn is_enabled(&self) -> bool {
        self.enabled.as_ref().is_none_or(|enabled| *enabled.get_ref())
    }

    /// Returns the place of `start` if the server does not wait for a request.
    pub(super) fn eager_start_span(&self) -> Option<Range<usize>> {
        let start = self.start.as_ref()?;
        (start.get_ref().0 != StartPolicy::Lazy).then(|| start.span())
    }

    /// Checks the table; `place` is the place of its name, `find` returns that of one of its keys.
    /// `[health]` and `service.proxy` apply where the table has no own value.
    pub(super) fn into_server(
        mut self,
        place: Range<usize>,
        find: impl Fn(&str) -> Option<Range<usize>>,
        (health, proxy): (&HealthTable, &ProxyConfig),
    ) -> Result<Arc<ServerConfig>, ConfigProblem> {
        let sharing = sharing::of(self.sharing.take(), self.max_connections.take())?;
        if let Some(start) = self.eager_start_span()
            && sharing != SharingMode::Shared
        {
            let message = format!("`start` has no effect with `sharing = \"{}\"`", sharing.name());
            return Err(ConfigProblem::at(start, message)
                .help("remove `start`: metamcp connects such a server when a client needs it"));
        }
        let start = self.start.take().map(|start| start.into_inner().0).unwrap_or_default();
        let lifecycle = lifecycle::of(self.lifecycle.take(), start)?;
        let start_timeout =
            self.start_timeout.take().map_or(defaults::START_TIMEOUT, |found| found.0);
        let retry = self.retry.take().map(|retry| retry.0).unwrap_or_default();
        let record_texts = self.record_texts.take().map(|texts| texts.0).unwrap_or_default();
        let era = self.era.take().map(|era| era.0).unwrap_or_default();
        let own = self.health.take().unwrap_or_default();
        let transport = self.transport(place, find, proxy)?;
        let health = own.merged_over(health.merged_over(transport.default_health()));
        Ok(Arc::new(ServerConfig {
            transport,
            start,
            sharing,
            lifecycle,
            start_timeout,
            health,
            retry,
            record_texts,
            era,
        }))
    }

    fn transport(
        self,
        place: Range<usize>,
        find: impl Fn(&str) -> Option<Range<usize>>,
        service_proxy: &ProxyConfig,
    ) -> Result<TransportConfig, ConfigProblem> {
        refuse_mixed_transports(find)?;
        if let Some(command) = self.command {
            let span = command.span();
            let command = command.into_inner();
            if command.trim().is_empty() {
                return Err(ConfigProblem::at(span, "`command` is empty")
                    .help("name the program that speaks MCP over stdio"));
            }
            let args = self.args.map(Spanned::into_inner).unwrap_or_default();
            if args.iter().chain([&command]).any(|text| text.contains('\0')) {
                return Err(ConfigProblem::at(span, "a NUL character in `command` or `args`")
                    .help("remove it: no program can receive it"));
            }
            let env = variables::of_environment(self.env)?;
            let cwd = self.cwd.map(Spanned::into_inner);
            return Ok(TransportConfig::Stdio { command, args, env, cwd });
        }
        if let Some(url) = self.url {
            let table = HttpServerTable {
                url,
                headers: self.headers,
                forward_headers: self.forward_headers,
                auth: self.auth,
                tls: self.tls,
                proxy: self.proxy,
            };
            return table.checked(service_proxy).map(TransportConfig::Http);
        }
        if let Some(socket) = self.socket {
            let span = socket.span();
            let socket = socket.into_inner();
            socket::check_path(&socket, "socket", "/run/metamcp-servers/git.sock")
                .map_err(|refusal| ConfigProblem::refused(span.clone(), refusal))?;
            let unit = socket::unit(self.unit, &socket, span)?;
            return Ok(TransportConfig::Unit { socket, unit });
        }
        Err(ConfigProblem::at(place, "a server without `command`, `url` or `socket`").help(
            "add `command = \"PROGRAM\"`, `url = \"https://HOST/mcp\"` or `socket = \"/run/DIRECTORY/NAME.sock\"`",
        ))
    }
}

/// Refuses keys of a server under `[servers]` that only one under `[provision.servers]` can have.
pub(super) fn refuse_provision_keys(
    find: impl Fn(&str) -> Option<Range<usize>>,
) -> Result<(), ConfigProblem> {
    match PROVISION_KEYS.into_iter().find_map(|key| Some((key, find(key)?))) {
        None => Ok(()),
        Some((key, place)) => {
            let message = format!("`{key}` has no effect under `[servers]`");
            Err(ConfigProblem::at(place, message)
                .help("remove it, or declare the server under `[provision.servers]`"))
        }
    }
}

/// Refuses a second transport, and keys without effect on the declared one. `find` returns the
/// place of a key.
fn refuse_mixed_transports(
    find: impl Fn(&str) -> Option<Range<usize>>,
) -> Result<(), ConfigProblem> {
    let place = |key: &'static str| Some((key, find(key)?));
    let mut declared = TRANSPORTS.iter().filter_map(|(transport, _)| place(transport));
    // `transport` reports a server without any.
    let Some((chosen, _)) = declared.next() else { return Ok(()) };
    if let Some((other, span)) = declared.next() {
        return Err(ConfigProblem::at(span, format!("both `{chosen}` and `{other}`"))
            .help("a server is a program, a URL or the socket of a unit: remove one of the two"));
    }
    for (transport, keys) in TRANSPORTS.into_iter().filter(|(transport, _)| *transport != chosen) {
        if let Some((key, span)) = keys.iter().find_map(|key| place(key)) {
            let message = format!("`{key}` has no effect on a server with `{chosen}`");
            let help = format!("remove it: it belongs to a server with `{transport}`");
            return Err(ConfigProblem::at(span, message).help(help));
        }
    }
    Ok(())
}
