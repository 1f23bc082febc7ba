//! The probes of all servers, judged by what the running service knows.

use futures_util::{StreamExt as _, stream};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    DoctorRequest,
    finding::FindingSeverity,
    probe::{self, ProbeOutcome, ProbeSite},
    service_view,
    sockets::ServiceReport,
};
use crate::{
    config::{Config, ServerConfig, TransportConfig, defaults, secret::credentials_directory},
    control::service_environment::ServerFiles,
    server_name::ServerName,
};

/// Probes all servers, or the requested one; several at a time. Each outcome is sent when it is
/// known.
pub(super) async fn probe_all(
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
