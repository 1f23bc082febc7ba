//! How much memory the service and its servers take, and how much is saved by running each once.

use std::{collections::HashMap, sync::Arc};

use serde::Serialize;
use tokio::{
    sync::Semaphore,
    task,
    time::{self, Instant},
};

use super::{ServerState, StatusBoard};
use crate::{child::memory, config::defaults, name::ServerName};

/// How much memory there is in use, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryFigures {
    /// Our own process alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_bytes: Option<u64>,
    /// All servers together, as far as it is known of them.
    pub servers_bytes: u64,
    /// What the servers that clients share would take more if each client ran its own: once their
    /// memory for each connected client but the first.
    pub saved_bytes: u64,
}

/// Whose memory a server's is.
pub(super) struct MemoryOwner {
    pub(super) server: ServerName,
    pub(super) pids: Vec<u32>,
    pub(super) unit: Option<String>,
}

/// Measures, one at a time: it takes the whole of `/proc`.
#[derive(Debug)]
pub(super) struct MemoryMeter(Arc<Semaphore>);

impl Default for MemoryMeter {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

/// What was measured.
#[derive(Debug, Default)]
struct Measured {
    own: Option<u64>,
    servers: HashMap<ServerName, u64>,
}

impl StatusBoard {
    /// Puts into `servers` how much memory each takes, and returns what that is together. What cannot
    /// be known within [`defaults::MEMORY_PATIENCE`] is left out.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn measure(&self, servers: &mut [ServerState]) -> MemoryFigures {
        let homes = self.homes();
        let permit = Arc::clone(&self.scales.0);
        let measuring = async {
            let permit = permit.acquire_owned().await.ok()?;
            let until = Instant::now() + defaults::MEMORY_PATIENCE;
            let measuring = task::spawn_blocking(move || {
                let measured = measure(&homes, until);
                // Also if nobody waits for it any more.
                drop(permit);
                measured
            });
            measuring.await.ok()
        };
        let measured = time::timeout(2 * defaults::MEMORY_PATIENCE, measuring).await;
        let Measured { own, servers: mut bytes } = measured.ok().flatten().unwrap_or_default();
        for server in servers.iter_mut() {
            server.memory_bytes = bytes.remove(&server.name);
        }
        let n_others = self.n_clients().saturating_sub(1) as u64;
        let sum = |is_counted: fn(&ServerState) -> bool| -> u64 {
            let counted = servers.iter().filter(|server| is_counted(server));
            counted.filter_map(|server| server.memory_bytes).sum()
        };
        MemoryFigures {
            own_bytes: own,
            servers_bytes: sum(|_| true),
            saved_bytes: sum(|server| server.sharing == "shared").saturating_mul(n_others),
        }
    }
}

fn measure(homes: &[MemoryOwner], until: Instant) -> Measured {
    let roots: Vec<u32> = homes.iter().flat_map(|home| &home.pids).copied().collect();
    let trees = memory::of_trees(&roots, until);
    let of = |home: &MemoryOwner| {
        let trees = home.pids.iter().filter_map(|pid| trees.get(pid).copied());
        let unit = home.unit.as_deref().and_then(|unit| memory::of_unit(unit, until));
        let all: Vec<u64> = trees.chain(unit).collect();
        (!all.is_empty()).then(|| (home.server.clone(), all.iter().sum()))
    };
    Measured { own: memory::own_memory(), servers: homes.iter().filter_map(of).collect() }
}
