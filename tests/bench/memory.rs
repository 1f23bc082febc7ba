//! `memory`: resident memory of the service before, during and after loads.
//!
//! The loads are small calls, and answers of 10 and 15 MB that many clients request at once. The
//! last rows matter: ten seconds after a load, its memory must have been returned.

use std::{fmt::Write as _, path::PathBuf, time::Duration};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time;

use crate::{
    client::{self, Client, Target},
    process::{self, Process},
    rig::{self, Contestant},
    usage,
    wire::Wire,
};

/// Measure resident memory before, during and after loads
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The build of metamcp to measure
    #[arg(long, value_name = "PROGRAM", default_value = process::PROGRAM)]
    program: PathBuf,
}

/// The number of clients with small calls, and the number of calls of each.
const SMALL: (usize, usize) = (32, 300);

/// The number of clients, and the bytes of the result that each requests as a preview.
const PREVIEWED: (usize, usize) = (12, 10_000_000);

/// The number of clients, and the bytes of the answer that each requests and reads.
const LARGE: (usize, usize) = (30, 15_000_000);

/// The time after which the startup threads of the service have ended.
const SETTLED: Duration = Duration::from_secs(12);

/// The seconds after the loads at which memory is measured.
const AFTERWARDS: [u64; 4] = [1, 5, 10, 20];

/// A table of measurements, in MiB.
struct Table {
    text: String,
    pid: u32,
    start: f64,
}

pub(crate) async fn run(args: Args) {
    let mut upstream = Process::ourselves("upstream", &["upstream"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = rig::both(upstream.address());
    let mut service = rig::service_by(&[args.program.as_os_str()], &directory, &config);
    rig::wait_ready(&mut service).await;
    time::sleep(SETTLED).await;
    let address = service.address();
    let mut table = Table::begin(service.pid());
    table.row("at the start");

    let target = Contestant::Child.target(address);
    join_all((0..SMALL.0).map(|number| small(&target, number))).await;
    table.row(&format!("{} small calls", SMALL.0 * SMALL.1));
    let (n_clients, bytes) = PREVIEWED;
    let arguments = json!({ "server": "child", "tool": "blob", "args": { "bytes": bytes } });
    let target = Target { address, path: "/meta", tool: "mcp_call" };
    join_all((0..n_clients).map(|_| large(&target, &arguments))).await;
    table.row(&format!("{n_clients} results of {} MB, previewed", bytes / 1_000_000));
    let (n_clients, bytes) = LARGE;
    let arguments = json!({ "bytes": bytes });
    for (path, server) in [("/servers/child", "child"), ("/servers/up", "HTTP upstream")] {
        let target = Target { address, path, tool: "blob" };
        join_all((0..n_clients).map(|_| large(&target, &arguments))).await;
        table.row(&format!("{n_clients} answers of {} MB, {server}", bytes / 1_000_000));
    }
    let mut slept = 0;
    for seconds in AFTERWARDS {
        time::sleep(Duration::from_secs(seconds - slept)).await;
        slept = seconds;
        table.row(&format!("{seconds} s later"));
    }
    process::print(&table.text);
}

async fn small(target: &Target, number: usize) {
    let mut client = Client::open(target, number).await.expect("the handshake succeeds");
    for _ in 0..SMALL.1 {
        client.echo(200).await.expect("it is answered");
    }
}

/// Requests one large result. An error is valid too, because all clients share one limit.
async fn large(target: &Target, arguments: &Value) {
    let mut wire = Wire::connect(target.address).await.expect("it connects");
    drop(client::call(&mut wire, target, arguments).await.expect("it is answered"));
}

impl Table {
    fn begin(pid: u32) -> Self {
        let text =
            "| when | resident | anonymous | above the start |\n|---|--:|--:|--:|\n".to_owned();
        Self { text, pid, start: usage::memory(pid).resident }
    }

    fn row(&mut self, when: &str) {
        let memory = usage::memory(self.pid);
        let [resident, anonymous, above] =
            [memory.resident, memory.anonymous, memory.resident - self.start]
                .map(|kib| kib / 1024.0);
        writeln!(self.text, "| {when} | {resident:.1} | {anonymous:.1} | {above:.1} |")
            .expect("a string takes all");
    }
}
