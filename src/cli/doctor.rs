//! `metamcp doctor`: a diagnosis of the installation, with a fix for each problem.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::{
    CANCELLED, FAILED, Failed, USAGE, output, quantity,
    service_target::{self, OutputArgs},
    terminal,
    text_table::CellColour,
};
use crate::{
    doctor::{
        DoctorReport, DoctorRequest, Finding, FindingArea, FindingSeverity, ProbedConnection,
        examine,
    },
    error_report::chain,
    server_name::ServerName,
};

/// Find out what is wrong, and what to do about it
///
/// Examines the configuration, the sockets, permissions, the unit, the clock and the memory. It
/// also connects to each server separately, as the service does, and shows the duration of each
/// phase and the first lines of the server's output. For a server over HTTP, the phases are name,
/// connection, TLS, metadata and token, too. Nothing is changed, and no secret is printed.
/// Exits with 1 when it finds an error.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The configuration file; default: METAMCP_CONFIG, then the installed service's, this user's,
    /// or this host's
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Examine only this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Do not start or connect to any server
    #[arg(long, conflicts_with = "server")]
    no_dial: bool,
    /// Name the option of the NixOS module that fixes a problem, if there is one
    #[arg(long)]
    nix: bool,
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let server = args.server.as_deref().map(ServerName::new).transpose();
    let request = DoctorRequest {
        file: args.config.clone(),
        socket: args.common.target.socket.clone(),
        default_socket: args.common.target.path(),
        server: server.map_err(|error| Failed::new(USAGE, chain(&error)))?,
        probes_servers: !args.no_dial,
    };
    let (report, was_stopped) = service_target::run(async {
        let closing = CancellationToken::new();
        let mut examining = std::pin::pin!(examine(&request, &closing));
        let mut was_stopped = false;
        let examined = tokio::select! {
            examined = &mut examining => examined,
            // The examination ends the processes that it has started.
            _ = tokio::signal::ctrl_c() => {
                was_stopped = true;
                closing.cancel();
                examining.await
            }
        };
        let report = examined.map_err(|error| {
            Failed::usage(chain(&error), "Run `metamcp servers` to list the servers.")
        })?;
        Ok((report, was_stopped))
    })?;
    if args.common.json {
        let text = serde_json::to_string(&report).map_err(|error| {
            Failed::new(FAILED, format!("cannot write the report as JSON: {error}"))
        })?;
        output::json(&text);
    } else {
        output::print(&report_text(&report, args.nix, terminal::is_coloured()));
    }
    match (was_stopped, report.has_errors()) {
        (true, _) => Err(Failed::printed(CANCELLED)),
        (false, true) => Err(Failed::printed(FAILED)),
        (false, false) => Ok(()),
    }
}

/// Returns the report as text.
fn report_text(report: &DoctorReport, nix: bool, is_coloured: bool) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text.push_str(&finding_text(finding, nix, is_coloured));
        let about = |probed: &&ProbedConnection| Some(&probed.server) == finding.server.as_ref();
        // The details follow the first finding about the server.
        let is_first = finding.area == FindingArea::Servers
            && report
                .findings
                .iter()
                .find(|other| other.server == finding.server && other.area == finding.area)
                .is_some_and(|first| std::ptr::eq(first, finding));
        if let Some(probed) = report.servers.iter().find(about).filter(|_| is_first) {
            text.push_str(&details(probed, finding.level));
        }
    }
    text.push_str(&summary(&report.findings));
    text
}

fn finding_text(finding: &Finding, nix: bool, is_coloured: bool) -> String {
    let colour = match finding.level {
        FindingSeverity::Ok => CellColour::Green,
        FindingSeverity::Note => CellColour::Dim,
        FindingSeverity::Warning => CellColour::Yellow,
        FindingSeverity::Error => CellColour::Red,
    };
    let level = format!("{:<7}", finding.level.name());
    let level = if is_coloured { colour.paint(&level) } else { level };
    let subject = match &finding.server {
        Some(server) => format!("{server}: "),
        None => String::new(),
    };
    let mut text = format!("{level} {subject}{}\n", terminal::escape(&finding.what));
    let mut more = |title: &str, detail: &str| {
        let detail = output::text(detail).replace('\n', "\n         ");
        text.push_str(&format!("        {title}{detail}\n"));
    };
    if let Some(why) = &finding.why {
        more("", why);
    }
    match (&finding.nix, &finding.fix) {
        (Some(option), _) if nix => more("nix: ", option),
        (_, Some(fix)) => more("fix: ", fix),
        (_, None) => {}
    }
    text
}

/// Returns the details of a probe; the standard error output only with an error.
fn details(probed: &ProbedConnection, level: FindingSeverity) -> String {
    let mut words: Vec<String> = probed
        .phases
        .iter()
        .map(|phase| {
            let failed = if phase.has_failed { " (failed)" } else { "" };
            format!("{} {} ms{failed}", phase.name, phase.took.as_millis())
        })
        .collect();
    if let Some(tls) = &probed.tls {
        words.push(tls.version.to_owned());
        words.extend(tls.protocol.as_deref().map(terminal::escape));
        words.extend(tls.certificate_days.map(|days| format!("certificate for {days} days")));
    }
    words.extend(probed.protocol_version.clone());
    words.extend(probed.tools.map(|n_tools| quantity::count(n_tools, "tool")));
    words.extend(probed.exit.clone());
    let mut text = match words.is_empty() {
        true => String::new(),
        false => format!("        {}: {}\n", probed.transport, words.join(", ")),
    };
    let is_wrong = level == FindingSeverity::Error;
    let lines = probed.stderr.iter().filter(|_| is_wrong).map(|line| ("stderr", line));
    for (stream, line) in lines.chain(probed.noise.iter().map(|line| ("stdout", line))) {
        text.push_str(&format!("        {stream}| {}\n", terminal::escape(line)));
    }
    text
}

fn summary(findings: &[Finding]) -> String {
    let levels = [
        (FindingSeverity::Error, "error"),
        (FindingSeverity::Warning, "warning"),
        (FindingSeverity::Note, "note"),
    ];
    let count = |(level, word)| {
        let n_findings = findings.iter().filter(|finding| finding.level == level).count();
        (n_findings > 0).then(|| quantity::count(n_findings, word))
    };
    let counts: Vec<String> = levels.into_iter().filter_map(count).collect();
    match counts.is_empty() {
        true => "\nAll is well.\n".to_owned(),
        false => format!("\n{}\n", counts.join(", ")),
    }
}
