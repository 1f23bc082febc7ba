//! A closed-loop load: each client calls, waits for the answer, checks it, and repeats.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{self, Instant},
};

use crate::{
    client::{Client, Target},
    report::percentile,
    usage,
};

/// The load on a target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) n_clients: usize,
    /// The length of the returned text, in bytes.
    pub(crate) bytes: usize,
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
}

/// The measurements of a load.
#[derive(Debug)]
pub(crate) struct Sample {
    /// The latencies in microseconds, ascending.
    latencies_us: Vec<f64>,
    took: Duration,
    cpu: Duration,
}

/// The phase of a run: warm-up, measurement or end.
#[derive(Debug, Default)]
struct Phase(AtomicU8);

const MEASURED: u8 = 1;
const OVER: u8 = 2;

impl Load {
    /// Loads `target` and measures the processor time of the processes `pids` together.
    ///
    /// # Panics
    ///
    /// If an answer is missing or wrong.
    pub(crate) async fn run(self, target: &Target, pids: &[u32]) -> Sample {
        let phase = Arc::new(Phase::default());
        let mut clients = JoinSet::new();
        for number in 0..self.n_clients {
            let client = Client::open(target, number).await;
            let client =
                client.unwrap_or_else(|error| panic!("handshake with {target:?}: {error}"));
            clients.spawn(call(client, self.bytes, Arc::clone(&phase)));
        }
        time::sleep(self.warm_up).await;
        let cpu_before = usage::cpu(pids);
        let start = Instant::now();
        phase.enter(MEASURED);
        time::sleep(self.measured).await;
        phase.enter(OVER);
        let took = start.elapsed();
        let cpu = usage::cpu(pids).saturating_sub(cpu_before);
        let mut latencies_us: Vec<f64> = Vec::new();
        while let Some(seen) = clients.join_next().await {
            // A wrong answer in a task ends the run.
            latencies_us.extend(seen.unwrap_or_else(|error| panic!("{target:?}: {error}")));
        }
        latencies_us.sort_by(f64::total_cmp);
        assert!(!latencies_us.is_empty(), "{target:?} answered nothing in {took:?}");
        Sample { latencies_us, took, cpu }
    }
}

/// Returns the latencies of the calls within the measured phase, in microseconds.
async fn call(mut client: Client, bytes: usize, phase: Arc<Phase>) -> Vec<f64> {
    let mut seen = Vec::with_capacity(1 << 16);
    loop {
        let before = phase.now();
        if before == OVER {
            return seen;
        }
        let took = client.echo(bytes).await.unwrap_or_else(|error| panic!("{error}"));
        if before == MEASURED && phase.now() == MEASURED {
            seen.push(took.as_secs_f64() * 1e6);
        }
    }
}

impl Phase {
    fn now(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    fn enter(&self, part: u8) {
        self.0.store(part, Ordering::Relaxed);
    }
}

impl Sample {
    /// Returns the latency that `percent` of the calls stay below, in microseconds.
    pub(crate) fn percentile_us(&self, percent: usize) -> f64 {
        percentile(&self.latencies_us, percent)
    }

    /// Returns the calls per second.
    pub(crate) fn throughput(&self) -> f64 {
        self.n_calls() / self.took.as_secs_f64()
    }

    /// Returns the processor time per call, in microseconds, if a process was measured.
    pub(crate) fn cpu_us(&self) -> Option<f64> {
        (!self.cpu.is_zero()).then(|| self.cpu.as_secs_f64() * 1e6 / self.n_calls())
    }

    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^52 calls")]
    fn n_calls(&self) -> f64 {
        self.latencies_us.len() as f64
    }
}
