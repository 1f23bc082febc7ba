//! The method `daemon/top`: the calls that run, and those of the last minute.

use std::time::Duration;

use serde_json::{Value, json};

use super::{ControlRequest, MethodResult};
use crate::call_record::{CallSubject, CallTotals};

/// Answers `daemon/top`.
pub(super) fn top(request: &ControlRequest<'_>) -> MethodResult {
    let calls = request.service.parts.views.calls();
    let running = calls.running().all();
    let running = running.iter().map(|call| {
        let mut object = subject(&call.subject);
        object["ageMs"] = milliseconds(call.age());
        object
    });
    let recent = calls.recent().last_minute();
    let recent = recent.iter().map(|(of, totals)| {
        let mut object = subject(of);
        let CallTotals { n_calls, n_failed, longest, .. } = totals;
        object["calls"] = json!(n_calls);
        object["failed"] = json!(n_failed);
        object["averageMs"] = milliseconds(totals.average());
        object["longestMs"] = milliseconds(*longest);
        object
    });
    let (running, recent): (Vec<Value>, Vec<Value>) = (running.collect(), recent.collect());
    let config = request.service.parts.operators.config();
    let history: serde_json::Map<String, Value> = config
        .servers
        .keys()
        .map(|server| {
            let slots = calls.recent().history(server).map(|slot| {
                json!([slot.n_calls, milliseconds(slot.average()), milliseconds(slot.longest)])
            });
            (server.to_string(), json!(slots.as_slice()))
        })
        .collect();
    let top = json!({
        "enabled": calls.is_enabled(), "running": running, "lastMinute": recent, "history": history,
    });
    Ok(top.to_string())
}

fn subject(subject: &CallSubject) -> Value {
    let mut object = json!({
        "client": subject.client.name,
        "clientVersion": subject.client.version,
    });
    if let Some(server) = &subject.server {
        object["server"] = json!(server.as_str());
    }
    if let Some(item) = &subject.item {
        object["tool"] = json!(&**item);
    }
    object
}

/// Returns a duration in milliseconds, to a tenth.
fn milliseconds(duration: Duration) -> Value {
    json!((duration.as_secs_f64() * 10_000.0).round() / 10.0)
}
