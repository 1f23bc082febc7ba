//! The method `auth/status`: the credentials that the service sends to its servers, and its logins.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use tokio::task;

use super::{ControlRequest, MethodResult};
use crate::{
    config::{SecretValue, ServerConfig, TransportConfig, secret::credentials_directory},
    oauth::{LoginKind, LoginState, LoginStatus},
    pool::ServerSlot,
    time_format::rfc3339_of,
};

/// Answers `auth/status`.
pub(super) async fn status(request: &ControlRequest<'_>) -> MethodResult {
    let server: Option<String> = request.params.optional("server")?;
    let servers = request.service.parts.operators.servers(server.as_deref())?;
    let logins = request.service.parts.logins.statuses();
    // Credentials are files, so that this blocks.
    let states = task::spawn_blocking(move || states(&servers, &logins)).await;
    Ok(Value::from(states.unwrap_or_default()).to_string())
}

fn states(servers: &[Arc<ServerSlot>], logins: &[LoginStatus]) -> Vec<Value> {
    let credentials = credentials_directory();
    let auth = |slot: &ServerSlot| {
        let login = logins.iter().find(|login| login.server == *slot.name());
        match login.filter(|login| login.kind != LoginKind::StaticHeader) {
            Some(login) if login.state != LoginState::NotAsked => oauth(login),
            Some(_) | None => auth(slot.declared(), credentials.as_deref()),
        }
    };
    servers.iter().map(|slot| json!({ "server": slot.name(), "auth": auth(slot) })).collect()
}

/// Returns the phases of the logins that servers have asked for. Nothing of it is for operators
/// only.
pub(super) fn logins(logins: &[LoginStatus]) -> Vec<Value> {
    let asked = logins.iter().filter(|login| {
        login.kind != LoginKind::StaticHeader && login.state != LoginState::NotAsked
    });
    let phase = |login: &LoginStatus| {
        json!({
            "server": login.server,
            "state": login.state,
            "expiresInMs": expires_in_ms(login, SystemTime::now()),
        })
    };
    asked.map(phase).collect()
}

fn expires_in_ms(login: &LoginStatus, now: SystemTime) -> Option<u64> {
    login.expires.map(|at| ms(at.duration_since(now).unwrap_or_default()))
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the state of a login.
fn oauth(login: &LoginStatus) -> Value {
    let now = SystemTime::now();
    let expires = expires_in_ms(login, now);
    let refreshed = login.refreshed.map(|at| ms(now.duration_since(at).unwrap_or_default()));
    let mut state = json!({
        "type": "oauth",
        "grant": login.kind,
        "state": login.state,
        "hasTokens": login.state == LoginState::LoggedIn,
        "issuer": login.issuer,
        "scopes": login.scopes,
        "expires": login.expires.map(rfc3339_of),
        "expiresInMs": expires,
        "refreshed": login.refreshed.map(rfc3339_of),
        "refreshedAgoMs": refreshed,
        "error": login.error,
    });
    if let Some(members) = state.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    state
}

/// Returns the kind of credentials for a server, and whether all of them are available now.
fn auth(server: &ServerConfig, credentials: Option<&Path>) -> Value {
    let (values, are_headers): (Vec<&SecretValue>, bool) = match &server.transport {
        TransportConfig::Stdio { env, .. } => (env.values().collect(), false),
        TransportConfig::Http(http) => (http.headers.values().collect(), true),
        TransportConfig::Unit { .. } => (Vec::new(), false),
    };
    let is_any = |is_one: fn(&SecretValue) -> bool| values.iter().any(|value| is_one(value));
    let kind = if is_any(|value| matches!(value, SecretValue::Credential(_))) {
        "credential"
    } else if is_any(|value| matches!(value, SecretValue::Env(_))) {
        "environment"
    } else if are_headers && !values.is_empty() {
        "headers"
    } else {
        "none"
    };
    let is_complete = || values.iter().all(|value| value.resolve(credentials).is_ok());
    json!({ "type": kind, "hasTokens": kind != "none" && is_complete() })
}
