//! Debian's Prometheus reads a running service in both text forms, with our alerts and our dashboard.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
};

use hyper::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{self, Instant};

use crate::{
    POLL,
    harness::{DEADLINE, client::Client, daemon::Daemon, fake::Fakes},
};

/// A name that breaks a metric if it is not escaped.
const HOSTILE: &str = "a\"} 1\nfake_total 1\n\\\u{1}\u{7f}\r\t é";

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_reads_both_text_forms_and_runs_every_query_of_the_dashboard() {
    let fakes = Fakes::new();
    let metamcp = Daemon::with(fakes.server("fake", &[])).ready();
    use_tools(&metamcp).await;
    let fronts = [Front::start(metamcp.address(), true), Front::start(metamcp.address(), false)];

    let prometheus = Prometheus::start(&fronts.each_ref().map(|front| front.address)).await;

    let up = prometheus.wait_for("up{job=\"metamcp\"} == 1", 2).await;
    assert_eq!(up.len(), 2, "{up:?}");
    let kinds = fronts.each_ref().map(Front::media_types);
    let is_all = |kinds: &[String], kind| kinds.iter().all(|found| found.starts_with(kind));
    assert!(is_all(&kinds[0], "application/openmetrics-text"), "{kinds:?}");
    assert!(is_all(&kinds[1], "text/plain; version=0.0.4"), "{kinds:?}");
    for query in dashboard() {
        assert!(!prometheus.wait_for(&query, 1).await.is_empty(), "no data for `{query}`");
    }
    let hostile = "count by (mcp_client) (metamcp_client_list_tokens)";
    assert_eq!(prometheus.wait_for(hostile, 2).await.len(), 2, "each client has one series");
    let targets = prometheus.get("/api/v1/targets").await;
    let targets = targets["data"]["activeTargets"].as_array().expect("a list");
    for target in targets {
        assert_eq!((&target["health"], &target["lastError"]), (&json!("up"), &json!("")));
    }
    let rules = prometheus.get("/api/v1/rules").await;
    let rules = rules["data"]["groups"][0]["rules"].as_array().expect("a list");
    assert!(!rules.is_empty());
    assert!(rules.iter().all(|rule| rule["lastError"].is_null()), "{rules:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn promtool_finds_no_fault_in_the_metrics_and_the_alerts() {
    let fakes = Fakes::new();
    let metamcp = Daemon::with(fakes.server("fake", &[])).ready();
    use_tools(&metamcp).await;
    let text = metamcp.client("/metrics").get().await.body;
    assert!(text.contains("gen_ai_tool_name=\"a\\\"} 1\\nfake_total 1\\n\\\\"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("fake_total")), "{text}");

    promtool(&["check", "metrics"], &text);
    promtool(&["check", "rules", "packaging/monitoring/alerts.yml"], "");
    promtool(&["test", "rules", "packaging/monitoring/alerts.test.yml"], "");
}

/// Calls tools successfully and in vain, as clients with a good and with a hostile name.
async fn use_tools(metamcp: &Daemon) {
    let client = metamcp.client("/").initialized().await;
    client.request(json!(1), "tools/list", json!({})).await;
    client.tool("fake__echo", json!({ "value": 1 })).await;
    client.tool("fake__tool_error", json!({})).await;
    let hostile = metamcp.client("/servers/fake");
    hostile.tool(HOSTILE, json!({})).await;
    let initialize = json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": HOSTILE, "version": HOSTILE },
    });
    let hostile = metamcp.client("/");
    let session = hostile.request(json!(0), "initialize", initialize).await;
    let session = session.headers["mcp-session-id"].to_str().expect("visible ASCII").to_owned();
    let hostile = hostile.header("mcp-session-id", &session);
    hostile.request(json!(1), "tools/list", json!({})).await;
}

/// Returns the queries of the dashboard, with values for Grafana's variables.
fn dashboard() -> Vec<String> {
    let text = fs::read("packaging/monitoring/dashboard.json").expect("readable");
    let dashboard: Value = serde_json::from_slice(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("a list").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().expect("a list"));
    let queries = targets.map(|target| target["expr"].as_str().expect("a text"));
    let queries: Vec<_> = queries
        .map(|query| query.replace("$instance", ".*").replace("$__rate_interval", "10s"))
        .collect();
    assert!(queries.len() > 15 && queries.iter().all(|query| !query.contains('$')), "{queries:?}");
    queries
}

/// Runs promtool and asserts that it finds nothing.
#[track_caller]
fn promtool(arguments: &[&str], input: &str) {
    let mut command = Command::new("promtool");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("promtool starts");
    let mut stdin = process.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    let output = process.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "promtool {arguments:?}: {said}");
    // It reports faults of style with exit code 0 as well.
    assert!(arguments != ["check", "metrics"] || said.is_empty(), "{said}");
}

/// A Prometheus that reads its targets once a second; killed and reaped on drop.
struct Prometheus {
    process: Child,
    client: Client,
    directory: TempDir,
}

impl Prometheus {
    /// Starts it and waits until it is ready. It takes no open socket, so that another process may be
    /// faster at a port.
    async fn start(targets: &[SocketAddr]) -> Self {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let address = listener.local_addr().expect("it is bound");
            drop(listener);
            let mut prometheus = Self::start_at(address, targets);
            while prometheus.process.try_wait().expect("it can be waited for").is_none() {
                let is_open = TcpStream::connect(address).is_ok();
                if is_open && prometheus.client.at("/-/ready").get().await.status == 200 {
                    return prometheus;
                }
                assert!(Instant::now() < deadline, "not ready:\n{}", prometheus.log());
                time::sleep(POLL).await;
            }
            assert!(Instant::now() < deadline, "it does not start:\n{}", prometheus.log());
        }
    }

    fn start_at(address: SocketAddr, targets: &[SocketAddr]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let alerts = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/monitoring/alerts.yml");
        let targets: Vec<String> = targets.iter().map(SocketAddr::to_string).collect();
        // JSON is YAML.
        let config = json!({
            "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
            "rule_files": [alerts],
            "scrape_configs": [
                { "job_name": "metamcp", "static_configs": [{ "targets": targets }] },
            ],
        });
        let file = directory.path().join("prometheus.yml");
        fs::write(&file, config.to_string()).expect("written");
        let log = fs::File::create(directory.path().join("log")).expect("a log file");
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let process = command.spawn().expect("prometheus starts");
        Self { process, client: Client::new(format!("http://{address}/")), directory }
    }

    async fn get(&self, path: &str) -> Value {
        self.client.at(path).get().await.answer()
    }

    /// Returns the result of a query once it has at least so many series.
    async fn wait_for(&self, query: &str, n_series: usize) -> Vec<Value> {
        let body =
            form_urlencoded::Serializer::new(String::new()).append_pair("query", query).finish();
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let deadline = Instant::now() + DEADLINE;
        loop {
            let client = self.client.at("/api/v1/query");
            let answer = client.send(Method::POST, &form, body.clone()).await.answer();
            assert_eq!(answer["status"], "success", "`{query}`: {answer}");
            let result = answer["data"]["result"].as_array().expect("a list").clone();
            if result.len() >= n_series {
                return result;
            }
            assert!(Instant::now() < deadline, "`{query}`: {answer}\n{}", self.log());
            time::sleep(POLL).await;
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A proxy in front of the metrics that notes the media types of the answers. Debian's Prometheus
/// always asks for OpenMetrics: the other form is for readers whose request has no `Accept`.
struct Front {
    address: SocketAddr,
    media_types: Arc<Mutex<Vec<String>>>,
}

impl Front {
    fn start(target: SocketAddr, keeps_accept: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let media_types = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&media_types);
        thread::spawn(move || {
            for client in listener.incoming().filter_map(Result::ok) {
                if let Ok(media_type) = forward(client, target, keeps_accept) {
                    noted.lock().expect("not poisoned").push(media_type);
                }
            }
        });
        Self { address, media_types }
    }

    /// Returns the media types of the answers so far, one at least.
    fn media_types(&self) -> Vec<String> {
        let found = self.media_types.lock().expect("not poisoned").clone();
        assert!(!found.is_empty(), "no answer passed");
        found
    }
}

/// Forwards one request and its answer, and returns the media type of the answer.
fn forward(
    mut client: TcpStream,
    target: SocketAddr,
    keeps_accept: bool,
) -> std::io::Result<String> {
    let mut head = String::new();
    for line in BufReader::new(client.try_clone()?).lines() {
        let line = line?;
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if name != "connection" && (keeps_accept || name != "accept") {
            head += &(line + "\r\n");
        }
    }
    let mut server = TcpStream::connect(target)?;
    server.write_all((head + "connection: close\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    client.write_all(&answer)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let media_type = answer.lines().find_map(|line| line.strip_prefix("content-type: "));
    Ok(media_type.unwrap_or_default().to_owned())
}
