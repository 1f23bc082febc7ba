//! The diagnosis of a host: what is wrong with the installation, and how to fix it.
//!
//! Functions that judge a text are pure, next to the probes that fetch it. Nothing is changed, and
//! no secret is printed. Each server is connected separately, by the code of the service: next to a
//! running service, it runs twice for that time.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    config::{
        Config, ExecuteConfig, credential_directories, defaults, secret::credentials_directory,
    },
    server_name::ServerName,
    similar_names::{did_you_mean, nearest},
};

mod control_group;
mod examined_configuration;
mod file_permissions;
mod finding;
mod host;
mod installed_unit;
mod login_probe;
mod network_probe;
mod pinned_versions;
mod probe;
mod probe_findings;
mod probe_phase;
mod probe_schedule;
mod probed_connection;
mod recording_launcher;
mod report;
mod sandbox;
mod script_isolation;
mod server_probes;
mod service_login;
mod service_view;
mod sockets;
mod tool_names;
mod unit;

pub use control_group::make_group;
use examined_configuration::{configuration, named_file};
pub use finding::{Finding, FindingArea, FindingSeverity, Repair};
use installed_unit::{InstalledUnit, examine_unit};
pub use login_probe::ProbedLogin;
pub use network_probe::ProbedTls;
pub use probe_phase::ProbePhase;
pub use probed_connection::ProbedConnection;
use report::ReportCollector;
pub use report::{DoctorReport, ExaminedService, ReportPart};
use server_probes::probe_all;
pub use service_login::ServiceLogin;
use sockets::{ServiceAnswer, ServicePresence, ServiceReport};

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
    let answer: ServiceAnswer = sockets::control(socket.clone()).map(Arc::new).boxed().shared();
    let (sender, mut outcomes) = mpsc::channel(defaults::DOCTOR_PROBES_MAX);
    let probing = async {
        // Moved here: the receiver ends with the last outcome.
        let sender = sender;
        if let Some(config) = config.as_ref().filter(|_| request.probes_servers) {
            probe_all(config, request, &answer, closing, &sender).await;
        }
    };
    let showing = async {
        let control = answer.clone().await;
        let (service, config) = (control.report.as_ref(), config.as_ref());
        collector.report.findings.push(control.finding.clone());
        if let Some(environment) = service.and_then(|service| service.environment.as_ref()) {
            let compared = service_view::compare(environment, file.as_deref());
            collector.report.findings.extend(compared);
        }
        collector.show();
        let servers = config.into_iter().flat_map(|config| config.servers.keys());
        collector.report.service = service
            .map(|service| ExaminedService { untried: untried(service, request, servers.clone()) });
        if request.server.is_none() {
            let presence = control.presence;
            let host = HostScope { config, file: file.as_deref(), socket, presence };
            examine_host(&host, &unit, service, &mut collector).await;
        }
        if !request.probes_servers {
            let known = servers.map(|name| service_view::known_state(name, service?));
            let n_servers = known.clone().count();
            let found: Vec<Finding> = known.flatten().collect();
            collector.report.n_unexamined = n_servers - found.len();
            collector.report.findings.extend(found);
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

/// Returns the servers that the service has not connected yet.
fn untried<'a>(
    service: &ServiceReport,
    request: &DoctorRequest,
    servers: impl Iterator<Item = &'a ServerName>,
) -> Vec<ServerName> {
    let is_probed = |name: &&ServerName| {
        request.probes_servers && request.server.as_ref().is_none_or(|only| only == *name)
    };
    let is_untried = |name: &&ServerName| {
        service.states.get(*name).is_none_or(|state| state.status == "configured")
    };
    servers.filter(is_probed).filter(is_untried).cloned().collect()
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
