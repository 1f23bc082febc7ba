//! The loader: from TOML text to [`Config`], or to a diagnostic at the offending text.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Spanned, de::DeTable};

use super::{
    AuthConfig, BreakerConfig, CatalogConfig, Config, Diagnostic, ExecuteConfig, ListenConfig,
    PoolConfig, ProxyConfig, SearchConfig, ServerConfig, ServerConfigs, ServiceConfig, TasksConfig,
    TelemetryConfig, ToolsConfig, TransportConfig, defaults,
    diagnostic::ConfigProblem,
    health::HealthTable,
    key_places::KeyPlaces,
    own_command,
    provision::ProvisionTable,
    server::{ServerTable, refuse_provision_keys},
    server_schema,
    toml_messages::{from_syntax, from_toml},
};
use crate::{files, server_name::ServerName};

/// Reads and checks the configuration file at `path`.
///
/// # Errors
///
/// [`LoadError`] if the file cannot be read or has a mistake.
pub fn file(path: &Path) -> Result<Config, LoadError> {
    content(path, &text(path)?)
}

/// Checks `text` as the content of the file at `path`, which need not exist.
///
/// # Errors
///
/// [`LoadError::Content`] if the text has a mistake.
pub fn content(path: &Path, text: &str) -> Result<Config, LoadError> {
    parse(text).map_err(|problem| LoadError::Content(Box::new(problem.locate(path, text))))
}

/// Reads the text of the file at `path`.
pub(super) fn text(path: &Path) -> Result<String, LoadError> {
    let bytes = files::bounded(path, defaults::CONFIG_BYTES_MAX)
        .map_err(|source| LoadError::Read { path: path.to_owned(), source })?;
    decoded(path, &bytes)
}

/// Decodes the bytes of the file at `path`.
pub(super) fn decoded(path: &Path, bytes: &[u8]) -> Result<String, LoadError> {
    // Some editors begin a file with a byte order mark, which has no meaning.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.trim_ascii_start().starts_with(b"{") {
        let at = bytes.len() - bytes.trim_ascii_start().len();
        let help = format!("run `metamcp import {}` to convert its servers", path.display());
        let problem = ConfigProblem::at(at..at + 1, "the file is JSON, and not TOML");
        let problem = problem.help(help).of_syntax();
        let text = String::from_utf8_lossy(bytes);
        return Err(LoadError::Content(Box::new(problem.locate(path, &text))));
    }
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| {
        let at = error.valid_up_to();
        let problem = ConfigProblem::at(at..at + 1, "the file is not UTF-8");
        let problem = problem.help("save it as UTF-8").of_syntax();
        let text = String::from_utf8_lossy(bytes);
        LoadError::Content(Box::new(problem.locate(path, &text)))
    })
}

/// The error of loading a configuration.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read configuration `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file has a mistake.
    #[error("{0}")]
    Content(Box<Diagnostic>),
}

/// All sections of a configuration file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "Configuration of metamcp")]
pub(super) struct ConfigFile {
    /// The behaviour of the service as a whole.
    service: ServiceConfig,
    /// The addresses for clients and operators.
    listen: ListenConfig,
    /// The number and lifetime of connections to servers.
    pool: PoolConfig,
    /// The circuit breakers, which leave failing servers alone.
    breaker: BreakerConfig,
    /// The liveness checks of servers.
    health: HealthTable,
    /// The meta-tools of the view `meta`.
    tools: ToolsConfig,
    /// The scripts that metamcp runs for clients.
    execute: ExecuteConfig,
    /// The search for tools.
    search: SearchConfig,
    /// The logins at servers that require one.
    auth: AuthConfig,
    /// The lists that are kept of servers without a connection.
    catalog: CatalogConfig,
    /// The calls that continue without their caller.
    tasks: TasksConfig,
    /// The view that operators have of calls.
    telemetry: TelemetryConfig,
    /// The servers that may be added on request; without it, none.
    #[schemars(with = "ProvisionTable")]
    provision: Option<ProvisionTable>,
    /// The servers, by name.
    #[schemars(schema_with = "server_schema::declared")]
    servers: BTreeMap<Spanned<String>, ServerTable>,
}

/// Reads and checks the text of a configuration file.
fn parse(text: &str) -> Result<Config, ConfigProblem> {
    read(DeTable::parse(text).map_err(|error| from_syntax(&error, text))?, text)
}

/// Reads and checks the content of a file, with variables and flags merged in. `text` has all
/// places.
pub(super) fn read(root: Spanned<DeTable<'_>>, text: &str) -> Result<Config, ConfigProblem> {
    let places = KeyPlaces::of(root.get_ref().clone());
    let file = ConfigFile::deserialize(toml::Deserializer::from(root))
        .map_err(|error| from_toml(&error, text))?;
    checked(file, &places)
}

/// Checks the content of a file.
fn checked(file: ConfigFile, places: &KeyPlaces<'_>) -> Result<Config, ConfigProblem> {
    let ConfigFile {
        mut service,
        listen,
        pool,
        breaker,
        tools,
        execute,
        search,
        auth,
        catalog,
        tasks,
        telemetry,
        ..
    } = file;
    service.check(places)?;
    listen.check_address(places)?;
    let declare = |tables: &str, name: &Spanned<String>, table| {
        let find = |key: &str| places.find(&format!("{tables}.{}.{key}", name.get_ref()));
        if tables == "servers" {
            refuse_provision_keys(find)?;
        }
        declared(name, table, find, (&file.health, &service.proxy), listen.http)
    };
    let (mut servers, mut disabled) = (ServerConfigs::new(), ServerConfigs::new());
    for (name, table) in file.servers {
        let group = if table.is_enabled() { &mut servers } else { &mut disabled };
        let (name, server) = declare("servers", &name, table)?;
        group.insert(name, server);
    }
    let mut declared = servers.clone();
    declared.extend(disabled.clone());
    let provision = file
        .provision
        .map(|table| table.checked(declare, &declared, places))
        .transpose()?
        .unwrap_or_default();
    // Servers that may be provisioned need room in the pool, and sessions, as well.
    let mut all = servers.clone();
    let provisionable = provision.servers.iter();
    all.extend(provisionable.map(|(name, found)| (name.clone(), Arc::clone(&found.server))));
    pool.check(&all, places)?;
    listen.check(&declared, &all, places)?;
    tools.check(places)?;
    search.check(places)?;
    Ok(Config {
        service,
        listen,
        pool,
        breaker,
        tools,
        execute,
        search,
        auth,
        catalog,
        tasks,
        telemetry,
        provision,
        servers,
        disabled,
    })
}

/// Checks the table of one server, and its name. `find` returns the place of a key of the server.
fn declared(
    name: &Spanned<String>,
    table: ServerTable,
    find: impl Fn(&str) -> Option<Range<usize>>,
    inherited: (&HealthTable, &ProxyConfig),
    ours: SocketAddr,
) -> Result<(ServerName, Arc<ServerConfig>), ConfigProblem> {
    let span = name.span();
    let name = ServerName::new(name.get_ref()).map_err(|error| {
        ConfigProblem::at(span.clone(), error.to_string()).help(format!(
            "use 1 to {} letters, digits, `-` and single `_`",
            ServerName::LENGTH_MAX
        ))
    })?;
    let server = table.into_server(span.clone(), find, inherited)?;
    let own = match &server.transport {
        TransportConfig::Http(http) if is_own_port(&http.url, ours) => {
            "remove it: its `url` is the address in `listen.http`, so calls would never end"
        }
        TransportConfig::Stdio { command, args, env, .. }
            if own_command::starts_itself(command, args)
                && !env.keys().any(|name| name.starts_with("METAMCP_")) =>
        {
            "remove it: its `command` starts metamcp again; for another service, add `--socket`"
        }
        _ => return Ok((name, server)),
    };
    Err(ConfigProblem::at(span, format!("server `{name}` is this service itself")).help(own))
}

/// Returns whether a URL leads to the service's own port, under any name of this host.
pub(crate) fn is_own_port(url: &hyper::Uri, ours: SocketAddr) -> bool {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    // An unspecified address leads to this host, too.
    let is_this_host =
        |address: IpAddr| address.is_loopback() || address.is_unspecified() || address == ours.ip();
    let is_local = host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_this_host);
    let default_port = if url.scheme_str() == Some("https") { 443 } else { 80 };
    is_local && url.port_u16().unwrap_or(default_port) == ours.port()
}

/// Returns the configuration of a valid text.
#[cfg(test)]
pub(crate) fn parsed(text: &str) -> Config {
    tests::good(text)
}

/// Checks a text, and returns its diagnostic as the error.
#[cfg(test)]
pub(super) fn parsed_or_not(text: &str) -> Result<(), String> {
    let wrong = |problem: ConfigProblem| problem.locate(Path::new("c.toml"), text).to_string();
    parse(text).map(|_| ()).map_err(wrong)
}

#[cfg(test)]
pub(super) mod tests;
