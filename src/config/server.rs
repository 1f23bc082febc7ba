//! One declared server: how to reach it and when to start it.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use hyper::{Uri, http::uri::Scheme};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::{
    HealthConfig, LifecycleConfig, SecretValue, SharingMode, defaults,
    diagnostic::ConfigProblem,
    duration,
    health::HealthTable,
    lifecycle,
    named_value::NamedValue,
    provision,
    schema::{self, DurationSchema, duration_text},
    sharing, socket, url, variables,
};

/// A declared server: one `[servers.NAME]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// How to reach it.
    pub transport: TransportConfig,
    /// When to connect to it.
    pub start: StartPolicy,
    /// Who shares a connection to it.
    pub sharing: SharingMode,
    /// How long a connection that nobody uses is kept.
    pub lifecycle: LifecycleConfig,
    /// How long it may take from being started to the end of its handshake.
    pub start_timeout: Duration,
    /// How it is watched.
    pub health: HealthConfig,
    /// What is sent to it a second time.
    pub retry: RetryPolicy,
    /// In which era it is spoken to.
    pub era: EraChoice,
}

impl ServerConfig {
    /// Returns a server of which nothing is declared but how to reach it.
    pub fn new(transport: TransportConfig) -> Self {
        Self {
            health: HealthConfig::of(&transport),
            transport,
            start: StartPolicy::Lazy,
            sharing: SharingMode::Shared,
            lifecycle: LifecycleConfig::Pooled,
            start_timeout: defaults::START_TIMEOUT,
            retry: RetryPolicy::Safe,
            era: EraChoice::Auto,
        }
    }

    /// Tells whether the server is connected anew, unasked, when it cannot be connected or its
    /// connection is lost; not when that was closed because nobody used it.
    pub fn is_reconnected(&self) -> bool {
        self.sharing == SharingMode::Shared
            && matches!(self.lifecycle, LifecycleConfig::KeepAlive { .. })
    }

    /// Tells whether the server is to be connected always, as far as that can be had.
    pub fn is_keep_alive(&self) -> bool {
        self.sharing == SharingMode::Shared
            && self.lifecycle == LifecycleConfig::KeepAlive { idle_timeout: None }
    }
}

/// How to reach a server.
#[derive(Clone, Debug, PartialEq)]
pub enum TransportConfig {
    /// A child process that speaks over its standard input and output.
    Stdio {
        /// The program: a path, or a name that is looked up in `PATH`.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables beyond the inherited ones.
        env: BTreeMap<String, SecretValue>,
        /// Its working directory; ours when absent.
        cwd: Option<PathBuf>,
    },
    /// A unit that systemd starts for each connection to a socket, which is its standard input and
    /// output.
    Unit {
        /// The socket.
        socket: PathBuf,
        /// The name of the unit's template, without `@` and suffix.
        unit: String,
    },
    /// A streamable HTTP endpoint.
    Http {
        /// Where it is.
        url: Uri,
        /// Headers beyond those of the protocol.
        headers: BTreeMap<String, SecretValue>,
    },
}

/// When to connect to a server.
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

/// Which requests are sent a second time within one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RetryPolicy {
    /// Those that provably were not executed, or that may be executed twice. Source: ruling 9.
    #[default]
    Safe,
    /// Every one that failed by the server's fault, once: it may be executed twice. Source: seed 004,
    /// `vital`.
    Vital,
    /// As `vital` until the server has been connected anew, then as `safe`. Source: seed 004, for
    /// servers that are not vital.
    Fresh,
    /// None.
    Never,
}

/// In which era of the protocol a server is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EraChoice {
    /// In the newest that it understands: it is asked.
    #[default]
    Auto,
    /// With an `initialize` handshake, and never asked for anything newer.
    Legacy,
    /// Without one, from protocol version 2026-07-28.
    Modern,
}

impl TransportConfig {
    /// Returns the name of the transport for status output.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Unit { .. } => "unit",
            Self::Http { .. } => "http",
        }
    }
}

/// The table as it stands in the file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub(super) struct ServerTable {
    /// A program to run as a child that speaks MCP over stdin and stdout: a path, or a name that is
    /// looked up in `PATH`.
    #[schemars(with = "String", length(min = 1))]
    command: Option<Spanned<String>>,
    /// Its arguments.
    #[schemars(with = "Vec<String>")]
    args: Option<Spanned<Vec<String>>>,
    /// Its variables beyond the inherited ones: texts, `credential:NAME` or `env:NAME`.
    #[schemars(with = "BTreeMap<String, String>")]
    env: Option<variables::VariableTable>,
    /// Its working directory.
    #[schemars(with = "String")]
    cwd: Option<Spanned<PathBuf>>,
    /// Or an endpoint of streamable HTTP, or of the HTTP with SSE of version 2024-11-05.
    #[schemars(with = "String", regex(pattern = "^http://.+"))]
    url: Option<Spanned<String>>,
    /// Headers to send to it: texts, `credential:NAME` or `env:NAME`.
    #[schemars(with = "BTreeMap<String, String>")]
    headers: Option<variables::VariableTable>,
    /// Or the socket of a unit that systemd starts for each connection, an absolute path.
    #[schemars(with = "String", regex(pattern = "^/"), length(max = defaults::SOCKET_PATH_BYTES_MAX))]
    socket: Option<Spanned<PathBuf>>,
    /// The name of the template of that unit without `@`; without it, `metamcp-server-` and the name
    /// of the socket, without its suffix.
    #[schemars(with = "String", regex(pattern = "^[A-Za-z0-9:_.-]+$"))]
    unit: Option<Spanned<String>>,
    /// What is different for this server from `[health]`.
    #[schemars(with = "HealthTable")]
    health: Option<HealthTable>,
    /// When to connect to it.
    #[schemars(with = "StartPolicy", extend("default" = "lazy"))]
    start: Option<Spanned<NamedValue<StartPolicy>>>,
    /// Who shares a connection to it.
    #[schemars(with = "sharing::SharingName", extend("default" = "shared"))]
    sharing: Option<NamedValue<sharing::SharingName>>,
    /// How many connections there may be, where `sharing` is `exclusive` (4 without it) or `session`
    /// (16).
    #[schemars(with = "usize", range(min = 1, max = defaults::MAX_CONNECTIONS_MAX))]
    max_connections: Option<Spanned<usize>>,
    /// How long a connection is kept that nobody uses: a word, or a table with the word as `mode`;
    /// without it, for `pool.idle_timeout`, and for ever where `start` is not `lazy`.
    #[schemars(with = "lifecycle::LifecycleValue")]
    lifecycle: Option<Spanned<lifecycle::LifecycleValue>>,
    /// How long the server may take from being started to the end of its handshake.
    #[serde(deserialize_with = "duration::deserialize_some")]
    #[schemars(with = "DurationSchema", extend("default" = duration_text(defaults::START_TIMEOUT)))]
    start_timeout: Option<Duration>,
    /// What is sent to it a second time within one call.
    #[schemars(with = "RetryPolicy", extend("default" = "safe"))]
    retry: Option<NamedValue<RetryPolicy>>,
    /// In which era of the protocol it is spoken to.
    #[schemars(with = "EraChoice", extend("default" = "auto"))]
    era: Option<NamedValue<EraChoice>>,
    // Only of a server under `[provision.servers]`. They stand here, because a table that refuses
    // what it does not know cannot be made of two.
    /// Whose server it is, as in `internal/github`; one that says nothing is never started.
    #[schemars(with = "String", regex(pattern = schema::NAMESPACE), length(max = defaults::NAMESPACE_BYTES_MAX))]
    pub(super) namespace: Option<Spanned<String>>,
    /// What it is for: it is found by these words.
    #[schemars(with = "String", length(min = 1, max = defaults::DESCRIPTION_BYTES_MAX))]
    pub(super) description: Option<Spanned<String>>,
    /// By which words it is found besides.
    #[schemars(with = "Vec<String>", length(max = defaults::KEYWORDS_MAX), extend("default" = []))]
    pub(super) keywords: Option<Spanned<Vec<Spanned<String>>>>,
}

impl ServerTable {
    /// Tells where `start` stands, if it says that the server is not to wait for a request.
    pub(super) fn eager_start_span(&self) -> Option<std::ops::Range<usize>> {
        let start = self.start.as_ref()?;
        (start.get_ref().0 != StartPolicy::Lazy).then(|| start.span())
    }

    /// Checks the table; `place` is where its name stands, `health` what `[health]` says.
    pub(super) fn into_server(
        mut self,
        place: std::ops::Range<usize>,
        health: &HealthTable,
    ) -> Result<Arc<ServerConfig>, ConfigProblem> {
        provision::refuse_provision_keys(&self)?;
        let sharing = sharing::of(self.sharing.take(), self.max_connections.take())?;
        let start = self.start.as_ref().map(|start| start.get_ref().0).unwrap_or_default();
        if let Some(declared) = &self.start
            && start != StartPolicy::Lazy
            && sharing != SharingMode::Shared
        {
            let message = format!("`start` together with `sharing = \"{}\"`", sharing.name());
            return Err(ConfigProblem::at(declared.span(), message)
                .help("such a connection is made when a client needs it: remove `start`"));
        }
        let lifecycle = lifecycle::of(self.lifecycle.take(), start)?;
        let start_timeout = self.start_timeout.unwrap_or(defaults::START_TIMEOUT);
        let retry = self.retry.map(|retry| retry.0).unwrap_or_default();
        let era = self.era.take().map(|era| era.0).unwrap_or_default();
        let own = self.health.take().unwrap_or_default().checked()?;
        let transport = self.transport(place)?;
        let health = own.merged_over(health.merged_over(HealthConfig::of(&transport)));
        Ok(Arc::new(ServerConfig {
            transport,
            start,
            sharing,
            lifecycle,
            start_timeout,
            health,
            retry,
            era,
        }))
    }

    fn transport(self, place: std::ops::Range<usize>) -> Result<TransportConfig, ConfigProblem> {
        // What only one way to reach a server has is out of place with another.
        let details = [
            ("headers", self.headers.as_ref().map(Spanned::span), "url"),
            ("args", self.args.as_ref().map(Spanned::span), "command"),
            ("env", self.env.as_ref().map(Spanned::span), "command"),
            ("cwd", self.cwd.as_ref().map(Spanned::span), "command"),
            ("unit", self.unit.as_ref().map(Spanned::span), "socket"),
        ];
        let only = |way: &str| {
            let mut others = details.into_iter().filter(|(_, _, its_way)| *its_way != way);
            others.try_for_each(|(key, found, _)| refuse(found, key, way))
        };
        let both = |one: &str, other: &str, span| {
            Err(ConfigProblem::at(span, format!("both `{one}` and `{other}`")).help(
                "a server is either a program, an address or the socket of a unit: remove one",
            ))
        };
        match (self.command, self.url, self.socket) {
            (Some(command), None, None) => {
                only("command")?;
                let span = command.span();
                let command = command.into_inner();
                if command.trim().is_empty() {
                    return Err(ConfigProblem::at(span, "`command` is empty")
                        .help("name the program that speaks MCP over stdio"));
                }
                let args = self.args.map(Spanned::into_inner).unwrap_or_default();
                let has_nul = |text: &String| text.contains('\0');
                if has_nul(&command) || args.iter().any(has_nul) {
                    return Err(ConfigProblem::at(span, "a NUL character in `command` or `args`")
                        .help("no program can be given one: remove it"));
                }
                let env = variables::of_environment(self.env)?;
                Ok(TransportConfig::Stdio { command, args, env, cwd: self.cwd.map(Spanned::into_inner) })
            }
            (None, Some(url), None) => {
                only("url")?;
                Ok(TransportConfig::Http {
                    url: http_url(&url)?,
                    headers: variables::of_headers(self.headers)?,
                })
            }
            (None, None, Some(socket)) => {
                only("socket")?;
                let span = socket.span();
                let socket = socket::path(socket, "socket", "/run/metamcp-servers/git.sock")?;
                let unit = socket::unit(self.unit, &socket, span)?;
                Ok(TransportConfig::Unit { socket, unit })
            }
            (None, None, None) => {
                Err(ConfigProblem::at(place, "a server without `command`, `url` or `socket`").help(
                    "add `command = \"PROGRAM\"`, `url = \"http://HOST:PORT/mcp\"` or `socket = \"/run/DIRECTORY/NAME.sock\"`",
                ))
            }
            (Some(_), Some(url), _) => both("command", "url", url.span()),
            (Some(_), None, Some(socket)) => both("command", "socket", socket.span()),
            (None, Some(_), Some(socket)) => both("url", "socket", socket.span()),
        }
    }
}

fn refuse(
    found: Option<std::ops::Range<usize>>,
    key: &str,
    with: &str,
) -> Result<(), ConfigProblem> {
    match found {
        None => Ok(()),
        Some(span) => Err(ConfigProblem::at(span, format!("`{key}` together with `{with}`"))
            .help(format!("`{key}` has no effect here: remove it"))),
    }
}

/// How the URL of a server is written.
const EXAMPLE: &str = "write it as `http://HOST:PORT/PATH`";

fn http_url(text: &Spanned<String>) -> Result<Uri, ConfigProblem> {
    let url = url::parse_http(text, EXAMPLE)?;
    if url.scheme() == Some(&Scheme::HTTPS) {
        let message = format!(
            "`{}` needs TLS, which this version does not speak",
            url::without_secrets(text.get_ref())
        );
        return Err(ConfigProblem::at(text.span(), message)
            .help("reach it through a local TLS proxy for now"));
    }
    Ok(url)
}
