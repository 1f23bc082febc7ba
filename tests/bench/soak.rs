//! `soak`: ten waves of ten concurrent calls, the first of them on a cold start.
//!
//! It passes if no wave has an error or a status other than 200, and the upstream sees one session
//! for all clients. Also, the mean latency must be at most 1.5 times that of direct calls to the
//! upstream, with one session per client.

use std::{io, process::ExitCode, time::Duration};

use tokio::{
    task::JoinSet,
    time::{self, Instant},
};

use crate::{
    client::{self, CallError, Client, Target},
    process::{self, Process},
    rig,
    upstream::ColdStart,
    usage,
};

/// Send waves of calls through metamcp, and fail on an error or on a high latency
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The time from the first wave to the end of the last, in seconds
    #[arg(long, default_value_t = 302)]
    seconds: u64,
    /// The state of the upstream at the first wave
    #[arg(long, value_enum, default_value_t = ColdStart::Delayed)]
    cold: ColdStart,
    /// Have the upstream answer with event streams instead of JSON
    #[arg(long)]
    events: bool,
}

const N_WAVES: usize = 10;
const N_CLIENTS: usize = 10;
/// The start time of the upstream, in milliseconds.
const START_MS: u64 = 3000;
/// The duration of a tool call, in milliseconds, and the length of its text in bytes.
const WORK_MS: u64 = 200;
const WORK_BYTES: usize = 2000;
const FACTOR_MAX: f64 = 1.5;
/// The time limit of one client in one wave.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The pause between connection attempts of a direct client.
const PAUSE: Duration = Duration::from_millis(20);

/// A client in all waves: it keeps its session and reconnects for each wave.
struct Caller {
    target: Target,
    number: usize,
    client: Option<Client>,
    /// The client itself waits for the upstream to start, because no gateway does.
    is_patient: bool,
}

/// The results of ten callers in one wave.
struct WaveOutcome {
    callers: Vec<Caller>,
    latencies: Vec<Duration>,
    errors: Vec<CallError>,
}

struct Wave {
    number: usize,
    at: Duration,
    n_errors: usize,
    n_refused: usize,
    n_mints: u64,
    gateway_ms: f64,
    direct_ms: f64,
}

pub(crate) async fn run(args: Args) -> ExitCode {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (start_ms, address) = (START_MS.to_string(), free_address());
    let mut arguments = vec!["upstream", "--start-delay", &start_ms, "--listen", &address];
    arguments
        .extend(["--cold", if args.cold == ColdStart::Refused { "refused" } else { "delayed" }]);
    arguments.extend(args.events.then_some("--events"));
    let mut upstream = Process::ourselves("upstream", &arguments);
    let address = match args.cold {
        ColdStart::Delayed => upstream.address(),
        ColdStart::Refused => address.parse().expect("it is one"),
    };
    let mut gateway = rig::serve(&directory, address, "");
    let target = |address| Target { address, path: "/mcp", tool: "sleep" };
    let mut through = callers(&target(gateway.address()), false);
    let mut direct = callers(&target(address), true);

    let header = "wave   at s  errors  not 200  sessions  metamcp ms  direct ms  ratio  gate";
    process::print(&format!("{header}\n"));
    let start = Instant::now();
    let mut n_passed = 0;
    for number in 0..N_WAVES {
        time::sleep_until(start + due(number, args.seconds)).await;
        let at = start.elapsed();
        let (gateway_side, direct_side) = match number {
            // Both sides experience the same start of the upstream.
            0 => tokio::join!(wave(through), wave(direct)),
            _ => {
                let direct_side = wave(direct).await;
                (wave(through).await, direct_side)
            }
        };
        let n_direct = direct_side.callers.iter().filter(|caller| caller.client.is_some()).count();
        let minted = mints(address).await;
        let seen = Wave {
            number: number + 1,
            at,
            n_errors: gateway_side.errors.len(),
            n_refused: gateway_side.n_refused(),
            n_mints: minted.saturating_sub(u64::try_from(n_direct).expect("a few")),
            gateway_ms: gateway_side.mean_ms(),
            direct_ms: direct_side.mean_ms(),
        };
        process::print(&seen.row());
        for error in gateway_side.errors.iter().chain(&direct_side.errors).take(3) {
            process::print(&format!("       {error}\n"));
        }
        n_passed += usize::from(seen.is_passed() && direct_side.errors.is_empty());
        (through, direct) = (gateway_side.callers, direct_side.callers);
    }
    let resident_mib = usage::memory(gateway.pid()).resident / 1024.0;
    process::print(&format!(
        "\n{:.0} s, metamcp at {resident_mib:.1} MiB; waves: {n_passed} passed, {} failed\n",
        start.elapsed().as_secs_f64(),
        N_WAVES - n_passed
    ));
    if n_passed == N_WAVES { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns an address without a listener.
fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").to_string()
}

/// Returns the time of a wave; the last one has two seconds for its answers.
fn due(number: usize, seconds: u64) -> Duration {
    let number = u32::try_from(number).expect("ten waves");
    Duration::from_secs(seconds.saturating_sub(2)) * number / 9
}

fn callers(target: &Target, is_patient: bool) -> Vec<Caller> {
    let caller = |number| Caller { target: target.clone(), number, client: None, is_patient };
    (0..N_CLIENTS).map(caller).collect()
}

/// Returns the number of sessions that the upstream has created so far.
async fn mints(upstream: std::net::SocketAddr) -> u64 {
    let counters = client::get(upstream, "/counters").await.expect("the upstream runs");
    let counters: serde_json::Value = serde_json::from_slice(&counters).expect("JSON");
    counters["mints"].as_u64().expect("a number")
}

/// Lets all callers call concurrently.
async fn wave(callers: Vec<Caller>) -> WaveOutcome {
    let mut calls = JoinSet::new();
    for mut caller in callers {
        calls.spawn(async move {
            let start = Instant::now();
            let answered = time::timeout(TIMEOUT, caller.call()).await;
            let answered =
                answered.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()));
            (caller, answered.map(|()| start.elapsed()))
        });
    }
    let mut side = WaveOutcome { callers: Vec::new(), latencies: Vec::new(), errors: Vec::new() };
    for (caller, answered) in calls.join_all().await {
        side.callers.push(caller);
        match answered {
            Ok(took) => side.latencies.push(took),
            Err(error) => side.errors.push(error),
        }
    }
    side
}

impl Caller {
    /// Connects and calls, with a handshake the first time.
    async fn call(&mut self) -> Result<(), CallError> {
        let client = match &mut self.client {
            Some(client) => {
                client.reconnect().await?;
                client
            }
            None => {
                let opened = loop {
                    match Client::open(&self.target, self.number).await {
                        Err(CallError::Io(error))
                            if self.is_patient
                                && error.kind() == io::ErrorKind::ConnectionRefused =>
                        {
                            time::sleep(PAUSE).await;
                        }
                        opened => break opened?,
                    }
                };
                self.client.insert(opened)
            }
        };
        client.sleep(WORK_MS, WORK_BYTES).await.map(|_took| ())
    }
}

impl WaveOutcome {
    fn n_refused(&self) -> usize {
        self.errors.iter().filter(|error| matches!(error, CallError::Status { .. })).count()
    }

    fn mean_ms(&self) -> f64 {
        let all: Duration = self.latencies.iter().sum();
        let n_answered = u32::try_from(self.latencies.len()).expect("ten");
        all.as_secs_f64() * 1e3 / f64::from(n_answered)
    }
}

impl Wave {
    fn ratio(&self) -> f64 {
        self.gateway_ms / self.direct_ms
    }

    fn is_passed(&self) -> bool {
        // A wave without an answer has no mean, and its ratio fails the comparison.
        self.n_errors == 0 && self.n_mints == 1 && self.ratio() <= FACTOR_MAX
    }

    fn row(&self) -> String {
        format!(
            "{:>4}  {:>5.1}  {:>6}  {:>7}  {:>8}  {:>10.1}  {:>9.1}  {:>5.2}  {}\n",
            self.number,
            self.at.as_secs_f64(),
            self.n_errors,
            self.n_refused,
            self.n_mints,
            self.gateway_ms,
            self.direct_ms,
            self.ratio(),
            if self.is_passed() { "ok" } else { "MISSED" },
        )
    }
}
