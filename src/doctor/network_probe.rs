//! The way to a server over HTTP: name, connection, proxy and TLS, before any request.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::Serialize;

use super::{
    finding::{Finding, FindingArea::Servers, count},
    probe_phase::ProbePhase,
};
use crate::{
    config::{HttpServerConfig, defaults},
    error_report::chain,
    http_client::{
        AddressPolicy, Connector, ConnectorSettings, DialError, DialStep, Origin, TlsSummary,
    },
    server_name::ServerName,
    tls::TlsIdentityError,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A TLS connection to a server.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbedTls {
    /// The version of TLS.
    pub version: &'static str,
    /// The protocol on top of it, by ALPN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The number of days until the certificate of the server expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_days: Option<u64>,
}

/// The result of connecting to a server without sending a request.
#[derive(Debug, Default)]
pub(super) struct NetworkProbe {
    pub(super) phases: Vec<ProbePhase>,
    pub(super) tls: Option<ProbedTls>,
    /// The reason why the server cannot be reached, or a problem with its certificate.
    pub(super) finding: Option<Finding>,
    pub(super) is_reachable: bool,
}

/// Connects to a server as a request does, and hangs up. Cancel safe.
pub(super) async fn probe(
    name: &ServerName,
    http: &HttpServerConfig,
    credentials: Option<&Path>,
) -> NetworkProbe {
    let settings = ConnectorSettings::of(http, AddressPolicy::declared(), credentials);
    let connector = match Connector::new(settings) {
        Ok(connector) => connector,
        Err(error) => {
            let finding = Some(unprepared(&error).of(name));
            return NetworkProbe { finding, ..NetworkProbe::default() };
        }
    };
    // The configuration refuses URLs without an origin.
    let Some(origin) = Origin::of(&http.url) else { return NetworkProbe::default() };
    let trace = connector.trace(&origin).await;
    let (failed, n_steps) = (trace.error.is_some(), trace.steps.len());
    let phase = |(at, (step, took)): (usize, &(DialStep, Duration))| {
        ProbePhase::new(step.name(), *took).failed_if(failed && at + 1 == n_steps)
    };
    let phases = trace.steps.iter().enumerate().map(phase).collect();
    let finding = match (&trace.error, &trace.tls) {
        (Some(error), _) => Some(
            Finding::error(Servers, "cannot be connected").because(chain(error)).fix(error.hint()),
        ),
        (None, tls) => tls.as_ref().and_then(|tls| expiry(tls, SystemTime::now())),
    };
    NetworkProbe {
        phases,
        tls: trace.tls.map(|tls| shown(tls, SystemTime::now())),
        finding: finding.map(|finding| finding.of(name)),
        is_reachable: trace.error.is_none(),
    }
}

/// Returns the finding about certificates of metamcp that are not usable.
fn unprepared(error: &DialError) -> Finding {
    match error {
        // Only the service knows whether the credential is really missing.
        DialError::Certificate(cause) if is_of_service(cause) => {
            Finding::note(Servers, "its certificates cannot be read here")
        }
        _ => Finding::error(Servers, "cannot be connected"),
    }
    .because(chain(error))
    .fix(error.hint())
}

fn is_of_service(error: &Arc<TlsIdentityError>) -> bool {
    matches!(**error, TlsIdentityError::Reference { .. })
}

/// Returns a finding if the certificate of a server expires soon.
fn expiry(tls: &TlsSummary, now: SystemTime) -> Option<Finding> {
    let left = tls.expires?.duration_since(now).unwrap_or_default();
    let days = usize::try_from(left.as_secs() / DAY.as_secs()).unwrap_or(usize::MAX);
    (left < defaults::DOCTOR_CERTIFICATE_MIN).then(|| {
        Finding::warning(Servers, format!("its certificate expires in {}", count(days, "day")))
            .because("metamcp refuses the server from then on.")
            .fix("Renew the certificate of the server, or tell its operator.")
    })
}

fn shown(tls: TlsSummary, now: SystemTime) -> ProbedTls {
    let days = |expires: SystemTime| {
        expires.duration_since(now).unwrap_or_default().as_secs() / DAY.as_secs()
    };
    ProbedTls {
        version: tls.version,
        protocol: tls.protocol,
        certificate_days: tls.expires.map(days),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_expires_soon_is_a_warning() {
        let now = SystemTime::now();
        let after = |days: u32| {
            let expires = Some(now + DAY * days + Duration::from_secs(1));
            let tls = TlsSummary { version: "TLS 1.3", protocol: None, expires };
            expiry(&tls, now).map(|finding| finding.what)
        };
        assert_eq!(after(1).as_deref(), Some("its certificate expires in 1 day"));
        assert_eq!(after(13).as_deref(), Some("its certificate expires in 13 days"));
        assert_eq!(after(14), None);
    }
}
