//! `metamcp check`: the validation of a configuration.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{
    CONFIG, Failed, configuration, effective, missing_parts, output, overrides::ConfigOverrides,
    quantity, service_target, status_report,
};
use crate::{
    config::{self, Config, TransportConfig, load},
    control::socket_client::ControlClientError,
    error_report::chain,
    tls::{self, TlsIdentity},
};

/// Check a configuration file without starting anything
///
/// Exits with 0 when the file is valid, and with 78 when it has an error: the message names file,
/// line and column, shows the text, and says what to write instead. The files of certificates and
/// keys are read. A program with a path must exist. A program that is not in this shell's PATH, and a
/// credential that is not here, give a warning: the service may have them.
///
/// The file does not list the items that servers offer. A running service reports items with the
/// same name in the merged view; a conflict between two servers in the file is an error, too.
///
/// With --effective, prints the configuration that results from the file, the variables
/// `METAMCP_<SECTION>_<KEY>` of this environment and the flags, with the source of each value.
/// Without a file, prints the configuration of the demonstration servers.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Do not read the files that it names, for a configuration of another machine
    #[arg(long)]
    no_files: bool,
    /// Do not ask the running service; implied by --no-files
    #[arg(long)]
    offline: bool,
    /// Print all effective values and the source of each: a default, the file and line, a variable,
    /// or a flag; secrets are hidden
    #[arg(long)]
    effective: bool,
    /// Print the effective values as JSON
    #[arg(long, requires = "effective")]
    json: bool,
    #[command(flatten)]
    target: service_target::ServiceTarget,
    /// The configuration file; default: METAMCP_CONFIG, then this user's, then this host's
    file: Option<PathBuf>,
    /// Same as FILE
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
    #[command(flatten)]
    overrides: ConfigOverrides,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let flags = args.overrides.settings()?;
    let named = args.file.clone().or_else(|| args.config.clone());
    if args.effective {
        return show(args, named);
    }
    if !flags.is_empty() {
        return Err(Failed::usage(
            "flags do not change the check of a file",
            "Add --effective to see the configuration with these flags.",
        ));
    }
    let file = named.or_else(config::usual_file).ok_or_else(configuration::no_file)?;
    // Without variables and flags.
    let config = load::file(&file).map_err(|error| Failed::new(CONFIG, chain(&error)))?;
    if !args.no_files {
        certificates(&config)?;
        missing(&config, &file)?;
    }
    if !args.no_files && !args.offline {
        ask(args.target.socket.as_deref(), &config)?;
    }
    let mut servers = quantity::count(config.declared_servers().count(), "server");
    if !config.disabled.is_empty() {
        servers.push_str(&format!(", {} of them disabled", config.disabled.len()));
    }
    output::print(&format!("{}: ok, {servers}\n", file.display()));
    warn(&config);
    for (name, server) in &config.servers {
        if let Some(state) = server.shared_state() {
            output::eprint(&format!(
                "hint: all clients of `{name}` share {state}; with `sharing = \"session\"` each has its own\n"
            ));
        }
    }
    Ok(())
}

/// Reads the files of the certificates that the configuration names.
fn certificates(config: &Config) -> Result<(), Failed> {
    if let Some(tls) = &config.listen.tls {
        TlsIdentity::check(tls)
            .map_err(|error| Failed::new(CONFIG, chain(&error)).hint(error.hint()))?;
    }
    for (name, server) in config.declared_servers() {
        let TransportConfig::Http(http) = &server.transport else { continue };
        tls::check_client(&http.tls).map_err(|error| {
            Failed::new(CONFIG, format!("server `{name}`: {}", chain(&error))).hint(error.hint())
        })?;
    }
    Ok(())
}

/// Warns of programs and credentials that are not here.
///
/// # Errors
///
/// [`Failed`] if the service cannot start a program either.
fn missing(config: &Config, file: &Path) -> Result<(), Failed> {
    let parts = [missing_parts::programs(config), missing_parts::credentials(config, file)];
    let mut certain = Vec::new();
    for part in parts.into_iter().flatten() {
        match part.is_certain {
            true => certain.push(part.text),
            false => output::eprint(&format!("warning: {}\n", part.text)),
        }
    }
    let Some((first, others)) = certain.split_first() else { return Ok(()) };
    let failed = others.iter().fold(Failed::new(CONFIG, first), |failed, text| failed.detail(text));
    Err(failed.hint(
        "Install the program, or correct its path. For a file of another host, add --no-files.",
    ))
}

/// Prints the warning about scripts that run without isolation.
fn warn(config: &Config) {
    if let Some(warning) = config.execute.warning() {
        output::eprint(&format!("warning: {warning}\n"));
    }
}

/// Prints the effective configuration: file, variables and flags combined.
fn show(args: &Args, named: Option<PathBuf>) -> Result<(), Failed> {
    let loaded = configuration::load(&configuration::sources(named, &args.overrides)?)?;
    let entries = config::effective::entries(&loaded.config, &loaded.configured);
    if args.json {
        output::print(&format!("{:#}\n", effective::json(&entries)));
    } else {
        output::print(&effective::toml(&entries));
    }
    warn(&loaded.config);
    for name in loaded.unknown_variables {
        output::eprint(&format!("warning: the variable {name} is ignored: it names no key\n"));
    }
    Ok(())
}

/// Asks the running service, if there is one, for items of the servers in `config` that have the
/// same name in the merged view.
fn ask(socket: Option<&Path>, config: &Config) -> Result<(), Failed> {
    let status = match service_target::ask(socket, "daemon/status", None)? {
        Ok(status) => status,
        Err(error @ ControlClientError::Silent { .. }) => {
            let text = "items with the same name are not checked";
            output::eprint(&format!("warning: {text}: {}\n", chain(&error)));
            output::hint(&format!("hint: {}\n", error.hint().unwrap_or_default()));
            return Ok(());
        }
        // Without a service that answers this user, no conflicts are known.
        Err(_) => return Ok(()),
    };
    let is_declared =
        |server: &Value| server.as_str().is_some_and(|name| config.servers.contains_key(name));
    let lines: Vec<String> = output::items(&status["collisions"])
        .iter()
        .filter(|found| is_declared(&found["server"]) && is_declared(&found["leftOut"]))
        .map(|found| format!("\n  {}", status_report::collision(found)))
        .collect();
    if lines.is_empty() {
        return Ok(());
    }
    let text = "items of the running service have the same name in the merged view:";
    Err(Failed::new(CONFIG, format!("{text}{}", lines.concat())).hint(
        "Remove one of the servers, rename its items, or use both at `/servers/NAME`. To check the file alone, add --offline.",
    ))
}
