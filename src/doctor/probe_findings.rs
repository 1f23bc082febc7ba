//! The findings about one probed server.
//!
//! Pure.

use std::{os::unix::process::ExitStatusExt as _, time::Duration};

use super::{
    finding::{Finding, FindingArea::Servers, count},
    pinned_versions,
    probed_connection::ProbedConnection,
    recording_launcher::ProcessRecord,
    sandbox::{SandboxRemedy, of_server},
};
use crate::{
    child::ChildExit,
    config::{ServerConfig, StartPolicy, TransportConfig, defaults, secret::SecretError},
    connection::ConnectError,
    error_report::chain,
    import::nix_name,
    redact::Redactor,
    server_name::ServerName,
};

/// The signal that a process cannot catch. Source: signal(7), SIGKILL.
const KILL: i32 = 9;

pub(super) fn connection_finding(
    name: &ServerName,
    server: &ServerConfig,
    connection: &ProbedConnection,
) -> Finding {
    let is_of_start = |name| matches!(name, "start" | "handshake" | "tools/list");
    let phases = connection.phases.iter().filter(|phase| is_of_start(phase.name));
    let took: Duration = phases.map(|phase| phase.took).sum();
    let text = format!("connected, {} ms", took.as_millis());
    if took <= defaults::DOCTOR_SLOW || server.start != StartPolicy::Lazy {
        return Finding::ok(Servers, text).of(name);
    }
    Finding::note(Servers, format!("{text}: the first client waits for it"))
        .of(name)
        .fix(format!("Connect it with the service: `start = \"eager\"` in `[servers.{name}]`."))
        .nix(of_server(name, "start = \"eager\";"))
}

pub(super) fn listing_finding(name: &ServerName, reason: &str) -> Finding {
    let output = format!(
        "Read its standard error in `metamcp doctor --server {name} --json`, or report it to the server's author."
    );
    Finding::error(Servers, "does not list its tools").of(name).because(reason).fix(output)
}

pub(super) fn failure_finding(
    name: &ServerName,
    error: &ConnectError,
    remedy: Option<SandboxRemedy>,
    redactor: &Redactor,
) -> Finding {
    if let ConnectError::Secret { key, source, .. } = error {
        // Only the service knows whether the secret is really missing.
        let finding = Finding::note(Servers, format!("its `{key}` cannot be read here"))
            .of(name)
            .because(chain(source))
            .fix(source.hint());
        let Some(credential) = credential_of(source) else { return finding };
        let option = format!("credentials.{} = \"/run/secrets/{credential}\";", nix_name(key));
        return finding.nix(of_server(name, &option));
    }
    let text = redactor.redact(&chain(error));
    let why = text.strip_prefix(&format!("cannot connect to server `{name}`: ")).unwrap_or(&text);
    let finding = Finding::error(Servers, "cannot be connected").of(name).because(why);
    match remedy {
        Some(SandboxRemedy { fix, nix: Some(nix) }) => finding.fix(fix).nix(nix),
        Some(SandboxRemedy { fix, nix: None }) => finding.fix(fix),
        None if error.is_timeout() => {
            finding.fix(error.hint()).nix(of_server(name, "start_timeout = \"2m\";"))
        }
        None => finding.fix(error.hint()),
    }
}

fn credential_of(error: &SecretError) -> Option<&str> {
    match error {
        SecretError::NoDirectory { name }
        | SecretError::Missing { name, .. }
        | SecretError::Credential { name, .. } => Some(name),
        SecretError::Name { .. } | SecretError::Env { .. } => None,
    }
}

/// Returns the findings about the output, the version and the exit of a server.
pub(super) fn behaviour_findings(
    name: &ServerName,
    server: &ServerConfig,
    connection: &ProbedConnection,
    record: &ProcessRecord,
    is_connected: bool,
) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(first) = connection.noise.first() {
        let lines = count(record.noise.n_lines, "line");
        let what = match record.noise.n_lines {
            1 => format!("writes a line to standard output that is not an MCP message: `{first}`"),
            _ => format!("writes {lines} to standard output that are not MCP messages: `{first}`"),
        };
        found.push(
            Finding::warning(Servers, what)
                .because("metamcp skips them. A client that starts the server itself may disconnect.")
                .fix("Make the server log to standard error; many have an option or a variable for it."),
        );
    }
    if let TransportConfig::Stdio { command, args, .. } = &server.transport
        && let Some(package) = pinned_versions::unpinned_package(command, args)
    {
        let what = format!("runs the newest version of `{package}` at each start");
        found.push(
            Finding::warning(Servers, what)
                .because("A new release runs unreviewed, with all rights of the server, and each start needs the network.")
                .fix(format!("Write the version into `args`, which are {args:?}."))
                .nix(of_server(name, "package = pkgs.THE_SERVER;")),
        );
    }
    // Many runtimes need the 50 ms until SIGTERM to exit by themselves, so only SIGKILL counts.
    let was_killed = match record.exit {
        Some(ChildExit::Status(status)) => status.signal() == Some(KILL),
        Some(ChildExit::Pending) => true,
        Some(ChildExit::Unknown) | None => false,
    };
    if is_connected && was_killed {
        let how = connection.exit.as_deref().unwrap_or_default();
        found.push(
            Finding::note(Servers, format!("does not exit when metamcp asks it to: it {how}"))
                .because(
                    "Each stop of the service and each close of an idle connection waits for it.",
                )
                .fix("Report it to the server's author."),
        );
    }
    found.into_iter().map(|finding| finding.of(name)).collect()
}
