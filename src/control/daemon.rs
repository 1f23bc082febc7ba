//! The methods about the service itself: `daemon/…` and `config/reload`.

use std::{
    io::{self, Read as _},
    path::PathBuf,
};

use serde_json::json;
use tokio::task;

use super::{
    ControlParams, ControlRequest, MethodResult, NamedFile, PeerCredentials, auth_status,
    operator_command,
};
use crate::{
    config::defaults,
    error_report::chain,
    files::trusted::{self, UntrustedFile},
    protocol::{
        RpcError,
        rpc_error::{INVALID_PARAMS, INVALID_REQUEST},
    },
    status::camel,
};

/// Answers `daemon/status`.
pub(super) async fn status(request: &ControlRequest<'_>) -> MethodResult {
    let with_memory = request.params.flag("memory")?;
    let parts = &request.service.parts;
    let board = &parts.board;
    // Counted once, so that all numbers are of the same moment.
    let census = board.census();
    let mut servers = board.server_states(&parts.operators.config().disabled, &census);
    let memory = match with_memory {
        true => Some(board.measure(&mut servers).await),
        false => None,
    };
    let found = board.status();
    let calls = parts.views.calls();
    let tokens = calls.costs().comparisons(parts.views.list_sizes());
    let logins = auth_status::logins(&parts.logins.statuses());
    let mut answer = json!({
        "pid": found.pid,
        "uid": rustix::process::geteuid().as_raw(),
        "gid": rustix::process::getegid().as_raw(),
        "configFile": board.config_file().as_deref(),
        "addresses": board.addresses(),
        "uptime": found.uptime_ms,
        "serverCount": servers.len(),
        "servers": servers,
        "version": found.version,
        "clients": found.clients,
        "sessions": census.n_sessions(),
        "clientSessions": census.summaries(),
        "tokenCosts": tokens,
        "logins": logins,
        "tasks": found.tasks,
        "generation": found.generation,
        "memoryBudget": camel(json!(found.memory_budget)),
        "pool": camel(json!(found.pool)),
        "quarantined": camel(json!(found.quarantined)),
        "collisions": camel(json!(found.collisions)),
        "scripts": request.service.parts.operators.scripts().to_operator_json(),
    });
    if let Some(memory) = memory {
        answer["memory"] = json!(memory);
    }
    Ok(answer.to_string())
}

/// Answers `config/reload`. A named file replaces the file of the start: every later reload reads
/// it.
pub(super) async fn reload(request: &ControlRequest<'_>) -> MethodResult {
    let path: Option<PathBuf> = request.params.optional::<String>("configPath")?.map(PathBuf::from);
    let peer_uid = request.requester.uid();
    let file = path.as_ref().map(|path| path.display());
    let from = file.as_ref().map(|file| format!(" from `{file}`")).unwrap_or_default();
    tracing::info!(
        peer_uid,
        path = file.map(tracing::field::display),
        "an operator requested a reload of the configuration{from}"
    );
    let from = match path {
        None => None,
        Some(path) if request.requester.peer.is_some_and(PeerCredentials::is_master) => {
            Some(read_named(path, &request.params).await?)
        }
        Some(_) => {
            let text = "only root and the user of the service may name another configuration file";
            let error = RpcError::new(INVALID_REQUEST, "FORBIDDEN", text).suggest(
                "Omit `configPath`, or reload as one of these users on the control socket.",
            );
            return Err(error.into());
        }
    };
    let diff = operator_command::reload(&request.service.parts.commands, from).await?;
    let answer = json!({ "added": diff.added, "removed": diff.removed, "changed": diff.changed });
    Ok(answer.to_string())
}

/// Reads the configuration file at `path`, if no other user can have written it.
async fn read_named(path: PathBuf, params: &ControlParams<'_>) -> Result<NamedFile, Box<RpcError>> {
    // The service and the operator have different working directories.
    if !path.is_absolute() {
        return Err(params.invalid("configPath", "an absolute path"));
    }
    let reading = task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        let file = trusted::open(&path)?;
        let failed = |source| UntrustedFile::Io { path: path.clone(), source };
        // The file may grow meanwhile.
        file.take(defaults::CONFIG_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        Ok::<_, UntrustedFile>(NamedFile { path, bytes })
    });
    match reading.await {
        Ok(Ok(named)) if named.bytes.len() as u64 <= defaults::CONFIG_BYTES_MAX => Ok(named),
        Ok(Ok(_) | Err(UntrustedFile::Kind { .. })) => {
            let max = defaults::CONFIG_BYTES_MAX;
            Err(params.invalid("configPath", &format!("a regular file of at most {max} bytes")))
        }
        Ok(Err(error)) => Err(untrusted(&error).into()),
        Err(_panicked) => Err(RpcError::stopping(false).into()),
    }
}

fn untrusted(error: &UntrustedFile) -> RpcError {
    let (name, suggestion) = match error {
        UntrustedFile::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            ("CONFIG_INVALID", "Correct the path: there is no such file.")
        }
        UntrustedFile::Io { .. } | UntrustedFile::Links { .. } | UntrustedFile::Kind { .. } => {
            ("CONFIG_INVALID", "Make the file readable for the service.")
        }
        UntrustedFile::Owner { .. } => {
            ("CONFIG_UNTRUSTED", "Give it to root or to the user of the service with `chown`.")
        }
        UntrustedFile::Writable { .. } => {
            ("CONFIG_UNTRUSTED", "Remove the write access of other users with `chmod go-w`.")
        }
    };
    let (UntrustedFile::Io { path, .. }
    | UntrustedFile::Links { path }
    | UntrustedFile::Kind { path }
    | UntrustedFile::Owner { path, .. }
    | UntrustedFile::Writable { path, .. }) = error;
    RpcError::new(INVALID_PARAMS, name, chain(error))
        .suggest(format!("{suggestion} The old configuration stays in force."))
        .context(json!({ "file": path.display().to_string() }))
}

/// Answers `daemon/stop`.
pub(super) async fn stop(request: &ControlRequest<'_>) -> MethodResult {
    tracing::info!(peer_uid = request.requester.uid(), "an operator requested a stop");
    operator_command::stop(&request.service.parts.commands).await?;
    Ok(json!({ "ok": true }).to_string())
}
