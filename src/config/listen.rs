//! The addresses of the service, and the requests that it answers there: `[listen]`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::{
    ServerConfigs, SessionConfig, SessionMode, TlsConfig, TokenLocation, defaults,
    diagnostic::ConfigProblem,
    duration::{self, WrittenDuration, WrittenTimeout},
    exposed_listener,
    keyword::NamedValue,
    reload_effect::ReloadEffect,
    schema::{DurationOrOff, DurationSchema},
    session, socket,
    tls::TlsTable,
    token,
    toml_messages::did_you_mean,
};
use crate::server_name::ServerName;

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

/// [`ListenConfig`] as written in the file, with the places of keys that other rules check.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub(super) struct ListenTable {
    /// The address for clients, on loopback unless both `tls` and `token` are set. A socket from
    /// systemd takes precedence.
    #[schemars(with = "String", regex(pattern = "^([0-9.]+|\\[[0-9a-fA-F:.]+\\]):[0-9]{1,5}$"), extend("default" = defaults::HTTP_ADDRESS.to_string(), "x-reload" = ReloadEffect::Restart))]
    http: Option<Spanned<SocketAddr>>,
    /// The certificate and key for TLS; without them, the service speaks plain HTTP.
    #[schemars(with = "TlsTable", extend("x-reload" = ReloadEffect::NewConnections))]
    tls: Option<Spanned<TlsTable>>,
    /// The token of at least 16 characters that clients must send in `Authorization: Bearer TOKEN`:
    /// `credential:NAME` or `env:NAME`. Without it, metamcp answers every client.
    #[schemars(with = "String", regex(pattern = "^(credential:[^./][^/]*|env:[^=]+)$"))]
    token: Option<Spanned<String>>,
    /// The control socket, an absolute path. A socket from systemd takes precedence. Without it, a
    /// socket in the runtime directory.
    #[schemars(with = "String", regex(pattern = "^/"), length(max = defaults::SOCKET_PATH_BYTES_MAX), extend("x-reload" = ReloadEffect::Restart))]
    control: Option<Spanned<PathBuf>>,
    /// The group that may use the control socket, besides root and the user of the service.
    #[schemars(with = "String", regex(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]*$"), length(max = defaults::GROUP_NAME_BYTES_MAX), extend("x-reload" = ReloadEffect::Restart))]
    control_group: Option<Spanned<String>>,
    /// If `true`, metamcp also answers at `POST /rpc` what it answers on the control socket.
    rpc: bool,
    /// The view at `/`: `direct`, `meta`, or `passthrough:SERVER`.
    #[schemars(with = "String", regex(pattern = "^(direct|meta|passthrough:.+)$"), extend("default" = "direct"))]
    root: Option<Spanned<RootView>>,
    /// The names that metamcp serves in the `Host` header besides loopback names, without port.
    #[schemars(with = "Vec<String>", inner(regex(pattern = "^([^:/ ]+|[0-9a-fA-F:.]+)$")))]
    allowed_hosts: Vec<Spanned<String>>,
    /// The origins of web pages that metamcp serves besides loopback origins.
    #[schemars(with = "Vec<String>", inner(regex(pattern = "^[^:/ ]+://[^/ ]+$")))]
    allowed_origins: Vec<Spanned<String>>,
    /// The silence on a stream to a client after which metamcp sends a comment.
    #[schemars(with = "DurationSchema", extend("default" = duration::text(defaults::KEEP_ALIVE)))]
    keep_alive: Option<WrittenDuration>,
    /// The time after which metamcp sends an answer as a stream of events and not as JSON; "0s"
    /// sends every answer as a stream.
    #[schemars(with = "DurationOrOff", extend("default" = duration::text(defaults::STREAM_AFTER)))]
    stream_after: Option<WrittenTimeout>,
    /// The longest time in which a client reads nothing before metamcp cuts its connection.
    #[schemars(with = "DurationSchema", extend("default" = duration::text(defaults::WRITE_TIMEOUT), "x-reload" = ReloadEffect::NewConnections))]
    write_timeout: Option<WrittenDuration>,
    /// The session ids that clients must send.
    #[schemars(with = "SessionMode", extend("default" = "lenient"))]
    session: Option<Spanned<NamedValue<SessionMode>>>,
    /// `credential:NAME` with at least 32 bytes to sign session ids; without it, a key in the state
    /// directory.
    #[schemars(with = "String", regex(pattern = "^credential:[^./][^/]*$"), extend("x-reload" = ReloadEffect::Restart))]
    session_key: Option<Spanned<String>>,
    /// The time after which metamcp forgets a session that has no stream and no request.
    #[schemars(with = "DurationSchema", extend("default" = duration::text(defaults::SESSION_TIMEOUT)))]
    session_timeout: Option<WrittenDuration>,
    /// If `true`, metamcp always answers a POST with one JSON body, never with a stream of events.
    json_response: bool,
    /// If `true`, metamcp also serves HTTP with SSE, for clients with only version 2024-11-05.
    legacy_sse: bool,
}

impl ListenTable {
    /// Returns the address for clients. Other hosts reach it only with TLS and a token.
    pub(super) fn address(&self) -> Result<SocketAddr, ConfigProblem> {
        let Some(address) = &self.http else { return Ok(defaults::HTTP_ADDRESS) };
        exposed_listener::permitted(*address.get_ref(), self.tls.is_some(), self.token.is_some())
            .map_err(|exposed| exposed.at(address.span()))?;
        Ok(*address.get_ref())
    }

    /// Checks the table. `http` is its [`Self::address`], `servers` are those under `[servers]`,
    /// and `all` includes those that may be provisioned.
    pub(super) fn checked(
        self,
        http: SocketAddr,
        servers: &ServerConfigs,
        all: &ServerConfigs,
    ) -> Result<ListenConfig, ConfigProblem> {
        let defaults = ListenConfig::default();
        let control = |path| socket::path(path, "control", "/run/metamcp/control.sock");
        let origin = "an origin such as `https://name`";
        let session_timeout = self.session_timeout.map(|found| found.0);
        Ok(ListenConfig {
            http,
            root: self.root.map_or(Ok(defaults.root), |view| root(view, servers))?,
            tls: TlsTable::checked(self.tls)?,
            token: token::checked(self.token)?,
            control: self.control.map(control).transpose()?,
            control_group: self.control_group.map(socket::group).transpose()?,
            allowed_hosts: matching(self.allowed_hosts, is_host, "a host name without port")?,
            allowed_origins: matching(self.allowed_origins, is_origin, origin)?,
            keep_alive: self.keep_alive.map_or(defaults.keep_alive, |found| found.0),
            stream_after: self.stream_after.map_or(defaults.stream_after, |found| found.0),
            write_timeout: self.write_timeout.map_or(defaults.write_timeout, |found| found.0),
            session: session::checked(self.session, self.session_key, session_timeout, all)?,
            rpc: self.rpc,
            json_response: self.json_response,
            legacy_sse: self.legacy_sse,
        })
    }
}

/// Checks that each value of a header's list can match. `expected` describes such a value.
fn matching(
    values: Vec<Spanned<String>>,
    is_possible: fn(&str) -> bool,
    expected: &str,
) -> Result<Vec<String>, ConfigProblem> {
    let checked = values.into_iter().map(|value| {
        if is_possible(value.get_ref()) {
            return Ok(value.into_inner());
        }
        let message = format!("`{}` can never match", value.get_ref());
        Err(ConfigProblem::at(value.span(), message).help(format!("write {expected}")))
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

fn root(view: Spanned<RootView>, servers: &ServerConfigs) -> Result<RootView, ConfigProblem> {
    if let RootView::Passthrough(server) = view.get_ref()
        && !servers.contains_key(server)
    {
        let help = did_you_mean(server.as_str(), servers.keys().map(ServerName::as_str))
            .unwrap_or_else(|| format!("declare `[servers.{server}]`"));
        let message = format!("`passthrough:{server}` names no server");
        return Err(ConfigProblem::at(view.span(), message).help(help));
    }
    Ok(view.into_inner())
}
