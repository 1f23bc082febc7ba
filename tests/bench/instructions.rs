//! `instructions`: the cost of a call, in instructions as counted by callgrind.
//!
//! Times on a busy machine are unreliable: the same ratio was 0.65 and 1.49 in two runs.
//! Instruction counts repeat within about one percent. A service runs twice under valgrind and
//! serves a different number of sequential calls. The difference of the two counts excludes the
//! start and the stop.

use std::{
    ffi::OsStr,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use crate::{
    client::Client,
    process::{self, Process},
    rig::{self, Contestant},
};

/// Count the instructions of a call under valgrind, which must be installed
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Another build of metamcp to compare with
    #[arg(long, value_name = "PROGRAM")]
    before: Option<PathBuf>,
    /// The number of counted calls
    #[arg(long, value_name = "N", default_value_t = 2000)]
    calls: u32,
    /// The length of the returned text, in bytes
    #[arg(long, default_value_t = 100)]
    bytes: usize,
}

/// The number of calls before the counted ones.
const WARM_UP: u32 = 200;

/// The servers to call.
const MEASURED: [(&str, Contestant); 2] =
    [("HTTP upstream", Contestant::Gateway), ("child", Contestant::Child)];

pub(crate) async fn run(args: Args) {
    let mut report =
        String::from("| a call to | instructions | before | ratio |\n|---|--:|--:|--:|\n");
    let mut upstream = Process::ourselves("upstream", &["upstream"]);
    let address = upstream.address();
    for (name, contestant) in MEASURED {
        // The processes of a child are sampled by time, independently of the number of calls.
        let config = match contestant {
            Contestant::Child => rig::both(address),
            _ => rig::root(address),
        };
        let now = per_call(Path::new(process::PROGRAM), &config, contestant, &args).await;
        let (before, ratio) = match &args.before {
            Some(program) => {
                let before = per_call(program, &config, contestant, &args).await;
                (format!("{before:.0}"), format!("{:.3}×", now / before))
            }
            None => ("–".to_owned(), "–".to_owned()),
        };
        writeln!(report, "| {name} | {now:.0} | {before} | {ratio} |").expect("a string takes all");
    }
    process::print(&report);
}

/// Returns the number of instructions of one call.
async fn per_call(program: &Path, config: &str, contestant: Contestant, args: &Args) -> f64 {
    let least = counted(program, config, contestant, WARM_UP, args.bytes).await;
    let most = counted(program, config, contestant, WARM_UP + args.calls, args.bytes).await;
    (most - least) / f64::from(args.calls)
}

/// Returns the number of instructions of a whole service that serves `n_calls` calls.
async fn counted(
    program: &Path,
    config: &str,
    contestant: Contestant,
    n_calls: u32,
    bytes: usize,
) -> f64 {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let counts = directory.path().join("callgrind");
    let out = format!("--callgrind-out-file={}", counts.display());
    let words = ["valgrind", "--tool=callgrind", "-q", &out].map(OsStr::new);
    let words: Vec<&OsStr> = words.into_iter().chain([program.as_os_str()]).collect();
    let mut service = rig::service_by(&words, &directory, config);
    rig::wait_ready(&mut service).await;
    let target = contestant.target(service.address());
    let mut client = Client::open(&target, 1).await.expect("the handshake succeeds");
    for _ in 0..n_calls {
        client.echo(bytes).await.expect("it is answered");
    }
    drop(client);
    service.stop();
    let counts = std::fs::read_to_string(counts).expect("valgrind has written its counts");
    let sum = counts.lines().find_map(|line| line.strip_prefix("summary: "));
    sum.and_then(|sum| sum.trim().parse().ok()).expect("the sum of all instructions")
}
