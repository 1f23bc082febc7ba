//! The diagnosis of a host: what is wrong with the installation, and how to fix it.
//!
//! Functions that judge a text are pure, next to the probes that fetch it. Nothing is changed, and
//! no secret is printed. Each server is connected separately, by the code of the service: next to a
//! running service, it runs twice for that time.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::{
    config::{
        self, Config, ConfigSources, ExecuteConfig, ServerConfig, TransportConfig,
        credential_directories, defaults, environment, load::LoadError,
        secret::credentials_directory,
    },
    control::service_environment::ServerFiles,
    error_report::chain,
    files,
    server_name::ServerName,
    similar_names::{did_you_mean, nearest},
    systemd::own_unit::SystemdUnit,
};

mod control_group;
mod file_permissions;
mod finding;
mod host;
mod login_probe;
mod network_probe;
mod pinned_versions;
mod probe;
mod probe_phase;
mod probed_connection;
mod recording_launcher;
mod report;
mod sandbox;
mod script_isolation;
mod service_login;
mod service_view;
mod sockets;
mod tool_names;
mod unit;

pub use control_group::make_group;
use finding::FindingArea::{Configuration, Unit};
pub use finding::{Finding, FindingArea, FindingSeverity, Repair};
pub use login_probe::ProbedLogin;
pub use network_probe::ProbedTls;
use probe::{ProbeOutcome, ProbeSite};
pub use probe_phase::ProbePhase;
pub use probed_connection::ProbedConnection;
use report::ReportCollector;
pub use report::{DoctorReport, ExaminedService, ReportPart};
pub use service_login::ServiceLogin;
use sockets::{ServicePresence, ServiceReport};

/// The scope of an examination.
#[derive(Clone, Debug)]
pub struct DoctorRequest {
    /// The configuration file; by default that of the installed service.
    pub file: Option<PathBuf>,
    /// The control socket; by default that of the configuration.
    pub socket: Option<PathBuf>,
    /// The control socket to use if the configuration names none.
    pub default_socket: PathBuf,
    /// The only server to examine; the host is then not examined.
    pub server: Option<ServerName>,
    /// Connect to the servers.
    pub probes_servers: bool,
    /// The time that the probe of one server may take.
    pub probe_timeout: Duration,
}

/// The error for a server that is not declared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has no server `{name}`")]
pub struct UnknownServer {
    /// The requested name.
    pub name: ServerName,
    /// The similar names of declared servers, nearest first.
    pub similar: Vec<String>,
}

impl UnknownServer {
    fn of(name: &ServerName, config: &Config) -> Self {
        let known = config.servers.keys().map(ToString::to_string);
        Self { name: name.clone(), similar: nearest(name.as_str(), known) }
    }

    /// Returns the remedy.
    pub fn hint(&self) -> String {
        did_you_mean(&self.similar, "Run `metamcp servers` to list the servers.")
    }
}

/// Examines this host, and shows each part of the report as soon as it is known; `closing` ends all
/// probes and skips the servers after them. Not cancel safe: connected servers run until `closing`
/// is cancelled.
///
/// # Errors
///
/// [`UnknownServer`] when the requested server is not declared.
pub async fn examine(
    request: &DoctorRequest,
    closing: &CancellationToken,
    show: &mut dyn FnMut(ReportPart<'_>),
) -> Result<DoctorReport, UnknownServer> {
    let mut collector = ReportCollector::new(show);
    let found = &mut collector.report.findings;
    let unit = InstalledUnit::find();
    let named = named_file(request, &unit).await;
    let config = configuration(named.as_ref(), found);
    let file = named.map(|(file, _)| file);
    credential_directories::follow_config(file.as_deref());
    if let (Some(server), Some(config)) = (&request.server, &config)
        && !config.declared_servers().any(|(name, _)| name == server)
    {
        return Err(UnknownServer::of(server, config));
    }
    collector.show();
    let declared = config.as_ref().and_then(|config| config.listen.control.as_ref());
    let socket = request.socket.as_ref().or(declared).unwrap_or(&request.default_socket);
    let found = &mut collector.report.findings;
    let (service, presence) = sockets::control(socket, found).await;
    if let Some(environment) = service.as_ref().and_then(|it| it.environment.as_ref()) {
        found.extend(service_view::compare(environment, file.as_deref()));
    }
    collector.show();
    collector.report.service = service
        .as_ref()
        .map(|service| ExaminedService { untried: untried(service, request, config.as_ref()) });
    if !request.probes_servers {
        collector.report.n_unexamined = config.as_ref().map_or(0, |config| config.servers.len());
    }
    let host = HostScope { config: config.as_ref(), file: file.as_deref(), socket, presence };
    let (sender, mut outcomes) = mpsc::channel(defaults::DOCTOR_PROBES_MAX);
    let service = service.as_ref();
    let probing = async {
        // Moved here: the receiver ends with the last outcome.
        let sender = sender;
        if let Some(config) = config.as_ref().filter(|_| request.probes_servers) {
            probe_all(config, request, service, closing, &sender).await;
        }
    };
    let showing = async {
        if request.server.is_none() {
            examine_host(&host, &unit, service, &mut collector).await;
        }
        let mut tools = Vec::new();
        while let Some(mut outcome) = outcomes.recv().await {
            if outcome.connection.tools.is_some() {
                let names = std::mem::take(&mut outcome.tools);
                tools.push((outcome.connection.server.clone(), names));
            }
            collector.add(outcome);
        }
        tools.sort();
        collector.report.findings.extend(tool_names::examine(&tools));
    };
    let ((), ()) = futures_util::join!(probing, showing);
    Ok(collector.finish())
}

/// The installed unit, with its readable directives.
struct InstalledUnit {
    unit: Option<SystemdUnit>,
    directives: Option<unit::UnitDirectives>,
}

impl InstalledUnit {
    fn find() -> Self {
        let unit = SystemdUnit::installed();
        let directives = unit.as_ref().and_then(directives);
        Self { unit, directives }
    }

    /// Returns the words of `ExecStart=`.
    fn command(&self) -> Vec<&str> {
        self.directives.as_ref().map(unit::command).unwrap_or_default()
    }
}

/// Returns the configuration file to examine, with the reason for its choice.
async fn named_file(
    request: &DoctorRequest,
    unit: &InstalledUnit,
) -> Option<(PathBuf, &'static str)> {
    if let Some(file) = &request.file {
        return Some((file.clone(), "`--config` names it."));
    }
    if let Some(file) = config::file_of_environment() {
        return Some((file, "`METAMCP_CONFIG` of this environment names it."));
    }
    let socket = request.socket.as_ref().unwrap_or(&request.default_socket);
    let of_service = sockets::environment(socket).await.and_then(|it| it.configuration);
    let own = files::own_directory("XDG_CONFIG_HOME", ".config");
    let of_unit = || unit::config_of_environment(unit.directives.as_ref()?, own.as_deref());
    let named = [
        (of_service, "The running service reads it."),
        (
            unit::config_of(&unit.command(), own.as_deref()),
            "`ExecStart=` of metamcp.service names it.",
        ),
        (of_unit(), "`Environment=METAMCP_CONFIG=` of metamcp.service names it."),
        (config::usual_file(), "It is the default file."),
    ];
    named.into_iter().find_map(|(file, why)| Some((file?, why)))
}

/// Returns the servers that the service has not connected yet.
fn untried(
    service: &ServiceReport,
    request: &DoctorRequest,
    config: Option<&Config>,
) -> Vec<ServerName> {
    let is_probed = |name: &&ServerName| {
        request.probes_servers && request.server.as_ref().is_none_or(|only| only == *name)
    };
    let servers = config.into_iter().flat_map(|config| config.servers.keys()).filter(is_probed);
    let is_untried = |name: &&ServerName| {
        service.states.get(*name).is_none_or(|state| state.status == "configured")
    };
    servers.filter(is_untried).cloned().collect()
}

/// The parts of an examination of the host.
struct HostScope<'a> {
    config: Option<&'a Config>,
    file: Option<&'a Path>,
    socket: &'a Path,
    presence: ServicePresence,
}

/// Examines all but the servers.
async fn examine_host(
    host: &HostScope<'_>,
    unit: &InstalledUnit,
    service: Option<&ServiceReport>,
    collector: &mut ReportCollector<'_>,
) {
    let found = &mut collector.report.findings;
    if let Some(config) = host.config {
        sockets::http(&config.listen, service, host.presence, found).await;
        file_permissions::directories(config, host.socket, unit.unit.is_none(), found);
        if let Some(file) = host.file {
            file_permissions::secrets_in(file, config, found);
        }
        for directory in [credentials_directory(), credential_directories::beside_config()] {
            file_permissions::credentials(directory.as_deref(), found);
        }
    }
    found.extend(control_group::examine(host.config, unit.unit.as_ref()));
    collector.show();
    let found = &mut collector.report.findings;
    if let (Some(installed), Some(directives)) = (&unit.unit, &unit.directives) {
        examine_unit(installed, directives, &unit.command(), found).await;
    }
    let execute = host.config.map_or_else(ExecuteConfig::default, |config| config.execute);
    let isolation = service.and_then(|service| service.isolation.as_ref());
    script_isolation::examine(&execute, isolation, found);
    collector.show();
    let found = &mut collector.report.findings;
    host::clock(found).await;
    host::memory(found);
    collector.show();
}

/// Loads the configuration as the service does, with the variables of this environment; `named` is
/// the file and the reason for its choice.
fn configuration(named: Option<&(PathBuf, &str)>, found: &mut Vec<Finding>) -> Option<Config> {
    let Some((file, why)) = named else {
        found.push(
            Finding::warning(Configuration, "there is no configuration file")
                .because("Without one, metamcp serves three demonstration servers.")
                .fix("Write /etc/metamcp/metamcp.toml, or name your file with --config.")
                .nix("services.metamcp.servers.NAME.package = pkgs.THE_SERVER;"),
        );
        return None;
    };
    let sources =
        ConfigSources { variables: environment::of_process(), ..ConfigSources::of_file(file) };
    let loaded = match sources.load() {
        Ok(loaded) => loaded,
        Err(error) => {
            let fix = match &error {
                LoadError::Read { .. } => "Name a file that this user may read with --config.",
                LoadError::Content(_) => "Correct it there, then run `metamcp check FILE`.",
            };
            found.push(
                Finding::error(Configuration, "metamcp refuses the configuration")
                    .because(format!("{}\n{why}", chain(&error).trim_end()))
                    .fix(fix),
            );
            return None;
        }
    };
    for variable in &loaded.unknown_variables {
        found.push(
            Finding::warning(Configuration, format!("the variable {variable} has no effect"))
                .because("It begins with METAMCP_, but names no key of the configuration.")
                .fix("Remove it, or correct its name: METAMCP_SECTION_KEY."),
        );
    }
    let servers = finding::count(loaded.config.servers.len(), "server");
    let what = format!("{}: {servers}", file.display());
    found.push(Finding::ok(Configuration, what).because(*why));
    if let Some(warning) = loaded.config.execute.warning() {
        found.push(
            Finding::warning(Configuration, "scripts run without isolation")
                .because(warning)
                .nix("services.metamcp.settings.execute.profile = \"standard\";"),
        );
    }
    for (name, server) in &loaded.config.servers {
        if let Some(state) = server.shared_state() {
            let what = format!("all clients of `{name}` share {state}");
            found.push(
                Finding::warning(Configuration, what)
                    .because("The server keeps it between the calls of different clients.")
                    .fix("Set `sharing = \"session\"` for this server, so that each client has its own.")
                    .nix(format!("services.metamcp.servers.{name}.sharing = \"session\";")),
            );
        }
    }
    Some(loaded.config)
}

/// Returns the `[Service]` directives of a unit, from its readable files.
fn directives(unit: &SystemdUnit) -> Option<unit::UnitDirectives> {
    let text = |file: &Path| {
        let bytes = files::bounded(file, defaults::UNIT_FILE_BYTES_MAX).ok()?;
        String::from_utf8(bytes).ok()
    };
    let main = text(&unit.file()?)?;
    let more = unit.drop_ins().into_iter().filter_map(|file| text(&file));
    let texts: Vec<String> = [main].into_iter().chain(more).collect();
    Some(unit::read(texts.iter().map(String::as_str)))
}

/// Examines the unit, and the program that it starts.
async fn examine_unit(
    unit: &SystemdUnit,
    directives: &unit::UnitDirectives,
    command: &[&str],
    found: &mut Vec<Finding>,
) {
    let n_before = found.len();
    found.extend(unit::compare(directives, unit.is_of_user));
    let Some(program) = command.first() else {
        found.push(
            Finding::error(Unit, format!("{} has no `ExecStart=`", unit.name))
                .fix("Install the shipped unit, `systemd/metamcp.service`."),
        );
        return;
    };
    let ours = std::env::current_exe().and_then(|path| path.canonicalize()).ok();
    match Path::new(program).canonicalize() {
        Err(error) => found.push(
            Finding::error(Unit, format!("{} starts `{program}`, which is missing", unit.name))
                .because(error.to_string())
                .fix("Install metamcp there, or correct `ExecStart=`."),
        ),
        Ok(path) if Some(&path) != ours.as_ref() => {
            let output = host::output(program, &["--version"]).await.unwrap_or_default();
            let theirs = output.trim().strip_prefix("metamcp ").unwrap_or("of unknown version");
            let ours = env!("CARGO_PKG_VERSION");
            if theirs != ours {
                let name = &unit.name;
                let what = format!("{name} starts metamcp {theirs}, and this program is {ours}");
                let fix = format!("Install this program as `{program}`, or run that one.");
                found.push(Finding::warning(Unit, what).fix(fix));
            }
        }
        Ok(_) => {}
    }
    if found.len() == n_before {
        found.push(Finding::ok(Unit, format!("{} matches the shipped unit", unit.name)));
    }
}

/// Probes all servers, or the requested one; several at a time. Each outcome is sent when it is
/// known.
async fn probe_all(
    config: &Config,
    request: &DoctorRequest,
    service: Option<&ServiceReport>,
    closing: &CancellationToken,
    outcomes: &mpsc::Sender<ProbeOutcome>,
) {
    let (credentials, children) =
        (credentials_directory(), Semaphore::new(defaults::DOCTOR_CHILDREN_MAX));
    let credentials = credentials.as_deref();
    let timeout = request.probe_timeout;
    let site = ProbeSite { credentials, service, children: &children, closing, timeout };
    let only = request.server.as_ref();
    let servers = config.servers.iter().filter(|(name, _)| only.is_none_or(|only| only == *name));
    stream::iter(servers)
        .take_until(closing.cancelled())
        .map(|(name, server)| probe_one(name, server, &site))
        .buffer_unordered(defaults::DOCTOR_PROBES_MAX)
        // The receiver lives as long as this sender.
        .for_each(|outcome| async move { drop(outcomes.send(outcome).await) })
        .await;
}

/// Probes a server, and judges it by what the service knows.
async fn probe_one(name: &ServerName, server: &ServerConfig, site: &ProbeSite<'_>) -> ProbeOutcome {
    let mut outcome = probe::probe(name, server, site).await;
    judge_secret(&mut outcome, site.service);
    if let Some(service) = site.service {
        judge_in_service(&mut outcome, server, service);
    }
    outcome
}

/// Adds the view of the service to the outcome of a probe.
fn judge_in_service(outcome: &mut ProbeOutcome, server: &ServerConfig, service: &ServiceReport) {
    let name = outcome.connection.server.clone();
    if let Some(state) = service.states.get(&name) {
        service_view::judge(outcome, state);
        if state.status == "connected" {
            return;
        }
    }
    let TransportConfig::Stdio { command, .. } = &server.transport else { return };
    let here = ServerFiles::examine(server);
    let (Some(environment), Some(here)) = (&service.environment, &here) else { return };
    outcome.findings.extend(service_view::compare_files(&name, environment, command, here));
}

/// Reports a missing secret as the service would: the service may have what this shell lacks.
fn judge_secret(outcome: &mut ProbeOutcome, service: Option<&ServiceReport>) {
    if !outcome.lacks_secret {
        return;
    }
    let server = &outcome.connection.server;
    let is_in_service = service.and_then(|service| service.secrets.get(server));
    let Some(finding) = outcome.findings.first_mut() else { return };
    match is_in_service {
        Some(true) => {
            finding.why = Some("The service can read it; only this command cannot.".to_owned());
            (finding.fix, finding.nix) = (None, None);
        }
        Some(false) => {
            finding.level = FindingSeverity::Error;
            finding.what.push_str(", nor by the service");
        }
        None => {}
    }
}
