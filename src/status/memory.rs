//! The memory that the service and its servers use, and that sharing saves.

use std::{collections::HashMap, sync::Arc};

use serde::Serialize;
use tokio::{
    task,
    time::{self, Instant},
};

use super::{ServerState, StatusBoard};
use crate::{
    child::resource_usage::{self, ResourceUsage},
    config::defaults,
    server_name::ServerName,
};

/// Memory in use, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryFigures {
    /// The memory of the metamcp process itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_bytes: Option<u64>,
    /// The memory of all servers together, where it is known.
    pub servers_bytes: u64,
    /// The memory that is saved by sharing: that of each shared server, times the number of
    /// present client sessions that have called it or read from it, but one.
    pub saved_bytes: u64,
}

/// The processes and the unit that a server's memory belongs to.
pub(super) struct MemoryOwner {
    pub(super) server: ServerName,
    pub(super) pids: Vec<u32>,
    pub(super) unit: Option<String>,
}

/// The resources in use, where they could be measured.
#[derive(Debug, Default)]
pub struct MeasuredUsage {
    /// The resources of the metamcp process itself.
    pub own: Option<ResourceUsage>,
    /// The resources of the processes and units of each server.
    pub servers: HashMap<ServerName, ResourceUsage>,
}

impl StatusBoard {
    /// Measures the resources of the service and its servers. Leaves out what cannot be measured
    /// within [`defaults::MEASURE_TIMEOUT`]. Cancel safe.
    pub async fn resource_usage(&self) -> MeasuredUsage {
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
        measured.ok().flatten().unwrap_or_default()
    }

    /// Sets the memory of each of `servers` that can be measured, and returns the sums. Cancel safe.
    pub async fn measure(&self, servers: &mut [ServerState]) -> MemoryFigures {
        let MeasuredUsage { own, servers: mut used } = self.resource_usage().await;
        for server in servers.iter_mut() {
            server.memory_bytes = used.remove(&server.name).map(|used| used.memory_bytes);
        }
        let servers = servers.iter();
        MemoryFigures {
            own_bytes: own.map(|own| own.memory_bytes),
            servers_bytes: servers.clone().filter_map(|server| server.memory_bytes).sum(),
            saved_bytes: servers
                .map(|server| {
                    let bytes = server.memory_bytes.unwrap_or_default();
                    saved_bytes(server.sharing, bytes, server.client_sessions)
                })
                .sum(),
        }
    }
}

/// Returns the memory that the clients of a server would use if each had its own process of it,
/// minus the memory that the one process uses. Only sessions that have called the server, or read
/// from it, would have started it for sure.
fn saved_bytes(sharing: &str, memory_bytes: u64, n_sessions: usize) -> u64 {
    let n_others = n_sessions.saturating_sub(1) as u64;
    if sharing == "shared" { memory_bytes.saturating_mul(n_others) } else { 0 }
}

fn measure(memory_owners: &[MemoryOwner], until: Instant) -> MeasuredUsage {
    let roots: Vec<u32> = memory_owners.iter().flat_map(|owner| &owner.pids).copied().collect();
    let trees = resource_usage::of_trees(&roots, until);
    let of = |owner: &MemoryOwner| {
        let trees = owner.pids.iter().filter_map(|pid| trees.get(pid).copied());
        let unit = owner.unit.as_deref().and_then(|unit| resource_usage::of_unit(unit, until));
        let all: Vec<ResourceUsage> = trees.chain(unit).collect();
        (!all.is_empty()).then(|| (owner.server.clone(), all.into_iter().sum()))
    };
    MeasuredUsage {
        own: resource_usage::of_this_process(),
        servers: memory_owners.iter().filter_map(of).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_session_saves_no_memory_and_each_further_one_saves_one_process() {
        let bytes = 256 << 20;
        assert_eq!(saved_bytes("shared", bytes, 0), 0);
        assert_eq!(saved_bytes("shared", bytes, 1), 0);
        assert_eq!(saved_bytes("shared", bytes, 3), 512 << 20);
        assert_eq!(saved_bytes("session", bytes, 3), 0);
    }
}
