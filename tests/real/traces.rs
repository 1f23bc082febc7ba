//! The spans of calls, received by a real collector of OpenTelemetry.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
};

use serde_json::json;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::{
    Installed, POLL,
    harness::{DEADLINE, daemon::Daemon, fake::Fakes},
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_receives_two_spans_for_each_call() {
    let (fakes, rotel) = (Fakes::new(), Rotel::start());
    let config = format!("[telemetry]\notlp = \"http://127.0.0.1:{}\"\n", rotel.port);
    let mut metamcp = Daemon::with(config + &fakes.server("fake", &[])).ready();
    let client = metamcp.client("/").initialized().await;
    let traced = |name: &str, arguments| {
        json!({
            "name": name, "arguments": arguments,
            "_meta": { "traceparent": format!("00-{TRACE}-{PARENT}-01") },
        })
    };
    let echo = traced("fake__echo", json!({ "value": "canary-1" }));
    client.request(json!("first"), "tools/call", echo).await;
    client.request(json!(2), "tools/call", traced("fake__tool_error", json!({}))).await;
    // The last spans are sent before the end.
    metamcp.stop();

    let spans = rotel.spans(4);
    let all = |field: &str| -> Vec<&str> {
        spans.iter().map(|span| span.get(field).map_or("", String::as_str)).collect()
    };
    assert_eq!(all("Trace ID"), [TRACE; 4]);
    assert_eq!(all("Kind"), ["SPAN_KIND_SERVER", "SPAN_KIND_CLIENT"].repeat(2));
    let ids = all("ID");
    assert_eq!(all("Parent ID"), [PARENT, ids[0], PARENT, ids[2]]);
    assert_eq!(all("gen_ai.tool.name"), ["echo", "echo", "tool_error", "tool_error"]);
    assert_eq!(all("error.type"), ["", "", "tool_error", "tool_error"]);
    assert_eq!(all("jsonrpc.request.id"), ["first", "", "2", ""]);
    assert_eq!(all("network.transport"), ["tcp", "pipe", "tcp", "pipe"]);
    assert_eq!(all("mcp.protocol.version"), ["2025-06-18"; 4]);
    assert!(!rotel.log().contains("canary-1"), "{}", rotel.log());
}

/// A running collector, which prints the spans that it receives.
struct Rotel {
    process: Child,
    port: u16,
    directory: TempDir,
}

impl Rotel {
    /// Starts the collector and waits until it listens. It takes no open socket and no port 0, so
    /// that another process may be faster at a port.
    fn start() -> Self {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let listeners = [0; 2].map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"));
            let ports = listeners.each_ref().map(|it| it.local_addr().expect("it is bound").port());
            drop(listeners);
            let mut rotel = Self::start_at(ports);
            while rotel.process.try_wait().expect("it can be waited for").is_none() {
                if TcpStream::connect(("127.0.0.1", rotel.port)).is_ok() {
                    return rotel;
                }
                thread::sleep(POLL);
            }
            assert!(Instant::now() < deadline, "rotel does not start:\n{}", rotel.log());
        }
    }

    fn start_at([port, other]: [u16; 2]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let log = File::create(directory.path().join("log")).expect("written");
        let mut command = Command::new(program());
        command
            .args(["start", "--exporter", "blackhole"])
            .args(["--debug-log", "traces", "--debug-log-verbosity", "detailed"])
            .args(["--otlp-http-endpoint", &format!("127.0.0.1:{port}")])
            .args(["--otlp-grpc-endpoint", &format!("127.0.0.1:{other}")])
            .stdin(Stdio::null())
            .stderr(log.try_clone().expect("a second handle"))
            .stdout(log);
        Self { process: command.spawn().expect("rotel starts"), port, directory }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// Waits until the collector has printed so many spans, and returns their fields and attributes.
    fn spans(&self, n_spans: usize) -> Vec<BTreeMap<String, String>> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let log = self.log();
            let spans: Vec<_> = log.split("\nSpan #").skip(1).map(fields).collect();
            // The last line of a span may not be printed yet.
            if spans.len() >= n_spans && spans.iter().all(|span| span.contains_key("metamcp.view"))
            {
                return spans;
            }
            assert!(Instant::now() < deadline, "{n_spans} spans are not received:\n{log}");
            thread::sleep(POLL);
        }
    }
}

impl Drop for Rotel {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Reads `Name : value` and `-> name: Str(value)`, up to the next resource.
fn fields(span: &str) -> BTreeMap<String, String> {
    let span = span.split("\nResourceSpans #").next().unwrap_or(span);
    let read = |line: &str| {
        let (name, value) = line.trim().trim_start_matches("-> ").split_once(':')?;
        let value = value.trim();
        let value = value.strip_prefix("Str(").and_then(|it| it.strip_suffix(')')).unwrap_or(value);
        Some((name.trim().to_owned(), value.to_owned()))
    };
    span.lines().filter_map(read).collect()
}

/// Returns the program in the virtual environment. The script around it takes other arguments.
fn program() -> PathBuf {
    let library = fs::read_dir(Installed::find().path("python/lib")).expect("readable");
    library
        .map(|entry| entry.expect("readable").path().join("site-packages/rotel/rotel-agent"))
        .find(|program| program.exists())
        .expect("rotel is installed")
}
