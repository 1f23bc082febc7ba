//! What operators ask about the service itself, and want it to do.

use std::path::PathBuf;

use serde_json::json;

use super::{Answer, Asker, Desk, Params, order};
use crate::{
    config::defaults,
    protocol::{RpcError, error::INVALID_REQUEST},
    status::camel,
};

/// Answers `daemon/status`.
pub(super) async fn status(desk: &Desk, params: &Params<'_>) -> Answer {
    let with_memory = params.flag("memory")?;
    let mut servers = desk.board.server_states();
    let memory = match with_memory {
        true => Some(desk.board.weigh(&mut servers).await),
        false => None,
    };
    let found = desk.board.status();
    let mut answer = json!({
        "pid": found.pid,
        "uptime": found.uptime_ms,
        "serverCount": servers.len(),
        "servers": servers,
        "version": found.version,
        "clients": found.clients,
        "tasks": found.tasks,
        "generation": found.generation,
        "memoryBudget": camel(json!(found.memory_budget)),
        "pool": camel(json!(found.pool)),
        "quarantined": camel(json!(found.quarantined)),
        "collisions": camel(json!(found.collisions)),
    });
    if let Some(memory) = memory {
        answer["memory"] = json!(memory);
    }
    Ok(answer.to_string())
}

/// Answers `config/reload`. A file that is named takes the place of the one that the service was
/// started with: the next reload, by whatever way, reads that one.
pub(super) async fn reload(desk: &Desk, params: &Params<'_>, asker: &Asker) -> Answer {
    let path: Option<PathBuf> = params.optional::<String>("configPath")?.map(PathBuf::from);
    if let Some(path) = &path {
        if !asker.peer.is_some_and(super::Peer::is_master) {
            let text = "only root and the user of the service may name another configuration file";
            let error = RpcError::new(INVALID_REQUEST, "FORBIDDEN", text)
                .suggest("Leave `configPath` out, or ask as one of them on the control socket.");
            return Err(error.into());
        }
        // The service is somewhere else than who asks. What is no file would hold it up.
        let found = std::fs::metadata(path);
        if !path.is_absolute() {
            return Err(params.wrong("configPath", "an absolute path"));
        }
        if found.is_ok_and(|found| !found.is_file() || found.len() > defaults::CONFIG_BYTES_MAX) {
            return Err(params.wrong("configPath", "a file, and not larger than any configuration"));
        }
    }
    tracing::info!(peer_uid = asker.uid(), path = ?path, "reload asked for by an operator");
    let diff = order::reload(&desk.orders, path).await?;
    let answer = json!({ "added": diff.added, "removed": diff.removed, "changed": diff.changed });
    Ok(answer.to_string())
}

/// Answers `daemon/stop`.
pub(super) async fn stop(desk: &Desk, asker: &Asker) -> Answer {
    tracing::info!(peer_uid = asker.uid(), "stop asked for by an operator");
    order::stop(&desk.orders).await?;
    Ok(json!({ "ok": true }).to_string())
}
