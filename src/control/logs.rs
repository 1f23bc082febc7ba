//! The method `daemon/logs`: the last log lines, and the wait for more.

use std::sync::Arc;

use serde_json::json;
use tracing::Level;

use super::{ControlRequest, MethodResult, ring_page::ring_page};
use crate::{telemetry::log_ring::LogLine, time_format};

/// Answers `daemon/logs`. With `wait`, the answer may be delayed until there is a line.
pub(super) async fn logs(request: &ControlRequest<'_>) -> MethodResult {
    let (params, ring) = (&request.params, &request.service.parts.log_ring);
    let server: Option<String> = params.optional("server")?;
    let is_about = |line: &Arc<LogLine>| server.is_none() || line.server == server;
    // The log may have lines of a server that was removed.
    if let Some(server) = server.as_deref()
        && !ring.has(is_about)
    {
        request.service.parts.operators.check_declared(server)?;
    }
    let level = match params.optional::<String>("level")? {
        None => Level::TRACE,
        Some(name) => match name.parse() {
            Ok(level) if LEVELS.contains(&name.as_str()) => level,
            _ => return Err(params.invalid("level", &format!("one of {}", LEVELS.join(", ")))),
        },
    };
    let is_wanted = |line: &Arc<LogLine>| line.level <= level && is_about(line);
    Ok(ring_page(request, ring, "lines", is_wanted, to_json).await?.to_string())
}

/// The names of the levels, as in `service.log_level`.
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

fn to_json(line: &Arc<LogLine>) -> serde_json::Value {
    let at_ms = i64::try_from(line.at_ms).unwrap_or(i64::MAX);
    let mut shown = json!({
        "time": time_format::rfc3339(at_ms, 0),
        "level": line.level.as_str().to_ascii_lowercase(),
        "text": line.text,
    });
    if let Some(server) = &line.server {
        shown["server"] = json!(server);
    }
    if !line.fields.is_empty() {
        shown["fields"] = json!(line.fields);
    }
    shown
}
