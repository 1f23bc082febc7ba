//! The `patience` server: a slow count with progress and cancellation.
//!
//! Progress stays in order and arrives before the result: rmcp gives every message its own task,
//! but resolves `notify_progress` only when the message is written. A count awaits that before it
//! continues.
//!
//! A count stops at once when its request is cancelled or the client disconnects.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::{
    ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult,
        ListToolsResult, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool,
        ToolAnnotations,
    },
};
use serde_json::json;
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::{
    Demo,
    tool::{self, DemoArguments, DemoContext, ListCursor, Reply, failed},
};

/// The highest number to count to.
const COUNT_MAX: u32 = 10_000;

/// The longest pause between two numbers in milliseconds: one minute.
const INTERVAL_MS_MAX: u32 = 60_000;

/// The largest number of simultaneous counts.
const COUNTS_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct PatienceServer {
    tools: Vec<Tool>,
    counts: Mutex<Counts>,
    closing: CancellationToken,
}

impl PatienceServer {
    /// Returns an idle server; `closing` is cancelled when the client has disconnected.
    pub(super) fn new(closing: CancellationToken) -> Self {
        Self { tools: tools(), counts: Mutex::default(), closing }
    }

    async fn count(
        &self,
        mut arguments: DemoArguments,
        context: &DemoContext,
    ) -> Reply<CallToolResult> {
        let to = bounded(&mut arguments, "to", 1, COUNT_MAX)?;
        let interval_ms = bounded(&mut arguments, "interval_ms", 0, INTERVAL_MS_MAX)?;
        let Some(_running) = Running::enter(self, &context.ct) else {
            return Ok(failed(format!(
                "{COUNTS_MAX} counts are running: wait for one or cancel it"
            )));
        };
        let interval = Duration::from_millis(u64::from(interval_ms));
        tokio::select! {
            biased; // A count that has ended must not take another step.
            () = context.ct.cancelled() => Ok(failed("the count was cancelled".to_owned())),
            () = self.closing.cancelled() => Ok(failed("the client disconnected".to_owned())),
            () = steps(to, interval, context) => {
                Ok(CallToolResult::structured(json!({ "counted": to })))
            }
        }
    }

    fn cancelled(&self) -> CallToolResult {
        let (n_cancelled, n_running) = self.counts().summary();
        CallToolResult::structured(json!({ "cancelled": n_cancelled, "running": n_running }))
    }

    /// Locks the counts. No panic can leave them inconsistent.
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerHandler for PatienceServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let instructions = "Counts slowly. Pass a progress token to watch; cancel to stop.";
        tool::config(Demo::Patience, capabilities, instructions)
    }

    async fn list_tools(&self, _: ListCursor, _: DemoContext) -> Reply<ListToolsResult> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: DemoContext,
    ) -> Reply<CallToolResponse> {
        let (tool, arguments) = tool::accept(&self.tools, call)?;
        let result = match tool {
            "count" => self.count(arguments, &context).await?,
            _ => self.cancelled(),
        };
        Ok(result.into())
    }

    async fn on_custom_request(&self, other: CustomRequest, _: DemoContext) -> Reply<CustomResult> {
        Err(tool::unreadable(&other))
    }
}

/// The running counts, and the number of cancelled ones.
#[derive(Debug, Default)]
struct Counts {
    n_started: u64,
    n_cancelled: usize,
    running: BTreeMap<u64, CancellationToken>,
}

impl Counts {
    /// Returns the numbers of cancelled and of running counts.
    ///
    /// A cancelled count that has not stopped yet counts as cancelled. So a client that cancels
    /// after seeing progress and then asks finds its cancellation counted.
    fn summary(&self) -> (usize, usize) {
        let stopping = self.running.values().filter(|token| token.is_cancelled()).count();
        (self.n_cancelled + stopping, self.running.len() - stopping)
    }
}

/// The registration of one running count, removed on drop.
struct Running<'a> {
    server: &'a PatienceServer,
    number: u64,
}

impl<'a> Running<'a> {
    /// Registers a count, or returns `None` at the limit.
    fn enter(server: &'a PatienceServer, token: &CancellationToken) -> Option<Self> {
        let mut counts = server.counts();
        if counts.running.len() >= COUNTS_MAX {
            return None;
        }
        counts.n_started += 1;
        let number = counts.n_started;
        counts.running.insert(number, token.clone());
        Some(Self { server, number })
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut counts = self.server.counts();
        let token = counts.running.remove(&self.number);
        if token.is_some_and(|token| token.is_cancelled()) {
            counts.n_cancelled += 1;
        }
    }
}

/// Counts up to `to`, with a pause before each number, and reports each one.
async fn steps(to: u32, interval: Duration, context: &DemoContext) {
    let token = context.meta.get_progress_token();
    for number in 1..=to {
        // A timer rounds up to a millisecond, even for a duration of zero.
        if !interval.is_zero() {
            time::sleep(interval).await;
        }
        let Some(token) = token.clone() else { continue };
        let progress = ProgressNotificationParam::new(token, f64::from(number))
            .with_total(f64::from(to))
            .with_message(format!("{number} of {to}"));
        // Awaiting the write keeps progress in order.
        if let Err(error) = context.peer.notify_progress(progress).await {
            tracing::debug!(error = %error, "cannot report progress to the client: {error}");
        }
    }
}

/// Takes a required whole number between `least` and `most`.
fn bounded(arguments: &mut DemoArguments, name: &str, least: u32, most: u32) -> Reply<u32> {
    let range = i64::from(least)..=i64::from(most);
    let number = arguments.integer_or(name, range, i64::from(least))?;
    Ok(u32::try_from(number).unwrap_or(most))
}

/// Returns the descriptions of the two tools.
fn tools() -> Vec<Tool> {
    let limits = json!({
        "to": {
            "type": "integer",
            "minimum": 1,
            "maximum": COUNT_MAX,
            "description": "The number to count to.",
        },
        "interval_ms": {
            "type": "integer",
            "minimum": 0,
            "maximum": INTERVAL_MS_MAX,
            "description": "Pause before each number in milliseconds.",
        },
    });
    let hints = || ToolAnnotations::new().read_only(true).open_world(false);
    vec![
        tool::describe(
            "count",
            "Count slowly",
            "Counts from 1 and reports progress at each number when the call carries a progress \
             token. Stops at once when the call is cancelled.",
            limits,
            &["to", "interval_ms"],
            json!({ "counted": { "type": "integer" } }),
        )
        .with_annotations(hints()),
        tool::describe(
            "cancelled",
            "Cancelled counts",
            "Returns the number of counts that were cancelled since the start or are running.",
            json!({}),
            &[],
            json!({
                "cancelled": { "type": "integer", "minimum": 0 },
                "running": { "type": "integer", "minimum": 0 },
            }),
        )
        .with_annotations(hints()),
    ]
}

#[cfg(test)]
mod tests;
