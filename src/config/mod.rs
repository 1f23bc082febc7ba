//! The configuration of the service, checked before anything runs.
//!
//! [`load`] turns a TOML file into a [`Config`], or into a [`Diagnostic`] that points at the
//! offending text. An unknown key is an error, so metamcp never ignores one. This module does not
//! use sockets, processes or the clock.

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
mod key_paths;
mod keyword;
pub mod lifecycle;
pub mod load;
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

use crate::server_name::ServerName;

/// The whole configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// `[service]`: the behaviour of the service as a whole.
    pub service: ServiceConfig,
    /// `[listen]`: the addresses for clients and operators.
    pub listen: ListenConfig,
    /// `[pool]`: the number and lifetime of connections to servers.
    pub pool: PoolConfig,
    /// `[breaker]`: the circuit breakers of servers.
    pub breaker: BreakerConfig,
    /// `[tools]`: the meta-tools of the view `meta`.
    pub tools: ToolsConfig,
    /// `[search]`: the search for tools.
    pub search: SearchConfig,
    /// `[catalog]`: the lists that are kept of servers without a connection.
    pub catalog: CatalogConfig,
    /// `[tasks]`: the calls that continue without their caller.
    pub tasks: TasksConfig,
    /// `[provision]`: the servers that may be added while the service runs.
    pub provision: ProvisionConfig,
    /// `[servers.NAME]`: the declared servers.
    pub servers: BTreeMap<ServerName, Arc<ServerConfig>>,
}

/// The behaviour of the service as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceConfig {
    /// The longest silence of a request. Progress restarts the time.
    pub request_timeout: Duration,
    /// The longest total time of a request, with or without progress.
    pub max_total_timeout: Duration,
    /// The time that running requests may continue after a stop was requested.
    pub shutdown_timeout: Duration,
    /// The silence of a tool after which metamcp sends its client progress; `None` is never.
    pub progress_beat: Option<Duration>,
    /// The time without a client, operator request, call or task after which the service exits;
    /// `Some(None)` is never. `None` is not set: never, unless a command has started the service.
    pub idle_exit: Option<Option<Duration>>,
    /// The log level.
    pub log_level: LogLevel,
    /// The bytes that messages of all clients together may take; `None` is a share of the memory
    /// limit of the service's control group.
    pub memory_max: Option<usize>,
}

/// The amount of logging.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Only failures that require an operator.
    Error,
    /// Also degraded operation.
    Warn,
    /// Also one line per change of a server's state.
    Info,
    /// Also one line per request.
    Debug,
    /// Everything.
    Trace,
}

/// The addresses of the service. Sockets that systemd passes take precedence.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenConfig {
    /// The TCP address of the HTTP listener; with port 0, the system chooses the port.
    pub http: SocketAddr,
    /// The locations of certificate and key; `None` serves plain HTTP.
    pub tls: Option<TlsConfig>,
    /// The location of the token that clients must send; `None` requires no token.
    pub token: Option<TokenLocation>,
    /// The path of the control socket; `None` is a path in the runtime directory.
    pub control: Option<PathBuf>,
    /// The group that may use the control socket, besides root and the user of the service.
    pub control_group: Option<String>,
    /// If `true`, `POST /rpc` of the HTTP listener answers what the control socket answers.
    pub rpc: bool,
    /// The view at `/` and `/mcp`.
    pub root: RootView,
    /// The names accepted in the `Host` header besides loopback names, without port.
    pub allowed_hosts: Vec<String>,
    /// The values accepted in the `Origin` header besides loopback origins.
    pub allowed_origins: Vec<String>,
    /// The silence on a stream after which metamcp sends a comment to keep it alive.
    pub keep_alive: Duration,
    /// The time after which an answer is sent as a stream; `None` sends every answer as a stream.
    pub stream_after: Option<Duration>,
    /// The time in which a client may read nothing of what metamcp writes.
    pub write_timeout: Duration,
    /// The meaning and lifetime of session ids.
    pub session: SessionConfig,
    /// If `true`, every POST is answered with one JSON body, if the client accepts it.
    pub json_response: bool,
    /// If `true`, HTTP with SSE, the transport of protocol version 2024-11-05, is served too.
    pub legacy_sse: bool,
}

/// The settings of the circuit breaker that each server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerConfig {
    /// The number of failures in a row that opens the breaker; 0 is never.
    pub failure_threshold: u32,
    /// The time that the breaker stays open. Then one request reaches the server.
    pub cooldown: Duration,
}

/// The view at `/` and `/mcp`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum RootView {
    /// All servers, their tools as `server__tool`.
    Direct,
    /// All servers behind a few tools that find and call theirs.
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
