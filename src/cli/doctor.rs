//! `metamcp doctor`: a diagnosis of the installation, with a fix for each problem.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::{
    CANCELLED, FAILED, Failed, USAGE, output,
    service_target::{self, OutputArgs},
    terminal,
    text_table::CellColour,
};
use crate::{
    doctor::{DoctorReport, DoctorRequest, Finding, FindingSeverity, ProbedConnection, examine},
    error_report::chain,
    server_name::ServerName,
};

/// Find out what is wrong, and what to do about it
///
/// Examines the configuration, the sockets, permissions, the unit, the clock and the memory. It
/// also connects to each server separately, as the service does, and shows the duration of each
/// phase and the first lines of the server's output. Nothing is changed, and no secret is printed.
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
    reader: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let server = args.server.as_deref().map(ServerName::new).transpose();
    let question = DoctorRequest {
        file: args.config.clone(),
        socket: args.reader.target.socket.clone(),
        nearest: args.reader.target.path(),
        server: server.map_err(|error| Failed::new(USAGE, chain(&error)))?,
        dials: !args.no_dial,
    };
    let (report, was_stopped) = service_target::run(async {
        let closing = CancellationToken::new();
        let mut examining = std::pin::pin!(examine(&question, &closing));
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
            Failed::new(USAGE, chain(&error)).hint("`metamcp servers` lists them.")
        })?;
        Ok((report, was_stopped))
    })?;
    if args.reader.json {
        let text = serde_json::to_string(&report)
            .map_err(|error| Failed::new(FAILED, format!("write the report: {error}")))?;
        output::json(&text);
    } else {
        output::print(&shown(&report, args.nix, terminal::is_coloured()));
    }
    match (was_stopped, report.has_errors()) {
        (true, _) => Err(Failed::told(CANCELLED)),
        (false, true) => Err(Failed::told(FAILED)),
        (false, false) => Ok(()),
    }
}

/// Returns the report as text.
fn shown(report: &DoctorReport, nix: bool, is_coloured: bool) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text.push_str(&one(finding, nix, is_coloured));
        let about = |dialled: &&ProbedConnection| Some(&dialled.server) == finding.server.as_ref();
        // The details follow the first finding about the server.
        let is_first = finding.area.name() == "servers"
            && report
                .findings
                .iter()
                .find(|other| other.server == finding.server && other.area == finding.area)
                .is_some_and(|first| std::ptr::eq(first, finding));
        if let Some(dialled) = report.servers.iter().find(about).filter(|_| is_first) {
            text.push_str(&details(dialled, finding.level));
        }
    }
    text.push_str(&summary(&report.findings));
    text
}

fn one(finding: &Finding, nix: bool, is_coloured: bool) -> String {
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
    let mut more = |title: &str, told: &str| {
        let told = output::text(told).replace('\n', "\n         ");
        text.push_str(&format!("        {title}{told}\n"));
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
fn details(dialled: &ProbedConnection, level: FindingSeverity) -> String {
    let mut words: Vec<String> = dialled
        .phases
        .iter()
        .map(|phase| format!("{} {} ms", phase.name, phase.took.as_millis()))
        .collect();
    words.extend(dialled.protocol_version.clone());
    words.extend(dialled.tools.map(|n_tools| match n_tools {
        1 => "1 tool".to_owned(),
        n_tools => format!("{n_tools} tools"),
    }));
    words.extend(dialled.exit.clone());
    let mut text = format!("        {}: {}\n", dialled.transport, words.join(", "));
    let is_wrong = level == FindingSeverity::Error;
    let lines = dialled.stderr.iter().filter(|_| is_wrong).map(|line| ("stderr", line));
    for (stream, line) in lines.chain(dialled.noise.iter().map(|line| ("stdout", line))) {
        text.push_str(&format!("        {stream}| {}\n", terminal::escape(line)));
    }
    text
}

fn summary(findings: &[Finding]) -> String {
    let count =
        |level: FindingSeverity| findings.iter().filter(|finding| finding.level == level).count();
    let counted = |level: FindingSeverity, word: &str| match count(level) {
        0 => None,
        1 => Some(format!("1 {word}")),
        n => Some(format!("{n} {word}s")),
    };
    let told: Vec<String> = [
        (FindingSeverity::Error, "error"),
        (FindingSeverity::Warning, "warning"),
        (FindingSeverity::Note, "note"),
    ]
    .into_iter()
    .filter_map(|(level, word)| counted(level, word))
    .collect();
    match told.is_empty() {
        true => "\nAll is well.\n".to_owned(),
        false => format!("\n{}\n", told.join(", ")),
    }
}
