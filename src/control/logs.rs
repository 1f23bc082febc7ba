//! The method `daemon/logs`: the last log lines, and the wait for more.

use serde_json::json;
use tokio::time::{self, Duration};
use tracing::Level;

use super::{ControlRequest, MethodResult};
use crate::{
    config::defaults,
    protocol::RpcError,
    telemetry::log_ring::{LogLine, LogPage, LogQuery},
    time_format,
};

/// Answers `daemon/logs`. With `wait`, the answer may be delayed until there is a line.
pub(super) async fn logs(request: &ControlRequest<'_>) -> MethodResult {
    let ring = &request.service.parts.log_ring;
    let query = query(request)?;
    let wait = request.params.optional::<u64>("wait")?.map(Duration::from_millis);
    let mut page = ring.read(&query);
    if let (Some(wait), Some(after)) = (wait, query.after) {
        let until = time::Instant::now() + wait.min(defaults::LOG_WAIT_MAX);
        let mut after = after;
        while page.lines.is_empty() && page.n_lost == 0 {
            after = after.max(page.next);
            tokio::select! {
                () = ring.wait_after(after) => {}
                () = time::sleep_until(until) => break,
                () = request.service.stop.cancelled() => break,
            }
            page = ring.read(&LogQuery { after: Some(after), ..query.clone() });
        }
    }
    let kept_max = defaults::LOG_RING_LINES;
    let LogPage { lines, next, n_lost, is_cut } = page;
    let lines: Vec<_> = lines.iter().map(|line| to_json(line)).collect();
    let answer = json!({
        "pid": std::process::id(), "lines": lines, "next": next, "lost": n_lost, "isCut": is_cut,
        "keptMax": kept_max,
    });
    Ok(answer.to_string())
}

fn query(request: &ControlRequest<'_>) -> Result<LogQuery, Box<RpcError>> {
    let params = &request.params;
    let server: Option<String> = params.optional("server")?;
    // The log may have lines of a server that was removed.
    if let Some(server) = server.as_deref()
        && !request.service.parts.log_ring.has_server(server)
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
    let lines_max = params.optional("lines")?.unwrap_or(defaults::LOG_PAGE_LINES_MAX);
    Ok(LogQuery {
        server,
        level,
        since_ms: params.optional("since")?,
        after: params.optional("after")?,
        lines_max: lines_max.min(defaults::LOG_PAGE_LINES_MAX),
    })
}

/// The names of the levels, as in `service.log_level`.
const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

fn to_json(line: &LogLine) -> serde_json::Value {
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
