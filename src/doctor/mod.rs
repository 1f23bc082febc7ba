//! The diagnosis of a host: what is wrong with the installation, and how to fix it.
//!
//! Functions that judge a text are pure, next to the probes that fetch it. Nothing is changed, and
//! no secret is printed. Each server is connected separately, by the code of the service: next to a
//! running service, it runs twice for that time.

use std::path::{Path, PathBuf};

use futures_util::{StreamExt as _, stream};
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{
    config::{
        self, Config, ConfigSources, ExecuteConfig, credential_directories, defaults, environment,
        load::LoadError, secret::credentials_directory,
    },
    error_report::chain,
    files,
    server_name::ServerName,
    systemd::own_unit::SystemdUnit,
};

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
mod sandbox;
mod script_isolation;
mod service_login;
mod sockets;
mod tool_names;
mod unit;

use finding::FindingArea::{Configuration, Unit};
pub use finding::{Finding, FindingArea, FindingSeverity};
pub use login_probe::ProbedLogin;
pub use network_probe::ProbedTls;
use probe::{ProbeOutcome, ProbeSite};
pub use probe_phase::ProbePhase;
pub use probed_connection::ProbedConnection;
pub use service_login::ServiceLogin;
use sockets::ServiceReport;

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
}

/// The results of an examination.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DoctorReport {
    /// The findings, in the order of the checks.
    pub findings: Vec<Finding>,
    /// The result of connecting to each server.
    pub servers: Vec<ProbedConnection>,
}

/// The error for a server that is not declared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has no server `{0}`")]
pub struct UnknownServer(pub ServerName);

impl DoctorReport {
    /// Returns `true` if a finding is an error.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.level == FindingSeverity::Error)
    }
}

/// Examines this host; `closing` ends all probes and skips the servers after them. Not cancel safe:
/// connected servers run until `closing` is cancelled.
///
/// # Errors
///
/// [`UnknownServer`] when the requested server is not declared.
pub async fn examine(
    request: &DoctorRequest,
    closing: &CancellationToken,
) -> Result<DoctorReport, UnknownServer> {
    let mut report = DoctorReport::default();
    let found = &mut report.findings;
    let installed = SystemdUnit::installed();
    let directives = installed.as_ref().and_then(directives);
    let command = directives.as_ref().map(unit::command).unwrap_or_default();
    let own = files::own_directory("XDG_CONFIG_HOME", ".config");
    let of_unit = || unit::config_of_environment(directives.as_ref()?, own.as_deref());
    let named = [
        (request.file.clone(), "`--config` names it."),
        (config::file_of_environment(), "`METAMCP_CONFIG` of this environment names it."),
        (unit::config_of(&command, own.as_deref()), "`ExecStart=` of metamcp.service names it."),
        (of_unit(), "`Environment=METAMCP_CONFIG=` of metamcp.service names it."),
        (config::usual_file(), "It is the default file."),
    ];
    let named = named.into_iter().find_map(|(file, why)| Some((file?, why)));
    let config = configuration(named.as_ref(), found);
    let file = named.map(|(file, _)| file);
    credential_directories::follow_config(file.as_deref());
    if let (Some(server), Some(config)) = (&request.server, &config)
        && !config.declared_servers().any(|(name, _)| name == server)
    {
        return Err(UnknownServer(server.clone()));
    }
    let declared = config.as_ref().and_then(|config| config.listen.control.as_ref());
    let socket = request.socket.as_ref().or(declared).unwrap_or(&request.default_socket);
    let (service, presence) = sockets::control(socket, found).await;
    if request.server.is_none() {
        if let Some(config) = &config {
            sockets::http(&config.listen, presence, found).await;
            file_permissions::directories(config, socket, installed.is_none(), found);
            if let Some(file) = &file {
                file_permissions::secrets_in(file, config, found);
            }
            for directory in [credentials_directory(), credential_directories::beside_config()] {
                file_permissions::credentials(directory.as_deref(), found);
            }
        }
        if let (Some(unit), Some(directives)) = (&installed, &directives) {
            examine_unit(unit, directives, &command, found).await;
        }
        let execute = config.as_ref().map_or_else(ExecuteConfig::default, |config| config.execute);
        let isolation = service.as_ref().and_then(|service| service.isolation.as_ref());
        script_isolation::examine(&execute, isolation, found);
        host::clock(found).await;
        host::memory(found);
    }
    if let Some(config) = config.filter(|_| request.probes_servers) {
        let mut tools = Vec::new();
        for mut outcome in
            probe_all(&config, request.server.as_ref(), service.as_ref(), closing).await
        {
            judge_secret(&mut outcome, service.as_ref());
            found.append(&mut outcome.findings);
            if outcome.connection.tools.is_some() {
                tools.push((outcome.connection.server.clone(), outcome.tools));
            }
            report.servers.push(outcome.connection);
        }
        found.extend(tool_names::examine(&tools));
    }
    Ok(report)
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

/// Probes all servers, or `only` one; several at a time, in the order of their names.
async fn probe_all(
    config: &Config,
    only: Option<&ServerName>,
    service: Option<&ServiceReport>,
    closing: &CancellationToken,
) -> Vec<ProbeOutcome> {
    let (credentials, children) =
        (credentials_directory(), Semaphore::new(defaults::DOCTOR_CHILDREN_MAX));
    let credentials = credentials.as_deref();
    let site = ProbeSite { credentials, service, children: &children, closing };
    let servers = config.servers.iter().filter(|(name, _)| only.is_none_or(|only| only == *name));
    stream::iter(servers)
        .take_until(closing.cancelled())
        .map(|(name, server)| probe::probe(name, server, &site))
        .buffered(defaults::DOCTOR_PROBES_MAX)
        .collect()
        .await
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
