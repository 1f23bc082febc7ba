//! The addresses of the service, and the requests that it answers there: `[listen]`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    SecretReference, ServerConfigs, SessionConfig, SessionMode, TlsConfig, defaults,
    diagnostic::ConfigProblem,
    duration::{AnyDuration, DurationOrOff},
    key_places::KeyPlaces,
    keyword::NamedValue,
    refusal::Refusal,
    reload_effect::ReloadEffect,
    secret, secret_reference, session, socket,
    tls::TlsTable,
    toml_messages::did_you_mean,
};
use crate::server_name::ServerName;

/// The addresses of the service. Sockets that systemd passes take precedence.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ListenConfig {
    /// The address for clients, on loopback unless both `tls` and `token` are set. A socket from
    /// systemd takes precedence.
    // With port 0, the system chooses the port.
    #[schemars(with = "String", title = "IP address and port, ADDRESS:PORT or [ADDRESS]:PORT", regex(pattern = "^([0-9.]+|\\[[0-9a-fA-F:.]+\\]):[0-9]{1,5}$"), extend("x-reload" = ReloadEffect::Restart))]
    pub http: SocketAddr,
    /// The certificate and key for TLS; without them, the service speaks plain HTTP.
    #[schemars(with = "TlsTable", extend("x-reload" = ReloadEffect::NewConnections))]
    pub tls: Option<TlsConfig>,
    /// The token of at least 16 characters that clients must send in `Authorization: Bearer TOKEN`:
    /// `credential:NAME` or `env:NAME`. Without it, metamcp answers every client.
    #[schemars(with = "String", title = secret::REFERENCE, regex(pattern = secret_reference::PATTERN))]
    pub token: Option<SecretReference>,
    /// The control socket, an absolute path. A socket from systemd takes precedence. Without it, a
    /// socket in the runtime directory.
    #[schemars(with = "String", title = socket::TITLE, regex(pattern = "^/."), length(max = defaults::SOCKET_PATH_BYTES_MAX), extend("x-reload" = ReloadEffect::Restart))]
    pub control: Option<PathBuf>,
    /// The group that may use the control socket, besides root and the user of the service.
    #[schemars(with = "String", title = "name of a group", regex(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]*$"), length(max = defaults::GROUP_NAME_BYTES_MAX), extend("x-reload" = ReloadEffect::Restart))]
    pub control_group: Option<String>,
    /// The address that serves `GET /metrics` without the token, and nothing else. A socket from
    /// systemd takes precedence. Without it, `/metrics` of the address for clients.
    #[schemars(with = "String", title = "IP address and port, ADDRESS:PORT or [ADDRESS]:PORT", regex(pattern = "^([0-9.]+|\\[[0-9a-fA-F:.]+\\]):[0-9]{1,5}$"), extend("x-reload" = ReloadEffect::Restart))]
    pub metrics: Option<SocketAddr>,
    /// If `true`, metamcp also answers at `POST /rpc` what it answers on the control socket. Every
    /// client that reaches the address may then ask, except servers that the service started.
    pub rpc: bool,
    /// The view at `/`: `direct`, `meta`, or `passthrough:SERVER`.
    #[schemars(
        with = "String",
        title = "direct, meta or passthrough:NAME",
        regex(pattern = "^(direct|meta|passthrough:.+)$")
    )]
    pub root: RootView,
    /// The names that metamcp serves in the `Host` header, without port. It also serves loopback
    /// names and the address that the client connected to.
    #[schemars(extend("items" = { "title": "host name or IP address, without a port", "type": "string", "pattern": "^([^:/ ]+|[0-9a-fA-F:.]+)$" }))]
    pub allowed_hosts: Vec<String>,
    /// The origins of web pages that metamcp serves besides loopback origins. These pages may also
    /// read the answers (CORS), but not at `/rpc`.
    #[schemars(extend("items" = { "title": "origin, SCHEME://HOST or SCHEME://HOST:PORT", "type": "string", "pattern": "^[^:/ ]+://[^/ ]+$" }))]
    pub allowed_origins: Vec<String>,
    /// The silence on a stream to a client after which metamcp sends a comment.
    #[serde(with = "AnyDuration")]
    pub keep_alive: Duration,
    /// The time after which metamcp sends an answer as a stream of events and not as JSON; "0s"
    /// sends every answer as a stream.
    #[serde(with = "DurationOrOff")]
    pub stream_after: Option<Duration>,
    /// The longest time in which a client reads nothing before metamcp cuts its connection.
    #[serde(with = "AnyDuration")]
    #[schemars(extend("x-reload" = ReloadEffect::NewConnections))]
    pub write_timeout: Duration,
    /// The session ids that clients must send.
    #[serde(deserialize_with = "NamedValue::deserialize")]
    pub session: SessionMode,
    /// `credential:NAME` with at least 32 bytes to sign session ids; without it, a key in the state
    /// directory.
    #[serde(deserialize_with = "session::key")]
    #[schemars(with = "String", title = "reference to a secret, credential:NAME", regex(pattern = "^credential:[^./][^/]*$"), extend("x-reload" = ReloadEffect::Restart))]
    pub session_key: Option<String>,
    /// The time after which metamcp forgets a session that has no stream and no request.
    #[serde(with = "AnyDuration")]
    pub session_timeout: Duration,
    /// If `true`, metamcp always answers a POST with one JSON body, never with a stream of events.
    pub json_response: bool,
    /// If `true`, metamcp also serves HTTP with SSE, for clients with only version 2024-11-05.
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
            metrics: None,
            rpc: false,
            root: RootView::Direct,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            keep_alive: defaults::KEEP_ALIVE,
            stream_after: Some(defaults::STREAM_AFTER),
            write_timeout: defaults::WRITE_TIMEOUT,
            session: SessionMode::Lenient,
            session_key: None,
            session_timeout: defaults::SESSION_TIMEOUT,
            json_response: false,
            legacy_sse: false,
        }
    }
}

impl Default for SessionConfig {
    fn default() -> Self {
        ListenConfig::default().session()
    }
}

/// The view at `/` and `/mcp`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
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

impl From<RootView> for String {
    fn from(view: RootView) -> Self {
        match view {
            RootView::Direct => "direct".to_owned(),
            RootView::Meta => "meta".to_owned(),
            RootView::Passthrough(server) => format!("passthrough:{server}"),
        }
    }
}

impl ListenConfig {
    /// Returns the meaning and lifetime of session ids.
    pub fn session(&self) -> SessionConfig {
        SessionConfig {
            mode: self.session,
            key: self.session_key.clone(),
            timeout: self.session_timeout,
        }
    }

    /// Checks the values. `servers` are those under `[servers]`, and `all` includes those that may
    /// be provisioned.
    pub(super) fn check(
        &self,
        servers: &ServerConfigs,
        all: &ServerConfigs,
        places: &KeyPlaces<'_>,
    ) -> Result<(), ConfigProblem> {
        self.check_root(servers, places)?;
        if let Some(path) = &self.control {
            socket::check_path(path, "control", "/run/metamcp/control.sock")
                .map_err(|refusal| places.refused("listen.control", &[], refusal))?;
        }
        if let Some(group) = &self.control_group {
            socket::check_group(group)
                .map_err(|refusal| places.refused("listen.control_group", &[], refusal))?;
        }
        let matches = |key: &str, values: &[String], is_possible: fn(&str) -> bool, expected| {
            let Some(index) = values.iter().position(|value| !is_possible(value)) else {
                return Ok(());
            };
            let message = format!("`{}` can never match", values[index]);
            let refusal = Refusal::new(message, format!("write {expected}"));
            Err(places.refused(key, &[index], refusal))
        };
        let origin = "an origin such as `https://name`";
        matches("listen.allowed_hosts", &self.allowed_hosts, is_host, "a host name without port")?;
        matches("listen.allowed_origins", &self.allowed_origins, is_origin, origin)?;
        self.session().check(all, places)
    }

    /// Checks that other hosts reach the address only with TLS and a token, and that each listener
    /// has an address of its own.
    pub(super) fn check_address(&self, places: &KeyPlaces<'_>) -> Result<(), ConfigProblem> {
        if self.metrics == Some(self.http) && self.http.port() != 0 {
            let message = format!("`{}` is the address of clients, too: `listen.http`", self.http);
            let help = "choose another port; `/metrics` is at the address of clients in any case";
            return Err(places.problem("listen.metrics", message).help(help));
        }
        let place = || places.find("listen.http").unwrap_or_default();
        self.may_use(self.http).map_err(|exposed| exposed.at(place()))
    }

    fn check_root(
        &self,
        servers: &ServerConfigs,
        places: &KeyPlaces<'_>,
    ) -> Result<(), ConfigProblem> {
        let RootView::Passthrough(server) = &self.root else { return Ok(()) };
        if servers.contains_key(server) {
            return Ok(());
        }
        let help = did_you_mean(server.as_str(), servers.keys().map(ServerName::as_str))
            .unwrap_or_else(|| format!("declare `[servers.{server}]`"));
        let message = format!("`passthrough:{server}` names no server");
        Err(places.problem("listen.root", message).help(help))
    }
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
