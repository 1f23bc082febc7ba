//! A probe of one server, on a separate connection.

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde::{Serialize, Serializer};
use tokio::{
    sync::mpsc,
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    finding::{Finding, FindingArea},
    host, pinned_versions,
    recording_launcher::{FirstLines, ProcessRecord, RecordingLauncher},
    sandbox::{self, SandboxDirectives, SandboxRemedy, of_server},
};
use crate::{
    child::ChildExit,
    config::{
        SecretValue, ServerConfig, StartPolicy, TransportConfig, defaults, secret::SecretError,
    },
    connection::{
        ConnectError, Connection, ConnectionLimits, ConnectionOwner, Dialer, ReconnectWindow,
    },
    error_report::chain,
    import::nix_name,
    protocol::{
        Message,
        jsonrpc::MessagePart,
        list_page::{ListKind, ListPage},
    },
    redact::Redactor,
    server_name::ServerName,
};

/// The signal that a process cannot catch. Source: signal(7), SIGKILL.
const KILL: i32 = 9;

/// The public result of a probe.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbedConnection {
    /// The server.
    pub server: ServerName,
    /// The transport.
    pub transport: &'static str,
    /// The duration of each phase, in order.
    pub phases: Vec<ProbePhase>,
    /// The negotiated version of the protocol, if the handshake succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The number of its tools, if listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// The first lines of its standard error, with secrets redacted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
    /// The first lines on its standard output that are not messages, with secrets redacted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<String>,
    /// The exit status of its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<String>,
}

/// A phase of a probe.
#[derive(Clone, Debug, Serialize)]
pub struct ProbePhase {
    /// The name: `start`, `handshake`, `tools/list`, `end`.
    pub name: &'static str,
    /// The duration.
    #[serde(rename = "ms", serialize_with = "as_ms")]
    pub took: Duration,
}

fn as_ms<S: Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(took.as_millis()).unwrap_or(u64::MAX))
}

/// The full result of a probe.
pub(super) struct ProbeOutcome {
    pub(super) dialled: ProbedConnection,
    pub(super) findings: Vec<Finding>,
    /// The names of its tools.
    pub(super) tools: Vec<String>,
    /// It needs a credential or a variable that is missing here.
    pub(super) lacks_secret: bool,
}

/// Connects to a server, lists its tools and terminates it. `closing` ends the probe early. Not
/// cancel safe: a connected server runs until `closing` is cancelled.
pub(super) async fn dial(
    name: &ServerName,
    declared: &ServerConfig,
    credentials: Option<&Path>,
    closing: &CancellationToken,
) -> ProbeOutcome {
    let (tasks, tap) = (TaskTracker::new(), RecordingLauncher::default());
    // Notifications outside a request are not used: a full channel drops them.
    let (announcements, _nobody) = mpsc::channel(1);
    let dialer = Dialer::new(credentials.map(Path::to_owned), tasks.clone(), announcements)
        .with_launcher(std::sync::Arc::new(tap.clone()));
    let begin = Instant::now();
    let dialling = dialer.dial(
        name,
        declared,
        1,
        ConnectionOwner::Shared,
        closing.child_token(),
        ReconnectWindow::none(),
    );
    let connected = dialling.await;
    let ready = Instant::now();
    let mut listed = None;
    let mut phases = Vec::new();
    let mut protocol_version = None;
    if let Ok(connection) = &connected {
        protocol_version = connection.profile().map(|profile| profile.protocol_version.clone());
        let is_listing =
            connection.profile().is_some_and(|profile| profile.has(ListKind::Tools.capability()));
        if is_listing {
            listed = Some(list(connection, declared.start_timeout).await);
            phases.push(ProbePhase { name: "tools/list", took: ready.elapsed() });
        }
        let told = Instant::now();
        connection.close();
        connection.down().await;
        phases.push(ProbePhase { name: "end", took: told.elapsed() });
    }
    tasks.close();
    // Tasks that are left after the timeout have no further purpose.
    let _done = time::timeout(defaults::DOCTOR_PATIENCE, tasks.wait()).await;

    let record = tap.record();
    let start = record.start.map(|took| ProbePhase { name: "start", took });
    let handshake = ProbePhase { name: "handshake", took: ready - record.started.unwrap_or(begin) };
    let phases: Vec<ProbePhase> = start.into_iter().chain([handshake]).chain(phases).collect();
    let redactor = redactor(&declared.transport, credentials);
    let lines = |first: &FirstLines| first.lines.iter().map(|line| redactor.quote(line)).collect();
    let dialled = ProbedConnection {
        server: name.clone(),
        transport: declared.transport.name(),
        phases,
        protocol_version,
        tools: listed.as_ref().and_then(|listed| Some(listed.as_ref().ok()?.len())),
        stderr: lines(&record.stderr),
        noise: lines(&record.noise),
        exit: record.exit.map(|exit| exit.to_string()),
    };
    let lacks_secret = matches!(&connected, Err(ConnectError::Secret { .. }));
    let mut findings = match &connected {
        Ok(_) => vec![connected_well(name, declared, &dialled)],
        Err(error) => {
            let remedy = in_its_way(name, &declared.transport, error).await;
            vec![failed(name, error, remedy, &redactor)]
        }
    };
    let tools = match listed {
        Some(Ok(tools)) => tools,
        Some(Err(why)) => {
            findings.push(
                Finding::error(FindingArea::Servers, "does not list its tools")
                    .of(name)
                    .because(redactor.quote(&why))
                    .fix("See what it writes to standard error, or report it to who makes it."),
            );
            Vec::new()
        }
        None => Vec::new(),
    };
    let is_connected = connected.is_ok();
    findings.extend(manners(name, declared, &dialled, &record, is_connected));
    ProbeOutcome { dialled, findings, tools, lacks_secret }
}

/// Returns the names of all tools, page by page.
async fn list(
    connection: &std::sync::Arc<Connection>,
    patience: Duration,
) -> Result<Vec<String>, String> {
    let limits = ConnectionLimits { silence: patience, total: patience };
    let mut names = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..defaults::DOCTOR_PAGES_MAX {
        let params = cursor.map(|cursor| serde_json::json!({ "cursor": cursor }).to_string());
        let request = Message::request(ListKind::Tools.method(), params.as_deref());
        let answer = connection.ask(&request, limits).await.map_err(|error| chain(&error))?;
        let Some(result) = answer.part(MessagePart::Result) else {
            return Err(answer.part(MessagePart::Error).unwrap_or_default().to_owned());
        };
        let page = ListPage::read(ListKind::Tools, result).map_err(|error| chain(&error))?;
        names.extend(page.items.into_iter().map(|item| item.key));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(names)
}

fn connected_well(
    name: &ServerName,
    declared: &ServerConfig,
    dialled: &ProbedConnection,
) -> Finding {
    let took: Duration =
        dialled.phases.iter().filter(|phase| phase.name != "end").map(|phase| phase.took).sum();
    let told = format!("connected, {} ms", took.as_millis());
    if took <= defaults::DOCTOR_SLOW || declared.start != StartPolicy::Lazy {
        return Finding::ok(FindingArea::Servers, told).of(name);
    }
    Finding::note(FindingArea::Servers, format!("{told}: the first client waits for it"))
        .of(name)
        .fix(format!("Connect it with the service: `start = \"eager\"` in `[servers.{name}]`."))
        .nix(of_server(name, "start = \"eager\";"))
}

/// Returns the fix for a sandbox restriction that the journal of the server's unit shows.
async fn in_its_way(
    name: &ServerName,
    transport: &TransportConfig,
    error: &ConnectError,
) -> Option<SandboxRemedy> {
    let (TransportConfig::Unit { unit, .. }, words) = (transport, error.last_lines()) else {
        return None;
    };
    if words.is_empty() {
        return None;
    }
    // The properties of any instance are those of the template.
    let instance = format!("{unit}@doctor.service");
    let told = host::output("systemctl", &["show", sandbox::PROPERTIES, &instance]).await;
    SandboxDirectives::read(&told.unwrap_or_default()).remedy(name, unit, words)
}

fn failed(
    name: &ServerName,
    error: &ConnectError,
    remedy: Option<SandboxRemedy>,
    redactor: &Redactor,
) -> Finding {
    if let ConnectError::Secret { key, source, .. } = error {
        let (hint, nix) = (source.hint(), credential_of(source));
        // Only the service knows whether the secret is really missing.
        let finding =
            Finding::note(FindingArea::Servers, format!("its `{key}` cannot be read here"));
        let finding = finding.of(name).because(chain(source)).fix(hint);
        return match nix {
            Some(credential) => {
                let key = nix_name(key);
                let file = format!("\"/run/secrets/{credential}\"");
                finding.nix(of_server(name, &format!("credentials.{key} = {file};")))
            }
            None => finding,
        };
    }
    let text = redactor.redact(&chain(error));
    let why = text.strip_prefix(&format!("connect to server `{name}`: ")).unwrap_or(&text);
    let finding = Finding::error(FindingArea::Servers, "cannot be connected").of(name);
    let finding = finding.because(why);
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
        SecretError::NoDirectory { name } | SecretError::Credential { name, .. } => Some(name),
        SecretError::Name { .. } | SecretError::Env { .. } => None,
    }
}

/// Returns the findings about the behaviour of a server.
fn manners(
    name: &ServerName,
    declared: &ServerConfig,
    dialled: &ProbedConnection,
    record: &ProcessRecord,
    is_connected: bool,
) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(first) = dialled.noise.first() {
        let lines = match record.noise.n_lines {
            1 => "1 line".to_owned(),
            n_lines => format!("{n_lines} lines"),
        };
        let what = format!("writes {lines} to standard output that are no messages: `{first}`");
        found.push(
            Finding::warning(FindingArea::Servers, what)
                .of(name)
                .because("They are skipped. Clients that start it themselves may hang up at them.")
                .fix("Have it log to standard error: many have an option or a variable for that."),
        );
    }
    if let TransportConfig::Stdio { command, args, .. } = &declared.transport
        && let Some(package) = pinned_versions::unpinned_package(command, args)
    {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let what = format!("runs whatever version of `{package}` is the newest");
        found.push(
            Finding::warning(FindingArea::Servers, what)
                .of(name)
                .because("What is released tonight runs tomorrow with all that it may do, and each start asks the network.")
                .fix(format!("Name the version in `args`, which are {args:?}."))
                .nix(of_server(name, "package = pkgs.THE_SERVER;")),
        );
    }
    // Many runtimes need the 50 ms until SIGTERM to exit by themselves, so only SIGKILL counts.
    let was_killed = record.exit.is_some_and(|exit| match exit {
        ChildExit::Status(status) => {
            std::os::unix::process::ExitStatusExt::signal(&status) == Some(KILL)
        }
        ChildExit::Pending => true,
        ChildExit::Unknown => false,
    });
    if is_connected && was_killed {
        let how = dialled.exit.clone().unwrap_or_default();
        found.push(
            Finding::note(
                FindingArea::Servers,
                format!("does not leave when it is asked to: it {how}"),
            )
            .of(name)
            .because("Each stop of the service and each idle end of a connection waits for it.")
            .fix("Report it to who makes the server."),
        );
    }
    found
}

/// Returns the redactor for the secrets of a server. Reports are passed on to people who may not
/// read the configuration.
fn redactor(transport: &TransportConfig, credentials: Option<&Path>) -> Redactor {
    let declared = match transport {
        TransportConfig::Stdio { env, .. } => env,
        TransportConfig::Http { headers, .. } => headers,
        TransportConfig::Unit { .. } => return Redactor::default(),
    };
    let value = |secret: &SecretValue| secret.resolve(credentials).ok();
    let values: BTreeMap<String, String> =
        declared.iter().filter_map(|(key, secret)| Some((key.clone(), value(secret)?))).collect();
    Redactor::of(declared, &values)
}
