//! The state of one server, for operators.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{StatusBoard, camel, memory::MemoryOwner};
use crate::{
    config::{
        self, ClientTlsConfig, HttpServerConfig, LifecycleConfig, ProxyConfig, SecretValue,
        ServerAuth, ServerConfig, ServerConfigs, StartPolicy, TransportConfig,
    },
    pool::{LifecycleState, ServerSlot, SlotStatus},
    server_name::ServerName,
    session::ClientCensus,
    time_format,
};

/// The state of one server, for operators.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerState {
    /// The name of the server.
    pub name: ServerName,
    /// The declaration, with secrets hidden.
    pub config: Value,
    /// `connected`, `connecting`, `needs login`, `error`, `closed`, `disabled` or, if it was never
    /// connected, `configured`.
    pub status: &'static str,
    /// The reason why the last attempt to connect failed, or the last connection ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The cause of that, as a statement about the server: "its process exited with code 1".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The next step for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The time of that error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_time: Option<String>,
    /// The last lines of its standard error, with known secrets hidden. They may be about any
    /// client, and are for operators only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
    /// The `serverInfo` that it last sent, also to an earlier process; likewise the next fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_info: Option<Value>,
    /// The capabilities that it last declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Value>,
    /// The protocol version in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// Its instructions for use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The number of reconnects after a lost connection.
    pub restart_count: u64,
    /// The time of the last message or ping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_health_check: Option<String>,
    /// The time since then, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_health_check_ago_ms: Option<u64>,
    /// The number of consecutive pings without an answer.
    pub consecutive_failures: u32,
    /// `idle`, `connecting`, `active`, `failed` or `closed`; or `disabled`.
    pub state: &'static str,
    /// `stdio`, `unit`, `http` or `sse`.
    pub transport: &'static str,
    /// `legacy` or `modern`: with or without a handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era: Option<&'static str>,
    /// `shared`, `exclusive` or `session`.
    pub sharing: &'static str,
    /// The start policy.
    pub start: StartPolicy,
    /// The number of requests in flight.
    pub in_flight: usize,
    /// The number of requests sent on the present connections.
    pub requests: u64,
    /// The number of connections made since the start.
    pub generation: u64,
    /// The number of present connections.
    pub connections: usize,
    /// The process id of the child; of the first if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The number of present client sessions that have called it or read from it.
    pub client_sessions: usize,
    /// The state of the circuit breaker.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub breaker: Value,
    /// The last events, oldest first, if this server is requested by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Value>,
    /// The memory of its processes and their descendants, in bytes, if requested and known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl ServerState {
    /// Returns the state of a disabled server.
    fn disabled(name: &ServerName, server: &ServerConfig) -> Self {
        Self {
            name: name.clone(),
            config: redacted(server),
            status: "disabled",
            error: None,
            cause: None,
            remedy: None,
            error_time: None,
            stderr: Vec::new(),
            server_info: None,
            capabilities: None,
            protocol_version: None,
            instructions: None,
            restart_count: 0,
            last_health_check: None,
            last_health_check_ago_ms: None,
            consecutive_failures: 0,
            state: "disabled",
            transport: server.transport.name(),
            era: None,
            sharing: server.sharing.name(),
            start: server.start,
            in_flight: 0,
            requests: 0,
            generation: 0,
            connections: 0,
            pid: None,
            client_sessions: 0,
            breaker: Value::Null,
            events: Vec::new(),
            memory_bytes: None,
        }
    }
}

impl StatusBoard {
    /// Returns the state of every server, with those that are `disabled`, by name. `census` counts
    /// their clients.
    pub fn server_states(
        &self,
        disabled: &ServerConfigs,
        census: &ClientCensus,
    ) -> Vec<ServerState> {
        let slots = self.pool.slots();
        let mut states: Vec<ServerState> =
            slots.values().map(|slot| self.server_state(slot, census)).collect();
        states.extend(disabled.iter().map(|(name, server)| ServerState::disabled(name, server)));
        states.sort_by(|one, other| one.name.cmp(&other.name));
        states
    }

    fn server_state(&self, slot: &ServerSlot, census: &ClientCensus) -> ServerState {
        let found = slot.status();
        let live = slot.live(None);
        let known = self.catalog.profile(slot.name());
        let profile = live.as_ref().and_then(|live| live.profile()).or(known.as_deref());
        let field = |name: &str| {
            let value = profile.and_then(|profile| profile.result.get(name));
            value.filter(|value| !value.is_null()).cloned()
        };
        ServerState {
            status: status(&found),
            config: redacted(slot.declared()),
            server_info: profile.and_then(|profile| profile.server_info()).cloned(),
            capabilities: field("capabilities"),
            instructions: field("instructions").and_then(|text| text.as_str().map(str::to_owned)),
            restart_count: slot.n_lost().min(found.generation.saturating_sub(1)),
            last_health_check: found.traffic.last_check_ms.and_then(time_format::rfc3339_ago),
            last_health_check_ago_ms: found.traffic.last_check_ms,
            consecutive_failures: found.traffic.missed_pings,
            state: found.state.name(),
            transport: found.transport,
            era: found.era,
            sharing: found.sharing,
            start: found.start,
            in_flight: found.traffic.in_flight,
            requests: found.traffic.requests,
            generation: found.generation,
            connections: found.connections,
            pid: found.pid,
            client_sessions: census.n_users(slot.name()),
            breaker: camel(json!(found.breaker)),
            protocol_version: found
                .protocol_version
                .or_else(|| profile.map(|profile| profile.protocol_version.clone())),
            error: found.last_error,
            cause: found.failure.as_ref().map(|failure| failure.cause.clone()),
            remedy: found.failure.as_ref().map(|failure| failure.remedy.clone()),
            error_time: found.failure.map(|failure| time_format::rfc3339_of(failure.at)),
            events: Vec::new(),
            stderr: slot.error_lines(),
            name: found.name,
            memory_bytes: None,
        }
    }

    /// Returns the state of the server called `name`, which may be `disabled`, with its last events.
    pub fn server_state_of(&self, name: &str, disabled: &ServerConfigs) -> Option<ServerState> {
        let Some(slot) = self.pool.slot(name) else {
            let (name, server) = disabled.get_key_value(name)?;
            return Some(ServerState::disabled(name, server));
        };
        let events = slot.events().all().into_iter().map(|event| {
            let time = time_format::rfc3339_of(event.at);
            json!({ "time": time, "event": event.kind.name(), "details": event.details })
        });
        let mut state = self.server_state(&slot, &self.census());
        state.events = events.collect();
        Some(state)
    }

    /// Returns the server that has a process for which `is_one` returns `true`.
    pub fn server_with_process(&self, is_one: impl Fn(u32) -> bool) -> Option<ServerName> {
        self.memory_owners()
            .into_iter()
            .find(|owner| owner.pids.iter().any(|pid| is_one(*pid)))
            .map(|owner| owner.server)
    }

    /// Returns the processes and the unit of each server.
    pub(super) fn memory_owners(&self) -> Vec<MemoryOwner> {
        let slots = self.pool.slots();
        let owner = |slot: &std::sync::Arc<ServerSlot>| MemoryOwner {
            server: slot.name().clone(),
            pids: slot.status().pids,
            unit: match &slot.declared().transport {
                TransportConfig::Unit { unit, .. } => Some(unit.clone()),
                TransportConfig::Stdio { .. } | TransportConfig::Http(_) => None,
            },
        };
        slots.values().map(owner).collect()
    }
}

/// Returns the value of [`ServerState::status`].
fn status(found: &SlotStatus) -> &'static str {
    match found.state {
        LifecycleState::Connecting => "connecting",
        _ if found.needs_login && found.connections == 0 => "needs login",
        LifecycleState::Failed => "error",
        LifecycleState::Active | LifecycleState::Idle if found.connections > 0 => "connected",
        LifecycleState::Active | LifecycleState::Idle if found.generation == 0 => "configured",
        // Closed after its idle timeout.
        LifecycleState::Active | LifecycleState::Idle | LifecycleState::Closed => "closed",
    }
}

/// The replacement of a value that may be secret.
const HIDDEN: &str = "***";

/// Returns a server's declaration as in the file, with secrets hidden: the literals of `env` and
/// `headers`, and the login and query of a URL.
fn redacted(server: &ServerConfig) -> Value {
    let mut config = match &server.transport {
        TransportConfig::Stdio { command, args, env, cwd } => {
            let env: Map<String, Value> = env.iter().map(hidden).collect();
            json!({ "command": command, "args": args, "env": env, "cwd": cwd })
        }
        TransportConfig::Unit { socket, unit } => json!({ "socket": socket, "unit": unit }),
        TransportConfig::Http(http) => {
            let headers: Map<String, Value> = http.headers.iter().map(hidden).collect();
            json!({
                "url": config::url::without_secrets(&http.url.to_string()),
                "headers": headers,
                "forward_headers": forwarded(http),
                "auth": login(&http.auth),
                "tls": tls(&http.tls),
                "proxy": (http.proxy != ProxyConfig::None).then(|| http.proxy.to_string()),
            })
        }
    };
    config["sharing"] = json!(server.sharing.name());
    config["start"] = json!(server.start);
    config["lifecycle"] = json!(match server.lifecycle {
        LifecycleConfig::Pooled => "pooled",
        LifecycleConfig::KeepAlive { .. } => "keep-alive",
        LifecycleConfig::Ephemeral => "ephemeral",
    });
    without_nulls(config)
}

/// Returns a table without the keys that are not set.
fn without_nulls(mut table: Value) -> Value {
    if let Some(members) = table.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    table
}

fn forwarded(http: &HttpServerConfig) -> Option<Vec<&str>> {
    let names = http.forward_headers.iter().map(|name| name.as_str());
    (!http.forward_headers.is_empty()).then(|| names.collect())
}

/// Returns a login as in the file. A client's secret is a reference.
fn login(auth: &ServerAuth) -> Value {
    let oauth = match auth {
        ServerAuth::Auto => return json!("auto"),
        ServerAuth::None => return json!("none"),
        ServerAuth::OAuth(oauth) => oauth,
    };
    without_nulls(json!({
        "client_id": oauth.client_id,
        "client_secret": oauth.client_secret.as_ref().map(ToString::to_string),
        "scopes": oauth.scopes,
        "client_metadata_url": oauth.client_metadata_url.as_ref().map(ToString::to_string),
        "resource": oauth.sends_resource,
        "grant": oauth.grant,
    }))
}

/// Returns the locations of certificates, or nothing without one.
fn tls(tls: &ClientTlsConfig) -> Value {
    if *tls == ClientTlsConfig::default() {
        return Value::Null;
    }
    let own = tls.identity.as_ref();
    without_nulls(json!({
        "ca": tls.ca.as_ref().map(ToString::to_string),
        "certificate": own.map(|own| own.certificate.to_string()),
        "key": own.map(|own| own.key.to_string()),
    }))
}

fn hidden((name, value): (&String, &SecretValue)) -> (String, Value) {
    let shown = match value {
        SecretValue::Literal(_) => HIDDEN.to_owned(),
        SecretValue::Credential(name) => format!("credential:{name}"),
        SecretValue::Env(name) => format!("env:{name}"),
    };
    (name.clone(), shown.into())
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_literal_secret_is_hidden_and_a_reference_is_shown() {
        let secrets = ["hunter2", "credential:token", "env:TOKEN"];
        let values = || ["A", "B", "C"].into_iter().zip(secrets);
        let table =
            || values().map(|(name, value)| (name.to_owned(), SecretValue::from(value.to_owned())));
        let stdio = TransportConfig::Stdio {
            command: "x".to_owned(),
            args: Vec::new(),
            env: table().collect(),
            cwd: None,
        };
        let url = "http://ada:hunter2@h:1/mcp?key=hunter2".parse().expect("an address");
        let headers = table().collect();
        let http =
            TransportConfig::Http(HttpServerConfig { headers, ..HttpServerConfig::new(url) });
        let shown =
            [stdio, http].map(|transport| redacted(&ServerConfig::new(transport)).to_string());
        assert!(!shown.concat().contains("hunter2"));
        insta::assert_snapshot!(shown.join("\n"), @r#"
        {"args":[],"command":"x","env":{"A":"***","B":"credential:token","C":"env:TOKEN"},"lifecycle":"pooled","sharing":"shared","start":"lazy"}
        {"auth":"auto","headers":{"A":"***","B":"credential:token","C":"env:TOKEN"},"lifecycle":"pooled","sharing":"shared","start":"lazy","url":"http://***@h:1/mcp?***"}
        "#);
    }
    #[test]
    fn the_login_and_the_way_to_an_endpoint_are_shown_without_secrets() {
        let shown = |text: &str| {
            let text = format!("[servers.a]\nurl = \"https://h/mcp\"\n{text}");
            format!("{:#}", redacted(&config::load::parsed(&text).servers["a"]))
        };
        let text = r#"
            forward_headers = ["X-Project"]
            auth = { client_id = "shop", client_secret = "credential:shop", scopes = ["a"] }
            tls = { ca = "/ca.pem", certificate = "credential:c", key = "credential:k" }
            proxy = "http://ada:hunter2@proxy:3128"
            "#;
        insta::assert_snapshot!(shown(text), @r#"
        {
          "auth": {
            "client_id": "shop",
            "client_secret": "credential:shop",
            "grant": "authorization_code",
            "resource": true,
            "scopes": [
              "a"
            ]
          },
          "forward_headers": [
            "x-project"
          ],
          "headers": {},
          "lifecycle": "pooled",
          "proxy": "http://***@proxy:3128/",
          "sharing": "shared",
          "start": "lazy",
          "tls": {
            "ca": "/ca.pem",
            "certificate": "credential:c",
            "key": "credential:k"
          },
          "url": "https://h/mcp"
        }
        "#);
        insta::assert_snapshot!(shown("auth = \"none\""), @r#"
        {
          "auth": "none",
          "headers": {},
          "lifecycle": "pooled",
          "sharing": "shared",
          "start": "lazy",
          "url": "https://h/mcp"
        }
        "#);
    }
}
