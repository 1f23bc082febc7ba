//! Requests to the running service over its control socket.

use std::{
    io,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Access, access},
    io::Errno,
};
use serde_json::{Value, value::RawValue};
use tokio::runtime::Builder;

use super::{CONFIG, FAILED, Failed, UNAVAILABLE, auto_start, output, runtime};
use crate::{
    config::defaults,
    control::{
        socket_client::{self, ControlClientError, ControlConnection, ServiceError},
        socket_file::SocketDenial,
    },
    daemon::control_socket::{SYSTEM_SOCKET, default_socket},
    error_report::chain,
};

/// The service that a command asks.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct ServiceTarget {
    /// The control socket; default: the system's, or else this user's
    #[arg(long, value_name = "PATH", env = "METAMCP_SOCKET", hide_env_values = true)]
    pub(super) socket: Option<PathBuf>,
}

/// The options of each command with output.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct OutputArgs {
    /// Print the result as JSON, as the service returns it
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) target: ServiceTarget,
}

impl ServiceTarget {
    /// Returns the control socket of the service.
    pub(super) fn path(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(nearest_socket)
    }

    /// Connects to the running service.
    ///
    /// # Errors
    ///
    /// [`Failed`] with 69 when no service answers.
    pub(super) async fn connect_running(&self) -> Result<ControlConnection, Failed> {
        let opened = ControlConnection::open(&self.path()).await;
        if let (Err(error @ ControlClientError::Unreachable(..)), None) = (&opened, &self.socket)
            && !is_denied(error)
            // The configuration names the socket of a service started on demand.
            && let Some(socket) = auto_start::configured_socket()
        {
            return ControlConnection::open(&socket).await.map_err(failed);
        }
        opened.map_err(failed)
    }

    /// Connects to a service for a request that any service with the same configuration can answer.
    /// Starts one if none answers, none is named and no manager controls it.
    ///
    /// # Errors
    ///
    /// [`Failed`] with 69 when no service answers, or as [`auto_start::find_or_start`] does.
    pub(super) async fn connect(&self) -> Result<ControlConnection, Failed> {
        match ControlConnection::open(&self.path()).await {
            Err(error) if is_denied(&error) => Err(failed(error)),
            Err(error @ ControlClientError::Unreachable(..)) => match self.launched().await? {
                Some(socket) => ControlConnection::open(&socket).await.map_err(failed),
                None => Err(failed(error)),
            },
            opened => opened.map_err(failed),
        }
    }

    /// Returns the socket of a service started on demand, now or earlier. Returns `None` if a
    /// socket is named, or if the command must not start a service.
    ///
    /// # Errors
    ///
    /// [`Failed`] as [`auto_start::find_or_start`] does.
    pub(super) async fn launched(&self) -> Result<Option<PathBuf>, Failed> {
        match self.socket {
            Some(_) => Ok(None),
            None => Box::pin(auto_start::find_or_start()).await,
        }
    }

    /// Asks the running service.
    ///
    /// # Errors
    ///
    /// [`Failed`] when no answer arrives, or when the service or a server refuses.
    pub(super) fn call_service(
        &self,
        method: &str,
        params: &Value,
    ) -> Result<Box<RawValue>, Failed> {
        run(async { request(&mut self.connect_running().await?, method, params).await })
    }

    /// Asks a service for something that any service with the same configuration can do.
    ///
    /// # Errors
    ///
    /// [`Failed`] when no answer arrives, or when the service or a server refuses.
    pub(super) fn ask(&self, method: &str, params: &Value) -> Result<Box<RawValue>, Failed> {
        run(async { request(&mut self.connect().await?, method, params).await })
    }
}

/// The methods that the service answers by itself. For all others, the service limits the time that
/// a server may take.
const OWN_METHODS: [&str; 6] = [
    "auth/document",
    "auth/status",
    "daemon/status",
    "daemon/stop",
    "servers/list",
    "tools/search",
];

/// Sends a request and waits for its result. Members of `params` that are null are left out.
///
/// # Errors
///
/// [`Failed`] when no answer arrives, or when the service or a server refuses.
pub(super) async fn request(
    service: &mut ControlConnection,
    method: &str,
    params: &Value,
) -> Result<Box<RawValue>, Failed> {
    let timeout = match OWN_METHODS.contains(&method) {
        true => defaults::CONTROL_TIMEOUT,
        false => defaults::CONTROL_CALL_TIMEOUT,
    };
    let mut params = params.clone();
    if let Some(members) = params.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    service.ask(method, &params.to_string(), timeout).await.map_err(failed)
}

impl OutputArgs {
    /// Prints a result: as JSON with `--json`, else by `show`.
    ///
    /// # Errors
    ///
    /// [`Failed`] when the result cannot be parsed.
    pub(super) fn print(&self, result: &RawValue, show: impl FnOnce(&Value)) -> Result<(), Failed> {
        match self.json {
            true => output::json(result.get()),
            false => show(&value(result)?),
        }
        Ok(())
    }
}

/// Returns a result as a value.
///
/// # Errors
///
/// [`Failed`] when the result is nested too deeply.
pub(super) fn value(result: &RawValue) -> Result<Value, Failed> {
    socket_client::value(result).map_err(failed)
}

/// Runs a command to completion.
///
/// # Errors
///
/// [`Failed`] as `command` returns it, or when the runtime cannot be created.
pub(super) fn run<T>(command: impl Future<Output = Result<T, Failed>>) -> Result<T, Failed> {
    let runtime = runtime(Builder::new_current_thread())?;
    let done = runtime.block_on(command);
    // A name that is still being resolved must not delay the end.
    runtime.shutdown_background();
    done
}

/// Calls `method` with `params`, JSON text, on the service at `socket` or else the nearest one.
///
/// # Errors
///
/// [`Failed`] when the runtime cannot be created.
pub(super) fn ask(
    socket: Option<&Path>,
    method: &str,
    params: Option<&str>,
) -> Result<Result<Value, ControlClientError>, Failed> {
    let socket = socket.map_or_else(nearest_socket, Path::to_owned);
    run(async { Ok(socket_client::ask(&socket, method, params).await) })
}

/// Returns the socket of the system's service, unless only this user's is there, or accessible.
fn nearest_socket() -> PathBuf {
    let (system, own) = (Path::new(SYSTEM_SOCKET), default_socket());
    match access(system, Access::WRITE_OK) {
        Ok(()) => system.to_owned(),
        // The message about the system's service helps more than "not found".
        Err(Errno::ACCESS | Errno::PERM) if !own.exists() => system.to_owned(),
        Err(_) => own,
    }
}

/// Returns `true` if this user may not use the socket.
fn is_denied(error: &ControlClientError) -> bool {
    matches!(error, ControlClientError::Unreachable(_, source) if source.kind() == io::ErrorKind::PermissionDenied)
}

/// Returns the failure of a command for an error of the control connection.
pub(super) fn failed(error: ControlClientError) -> Failed {
    match error {
        ControlClientError::Unreachable(ref path, _) if is_denied(&error) => {
            let SocketDenial { text, hint } = SocketDenial::examine(path);
            Failed::new(UNAVAILABLE, text).hint(hint)
        }
        ControlClientError::Refused(refusal) => refused(&refusal),
        error => {
            let failed = Failed::new(
                match error {
                    ControlClientError::Unreadable(_) | ControlClientError::Oversized(_) => FAILED,
                    _ => UNAVAILABLE,
                },
                chain(&error),
            );
            match error.hint() {
                Some(hint) => failed.hint(hint),
                None => failed,
            }
        }
    }
}

/// Returns the failure for an error of the service, with its context as separate lines.
pub(super) fn refused(refusal: &ServiceError) -> Failed {
    let code = if refusal.data.code == "CONFIG_INVALID" { CONFIG } else { FAILED };
    let mut failed = Failed::new(code, output::text(&refusal.message));
    for (list, title) in CONTEXT {
        let found = output::items(&refusal.data.context[*list]);
        // The hint already contains a single similar name.
        let is_in_hint = title.starts_with("similar") && found.len() == 1;
        for item in found.iter().filter(|_| !is_in_hint).take(CONTEXT_LINES_MAX) {
            let item = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
            failed = failed.detail(format!("{title}{}", output::text(&item)));
        }
    }
    match &refusal.data.suggestion {
        Some(suggestion) if !suggestion.is_empty() => failed.hint(output::text(suggestion)),
        Some(_) | None => failed,
    }
}

/// The members of an error's context that are shown, and the prefix of each item.
const CONTEXT: &[(&str, &str)] = &[
    ("validationErrors", ""),
    ("similarTools", "similar: "),
    ("similarPrompts", "similar: "),
    ("availableServers", "server: "),
];

/// The largest number of items shown of one kind.
const CONTEXT_LINES_MAX: usize = 20;
