//! A probe of one server, on a separate connection.

use std::{
    collections::BTreeMap, os::unix::process::ExitStatusExt as _, path::Path, sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{Semaphore, mpsc},
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    finding::{Finding, FindingArea::Servers, FindingSeverity, count},
    host, login_probe, network_probe, pinned_versions,
    probe_phase::ProbePhase,
    probed_connection::ProbedConnection,
    recording_launcher::{ProcessRecord, RecordingLauncher},
    sandbox::{self, SandboxDirectives, SandboxRemedy, of_server},
    sockets::ServiceReport,
};
use crate::{
    child::ChildExit,
    config::{
        SecretValue, ServerConfig, StartPolicy, TransportConfig, defaults, duration,
        secret::SecretError,
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

/// The full result of a probe.
pub(super) struct ProbeOutcome {
    pub(super) connection: ProbedConnection,
    pub(super) findings: Vec<Finding>,
    /// The names of its tools.
    pub(super) tools: Vec<String>,
    /// It needs a credential or a variable that is missing here.
    pub(super) lacks_secret: bool,
}

impl ProbeOutcome {
    /// Returns the outcome for a server before any connection.
    fn unreachable(name: &ServerName, server: &ServerConfig) -> Self {
        let connection = ProbedConnection {
            server: name.clone(),
            transport: server.transport.name(),
            phases: Vec::new(),
            tls: None,
            login: None,
            protocol_version: None,
            tools: None,
            stderr: Vec::new(),
            noise: Vec::new(),
            exit: None,
        };
        Self { connection, findings: Vec::new(), tools: Vec::new(), lacks_secret: false }
    }
}

/// The results from a connection after its handshake.
#[derive(Default)]
struct ConnectionUse {
    protocol_version: Option<String>,
    /// The names of the tools, or the reason why they are unknown; `None` without tools.
    listed: Option<Result<Vec<String>, String>>,
    phases: Vec<ProbePhase>,
}

/// The surroundings of all probes.
pub(super) struct ProbeSite<'a> {
    pub(super) credentials: Option<&'a Path>,
    /// The report of the running service.
    pub(super) service: Option<&'a ServiceReport>,
    /// The permits for children.
    pub(super) children: &'a Semaphore,
    /// Ends the probes early.
    pub(super) closing: &'a CancellationToken,
    /// The time that each probe may take.
    pub(super) timeout: Duration,
}

/// Connects to a server, lists its tools and terminates it, also if it does not finish in time. Not
/// cancel safe: a connected server runs until `closing` is cancelled.
pub(super) async fn probe(
    name: &ServerName,
    server: &ServerConfig,
    site: &ProbeSite<'_>,
) -> ProbeOutcome {
    // A closed semaphore would permit all of them.
    let is_child = !matches!(server.transport, TransportConfig::Http(_));
    let _permit = if is_child { site.children.acquire().await.ok() } else { None };
    let closing = site.closing.child_token();
    let own_site = ProbeSite { closing: &closing, ..*site };
    let mut probing = std::pin::pin!(probe_phases(name, server, &own_site));
    tokio::select! {
        outcome = &mut probing => outcome,
        () = time::sleep(site.timeout) => {
            closing.cancel();
            // The probe ends the processes that it has started.
            late_outcome(name, server, probing.await, site.timeout)
        }
    }
}

/// Returns the outcome of a probe that did not finish within `timeout`.
fn late_outcome(
    name: &ServerName,
    server: &ServerConfig,
    mut outcome: ProbeOutcome,
    timeout: Duration,
) -> ProbeOutcome {
    let phases = &outcome.connection.phases;
    let failed = phases.iter().find(|phase| phase.has_failed).or(phases.last());
    let phase = failed.map_or("connect", |phase| phase.name);
    let bound = duration::text(timeout);
    let again = format!("Run `metamcp doctor --server {name} --timeout 2m` to wait longer.");
    let finding =
        Finding::error(Servers, format!("does not finish within {bound}: it hangs in `{phase}`"));
    let finding = match server.start_timeout > timeout {
        true => finding.because(format!(
            "The service waits longer, up to {} (`start_timeout`).",
            duration::text(server.start_timeout)
        )),
        false => finding.because("metamcp has ended its processes."),
    };
    // The other findings are consequences, except those about its output.
    outcome.findings.retain(|finding| {
        matches!(finding.level, FindingSeverity::Warning | FindingSeverity::Note)
    });
    outcome.findings.insert(0, finding.of(name).fix(again));
    outcome
}

/// Connects to a server, lists its tools and terminates it.
async fn probe_phases(
    name: &ServerName,
    server: &ServerConfig,
    site: &ProbeSite<'_>,
) -> ProbeOutcome {
    let TransportConfig::Http(http) = &server.transport else {
        return probe_connection(name, server, site).await;
    };
    let probing = network_probe::probe(name, http, site.credentials);
    let network = or_default(site, probing).await;
    let mut outcome = match network.is_reachable {
        true => Box::pin(probe_connection(name, server, site)).await,
        false => ProbeOutcome::unreachable(name, server),
    };
    outcome.connection.phases.splice(..0, network.phases);
    outcome.connection.tls = network.tls;
    outcome.findings.extend(network.finding);
    outcome
}

/// Waits for a step, unless the probes end early.
async fn or_default<T: Default>(site: &ProbeSite<'_>, step: impl Future<Output = T>) -> T {
    tokio::select! {
        done = step => done,
        () = site.closing.cancelled() => T::default(),
    }
}

/// Connects to a server, lists its tools and terminates it.
async fn probe_connection(
    name: &ServerName,
    server: &ServerConfig,
    site: &ProbeSite<'_>,
) -> ProbeOutcome {
    let (credentials, closing) = (site.credentials, site.closing);
    let (tasks, recorder) = (TaskTracker::new(), RecordingLauncher::default());
    // Notifications outside a request are not used: a full channel drops them.
    let (announcements, _unread) = mpsc::channel(1);
    let dialer = Dialer::new(credentials.map(Path::to_owned), tasks.clone(), announcements)
        .with_launcher(Arc::new(recorder.clone()));
    let begin = Instant::now();
    let (owner, window) = (ConnectionOwner::Shared, ReconnectWindow::none());
    let connected = dialer.dial(name, server, 1, owner, closing.child_token(), window).await;
    let ready = Instant::now();
    let ConnectionUse { protocol_version, listed, phases } = match &connected {
        Ok(connection) => use_and_close(connection, server.start_timeout).await,
        Err(_) => ConnectionUse::default(),
    };
    tasks.close();
    // Tasks that are left after the timeout have no further purpose.
    let _done = time::timeout(defaults::DOCTOR_TIMEOUT, tasks.wait()).await;

    let record = recorder.record();
    let redactor = redactor(&server.transport, credentials);
    let lines = |lines: Vec<String>| lines.iter().map(|line| redactor.quote(line)).collect();
    let mut outcome = ProbeOutcome::unreachable(name, server);
    outcome.lacks_secret = matches!(&connected, Err(ConnectError::Secret { .. }));
    let (findings, connection) = (&mut outcome.findings, &mut outcome.connection);
    connection.protocol_version = protocol_version;
    connection.tools = listed.as_ref().and_then(|listed| Some(listed.as_ref().ok()?.len()));
    (connection.stderr, connection.noise) =
        (lines(record.stderr.shown()), lines(record.noise.lines.clone()));
    connection.exit = record.exit.map(|exit| exit.to_string());
    let start = record.start.map(|took| ProbePhase::new("start", took));
    let handshake = ProbePhase::new("handshake", ready - record.started.unwrap_or(begin));
    let handshake = (!outcome.lacks_secret).then(|| handshake.failed_if(connected.is_err()));
    connection.phases = start.into_iter().chain(handshake).chain(phases).collect();
    let login = login(name, server, site, connected.as_ref().err(), connection).await;
    match (&connected, login) {
        (Ok(_), problem) => {
            findings.push(connection_finding(name, server, connection));
            findings.extend(problem);
        }
        (Err(_), Some(refusal)) => findings.push(refusal),
        (Err(error), None) => {
            let remedy = sandbox_remedy(name, &server.transport, error).await;
            findings.push(failure_finding(name, error, remedy, &redactor));
        }
    }
    outcome.tools = listed.unwrap_or_else(|| Ok(Vec::new())).unwrap_or_else(|reason| {
        findings.push(listing_finding(name, &redactor.quote(&reason)));
        Vec::new()
    });
    findings.extend(behaviour_findings(name, server, connection, &record, connected.is_ok()));
    outcome
}

/// Examines the login of a server that requires or declares one. Returns the finding about it.
async fn login(
    name: &ServerName,
    server: &ServerConfig,
    site: &ProbeSite<'_>,
    error: Option<&ConnectError>,
    connection: &mut ProbedConnection,
) -> Option<Finding> {
    let TransportConfig::Http(http) = &server.transport else { return None };
    let is_refused = error.is_some_and(|error| login_probe::is_refused(http, error));
    if !is_refused && !login_probe::is_declared(http) {
        return None;
    }
    let probing = login_probe::probe(name, http, site.credentials, site.service);
    let probed = or_default(site, async { Some(probing.await) }).await?;
    let phases = &mut connection.phases;
    if let Some(at) = phases.iter().position(|phase| phase.name == "handshake") {
        // The server has answered, and the answer is clear.
        phases[at].has_failed &= !is_refused;
        let next = at + 1;
        phases.splice(next..next, probed.phases);
    }
    connection.login = Some(probed.login);
    match (is_refused, error) {
        (true, _) => Some(probed.refusal),
        (false, None) => probed.problem,
        // The failure of the connection comes first.
        (false, Some(_)) => None,
    }
}

/// Lists the tools of the server, and closes the connection.
async fn use_and_close(connection: &Arc<Connection>, timeout: Duration) -> ConnectionUse {
    let mut found = ConnectionUse::default();
    if let Some(profile) = connection.profile() {
        found.protocol_version = Some(profile.protocol_version.clone());
        if profile.has(ListKind::Tools.capability()) {
            let begin = Instant::now();
            found.listed = Some(list(connection, timeout).await);
            let has_failed = matches!(found.listed, Some(Err(_)));
            found.phases.push(ProbePhase::new("tools/list", begin.elapsed()).failed_if(has_failed));
        }
    }
    let begin = Instant::now();
    connection.close();
    connection.down().await;
    found.phases.push(ProbePhase::new("end", begin.elapsed()));
    found
}

/// Returns the names of all tools, page by page.
async fn list(connection: &Arc<Connection>, timeout: Duration) -> Result<Vec<String>, String> {
    let limits = ConnectionLimits { silence: timeout, total: timeout };
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

fn connection_finding(
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

fn listing_finding(name: &ServerName, reason: &str) -> Finding {
    let output = format!(
        "Read its standard error in `metamcp doctor --server {name} --json`, or report it to the server's author."
    );
    Finding::error(Servers, "does not list its tools").of(name).because(reason).fix(output)
}

/// Returns the fix for a sandbox restriction that the journal of the server's unit shows.
async fn sandbox_remedy(
    name: &ServerName,
    transport: &TransportConfig,
    error: &ConnectError,
) -> Option<SandboxRemedy> {
    let (TransportConfig::Unit { unit, .. }, lines) = (transport, error.last_lines()) else {
        return None;
    };
    if lines.is_empty() {
        return None;
    }
    // The properties of any instance are those of the template.
    let instance = format!("{unit}@doctor.service");
    let properties = host::output("systemctl", &["show", sandbox::PROPERTIES, &instance]).await;
    SandboxDirectives::read(&properties.unwrap_or_default()).remedy(name, unit, lines)
}

fn failure_finding(
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
fn behaviour_findings(
    name: &ServerName,
    server: &ServerConfig,
    connection: &ProbedConnection,
    record: &ProcessRecord,
    is_connected: bool,
) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(first) = connection.noise.first() {
        let lines = count(record.noise.n_lines, "line");
        let what =
            format!("writes {lines} to standard output that are not MCP messages: `{first}`");
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

/// Returns the redactor for the secrets of a server, because reports are passed on.
fn redactor(transport: &TransportConfig, credentials: Option<&Path>) -> Redactor {
    let declared = match transport {
        TransportConfig::Stdio { env, .. } => env,
        TransportConfig::Http(http) => &http.headers,
        TransportConfig::Unit { .. } => return Redactor::default(),
    };
    let value = |secret: &SecretValue| secret.resolve(credentials).ok();
    let values: BTreeMap<String, String> =
        declared.iter().filter_map(|(key, secret)| Some((key.clone(), value(secret)?))).collect();
    Redactor::of(declared, &values)
}
