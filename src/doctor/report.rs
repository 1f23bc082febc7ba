//! The report of an examination. Each part is shown as soon as it is known.

use serde::Serialize;

use super::{
    finding::{Finding, FindingArea, FindingSeverity},
    probe::ProbeOutcome,
    probed_connection::ProbedConnection,
};
use crate::server_name::ServerName;

/// The results of an examination.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DoctorReport {
    /// The findings: first those about the host, then those about each server.
    pub findings: Vec<Finding>,
    /// The result of connecting to each server.
    pub servers: Vec<ProbedConnection>,
    /// The number of servers that were not examined, as the operator asked.
    #[serde(skip)]
    pub n_unexamined: usize,
    /// The running service, if it answers.
    #[serde(skip)]
    pub service: Option<ExaminedService>,
}

/// The running service, as far as the verdict depends on it.
#[derive(Clone, Debug, Default)]
pub struct ExaminedService {
    /// The servers that the service has not connected yet.
    pub untried: Vec<ServerName>,
}

/// A part of the report: findings that belong together.
#[derive(Clone, Copy, Debug)]
pub struct ReportPart<'a> {
    /// The findings.
    pub findings: &'a [Finding],
    /// The connection that the findings are about.
    pub connection: Option<&'a ProbedConnection>,
}

/// Collects the report, and shows each part of it once.
pub(super) struct ReportCollector<'a> {
    pub(super) report: DoctorReport,
    n_shown: usize,
    show: &'a mut dyn FnMut(ReportPart<'_>),
}

impl DoctorReport {
    /// Returns `true` if a finding is an error.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.level == FindingSeverity::Error)
    }
}

impl<'a> ReportCollector<'a> {
    pub(super) fn new(show: &'a mut dyn FnMut(ReportPart<'_>)) -> Self {
        Self { report: DoctorReport::default(), n_shown: 0, show }
    }

    /// Shows the findings that were added since the last call.
    pub(super) fn show(&mut self) {
        self.show_with(None);
    }

    /// Adds the outcome of a probe, and shows it.
    pub(super) fn add(&mut self, mut outcome: ProbeOutcome) {
        self.report.findings.append(&mut outcome.findings);
        self.show_with(Some(&outcome.connection));
        self.report.servers.push(outcome.connection);
    }

    fn show_with(&mut self, connection: Option<&ProbedConnection>) {
        let findings = &self.report.findings[self.n_shown..];
        if !findings.is_empty() {
            (self.show)(ReportPart { findings, connection });
        }
        self.n_shown = self.report.findings.len();
    }

    /// Returns the whole report, with the servers in the order of their names.
    pub(super) fn finish(mut self) -> DoctorReport {
        self.show();
        let name = |finding: &Finding| match finding.area {
            FindingArea::Servers => finding.server.clone(),
            _ => None,
        };
        let findings = &mut self.report.findings;
        let first = findings.iter().position(|finding| name(finding).is_some()).unwrap_or(0);
        // Findings about all servers together come last.
        findings[first..].sort_by_key(|finding| (name(finding).is_none(), name(finding)));
        self.report.servers.sort_by(|a, b| a.server.cmp(&b.server));
        self.report
    }
}
