//! The configuration of the service, checked before anything runs.
//!
//! [`load`] turns a TOML file into a [`Config`], or into a [`Diagnostic`] that points at the
//! offending text. An unknown key is an error, so metamcp never ignores one. This module does not
//! use sockets, processes or the clock.
//!
//! A key is a field of the struct of its section, with its meaning, default, range, and the effect
//! of a reload. The JSON Schema follows from these structs. From the schema follow variables, flags,
//! `check --effective`, the tables in `docs/reference/configuration.md`, and the options for Nix.
//! Rules over several keys are in `check` of a section.

use std::{collections::BTreeMap, sync::Arc};

mod auth;
mod bounded_number;
mod breaker;
pub mod catalog;
mod client_tls;
mod config_path;
pub mod credential_directories;
pub mod defaults;
pub mod diagnostic;
pub mod duration;
pub mod effective;
pub mod environment;
pub mod execute;
pub mod exposed_listener;
pub mod file_edit;
pub mod health;
mod http_server;
mod key_paths;
mod key_places;
mod keyword;
pub mod lifecycle;
mod listen;
pub mod load;
mod masked_line;
mod number_pattern;
pub(crate) mod own_command;
pub mod pool;
pub mod provision;
mod proxy;
mod refusal;
mod reload_effect;
pub mod schema;
pub mod search;
pub mod secret;
pub mod secret_reference;
pub mod server;
mod server_auth;
mod server_schema;
mod service;
pub mod session;
pub mod sharing;
mod socket;
pub mod sources;
pub mod stateful_servers;
pub mod tasks;
pub mod telemetry;
mod text_form;
mod text_visitor;
pub mod tls;
mod toml_messages;
pub mod tools;
pub mod url;
pub(crate) mod variables;

pub use auth::{AuthConfig, CALLBACK_PATH};
pub use breaker::BreakerConfig;
pub use catalog::{CatalogCache, CatalogConfig};
pub use client_tls::{ClientIdentity, ClientTlsConfig};
pub use config_path::{VARIABLE as FILE_VARIABLE, file_of_environment, own_file, usual_file};
pub use diagnostic::{Diagnostic, SettingOrigin};
pub use execute::{ExecuteConfig, ExecuteProfile};
pub use exposed_listener::ExposedListener;
pub use health::HealthConfig;
pub use http_server::HttpServerConfig;
pub use lifecycle::LifecycleConfig;
pub use listen::{ListenConfig, RootView};
pub use pool::PoolConfig;
pub use provision::{Namespace, ProvisionConfig, Provisionable, RegistryConfig, TrustRule};
pub use proxy::ProxyConfig;
pub use search::{EmbeddingConfig, SearchConfig};
pub use secret::SecretValue;
pub use secret_reference::SecretReference;
pub use server::{EraChoice, RetryPolicy, ServerConfig, StartPolicy, TransportConfig};
pub use server_auth::{OAuthConfig, OAuthGrant, ServerAuth, is_scope};
pub use service::{LogLevel, ServiceConfig};
pub use session::{SessionConfig, SessionMode};
pub use sharing::SharingMode;
pub use sources::{ConfigSources, LoadedConfig, SettingTarget, SourcedSetting};
pub use tasks::TasksConfig;
pub use telemetry::{RecordedCalls, RecordedText, TelemetryConfig};
pub use text_form::TextForm;
pub use tls::{PemSource, TlsConfig};
pub use tools::{ToolSet, ToolsConfig};

use crate::server_name::ServerName;

/// The servers by name.
pub type ServerConfigs = BTreeMap<ServerName, Arc<ServerConfig>>;

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
    /// `[execute]`: the scripts that metamcp runs for clients.
    pub execute: ExecuteConfig,
    /// `[search]`: the search for tools.
    pub search: SearchConfig,
    /// `[auth]`: logins at servers.
    pub auth: AuthConfig,
    /// `[catalog]`: the lists that are kept of servers without a connection.
    pub catalog: CatalogConfig,
    /// `[tasks]`: the calls that continue without their caller.
    pub tasks: TasksConfig,
    /// `[telemetry]`: the view that operators have of calls.
    pub telemetry: TelemetryConfig,
    /// `[provision]`: the servers that may be added while the service runs.
    pub provision: ProvisionConfig,
    /// `[servers.NAME]`: the declared servers, without the disabled ones.
    pub servers: ServerConfigs,
    /// `[servers.NAME]`: the servers with `enabled = false`. They are checked and never started.
    pub disabled: ServerConfigs,
}

impl Config {
    /// Returns all servers under `[servers]`, also the disabled ones.
    pub fn declared_servers(&self) -> impl Iterator<Item = (&ServerName, &Arc<ServerConfig>)> {
        self.servers.iter().chain(&self.disabled)
    }
}
