//! `neighbours`: the effect of unhealthy servers on clients of a healthy server.
//!
//! The same calls and lists, each time through a separate service: alone; with a server that hangs
//! in `initialize` and one that crashes at once; with a child that is killed repeatedly; and with
//! the same child left alive, which shows the cost of its load.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::{task::JoinSet, time};

use crate::{
    client::{self, CallError, Client, Target},
    load::Load,
    process::{self, Process},
    report::{cell, percentile, ratio},
    rig,
};

/// Measure a healthy server next to one that hangs, one that crashes, and one that is killed
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The number of repetitions
    #[arg(long, value_name = "N", default_value_t = 5)]
    repetitions: usize,
    /// The duration of each measurement, in seconds
    #[arg(long, default_value_t = 3)]
    seconds: u64,
}

/// The number of concurrent clients of the healthy server: too few to saturate the machine, so that
/// an effect of the others is visible.
const N_CLIENTS: usize = 4;
/// The length of a typical text, in bytes.
const USUAL: usize = 100;
/// The clients of each other server, and the pause between two of their calls.
const N_OTHERS: usize = 2;
const PAUSE: Duration = Duration::from_millis(10);
/// The interval between kills of a child.
const KILL_PAUSE: Duration = Duration::from_millis(100);
/// The timeout for calls to a server that hangs, so that new calls start.
const SERVICE: &str = "[service]\nrequest_timeout = \"1s\"\n";

/// The servers next to the healthy server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Neighbours {
    Nothing,
    HangAndCrash,
    Killed,
    LeftAlive,
}

/// A service with a healthy server and its neighbours.
struct Scenario {
    neighbours: Neighbours,
    gateway: Process,
    measurements: [Vec<f64>; Measure::ALL.len()],
    _directory: TempDir,
}

/// A measured quantity.
#[derive(Clone, Copy, Debug)]
enum Measure {
    Throughput,
    P50,
    P99,
    OwnList50,
    OwnList99,
    MergedList50,
    MergedList99,
}

/// The tasks that call and kill the other servers; aborted on drop.
struct NeighbourLoad {
    _tasks: JoinSet<()>,
    n_ended: Arc<AtomicU64>,
    n_kills: Arc<AtomicU64>,
}

pub(crate) async fn run(args: Args) {
    let mut scenarios: Vec<Scenario> = Neighbours::ALL.into_iter().map(Scenario::start).collect();
    let (mut n_ended, mut n_kills) = (0, 0);
    for number in 1..=args.repetitions {
        process::progress(&format!("repetition {number} of {}", args.repetitions));
        for scenario in &mut scenarios {
            let others = scenario.measure(Duration::from_secs(args.seconds)).await;
            n_kills += others.n_kills.load(Ordering::Relaxed);
            if scenario.neighbours == Neighbours::HangAndCrash {
                n_ended += others.n_ended.load(Ordering::Relaxed);
            }
        }
    }
    process::print(&render(&scenarios, args.repetitions));
    process::print(&format!(
        "\n{n_ended} calls to the servers that hang and crash have ended, {n_kills} children were killed\n"
    ));
}

impl Neighbours {
    const ALL: [Self; 4] = [Self::Nothing, Self::HangAndCrash, Self::Killed, Self::LeftAlive];

    fn label(self) -> &'static str {
        match self {
            Self::Nothing => "alone",
            Self::HangAndCrash => "with a hanging and a crashing server",
            Self::Killed => "with a killed server",
            Self::LeftAlive => "with that server left alive",
        }
    }

    /// Returns the configuration tables of the servers, and the tools to call.
    fn servers(self, child: &str) -> (String, &'static [&'static str]) {
        match self {
            Self::Nothing => (String::new(), &[]),
            Self::HangAndCrash => (
                "[servers.hang]\ncommand = \"sleep\"\nargs = [\"infinity\"]\n\n\
                 [servers.crash]\ncommand = \"false\"\n"
                    .to_owned(),
                &["hang__echo", "crash__echo"],
            ),
            Self::Killed | Self::LeftAlive => {
                (format!("[servers.victim]\n{child}"), &["victim__echo"])
            }
        }
    }
}

impl Scenario {
    fn start(neighbours: Neighbours) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let program = std::env::current_exe().expect("this program has a path");
        let child = format!("command = {program:?}\nargs = [\"child\"]\n\n");
        let servers = neighbours.servers(&child).0;
        let config = format!("{SERVICE}\n[servers.good]\n{child}{servers}");
        let gateway = rig::service(&directory, &config);
        Self { neighbours, gateway, measurements: Default::default(), _directory: directory }
    }

    fn target(&mut self, path: &'static str, tool: &'static str) -> Target {
        Target { address: self.gateway.address(), path, tool }
    }

    /// Takes all measurements once, and returns the activity of the others meanwhile.
    async fn measure(&mut self, measured: Duration) -> NeighbourLoad {
        let (own, merged) = (self.target("/servers/good", "echo"), self.target("/direct", "echo"));
        // Warms up: connections and first reads are not measured.
        for target in [&own, &merged] {
            let listed = open(target).await.list().await;
            listed.unwrap_or_else(|error| panic!("list of {target:?}: {error}"));
        }
        let others = self.others();
        let warm_up = measured / 5;
        let load = Load { n_clients: N_CLIENTS, bytes: USUAL, warm_up, measured };
        let (sample, own, merged) = tokio::join!(
            load.run(&own, &[]),
            lists(&own, warm_up + measured),
            lists(&merged, warm_up + measured)
        );
        for measure in Measure::ALL {
            self.measurements[measure as usize].push(match measure {
                Measure::Throughput => sample.throughput(),
                Measure::P50 => sample.percentile_us(50),
                Measure::P99 => sample.percentile_us(99),
                Measure::OwnList50 => percentile(&own, 50),
                Measure::OwnList99 => percentile(&own, 99),
                Measure::MergedList50 => percentile(&merged, 50),
                Measure::MergedList99 => percentile(&merged, 99),
            });
        }
        others
    }

    /// Starts clients of the other servers.
    fn others(&mut self) -> NeighbourLoad {
        let (n_ended, n_kills): (Arc<AtomicU64>, Arc<AtomicU64>) = Default::default();
        let mut tasks = JoinSet::new();
        for tool in self.neighbours.servers("").1 {
            let target = self.target("/direct", tool);
            for _ in 0..N_OTHERS {
                tasks.spawn(keep_calling(target.clone(), Arc::clone(&n_ended)));
            }
        }
        if self.neighbours == Neighbours::Killed {
            tasks.spawn(keep_killing(self.gateway.address(), Arc::clone(&n_kills)));
        }
        NeighbourLoad { _tasks: tasks, n_ended, n_kills }
    }
}

impl Measure {
    const ALL: [Self; 7] = [
        Self::Throughput,
        Self::P50,
        Self::P99,
        Self::OwnList50,
        Self::OwnList99,
        Self::MergedList50,
        Self::MergedList99,
    ];

    fn label(self) -> &'static str {
        match self {
            Self::Throughput => "calls/s",
            Self::P50 => "call, p50, µs",
            Self::P99 => "call, p99, µs",
            Self::OwnList50 => "list of the server, p50, µs",
            Self::OwnList99 => "list of the server, p99, µs",
            Self::MergedList50 => "merged list, p50, µs",
            Self::MergedList99 => "merged list, p99, µs",
        }
    }
}

async fn open(target: &Target) -> Client {
    let opened = Client::open(target, 0).await;
    opened.unwrap_or_else(|error| panic!("handshake with {target:?}: {error}"))
}

/// Requests the list repeatedly and returns the latencies in microseconds, ascending.
async fn lists(target: &Target, measured: Duration) -> Vec<f64> {
    let mut client = open(target).await;
    let mut latencies = Vec::new();
    let requesting = async {
        loop {
            let took = client.list().await;
            let took = took.unwrap_or_else(|error| panic!("list of {target:?}: {error}"));
            latencies.push(took.as_secs_f64() * 1e6);
            time::sleep(PAUSE).await;
        }
    };
    let _timed_out = time::timeout(measured, requesting).await;
    latencies.sort_by(f64::total_cmp);
    latencies
}

/// Calls a server repeatedly, and ignores errors.
async fn keep_calling(target: Target, n_ended: Arc<AtomicU64>) {
    let mut client = open(&target).await;
    loop {
        match client.echo(USUAL).await {
            // Any error answer is a refusal.
            Ok(_) | Err(CallError::Wrong(_)) => {}
            Err(error) => panic!("{target:?}: {error}"),
        }
        n_ended.fetch_add(1, Ordering::Relaxed);
        time::sleep(PAUSE).await;
    }
}

/// Kills every process of the server `victim`, shortly after its start.
async fn keep_killing(service: std::net::SocketAddr, n_kills: Arc<AtomicU64>) {
    let mut last = None;
    loop {
        time::sleep(KILL_PAUSE).await;
        let status = client::get(service, "/status").await.expect("the service runs");
        let status: serde_json::Value = serde_json::from_slice(&status).expect("JSON");
        let servers = status["servers"].as_array().expect("a list");
        let victim = servers.iter().find(|server| server["name"] == "victim");
        let pid = victim.and_then(|victim| victim["pid"].as_i64()?.try_into().ok());
        if pid.is_some() && pid != last {
            last = pid;
            let pid = pid.and_then(Pid::from_raw).expect("it has one");
            let _gone_already = kill_process(pid, Signal::KILL);
            n_kills.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn render(scenarios: &[Scenario], n_repetitions: usize) -> String {
    let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut text = format!(
        "Medians of {n_repetitions} interleaved repetitions (lowest–highest) on {n_cores} cores; \
         ratios are medians of the ratios within a repetition.\n\n|"
    );
    let (alone, others) = scenarios.split_first().expect("there are four");
    text.push_str(&format!(" | {} |", alone.neighbours.label()));
    for scenario in others {
        text.push_str(&format!(" {} | ÷ alone |", scenario.neighbours.label()));
    }
    text.push_str(&format!("\n|---|---:|{}\n", "---:|---:|".repeat(others.len())));
    for measure in Measure::ALL {
        let of = |scenario: &Scenario| scenario.measurements[measure as usize].clone();
        text.push_str(&format!("| {} | {} |", measure.label(), cell(&of(alone))));
        for scenario in others {
            let ratios: Vec<f64> =
                of(scenario).iter().zip(of(alone)).map(|(it, alone)| it / alone).collect();
            text.push_str(&format!(" {} | {} |", cell(&of(scenario)), ratio(&ratios)));
        }
        text.push('\n');
    }
    text
}
