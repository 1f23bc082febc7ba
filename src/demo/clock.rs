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

/// The largest offset from UTC in either direction, in minutes: fourteen hours.
const OFFSET_MINUTES_MAX: i64 = 14 * 60;

/// The `clock` server.
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
        let time = rfc3339(unix_ms, offset_minutes);
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

/// Returns a moment as RFC 3339 text with milliseconds.
fn rfc3339(unix_ms: i64, offset_minutes: i64) -> String {
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    let local_ms = unix_ms.saturating_add(offset_minutes * 60_000);
    let (year, month, day) = civil(local_ms.div_euclid(DAY_MS));
    let of_day = local_ms.rem_euclid(DAY_MS);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, millisecond) = (of_day / 1000 % 60, of_day % 1000);
    let zone = match offset_minutes {
        0 => "Z".to_owned(),
        minutes => {
            let sign = if minutes < 0 { '-' } else { '+' };
            format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
        }
    };
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}{zone}"
    )
}

/// Returns year, month and day for a number of days since 1970-01-01.
///
/// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn civil(days: i64) -> (i64, i64, i64) {
    // The era is counted from 1 March of year 0, so that a leap day is the last of its year.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::{Demo, tests::ServedDemo};

    #[test]
    fn known_moments_are_written_in_rfc_3339() {
        for (unix_ms, offset_minutes, text) in [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (-1, 0, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, 0, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, 0, "2024-02-29T23:59:59.999Z"),
            (1_709_251_199_999, 120, "2024-03-01T01:59:59.999+02:00"),
            (1_709_251_199_999, -210, "2024-02-29T20:29:59.999-03:30"),
            (4_107_542_400_000, 0, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(unix_ms, offset_minutes), text);
        }
    }

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
