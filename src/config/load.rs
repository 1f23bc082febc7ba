//! The loader: from TOML text to [`Config`], or to a diagnostic at the offending text.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::{
    BreakerConfig, Config, Diagnostic, ListenConfig, LogLevel, ProvisionConfig, RootView,
    ServerConfig, ServiceConfig, SessionMode, TransportConfig, catalog, defaults,
    diagnostic::ConfigProblem,
    duration, exposed_listener,
    health::HealthTable,
    keyword::NamedValue,
    pool, provision,
    schema::{Addresses, DeclaredServers, DurationOrOff, DurationSchema, RootWord, duration_text},
    search, server, session, socket, tasks, tls, token,
    toml_messages::{did_you_mean, from_toml},
    tools,
};
use crate::{files, server_name::ServerName};

/// Reads and checks the configuration file at `path`.
///
/// # Errors
///
/// [`LoadError`] if the file cannot be read or has a mistake.
pub fn file(path: &Path) -> Result<Config, LoadError> {
    let text = text(path)?;
    parse(&text).map_err(|problem| LoadError::Content(Box::new(problem.locate(path, &text))))
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
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| {
        let at = error.valid_up_to();
        let problem = ConfigProblem::at(at..at + 1, "not UTF-8").help("save the file as UTF-8");
        let text = String::from_utf8_lossy(bytes);
        LoadError::Content(Box::new(problem.locate(path, &text)))
    })
}

/// Checks `text` as the content of the file at `path`, which need not exist.
///
/// # Errors
///
/// [`LoadError::Content`] if the text has a mistake.
pub fn content(path: &Path, text: &str) -> Result<Config, LoadError> {
    parse(text).map_err(|problem| LoadError::Content(Box::new(problem.locate(path, text))))
}

/// The error of loading a configuration.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("read configuration `{}`", path.display())]
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
    service: ServiceTable,
    /// The addresses for clients and operators.
    listen: ListenTable,
    /// The number and lifetime of connections to servers.
    pool: pool::PoolTable,
    /// The circuit breakers, which leave failing servers alone.
    breaker: BreakerTable,
    /// The liveness checks of servers.
    health: HealthTable,
    /// The meta-tools of the view `meta`.
    tools: tools::ToolsTable,
    /// The search for tools.
    search: search::SearchTable,
    /// The lists that are kept of servers without a connection.
    catalog: catalog::CatalogTable,
    /// The calls that continue without their caller.
    tasks: tasks::TasksTable,
    /// The servers that may be added on request; without it, none.
    #[schemars(with = "provision::ProvisionTable")]
    provision: Option<provision::ProvisionTable>,
    /// The servers, by name.
    #[schemars(with = "DeclaredServers")]
    servers: BTreeMap<Spanned<String>, server::ServerTable>,
}

/// [`ServiceConfig`] as written in the file, with the places of keys that other rules check.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
struct ServiceTable {
    /// The longest silence of a request. Progress restarts the time.
    #[schemars(with = "DurationSchema", extend("default" = duration_text(defaults::REQUEST_TIMEOUT)))]
    request_timeout: Option<Spanned<Span>>,
    /// The longest total time of a request.
    #[schemars(with = "DurationSchema", extend("default" = duration_text(defaults::MAX_TOTAL_TIMEOUT)))]
    max_total_timeout: Option<Span>,
    /// The time that running requests may continue after a stop was requested.
    #[schemars(with = "DurationSchema", extend("default" = duration_text(defaults::SHUTDOWN_TIMEOUT)))]
    shutdown_timeout: Option<Span>,
    /// The silence of a tool after which metamcp itself sends progress to a client that gave a
    /// progress token; "0s" is never.
    #[serde(deserialize_with = "duration::deserialize_or_off")]
    #[schemars(with = "DurationOrOff", extend("default" = duration_text(defaults::PROGRESS_BEAT)))]
    progress_beat: Option<Option<Duration>>,
    /// The time without a client, operator request, call or task after which the service exits;
    /// "0s" is never.
    #[serde(deserialize_with = "duration::deserialize_or_off")]
    #[schemars(with = "DurationOrOff", extend("default" = "0s"))]
    idle_exit: Option<Option<Duration>>,
    /// The log level.
    #[schemars(with = "LogLevel", extend("default" = "info"))]
    log_level: Option<NamedValue<LogLevel>>,
    /// The bytes that messages of all clients together may take: those that wait to be written,
    /// those that are being read, and kept results. Without it, half of the memory limit of the
    /// service's control group, or 256 MiB if there is no limit.
    #[schemars(with = "usize", range(min = defaults::MEMORY_RANGE.0, max = defaults::MEMORY_RANGE.1))]
    memory_max: Option<Spanned<i64>>,
}

/// A duration as it is written in the file.
struct Span(Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        duration::deserialize(deserializer).map(Self)
    }
}

/// [`ListenConfig`] as written in the file, with the places of keys that other rules check.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
struct ListenTable {
    /// The address for clients, on loopback unless both `tls` and `token` are set. A socket from
    /// systemd takes precedence.
    #[schemars(with = "Addresses", extend("default" = defaults::HTTP_ADDRESS.to_string()))]
    http: Option<Spanned<SocketAddr>>,
    /// The certificate and key for TLS; without them, the service speaks plain HTTP.
    #[schemars(with = "tls::TlsTable")]
    tls: Option<Spanned<tls::TlsTable>>,
    /// The token of at least 16 characters that clients must send in `Authorization: Bearer TOKEN`:
    /// `credential:NAME` or `env:NAME`. Without it, metamcp answers every client.
    #[schemars(with = "String", regex(pattern = "^(credential:[^./][^/]*|env:[^=]+)$"))]
    token: Option<Spanned<String>>,
    /// The control socket, an absolute path. A socket from systemd takes precedence. Without it, a
    /// socket in the runtime directory.
    #[schemars(with = "String", regex(pattern = "^/"), length(max = defaults::SOCKET_PATH_BYTES_MAX))]
    control: Option<Spanned<PathBuf>>,
    /// The group that may use the control socket, besides root and the user of the service.
    #[schemars(with = "String", regex(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]*$"), length(max = defaults::GROUP_NAME_BYTES_MAX))]
    control_group: Option<Spanned<String>>,
    /// If `true`, metamcp also answers at `POST /rpc` what it answers on the control socket.
    rpc: bool,
    /// The view at `/`: `direct`, `meta`, or `passthrough:SERVER`.
    #[schemars(with = "RootWord", extend("default" = "direct"))]
    root: Option<Spanned<RootView>>,
    /// The names that metamcp serves in the `Host` header besides loopback names, without port.
    #[schemars(with = "Vec<String>", inner(regex(pattern = "^([^:/ ]+|[0-9a-fA-F:.]+)$")))]
    allowed_hosts: Vec<Spanned<String>>,
    /// The origins of web pages that metamcp serves besides loopback origins.
    #[schemars(with = "Vec<String>", inner(regex(pattern = "^[^:/ ]+://[^/ ]+$")))]
    allowed_origins: Vec<Spanned<String>>,
    /// The silence on a stream to a client after which metamcp sends a comment.
    #[schemars(with = "DurationSchema", extend("default" = duration_text(defaults::KEEP_ALIVE)))]
    keep_alive: Option<Span>,
    /// The time after which metamcp sends an answer as a stream of events and not as JSON; "0s"
    /// sends every answer as a stream.
    #[serde(deserialize_with = "duration::deserialize_or_off")]
    #[schemars(with = "DurationOrOff", extend("default" = duration_text(defaults::STREAM_AFTER)))]
    stream_after: Option<Option<Duration>>,
    /// The longest time in which a client reads nothing before metamcp cuts its connection.
    #[schemars(with = "DurationSchema", extend("default" = duration_text(defaults::WRITE_TIMEOUT)))]
    write_timeout: Option<Span>,
    /// The session ids that clients must send.
    #[schemars(with = "SessionMode", extend("default" = "lenient"))]
    session: Option<Spanned<NamedValue<SessionMode>>>,
    /// `credential:NAME` with at least 32 bytes to sign session ids; without it, a key in the state
    /// directory.
    #[schemars(with = "String", regex(pattern = "^credential:[^./][^/]*$"))]
    session_key: Option<Spanned<String>>,
    /// The time after which metamcp forgets a session that has no stream and no request.
    #[schemars(with = "DurationSchema", extend("default" = duration_text(defaults::SESSION_TIMEOUT)))]
    session_timeout: Option<Span>,
    /// If `true`, metamcp always answers a POST with one JSON body, never with a stream of events.
    json_response: bool,
    /// If `true`, metamcp also serves HTTP with SSE, for clients with only version 2024-11-05.
    legacy_sse: bool,
}

/// [`BreakerConfig`] as written in the file, with the place of the key that has a bound.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
struct BreakerTable {
    /// The number of failures in a row that opens the breaker of a server; 0 is never.
    #[schemars(with = "u32", range(min = 0, max = defaults::FAILURE_THRESHOLD_MAX), extend("default" = defaults::FAILURE_THRESHOLD))]
    failure_threshold: Option<Spanned<i64>>,
    /// The time that a breaker stays open. Then one request reaches the server.
    #[schemars(with = "DurationSchema", extend("default" = duration_text(defaults::BREAKER_COOLDOWN)))]
    cooldown: Option<Span>,
}

/// Reads and checks the text of a configuration file.
fn parse(text: &str) -> Result<Config, ConfigProblem> {
    checked(toml::from_str(text).map_err(|error| from_toml(&error, text))?)
}

/// Checks the content of a file, with variables and flags merged in.
pub(super) fn checked(file: ConfigFile) -> Result<Config, ConfigProblem> {
    let service = service(file.service)?;
    let breaker = breaker(file.breaker)?;
    let has_tls = file.listen.tls.is_some();
    let http = address(file.listen.http.as_ref(), has_tls, file.listen.token.is_some())?;
    let health = file.health.checked()?;
    let declare = |name: &Spanned<String>, table| declared(name, table, &health, http);
    let mut servers = BTreeMap::new();
    for (name, table) in file.servers {
        let (name, server) = declare(&name, table)?;
        servers.insert(name, server);
    }
    let provision = match file.provision {
        Some(table) => table.checked(declare, &servers)?,
        None => ProvisionConfig::default(),
    };
    // The pool needs room for the servers that may be provisioned as well.
    let mut all = servers.clone();
    all.extend(
        provision.servers.iter().map(|(name, found)| (name.clone(), Arc::clone(&found.server))),
    );
    let pool = file.pool.into_pool(&all)?;
    let root = root(file.listen.root, &servers)?;
    let tls = tls::TlsTable::checked(file.listen.tls)?;
    let token = token::checked(file.listen.token)?;
    let control_path = |path| socket::path(path, "control", "/run/metamcp/control.sock");
    let control = file.listen.control.map(control_path).transpose()?;
    let control_group = file.listen.control_group.map(socket::group).transpose()?;
    let allowed_hosts = words(file.listen.allowed_hosts, is_host, "a host name without port")?;
    let allowed_origins =
        words(file.listen.allowed_origins, is_origin, "an origin such as `https://name`")?;
    let keep_alive = file.listen.keep_alive.map_or(defaults::KEEP_ALIVE, |found| found.0);
    let stream_after = file.listen.stream_after.unwrap_or(Some(defaults::STREAM_AFTER));
    let write_timeout = file.listen.write_timeout.map_or(defaults::WRITE_TIMEOUT, |found| found.0);
    let session = session::checked(
        file.listen.session,
        file.listen.session_key,
        file.listen.session_timeout.map(|found| found.0),
        &all,
    )?;
    let ListenTable { rpc, json_response, legacy_sse, .. } = file.listen;
    let listen = ListenConfig {
        http,
        tls,
        token,
        control,
        control_group,
        rpc,
        root,
        allowed_hosts,
        allowed_origins,
        keep_alive,
        stream_after,
        write_timeout,
        session,
        json_response,
        legacy_sse,
    };
    let (tools, search) = (file.tools.checked()?, file.search.checked()?);
    let (catalog, tasks) = (file.catalog.checked()?, file.tasks.checked()?);
    Ok(Config { service, listen, pool, breaker, tools, search, catalog, tasks, provision, servers })
}

/// Checks the table of one server, and its name.
fn declared(
    name: &Spanned<String>,
    table: server::ServerTable,
    health: &HealthTable,
    ours: SocketAddr,
) -> Result<(ServerName, Arc<ServerConfig>), ConfigProblem> {
    let span = name.span();
    let name = ServerName::new(name.get_ref()).map_err(|error| {
        ConfigProblem::at(span.clone(), error.to_string()).help(format!(
            "use 1 to {} letters, digits, `-` and single `_`",
            ServerName::LENGTH_MAX
        ))
    })?;
    let server = table.into_server(span.clone(), health)?;
    if let TransportConfig::Http { url, .. } = &server.transport
        && is_own_port(url, ours)
    {
        return Err(ConfigProblem::at(span, format!("server `{name}` is this service itself"))
            .help("its `url` has the address that `listen.http` has: a call would never end"));
    }
    Ok((name, server))
}

/// Returns whether a URL leads to the service's own port, under any name of this host.
pub(crate) fn is_own_port(url: &hyper::Uri, ours: SocketAddr) -> bool {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_local = host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback() || address == ours.ip());
    is_local && url.port_u16().unwrap_or(80) == ours.port()
}

fn service(table: ServiceTable) -> Result<ServiceConfig, ConfigProblem> {
    let defaults = ServiceConfig::default();
    let in_all = table.max_total_timeout.map_or(defaults.max_total_timeout, |found| found.0);
    let silent = match table.request_timeout {
        Some(silent) if silent.get_ref().0 > in_all => {
            let message = "`request_timeout` is longer than `max_total_timeout`";
            return Err(ConfigProblem::at(silent.span(), message).help(
                "a request may not stay silent for longer than it may take: raise the latter",
            ));
        }
        Some(silent) => silent.into_inner().0,
        // A short `max_total_timeout` shortens the default of `request_timeout`.
        None => defaults.request_timeout.min(in_all),
    };
    Ok(ServiceConfig {
        request_timeout: silent,
        max_total_timeout: in_all,
        shutdown_timeout: table.shutdown_timeout.map_or(defaults.shutdown_timeout, |found| found.0),
        progress_beat: table.progress_beat.unwrap_or(defaults.progress_beat),
        idle_exit: table.idle_exit,
        log_level: table.log_level.map_or(defaults.log_level, |found| found.0),
        memory_max: table.memory_max.map(memory_max).transpose()?,
    })
}

fn memory_max(found: Spanned<i64>) -> Result<usize, ConfigProblem> {
    let (least, most) = defaults::MEMORY_RANGE;
    let size = usize::try_from(*found.get_ref()).ok();
    size.filter(|size| (least..=most).contains(size)).ok_or_else(|| {
        let message = format!("`memory_max` is {}", found.get_ref());
        ConfigProblem::at(found.span(), message)
            .help(format!("use {least} to {most}, a number of bytes"))
    })
}

fn breaker(table: BreakerTable) -> Result<BreakerConfig, ConfigProblem> {
    let defaults = BreakerConfig::default();
    let failure_threshold = match table.failure_threshold {
        None => defaults.failure_threshold,
        Some(found) => u32::try_from(*found.get_ref())
            .ok()
            .filter(|threshold| *threshold <= defaults::FAILURE_THRESHOLD_MAX)
            .ok_or_else(|| {
                let message = format!("`failure_threshold` is {}", found.get_ref());
                ConfigProblem::at(found.span(), message).help(format!(
                    "use 1 to {}, or 0 for a breaker that never trips",
                    defaults::FAILURE_THRESHOLD_MAX
                ))
            })?,
    };
    let cooldown = table.cooldown.map_or(defaults.cooldown, |found| found.0);
    Ok(BreakerConfig { failure_threshold, cooldown })
}

fn address(
    address: Option<&Spanned<SocketAddr>>,
    has_tls: bool,
    has_token: bool,
) -> Result<SocketAddr, ConfigProblem> {
    let Some(address) = address else { return Ok(defaults::HTTP_ADDRESS) };
    exposed_listener::permitted(*address.get_ref(), has_tls, has_token)
        .map_err(|exposed| exposed.at(address.span()))?;
    Ok(*address.get_ref())
}

fn words(
    words: Vec<Spanned<String>>,
    is_one: fn(&str) -> bool,
    what: &str,
) -> Result<Vec<String>, ConfigProblem> {
    let checked = words.into_iter().map(|word| {
        if is_one(word.get_ref()) {
            return Ok(word.into_inner());
        }
        let message = format!("`{}` can never match", word.get_ref());
        Err(ConfigProblem::at(word.span(), message).help(format!("write {what}")))
    });
    checked.collect()
}

fn is_host(text: &str) -> bool {
    !text.is_empty() && !text.contains([':', '/', ' '])
        || text.parse::<std::net::Ipv6Addr>().is_ok()
}

fn is_origin(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && !rest.is_empty() && !rest.contains(['/', ' '])
    })
}

fn root(
    view: Option<Spanned<RootView>>,
    servers: &BTreeMap<ServerName, Arc<ServerConfig>>,
) -> Result<RootView, ConfigProblem> {
    let Some(view) = view else { return Ok(RootView::Direct) };
    let span = view.span();
    let view = view.into_inner();
    if let RootView::Passthrough(server) = &view
        && !servers.contains_key(server)
    {
        let help = did_you_mean(server.as_str(), servers.keys().map(ServerName::as_str))
            .unwrap_or_else(|| format!("declare `[servers.{server}]`"));
        return Err(
            ConfigProblem::at(span, format!("`passthrough:{server}` names no server")).help(help)
        );
    }
    Ok(view)
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
