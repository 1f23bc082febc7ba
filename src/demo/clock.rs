//! The `clock` server: time, uptime, and proof that all clients share one process.
//!
//! `whoami` returns the process ID and the number of calls that the process has served. Clients
//! that see the same ID, and a count that includes each other's calls, share this process.
//!
//! The server has no time zone database: a caller passes the offset of its local time.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use rmcp::{
    ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult,
        ListToolsResult, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
    },
};
use serde_json::json;
use tokio::time::Instant;

use super::{
    Demo,
    tool::{self, DemoArguments, DemoContext, ListCursor, Reply, succeeded},
};
use crate::time_format;

/// The largest offset from UTC in either direction, in minutes: fourteen hours.
const OFFSET_MINUTES_MAX: i64 = 14 * 60;

#[derive(Debug)]
pub(super) struct ClockServer {
    tools: Vec<Tool>,
    started: Instant,
    n_calls: AtomicU64,
}

impl ClockServer {
    /// Returns a clock whose uptime starts now.
    pub(super) fn new() -> Self {
        Self { tools: tools(), started: Instant::now(), n_calls: AtomicU64::new(0) }
    }

    fn now(mut arguments: DemoArguments) -> Reply<CallToolResult> {
        let range = -OFFSET_MINUTES_MAX..=OFFSET_MINUTES_MAX;
        let offset_minutes = arguments.integer_or("timezone_offset_minutes", range, 0)?;
        let unix_ms = unix_ms(SystemTime::now());
        let time = time_format::rfc3339(unix_ms, offset_minutes);
        let data = json!({
            "time": time, "timezone_offset_minutes": offset_minutes, "unix_ms": unix_ms,
        });
        Ok(succeeded(time, data))
    }

    fn uptime(&self) -> CallToolResult {
        let uptime_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        succeeded(format!("up for {uptime_ms} ms"), json!({ "uptime_ms": uptime_ms }))
    }

    fn whoami(n_calls: u64) -> CallToolResult {
        let pid = std::process::id();
        let text = format!("process {pid}, call {n_calls} since its start");
        succeeded(text, json!({ "pid": pid, "calls": n_calls }))
    }
}

impl ServerHandler for ClockServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let instructions = "Tells the time. `whoami` shows that all clients share one process.";
        tool::config(Demo::Clock, capabilities, instructions)
    }

    async fn list_tools(&self, _: ListCursor, _: DemoContext) -> Reply<ListToolsResult> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: DemoContext,
    ) -> Reply<CallToolResponse> {
        let n_calls = self.n_calls.fetch_add(1, Ordering::Relaxed) + 1;
        let (tool, arguments) = tool::accept(&self.tools, call)?;
        let result = match tool {
            "now" => Self::now(arguments)?,
            "uptime" => self.uptime(),
            _ => Self::whoami(n_calls),
        };
        Ok(result.into())
    }

    async fn on_custom_request(&self, other: CustomRequest, _: DemoContext) -> Reply<CustomResult> {
        Err(tool::unreadable(&other))
    }
}

/// Returns the descriptions of the three tools.
fn tools() -> Vec<Tool> {
    let read_only = |tool: Tool| {
        tool.with_annotations(ToolAnnotations::new().read_only(true).open_world(false))
    };
    let offset = json!({
        "timezone_offset_minutes": {
            "type": "integer",
            "minimum": -OFFSET_MINUTES_MAX,
            "maximum": OFFSET_MINUTES_MAX,
            "default": 0,
            "description": "Minutes east of UTC; 0 is UTC.",
        },
    });
    let moment = json!({
        "time": { "type": "string", "format": "date-time" },
        "timezone_offset_minutes": { "type": "integer" },
        "unix_ms": { "type": "integer" },
    });
    let uptime = json!({ "uptime_ms": { "type": "integer", "minimum": 0 } });
    let identity =
        json!({ "pid": { "type": "integer" }, "calls": { "type": "integer", "minimum": 1 } });
    vec![
        read_only(tool::describe(
            "now",
            "Current time",
            "Returns the current time in RFC 3339, in UTC or at a given offset.",
            offset,
            &[],
            moment,
        )),
        read_only(tool::describe(
            "uptime",
            "Uptime",
            "Returns the milliseconds since this process started.",
            json!({}),
            &[],
            uptime,
        )),
        read_only(tool::describe(
            "whoami",
            "Process identity",
            "Returns the process id and the number of tool calls that the process has received, \
             including this one. All clients of a shared server see the same process and count.",
            json!({}),
            &[],
            identity,
        )),
    ]
}

/// Returns milliseconds since 1970, negative for a clock set before that.
fn unix_ms(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::{Demo, tests::ServedDemo};

    #[tokio::test]
    async fn now_returns_the_same_time_as_text_and_as_data() {
        let served = ServedDemo::new(Demo::Clock).await;

        let result = served.call("now", json!({ "timezone_offset_minutes": 90 })).await.unwrap();

        let data = result.structured_content.unwrap();
        assert_eq!(result.content[0].as_text().unwrap().text, data["time"]);
        assert!(data["time"].as_str().unwrap().ends_with("+01:30"), "{data}");
    }

    #[tokio::test]
    async fn an_offset_beyond_fourteen_hours_is_refused_by_name_and_range() {
        let served = ServedDemo::new(Demo::Clock).await;

        let error = served.refused("now", json!({ "timezone_offset_minutes": 841 })).await;

        assert_eq!(
            error.message,
            "argument `timezone_offset_minutes` is 841: pass a whole number from -840 to 840"
        );
    }

    #[tokio::test]
    async fn whoami_counts_the_calls_of_the_process() {
        let served = ServedDemo::new(Demo::Clock).await;

        served.data("uptime", json!({})).await;
        let identity = served.data("whoami", json!({})).await;

        assert_eq!(identity, json!({ "pid": std::process::id(), "calls": 2 }));
    }

    #[tokio::test]
    async fn every_tool_of_the_clock_is_read_only() {
        for tool in tools() {
            assert_eq!(tool.annotations.unwrap().read_only_hint, Some(true), "{}", tool.name);
        }
    }
}
