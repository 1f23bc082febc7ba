//! The text of a report: findings, the details of each connection, and the verdict.

use crate::{
    cli::{output, quantity, terminal, text_table::CellColour},
    doctor::{DoctorReport, Finding, FindingSeverity, ProbedConnection, ReportPart},
};

/// Returns a part of the report as text. The details of a connection follow the first finding.
pub(super) fn part(part: ReportPart<'_>, nix: bool, is_coloured: bool) -> String {
    let mut text = String::new();
    for (index, finding) in part.findings.iter().enumerate() {
        text.push_str(&finding_text(finding, nix, is_coloured));
        if let Some(connection) = part.connection.filter(|_| index == 0) {
            text.push_str(&details(connection, finding.level));
        }
    }
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
        let detail = output::text(detail).replace('\n', "\n        ");
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

/// Returns the verdict. It says that all is well only if the service itself has tried all servers.
pub(super) fn verdict(report: &DoctorReport) -> String {
    let levels = [
        (FindingSeverity::Error, "error"),
        (FindingSeverity::Warning, "warning"),
        (FindingSeverity::Note, "note"),
    ];
    let count = |(level, word)| {
        let findings = report.findings.iter();
        let n_findings = findings.filter(|finding| finding.level == level).count();
        (n_findings > 0).then(|| quantity::count(n_findings, word))
    };
    let counts: Vec<String> = levels.into_iter().filter_map(count).collect();
    let untried = report.service.as_ref().map(|service| &service.untried[..]);
    let has_probes = !report.servers.is_empty();
    let limit = match untried {
        _ if report.n_unexamined > 0 => {
            let servers = quantity::count(report.n_unexamined, "server");
            format!(" {servers} not examined: `metamcp doctor` without `--no-dial` examines them.")
        }
        None if has_probes => {
            " Only this shell has tried the servers: no service answers.".to_owned()
        }
        None | Some([]) => String::new(),
        Some(servers) => {
            let names: Vec<String> = servers.iter().map(|name| format!("`{name}`")).collect();
            let names = names.join(", ");
            format!(" Only this shell has tried {names}: the service has not started them yet.")
        }
    };
    let limit = if report.has_errors() { String::new() } else { limit };
    match (counts.is_empty(), limit.is_empty()) {
        (true, true) => "\nAll is well.\n".to_owned(),
        (true, false) => format!("\nNo problem found.{limit}\n"),
        (false, _) => format!("\n{}.{limit}\n", counts.join(", ")),
    }
}
