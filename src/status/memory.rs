//! The memory that the service and its servers use, and that sharing saves.

use std::{collections::HashMap, sync::Arc};

use serde::Serialize;
use tokio::{
    task,
    time::{self, Instant},
};

use super::{ServerState, StatusBoard};
use crate::{child::memory_usage, config::defaults, server_name::ServerName};

/// Memory in use, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryFigures {
    /// The memory of the metamcp process itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_bytes: Option<u64>,
    /// The memory of all servers together, where it is known.
    pub servers_bytes: u64,
    /// The memory that is saved by sharing: that of the shared servers, times the number of
    /// connected clients but one.
    pub saved_bytes: u64,
}

/// The processes and the unit that a server's memory belongs to.
pub(super) struct MemoryOwner {
    pub(super) server: ServerName,
    pub(super) pids: Vec<u32>,
    pub(super) unit: Option<String>,
}

#[derive(Debug, Default)]
struct Measured {
    own: Option<u64>,
    servers: HashMap<ServerName, u64>,
}

impl StatusBoard {
    /// Sets the memory of each of `servers`, and returns the sums. Leaves out what cannot be
    /// measured within [`defaults::MEASURE_TIMEOUT`]. Cancel safe.
    pub async fn measure(&self, servers: &mut [ServerState]) -> MemoryFigures {
        let memory_owners = self.memory_owners();
        let permit = Arc::clone(&self.memory_meter);
        let measuring = async {
            let permit = permit.acquire_owned().await.ok()?;
            let until = Instant::now() + defaults::MEASURE_TIMEOUT;
            let measuring = task::spawn_blocking(move || {
                let measured = measure(&memory_owners, until);
                // Even if the caller no longer waits.
                drop(permit);
                measured
            });
            measuring.await.ok()
        };
        let measured = time::timeout(2 * defaults::MEASURE_TIMEOUT, measuring).await;
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

fn measure(memory_owners: &[MemoryOwner], until: Instant) -> Measured {
    let roots: Vec<u32> = memory_owners.iter().flat_map(|owner| &owner.pids).copied().collect();
    let trees = memory_usage::of_trees(&roots, until);
    let of = |owner: &MemoryOwner| {
        let trees = owner.pids.iter().filter_map(|pid| trees.get(pid).copied());
        let unit = owner.unit.as_deref().and_then(|unit| memory_usage::of_unit(unit, until));
        let all: Vec<u64> = trees.chain(unit).collect();
        (!all.is_empty()).then(|| (owner.server.clone(), all.iter().sum()))
    };
    Measured {
        own: memory_usage::own_memory(),
        servers: memory_owners.iter().filter_map(of).collect(),
    }
}
