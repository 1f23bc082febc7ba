//! The probes of all servers, judged by what the running service knows.

use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    DoctorRequest,
    finding::{Finding, FindingArea::Servers, FindingSeverity},
    probe::{self, ProbeOutcome, ProbeSite},
    probe_schedule::ProbeSchedule,
    service_view,
    sockets::{ServiceAnswer, ServiceReport},
};
use crate::{
    config::{
        Config, ServerConfig, TransportConfig, defaults, duration, secret::credentials_directory,
    },
    control::service_environment::ServerFiles,
    server_name::ServerName,
};

/// Probes all servers, or the requested one; several at a time. Each outcome is sent when it is
/// known.
pub(super) async fn probe_all(
    config: &Config,
    request: &DoctorRequest,
    service: &ServiceAnswer,
    closing: &CancellationToken,
    outcomes: &mpsc::Sender<ProbeOutcome>,
) {
    let credentials = credentials_directory();
    let schedule = ProbeSchedule::new(request.probe_timeout);
    let timeout = request.probe_timeout;
    let site = ProbeSite { credentials: credentials.as_deref(), service, closing, timeout };
    let only = request.server.as_ref();
    let servers = config.servers.iter().filter(|(name, _)| only.is_none_or(|only| only == *name));
    stream::iter(servers)
        .take_until(closing.cancelled())
        .map(|(name, server)| {
            let is_child = !matches!(server.transport, TransportConfig::Http(_));
            let probing = schedule.run(is_child, Box::pin(probe_one(name, server, &site)));
            async { probing.await.unwrap_or_else(|| unexamined(name, server, &schedule)) }
        })
        .buffer_unordered(defaults::DOCTOR_PROBES_MAX)
        // The receiver lives as long as this sender.
        .for_each(|outcome| async move { drop(outcomes.send(outcome).await) })
        .await;
}

/// Returns the outcome for a server whose probe could not begin in time.
fn unexamined(name: &ServerName, server: &ServerConfig, schedule: &ProbeSchedule) -> ProbeOutcome {
    let bound = duration::text(defaults::DOCTOR_BEGINS * schedule.timeout);
    let finding =
        Finding::note(Servers, format!("not examined: other servers took the first {bound}"))
            .of(name)
            .fix(format!("Run `metamcp doctor --server {name}`."));
    let mut outcome = ProbeOutcome::unreachable(name, server);
    outcome.findings.push(finding);
    outcome
}

/// Probes a server, and judges it by what the service knows.
async fn probe_one(name: &ServerName, server: &ServerConfig, site: &ProbeSite<'_>) -> ProbeOutcome {
    let mut outcome = probe::probe(name, server, site).await;
    let service = site.service.clone().await;
    judge_secret(&mut outcome, service.report.as_ref());
    if let Some(service) = &service.report {
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
