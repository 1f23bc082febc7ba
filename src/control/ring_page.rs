//! A part of a ring as an answer, and the wait for its next entry.

use serde_json::{Value, json};
use tokio::time::{self, Duration};

use super::ControlRequest;
use crate::{
    config::defaults,
    protocol::RpcError,
    telemetry::ring::{Ring, RingEntry, RingPage, RingQuery},
};

/// Answers with the entries of `ring` that are wanted, as the member `name`. The parameters `lines`,
/// `since` and `after` choose them. With `wait`, the answer may be delayed until there is one.
pub(super) async fn ring_page<T: RingEntry>(
    request: &ControlRequest<'_>,
    ring: &Ring<T>,
    name: &'static str,
    is_wanted: impl Fn(&T) -> bool,
    to_json: impl Fn(&T) -> Value,
) -> Result<Value, Box<RpcError>> {
    let params = &request.params;
    let lines_max = params.optional("lines")?.unwrap_or(defaults::LOG_PAGE_LINES_MAX);
    let query = RingQuery {
        since_ms: params.optional("since")?,
        after: params.optional("after")?,
        entries_max: lines_max.min(defaults::LOG_PAGE_LINES_MAX),
    };
    let wait = params.optional::<u64>("wait")?.map(Duration::from_millis);
    let mut page = ring.read(query, &is_wanted);
    if let (Some(wait), Some(after)) = (wait, query.after) {
        let until = time::Instant::now() + wait.min(defaults::LOG_WAIT_MAX);
        let mut after = after;
        while page.entries.is_empty() && page.n_lost == 0 {
            after = after.max(page.next);
            tokio::select! {
                () = ring.wait_after(after) => {}
                () = time::sleep_until(until) => break,
                () = request.service.stop.cancelled() => break,
            }
            page = ring.read(RingQuery { after: Some(after), ..query }, &is_wanted);
        }
    }
    let RingPage { entries, next, n_lost, is_cut } = page;
    let entries: Vec<_> = entries.iter().map(to_json).collect();
    Ok(json!({
        "pid": std::process::id(), name: entries, "next": next, "lost": n_lost, "isCut": is_cut,
        "keptMax": ring.entries_max(), "startedMs": ring.started_ms(),
    }))
}
