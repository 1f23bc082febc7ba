//! `discovery`: the latency of searches after a restart, while no server runs.
//!
//! Every server is started once, so that its tools are known and stored on disk. Then the service
//! is restarted repeatedly: the first search is sent once it listens, others follow on the same
//! connection. The service must have no child before and after them.

use std::{fmt::Write as _, fs, path::Path, time::Duration};

use serde_json::json;
use tempfile::TempDir;
use tokio::time::{self, Instant};

use crate::{
    client::{self, Target},
    generated,
    process::{self, Process},
    report::percentile,
    rig, usage,
    wire::Wire,
};

/// Measure searches of a restarted service without running servers
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The number of restarts
    #[arg(long, value_name = "N", default_value_t = 10)]
    repetitions: usize,
}

/// The number of servers, and of tools per server.
const SIZES: [(usize, usize); 2] = [(25, 20), (500, 20)];

/// The number of searches after the first one.
const SEARCHES: usize = 50;

/// The time limit for reading all servers.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The queries.
const REQUESTS: [&str; 5] = [
    "create an invoice",
    "send somebody a message",
    "which flights are there tomorrow",
    "convert currency",
    "remove an old container",
];

/// The measurements of the starts of the service, in milliseconds; memory in MiB.
#[derive(Default)]
struct Measurements {
    listening: Vec<f64>,
    first: Vec<f64>,
    others: Vec<f64>,
    memory: Vec<f64>,
}

pub(crate) async fn run(args: Args) {
    let mut report = String::from(
        "| servers | tools | listens after | first search p50 | max | searches p50 | p99 | memory |\n\
         |--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for (n_servers, n_tools) in SIZES {
        process::progress(&format!("{n_servers} servers"));
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config = declared(directory.path(), n_servers, n_tools);
        learn(&directory, &config, n_servers).await;
        let mut measurements = Measurements::default();
        for _ in 0..args.repetitions {
            measurements.restart(&directory, &config, n_servers * n_tools).await;
        }
        measurements.row(&mut report, n_servers, n_tools);
    }
    process::print(&format!("{report}\nTimes in ms, memory in MiB; no server was running.\n"));
}

/// Writes the tool lists of the servers, and returns their configuration.
fn declared(directory: &Path, n_servers: usize, n_tools: usize) -> String {
    let program = std::env::current_exe().expect("this program has a path");
    let mut config = String::new();
    for (name, tools) in generated::servers(n_servers * n_tools, n_servers) {
        let file = directory.join(&name).with_extension("tools");
        let list = format!(r#"{{"tools":[{}]}}"#, tools.join(","));
        fs::write(&file, list).expect("the list can be written");
        write!(
            config,
            "[servers.{name}]\ncommand = {program:?}\nargs = [\"child\", \"--tools\", {file:?}]\n"
        )
        .expect("a string takes all");
    }
    config
}

/// Searches until the service has read every server and written its lists to disk.
async fn learn(directory: &TempDir, config: &str, n_servers: usize) {
    let mut service = rig::service(directory, config);
    let mut wire = Wire::connect(service.address()).await.expect("it listens");
    let cache = directory.path().join("cache/catalog");
    let n_known =
        || fs::read_dir(&cache).map_or(0, |files| files.flatten().filter(is_whole).count());
    let deadline = Instant::now() + TIMEOUT;
    while n_known() < n_servers {
        assert!(Instant::now() < deadline, "{} of {n_servers} servers were read", n_known());
        search(&mut wire, &mut service, REQUESTS[0]).await;
        time::sleep(Duration::from_millis(100)).await;
    }
}

fn is_whole(file: &fs::DirEntry) -> bool {
    file.path().extension().is_some_and(|suffix| suffix == "catalog")
}

/// Searches, and returns the number of tools found and the duration.
async fn search(wire: &mut Wire, service: &mut Process, request: &str) -> (usize, Duration) {
    let target = Target { address: service.address(), path: "/meta", tool: "mcp_discover" };
    let arguments = json!({ "query": request, "limit": 10 });
    let (answer, took) = client::call(wire, &target, &arguments).await.expect("it is answered");
    let tools = &answer["result"]["structuredContent"]["tools"];
    (tools.as_array().map_or(0, Vec::len), took)
}

impl Measurements {
    async fn restart(&mut self, directory: &TempDir, config: &str, n_tools: usize) {
        let start = Instant::now();
        let mut service = rig::service(directory, config);
        let address = service.address();
        self.listening.push(ms(start.elapsed()));
        let mut wire = Wire::connect(address).await.expect("it listens");
        let (n_found, took) = search(&mut wire, &mut service, REQUESTS[0]).await;
        assert_eq!(n_found, 10, "there is an invoice among {n_tools} tools");
        self.first.push(ms(took));
        for request in REQUESTS.iter().cycle().take(SEARCHES) {
            self.others.push(ms(search(&mut wire, &mut service, request).await.1));
        }
        assert_eq!(n_children(service.pid()), 0, "no server is started for a search");
        self.memory.push(usage::memory(service.pid()).resident / 1024.0);
    }

    fn row(&mut self, report: &mut String, n_servers: usize, n_tools: usize) {
        let Self { listening, first, others, memory } = self;
        for measurements in [&mut *listening, first, others, memory] {
            measurements.sort_by(f64::total_cmp);
        }
        writeln!(
            report,
            "| {n_servers} | {} | {:.0} | {:.1} | {:.1} | {:.2} | {:.2} | {:.0} |",
            n_servers * n_tools,
            percentile(listening, 50),
            percentile(first, 50),
            percentile(first, 100),
            percentile(others, 50),
            percentile(others, 99),
            percentile(memory, 50),
        )
        .expect("a string takes all");
    }
}

/// Returns the number of running child processes of the service.
fn n_children(pid: u32) -> usize {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let children =
        threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    children.map(|children| children.split_whitespace().count()).sum()
}

fn ms(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}
