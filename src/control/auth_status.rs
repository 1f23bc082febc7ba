//! The method `auth/status`: the credentials that the service sends to its servers.

use std::{path::Path, sync::Arc};

use serde_json::{Value, json};
use tokio::task;

use super::{ControlRequest, MethodResult};
use crate::{
    config::{SecretValue, ServerConfig, TransportConfig, secret::credentials_directory},
    pool::ServerSlot,
};

/// Answers `auth/status`.
pub(super) async fn status(request: &ControlRequest<'_>) -> MethodResult {
    let server: Option<String> = request.params.optional("server")?;
    let servers = request.service.parts.operators.servers(server.as_deref())?;
    // Credentials are files, so that this blocks.
    let states = task::spawn_blocking(move || states(&servers)).await;
    Ok(Value::from(states.unwrap_or_default()).to_string())
}

fn states(servers: &[Arc<ServerSlot>]) -> Vec<Value> {
    let credentials = credentials_directory();
    let auth = |slot: &ServerSlot| auth(slot.declared(), credentials.as_deref());
    servers.iter().map(|slot| json!({ "server": slot.name(), "auth": auth(slot) })).collect()
}

/// Returns the kind of credentials for a server, and whether all of them are available now.
fn auth(server: &ServerConfig, credentials: Option<&Path>) -> Value {
    let (values, are_headers): (Vec<&SecretValue>, bool) = match &server.transport {
        TransportConfig::Stdio { env, .. } => (env.values().collect(), false),
        TransportConfig::Http { headers, .. } => (headers.values().collect(), true),
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
