//! `commands`: the duration of a command, from the start of its process to its end, next to a
//! running service with a warm server.
//!
//! The baseline is `metamcp --version`, which only starts and ends. The commands take turns, so
//! that slow moments of the machine affect all of them.

use std::{fmt::Write as _, time::Duration};

use tokio::time::{self, Instant};

use crate::{process, report::percentile, rig};

/// Measure commands next to a running service, as a shell would
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The number of runs of each command
    #[arg(long, value_name = "N", default_value_t = 100)]
    repetitions: usize,
}

/// The commands with their descriptions.
const COMMANDS: [(&str, &[&str]); 7] = [
    ("`--version`: process start and end", &["--version"]),
    ("`call` with JSON", &["call", "child/echo", r#"{"text":"hello"}"#]),
    ("`call` with `--key`: reads the schema first", &["call", "child/echo", "--text", "hello"]),
    ("`call --dry-run`", &["call", "--dry-run", "child/echo", r#"{"text":"hello"}"#]),
    ("`tools`", &["tools"]),
    ("`servers`", &["servers"]),
    ("`status`: measures the memory of the server processes", &["status"]),
];

/// The maximum time until a first call succeeds.
const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) async fn run(args: Args) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut service = rig::service(&directory, &rig::child());
    let _address = service.address();
    let socket = directory.path().join("control.sock");
    let deadline = Instant::now() + TIMEOUT;
    while process::timed(COMMANDS[1].1, &socket).is_none() {
        assert!(Instant::now() < deadline, "no call succeeds");
        time::sleep(Duration::from_millis(50)).await;
    }
    let mut times_ms = COMMANDS.map(|_| Vec::new());
    for _ in 0..args.repetitions {
        for ((name, arguments), times_ms) in COMMANDS.iter().zip(&mut times_ms) {
            let took = process::timed(arguments, &socket);
            times_ms.push(took.unwrap_or_else(|| panic!("{name} fails")).as_secs_f64() * 1e3);
        }
    }
    let mut report =
        String::from("| command | p50 | p90 | p99 | ÷ `--version` |\n|---|--:|--:|--:|--:|\n");
    let mut baseline = None;
    for ((name, _), times_ms) in COMMANDS.iter().zip(&mut times_ms) {
        times_ms.sort_by(f64::total_cmp);
        let [p50, p90, p99] = [50, 90, 99].map(|percent| percentile(times_ms, percent));
        let ratio = p50 / *baseline.get_or_insert(p50);
        writeln!(report, "| {name} | {p50:.1} | {p90:.1} | {p99:.1} | {ratio:.2}× |")
            .expect("a string takes all");
    }
    process::print(&format!("{report}\nTimes in ms, of {} runs each.\n", args.repetitions));
}
