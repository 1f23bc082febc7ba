//! A probe of one server, on a separate connection.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use tokio::{
    sync::mpsc,
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    finding::{Finding, FindingArea::Servers, FindingSeverity},
    host, login_probe, network_probe,
    probe_findings::{behaviour_findings, connection_finding, failure_finding, listing_finding},
    probe_phase::ProbePhase,
    probed_connection::ProbedConnection,
    recording_launcher::RecordingLauncher,
    sandbox::{self, SandboxDirectives, SandboxRemedy},
    sockets::ServiceAnswer,
};
use crate::{
    config::{SecretValue, ServerConfig, TransportConfig, defaults, duration},
    connection::{
        ConnectError, Connection, ConnectionLimits, ConnectionOwner, Dialer, ReconnectWindow,
    },
    error_report::chain,
    protocol::{
        Message,
        jsonrpc::MessagePart,
        list_page::{ListKind, ListPage},
    },
    redact::Redactor,
    server_name::ServerName,
};

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
    pub(super) fn unreachable(name: &ServerName, server: &ServerConfig) -> Self {
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
    /// The answer of the running service, which the probes do not wait for.
    pub(super) service: &'a ServiceAnswer,
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
    let service = site.service.clone().await;
    let probing = login_probe::probe(name, http, site.credentials, service.report.as_ref());
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
