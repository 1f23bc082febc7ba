//! The default command: the same calls directly, through the bare proxy and through metamcp.
//!
//! Repetitions are interleaved, and each ratio compares two consecutive measurements, so that other
//! load on the machine affects both.

use std::time::Duration;

use crate::{
    load::{Load, Sample},
    process,
    report::{Measure, Report},
    rig::{Contestant, Rig},
    session, usage,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Measure less, in half a minute: for a quick check, not for publication
    #[arg(long)]
    quick: bool,
    /// The number of repetitions
    #[arg(long, value_name = "N")]
    repetitions: Option<usize>,
    /// Have the upstream answer with event streams instead of JSON
    #[arg(long)]
    events: bool,
    /// Run the bare proxy with one thread instead of as many as there are cores
    #[arg(long)]
    single_thread: bool,
}

const N_CLIENTS: usize = 32;
/// The length of a typical text, in bytes.
const USUAL: usize = 100;

pub(crate) async fn run(args: Args) {
    let n_repetitions = args.repetitions.unwrap_or(if args.quick { 2 } else { 5 });
    let n_memory = if args.quick { 1 } else { 3 };
    let mut rig = Rig::start(args.events, args.single_thread).await;
    let mut report = Report::default();
    resident(&rig, Measure::ResidentFresh, &mut report);
    for number in 1..=n_repetitions {
        process::progress(&format!("repetition {number} of {n_repetitions}"));
        repetition(&mut rig, args.quick, &mut report).await;
    }
    resident(&rig, Measure::ResidentLoaded, &mut report);
    for number in 1..=n_memory {
        process::progress(&format!("idle sessions {number} of {n_memory}"));
        rig.restart().await;
        for contestant in [Contestant::Proxy, Contestant::Gateway] {
            let target = rig.target(contestant);
            let Some(pid) = rig.pid(contestant) else { continue };
            for (measure, kib) in session::measure(&target, pid).await {
                report.add(measure, contestant, kib);
            }
        }
    }
    process::print(&report.render(n_repetitions));
}

async fn repetition(rig: &mut Rig, is_quick: bool, report: &mut Report) {
    let mut all =
        async |n_clients, bytes, seconds: f64, note: &mut dyn FnMut(Contestant, &Sample)| {
            let seconds = if is_quick { seconds / 2.0 } else { seconds };
            let (warm_up, measured) =
                (Duration::from_secs_f64(seconds / 5.0), Duration::from_secs_f64(seconds));
            for contestant in Contestant::ALL {
                let load = Load { n_clients, bytes, warm_up, measured };
                let (target, pid) = (rig.target(contestant), rig.pid(contestant));
                note(contestant, &load.run(&target, pid.as_slice()).await);
            }
        };
    all(1, USUAL, 1.5, &mut |contestant, sample| {
        report.add(Measure::P50Alone, contestant, sample.percentile_us(50));
        report.add(Measure::P99Alone, contestant, sample.percentile_us(99));
    })
    .await;
    all(N_CLIENTS, USUAL, 3.0, &mut |contestant, sample| {
        report.add(Measure::P50Many, contestant, sample.percentile_us(50));
        report.add(Measure::P99Many, contestant, sample.percentile_us(99));
        report.add(Measure::Throughput, contestant, sample.throughput());
        if let Some(cpu_us) = sample.cpu_us() {
            report.add(Measure::Cpu, contestant, cpu_us);
        }
    })
    .await;
    all(1, 16 << 10, 1.0, &mut |contestant, sample| {
        report.add(Measure::P50Medium, contestant, sample.percentile_us(50));
    })
    .await;
    all(1, 1 << 20, 1.5, &mut |contestant, sample| {
        report.add(Measure::P50Large, contestant, sample.percentile_us(50));
    })
    .await;
}

fn resident(rig: &Rig, measure: Measure, report: &mut Report) {
    for contestant in [Contestant::Proxy, Contestant::Gateway] {
        if let Some(pid) = rig.pid(contestant) {
            report.add(measure, contestant, usage::memory(pid).resident / 1024.0);
        }
    }
}
