//! `metamcp doctor`: what is wrong, and what to do about it.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use futures_util::StreamExt as _;
use serde_json::json;

use super::{FAILED, Failed, USAGE, output, service};
use crate::{
    config::{Config, defaults, load, secret::credentials_directory},
    doctor::{self, Finding, Level},
    report::chain,
    session,
};

/// Look for what is wrong and say what to do about it
///
/// Looks at the configuration, the sockets, the directories, the unit of systemd and this host, and
/// starts each server once by itself to see how long it takes and what it says besides; a server that
/// the service has running is started a second time for that. Nothing is changed. Exits with 1 if
/// anything does not work.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The configuration file; by default that of this user, or else that of the system
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Look at this server alone
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Start no server
    #[arg(long, conflicts_with = "server")]
    no_servers: bool,
    /// Show the NixOS option to set instead of the file or the command
    #[arg(long)]
    nix: bool,
    #[command(flatten)]
    reader: service::Reader,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let mut findings = service::run(look(args))?;
    if args.nix {
        findings = findings.into_iter().map(Finding::on_nix).collect();
    }
    let n_errors = doctor::count(&findings, Level::Error);
    if args.reader.json {
        let told = json!({
            "findings": findings,
            "errors": n_errors,
            "warnings": doctor::count(&findings, Level::Warning),
        });
        output::json(&told.to_string());
    } else {
        output::print(&shown(&findings));
    }
    if n_errors == 0 { Ok(()) } else { Err(Failed::told(FAILED)) }
}

async fn look(args: &Args) -> Result<Vec<Finding>, Failed> {
    let mut findings = Vec::new();
    let config = configuration(args.config.as_deref(), &mut findings);
    if let (Some(wanted), Some(config)) = (&args.server, &config)
        && !config.servers.keys().any(|name| name.as_str() == wanted)
    {
        let known: Vec<&str> = config.servers.keys().map(|name| name.as_str()).collect();
        return Err(Failed::new(USAGE, format!("there is no server `{wanted}`"))
            .hint(format!("There are: {}.", known.join(", "))));
    }
    if args.server.is_none() {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        findings.extend(doctor::variables(names));
        let (control, is_running) = doctor::control(&args.reader.target.path()).await;
        findings.extend(control);
        if let Some(config) = &config {
            let is_tls = config.listen.tls.is_some();
            findings.extend(doctor::http(config.listen.http, is_tls, is_running).await);
        }
        let cache = std::env::var_os("CACHE_DIRECTORY").map(PathBuf::from).or_else(|| {
            let home = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            let home =
                home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
            Some(home?.join("metamcp"))
        });
        let places = [("state", session::state_directory()), ("cache", cache)];
        findings.extend(doctor::directories(&places));
        findings.extend(args.reader.target.path().parent().and_then(doctor::socket_directory));
        findings.extend(doctor::unit(doctor::installed().as_ref()));
        findings.extend(doctor::host());
    }
    if let Some(config) = config.filter(|_| !args.no_servers) {
        findings.extend(servers(&config, args.server.as_deref()).await);
    }
    Ok(findings)
}

/// Reads the configuration.
fn configuration(path: Option<&Path>, findings: &mut Vec<Finding>) -> Option<Config> {
    const SUBJECT: &str = "configuration";
    let Some(path) = path.map(Path::to_owned).or_else(usual_path) else {
        findings.push(
            Finding::new(Level::Note, SUBJECT, "there is none at the usual places")
                .why("`metamcp serve` then serves three demonstration servers")
                .fix("Write `/etc/metamcp/metamcp.toml`, or name the file with --config.")
                .nix("services.metamcp.settings"),
        );
        return None;
    };
    let shown = path.display();
    match load::file(&path) {
        Ok(config) => {
            let n_servers = config.servers.len();
            let what = format!("`{shown}`: {n_servers} servers");
            findings.push(Finding::new(Level::Ok, SUBJECT, what));
            Some(config)
        }
        Err(error) => {
            let mut wrong = Finding::new(Level::Error, SUBJECT, format!("`{shown}` has a mistake"))
                .fix(format!("Correct it: `metamcp check {shown}` shows the same."))
                .nix("services.metamcp.settings: the option at this place");
            for line in chain(&error).lines() {
                wrong = wrong.why(line);
            }
            findings.push(wrong);
            None
        }
    }
}

/// Returns where a configuration is that nobody has named.
fn usual_path() -> Option<PathBuf> {
    let home = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".config")));
    let own = home.map(|home| home.join("metamcp/metamcp.toml"));
    let places = [own, Some("/etc/metamcp/metamcp.toml".into())];
    places.into_iter().flatten().find(|path| path.exists())
}

/// Starts the servers, a few at a time.
async fn servers(config: &Config, wanted: Option<&str>) -> Vec<Finding> {
    let credentials = credentials_directory();
    let chosen =
        config.servers.iter().filter(|(name, _)| wanted.is_none_or(|it| it == name.as_str()));
    let looks = chosen.map(|(name, declared)| {
        let credentials = credentials.as_deref();
        async move {
            let seen = doctor::look_at(name, declared, credentials).await;
            doctor::judged(name, declared, &seen)
        }
    });
    // In their order, however long each takes.
    let looks = futures_util::stream::iter(looks).buffered(defaults::PROBES_MAX);
    looks.collect::<Vec<_>>().await.into_iter().flatten().collect()
}

/// Returns the findings as people read them.
fn shown(findings: &[Finding]) -> String {
    let mut text = String::new();
    let mut subject = "";
    for finding in findings {
        if finding.subject != subject {
            subject = &finding.subject;
            let _infallible = writeln!(text, "{}", output::text(subject));
        }
        let sign = match finding.level {
            Level::Ok => "ok",
            Level::Note => "note",
            Level::Warning => "WARNING",
            Level::Error => "ERROR",
        };
        let _infallible = writeln!(text, "  {sign:<8} {}", output::text(&finding.what));
        for line in &finding.why {
            let _infallible = writeln!(text, "           {}", output::text(line));
        }
        if let Some(fix) = finding.fix.as_ref().filter(|_| finding.level > Level::Ok) {
            let _infallible = writeln!(text, "           fix: {}", output::text(fix));
        }
    }
    let counted = [(Level::Error, "error"), (Level::Warning, "warning"), (Level::Note, "note")];
    let counted = counted.map(|(level, word)| match doctor::count(findings, level) {
        1 => format!("1 {word}"),
        n_findings => format!("{n_findings} {word}s"),
    });
    let _infallible = writeln!(text, "\n{}", counted.join(", "));
    text
}
