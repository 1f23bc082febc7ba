//! `scripts`: the cost of a script: its process, its calls, and the repetition of its record.
//!
//! The process is measured without the service: this program plays its part, and sends the messages
//! that the service would send. The baseline starts and ends the same program, `--version`. The
//! calls are those of one script in the service, next to as many calls of one client.

use std::{
    io::{Read as _, Write as _},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::Path,
    process::Stdio,
    time::Duration,
};

use metamcp::sandbox::message::{
    FRAME_HEAD_BYTES, HostMessage, OperationOutcome, SandboxLimits, SandboxMessage, ScriptStart,
    Settlement, frame, frame_length, read_message,
};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    client::{self, Client, Target},
    process::{self, PROGRAM},
    report::percentile,
    rig,
    wire::Wire,
};

/// Measure scripts: their process, their calls, and their repetition
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The number of runs of each kind
    #[arg(long, value_name = "N", default_value_t = 100)]
    repetitions: usize,
}

/// The calls of the measured script, one after the other.
const N_CALLS: usize = 1000;

/// The recorded calls that are repeated.
const N_RECORDED: u32 = 64;

/// The runs of the script with many calls.
const N_LONG: usize = 5;

/// A script that calls a tool many times.
const CALLING: &str = "for (let n = 0; n < 64; n++) await servers.child.echo({ text: 'hello' });
await servers.child.echo({ text: 'last' });";

pub(crate) async fn run(args: Args) {
    let mut bare = Vec::new();
    let mut scripts = Vec::new();
    let mut replays = Vec::new();
    for _ in 0..args.repetitions {
        bare.push(ms(timed_version()));
        scripts.push(ms(timed_script()));
        replays.push(ms(timed_replay()));
    }
    let mut report = String::from("| | p50 | p90 | ÷ bare process |\n|---|--:|--:|--:|\n");
    let baseline = percentile(sorted(&mut bare), 50);
    for (name, times) in [
        ("a bare process: `--version`", &mut bare),
        ("a script that returns at once: start, confinement, run, end", &mut scripts),
        ("a script that repeats 64 recorded calls and waits at the next one", &mut replays),
    ] {
        let times = sorted(times);
        let [p50, p90] = [50, 90].map(|percent| percentile(times, percent));
        report.push_str(&format!("| {name} | {p50:.1} | {p90:.1} | {:.2}× |\n", p50 / baseline));
    }
    process::print(&format!("{report}\nTimes in ms, of {} runs each.\n\n", args.repetitions));
    calls().await;
}

fn sorted(times: &mut [f64]) -> &[f64] {
    times.sort_by(f64::total_cmp);
    times
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Compares the calls of one script with those of one client.
async fn calls() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut service = rig::service(&directory, &rig::child());
    let address = service.address();
    let direct = Target { address, path: "/direct", tool: "child__echo" };
    let mut client = Client::open(&direct, 1).await.expect("it is served");
    client.echo(64).await.expect("the server is warm");
    let execute = Target { address, path: "/meta", tool: "mcp_execute" };
    let mut wire = Wire::connect(address).await.expect("it listens");
    let code = format!(
        "for (let n = 0; n < {N_CALLS}; n++) await servers.child.echo({{ text: 'x'.repeat(64) }});
         return 'done'"
    );
    let arguments = json!({ "code": code, "max_tool_calls": N_CALLS });
    let (mut by_client, mut by_script) = (Vec::new(), Vec::new());
    for _ in 0..N_LONG {
        let start = Instant::now();
        for _ in 0..N_CALLS {
            client.echo(64).await.expect("it is answered");
        }
        by_client.push(ms(start.elapsed()));
        let (answer, took) =
            client::call(&mut wire, &execute, &arguments).await.expect("it is answered");
        assert_eq!(answer["result"]["structuredContent"]["value"], "done", "{answer}");
        by_script.push(ms(took));
    }
    let mut more: Vec<f64> =
        by_script.iter().zip(&by_client).map(|(script, client)| script - client).collect();
    let [client, script, more] =
        [&mut by_client, &mut by_script, &mut more].map(|times| percentile(sorted(times), 50));
    process::print(&format!(
        "{N_CALLS} calls one after the other, medians of {N_LONG} interleaved runs:\n\n\
         | by a client | by a script | difference |\n|--:|--:|--:|\n\
         | {client:.0} ms | {script:.0} ms | {more:.0} ms |\n"
    ));
}

/// Starts and ends a process of the same program.
fn timed_version() -> Duration {
    let mut command = process::command(Path::new(PROGRAM));
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    assert!(command.status().expect("it starts").success());
    start.elapsed()
}

/// Runs a script that returns at once, up to the end of its process.
fn timed_script() -> Duration {
    let start = Instant::now();
    let mut sandbox = Sandbox::start("return 1");
    assert!(matches!(sandbox.next(), SandboxMessage::Returned(_)));
    assert!(sandbox.child.wait().expect("it ends").success());
    start.elapsed()
}

/// Repeats recorded calls, up to the first one that is not recorded.
fn timed_replay() -> Duration {
    let start = Instant::now();
    let mut sandbox = Sandbox::start(CALLING);
    let text = json!({ "text": "hello" }).to_string();
    for operation in 1..=N_RECORDED {
        let value = serde_json::value::RawValue::from_string(text.clone()).expect("JSON");
        let outcome = OperationOutcome::Value(value);
        sandbox.send(&HostMessage::Settle(Settlement { operation, now_ms: 0, outcome }));
    }
    while !matches!(sandbox.next(), SandboxMessage::Idle(n) if n == N_RECORDED) {}
    let took = start.elapsed();
    sandbox.child.kill().expect("it runs");
    sandbox.child.wait().expect("it ends");
    took
}

/// A confined process, and the pipe to it.
struct Sandbox {
    child: std::process::Child,
    pipe: UnixStream,
}

impl Sandbox {
    fn start(code: &str) -> Self {
        let (pipe, theirs) = UnixStream::pair().expect("a pair of sockets");
        let mut command = process::command(Path::new(PROGRAM));
        command.args(["sandbox", "standard"]).env_clear().env("TZ", "UTC0");
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("it starts");
        drop(command);
        let limits =
            SandboxLimits { memory_bytes: 64 << 20, sleep_max_ms: 30_000, pending_max: 4096 };
        let code = code.to_owned();
        let start = ScriptStart { code, args: None, seed: 1, now_ms: 0, limits };
        let mut sandbox = Self { child, pipe };
        sandbox.send(&HostMessage::Start(Box::new(start)));
        sandbox
    }

    fn send(&mut self, message: &HostMessage) {
        let frame = frame(message).expect("a message");
        self.pipe.write_all(&frame).expect("it reads");
    }

    fn next(&mut self) -> SandboxMessage {
        let mut head = [0; FRAME_HEAD_BYTES];
        self.pipe.read_exact(&mut head).expect("it answers");
        let mut text = vec![0; frame_length(head).expect("a length")];
        self.pipe.read_exact(&mut text).expect("it answers");
        read_message(&text).expect("a message")
    }
}
