//! Everything that an operator can say, checked before anything runs.
//!
//! [`load`] turns a TOML file into a [`Config`] or into a [`Diagnostic`] that points at the
//! offending text. A key that is not known is an error, so none can be read and ignored.
//! Knows nothing of sockets, processes or the clock.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;

pub mod catalog;
mod config_path;
pub mod defaults;
pub mod diagnostic;
pub mod diff;
pub mod duration;
pub mod effective;
pub mod environment;
pub mod exposed_listener;
pub mod health;
mod keys;
pub mod lifecycle;
pub mod load;
mod named_value;
pub mod pool;
pub mod provision;
pub mod schema;
pub mod search;
pub mod secret;
pub mod server;
pub mod session;
pub mod sharing;
mod socket;
pub mod sources;
pub mod stateful_servers;
pub mod tasks;
pub mod tls;
pub mod token;
mod toml_messages;
pub mod tools;
pub mod url;
pub(crate) mod variables;

pub use catalog::{CatalogCache, CatalogConfig};
pub use config_path::{VARIABLE as FILE_VARIABLE, file_of_environment, usual_file};
pub use diagnostic::{Diagnostic, SettingOrigin};
pub use exposed_listener::ExposedListener;
pub use health::HealthConfig;
pub use lifecycle::LifecycleConfig;
pub use pool::PoolConfig;
pub use provision::{Namespace, ProvisionConfig, Provisionable, RegistryConfig, TrustRule};
pub use search::{EmbeddingConfig, SearchConfig};
pub use secret::SecretValue;
pub use server::{EraChoice, RetryPolicy, ServerConfig, StartPolicy, TransportConfig};
pub use session::{SessionConfig, SessionMode};
pub use sharing::SharingMode;
pub use sources::{ConfigSources, LoadedConfig, SettingTarget, SourcedSetting};
pub use tasks::TasksConfig;
pub use tls::TlsConfig;
pub use token::TokenLocation;
pub use tools::{ToolSet, ToolsConfig};

use crate::name::ServerName;

/// The whole configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// How the service as a whole behaves: `[service]`.
    pub service: ServiceConfig,
    /// Where clients reach it: `[listen]`.
    pub listen: ListenConfig,
    /// How many connections there may be, and for how long: `[pool]`.
    pub pool: PoolConfig,
    /// When a server that fails is left alone: `[breaker]`.
    pub breaker: BreakerConfig,
    /// What the view `meta` shows of itself: `[tools]`.
    pub tools: ToolsConfig,
    /// How tools are searched for: `[search]`.
    pub search: SearchConfig,
    /// What is remembered of servers that are not connected: `[catalog]`.
    pub catalog: CatalogConfig,
    /// What is kept of calls that go on by themselves: `[tasks]`.
    pub tasks: TasksConfig,
    /// Which servers may be added while the service runs: `[provision]`.
    pub provision: ProvisionConfig,
    /// The declared servers: `[servers.NAME]`.
    pub servers: BTreeMap<ServerName, Arc<ServerConfig>>,
}

/// How the service as a whole behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceConfig {
    /// How long a request may stay silent. Progress starts the time anew.
    pub request_timeout: Duration,
    /// How long a request may take in all, progress or not.
    pub max_total_timeout: Duration,
    /// How long running requests may go on after a stop was asked for.
    pub shutdown_timeout: Duration,
    /// How long a tool may be silent before its client is sent progress of ours; `None` is never.
    pub progress_beat: Option<Duration>,
    /// How long the service may be of no use to anybody before it ends by itself: `Some(None)` is for
    /// ever, as is `None`, where nothing is said, unless a command has started the service.
    pub idle_exit: Option<Option<Duration>>,
    /// What is logged.
    pub log_level: LogLevel,
    /// How many bytes messages may take, over all clients together; `None` is a share of the memory
    /// limit of the service's control group.
    pub memory_max: Option<usize>,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Only what an operator must act on.
    Error,
    /// Also what is degraded.
    Warn,
    /// Also one line per change of a server's life.
    Info,
    /// Also one line per request.
    Debug,
    /// Everything.
    Trace,
}

/// Where clients reach the service. Sockets that systemd passes in take precedence.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenConfig {
    /// The TCP address of the HTTP edge; port 0 lets the system choose.
    pub http: SocketAddr,
    /// Where certificate and key are; `None` serves plain HTTP.
    pub tls: Option<TlsConfig>,
    /// Where the token is that clients must bring; `None` asks for nothing.
    pub token: Option<TokenLocation>,
    /// The path of the control socket; `None` chooses the runtime directory.
    pub control: Option<PathBuf>,
    /// The group whose members may use the control socket besides root and our own user.
    pub control_group: Option<String>,
    /// What the control socket answers is answered at `POST /rpc` of the HTTP edge, too.
    pub rpc: bool,
    /// The view at `/` and `/mcp`.
    pub root: RootView,
    /// Values of the `HostLauncher` header that are served besides loopback names, without port.
    pub allowed_hosts: Vec<String>,
    /// Values of the `SettingOrigin` header that are served besides loopback origins.
    pub allowed_origins: Vec<String>,
    /// How long a stream may be silent before a comment keeps it alive.
    pub keep_alive: Duration,
    /// How long an answer may take before it is sent as a stream; `None` sends all that way at once.
    pub stream_after: Option<Duration>,
    /// How long a client may take nothing of what is written to it.
    pub write_timeout: Duration,
    /// What session ids mean, and for how long.
    pub session: SessionConfig,
    /// Every POST is answered with one JSON body, where the client takes one.
    pub json_response: bool,
    /// HTTP with SSE, the transport of protocol version 2024-11-05, is served too.
    pub legacy_sse: bool,
}

/// When a server that fails is left alone, and for how long. Each server has a breaker of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerConfig {
    /// How many failures in a row it takes; 0 is never.
    pub failure_threshold: u32,
    /// How long no request reaches the server then; after it, one does.
    pub cooldown: Duration,
}

/// The view at `/` and `/mcp`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum RootView {
    /// All servers, their tools as `server__tool`.
    Direct,
    /// All servers behind a handful of tools that find and call theirs.
    Meta,
    /// One server, unprefixed: `passthrough:NAME`.
    Passthrough(ServerName),
}

impl TryFrom<String> for RootView {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.split_once(':') {
            None if text == "direct" => Ok(Self::Direct),
            None if text == "meta" => Ok(Self::Meta),
            Some(("passthrough", server)) => {
                ServerName::new(server).map(Self::Passthrough).map_err(|error| error.to_string())
            }
            _ => Err(format!(
                "`{text}` is not a view, expected `direct`, `meta` or `passthrough:SERVER`"
            )),
        }
    }
}

impl Default for ServiceConfig {
    fn default() -> Self {
        Self {
            request_timeout: defaults::REQUEST_TIMEOUT,
            max_total_timeout: defaults::MAX_TOTAL_TIMEOUT,
            shutdown_timeout: defaults::SHUTDOWN_TIMEOUT,
            progress_beat: Some(defaults::PROGRESS_BEAT),
            idle_exit: None,
            log_level: LogLevel::Info,
            memory_max: None,
        }
    }
}

impl Default for ListenConfig {
    fn default() -> Self {
        Self {
            http: defaults::HTTP_ADDRESS,
            tls: None,
            token: None,
            control: None,
            control_group: None,
            rpc: false,
            root: RootView::Direct,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            keep_alive: defaults::KEEP_ALIVE,
            stream_after: Some(defaults::STREAM_AFTER),
            write_timeout: defaults::WRITE_TIMEOUT,
            session: SessionConfig::default(),
            json_response: false,
            legacy_sse: false,
        }
    }
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            failure_threshold: defaults::FAILURE_THRESHOLD,
            cooldown: defaults::BREAKER_COOLDOWN,
        }
    }
}
