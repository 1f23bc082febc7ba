//! The memory that an idle client session adds to the hop.

use std::{net::SocketAddr, time::Duration};

use tokio::time;

use crate::{
    client::{self, Client, Target},
    report::Measure,
    usage,
    wire::Wire,
};

/// The number of sessions before the first measurement, which trigger one-time allocations.
const N_WARM_UP: usize = 300;
const N_SESSIONS: usize = 2000;
/// Fewer than metamcp's limit on connections.
const N_CONNECTIONS: usize = 800;
const N_SHARED_CONNECTIONS: usize = 4;

/// The time for unused buffers to be freed.
const SETTLE: Duration = Duration::from_millis(300);

/// Opens idle sessions at `target` and returns the memory of `pid` per session.
pub(crate) async fn measure(target: &Target, pid: u32) -> Vec<(Measure, f64)> {
    let mut measurements = Vec::new();
    let mut wires = Vec::new();
    for _ in 0..N_SHARED_CONNECTIONS {
        wires.push(connect(target.address).await);
    }
    open(&mut wires, target, N_WARM_UP).await;
    let before = anonymous(pid).await;
    open(&mut wires, target, N_SESSIONS).await;
    let sessions = anonymous(pid).await;
    measurements.push((Measure::IdleSession, each(sessions - before, N_SESSIONS)));

    let mut clients = Vec::new();
    for number in 0..N_CONNECTIONS {
        let client = Client::open(target, number).await;
        clients.push(client.unwrap_or_else(|error| panic!("session {number}: {error}")));
    }
    let connections = anonymous(pid).await;
    measurements.push((Measure::IdleConnection, each(connections - sessions, N_CONNECTIONS)));

    for (number, client) in clients.iter_mut().enumerate() {
        let head = client.listen().await.unwrap_or_else(|error| panic!("stream {number}: {error}"));
        match head.status {
            200 => {}
            // This contestant has no such stream.
            _ if number == 0 => return measurements,
            status => panic!("stream {number}: HTTP {status}"),
        }
    }
    let streams = anonymous(pid).await;
    measurements.push((Measure::IdleStream, each(streams - connections, N_CONNECTIONS)));
    measurements
}

async fn connect(address: SocketAddr) -> Wire {
    Wire::connect(address).await.unwrap_or_else(|error| panic!("connect to {address}: {error}"))
}

async fn open(wires: &mut [Wire], target: &Target, n_sessions: usize) {
    for number in 0..n_sessions {
        let n_wires = wires.len();
        let opened = client::perform_handshake(&mut wires[number % n_wires], target).await;
        opened.unwrap_or_else(|error| panic!("session {number}: {error}"));
    }
}

/// Returns the anonymous memory of the process, in KiB.
async fn anonymous(pid: u32) -> f64 {
    time::sleep(SETTLE).await;
    usage::memory(pid).anonymous
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand")]
fn each(all: f64, n: usize) -> f64 {
    all / n as f64
}
