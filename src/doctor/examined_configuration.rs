//! The configuration that is examined: its file, and the problems in it.

use std::path::PathBuf;

use super::{
    DoctorRequest,
    finding::{self, Finding, FindingArea::Configuration},
    installed_unit::InstalledUnit,
    sockets, unit,
};
use crate::{
    config::{self, Config, ConfigSources, defaults, environment, load::LoadError},
    error_report::chain,
    files,
};

/// Returns the configuration file to examine, with the reason for its choice.
pub(super) async fn named_file(
    request: &DoctorRequest,
    unit: &InstalledUnit,
) -> Option<(PathBuf, &'static str)> {
    if let Some(file) = &request.file {
        return Some((file.clone(), "`--config` names it."));
    }
    if let Some(file) = config::file_of_environment() {
        return Some((file, "`METAMCP_CONFIG` of this environment names it."));
    }
    let socket = request.socket.as_ref().unwrap_or(&request.default_socket);
    let of_service = sockets::environment(socket, defaults::DOCTOR_FILE_TIMEOUT)
        .await
        .and_then(|it| it.configuration);
    let own = files::own_directory("XDG_CONFIG_HOME", ".config");
    let of_unit = || unit::config_of_environment(unit.directives.as_ref()?, own.as_deref());
    let named = [
        (of_service, "The running service reads it."),
        (
            unit::config_of(&unit.command(), own.as_deref()),
            "`ExecStart=` of metamcp.service names it.",
        ),
        (of_unit(), "`Environment=METAMCP_CONFIG=` of metamcp.service names it."),
        (config::usual_file(), "It is the default file."),
    ];
    named.into_iter().find_map(|(file, why)| Some((file?, why)))
}

/// Loads the configuration as the service does, with the variables of this environment; `named` is
/// the file and the reason for its choice.
pub(super) fn configuration(
    named: Option<&(PathBuf, &str)>,
    found: &mut Vec<Finding>,
) -> Option<Config> {
    let Some((file, why)) = named else {
        found.push(
            Finding::warning(Configuration, "there is no configuration file")
                .because("Without one, metamcp serves three demonstration servers.")
                .fix("Write /etc/metamcp/metamcp.toml, or name your file with --config.")
                .nix("services.metamcp.servers.NAME.package = pkgs.THE_SERVER;"),
        );
        return None;
    };
    let sources =
        ConfigSources { variables: environment::of_process(), ..ConfigSources::of_file(file) };
    let loaded = match sources.load() {
        Ok(loaded) => loaded,
        Err(error) => {
            let fix = match &error {
                LoadError::Read { .. } => "Name a file that this user may read with --config.",
                LoadError::Content(_) => "Correct it there, then run `metamcp check FILE`.",
            };
            found.push(
                Finding::error(Configuration, "metamcp refuses the configuration")
                    .because(format!("{}\n{why}", chain(&error).trim_end()))
                    .fix(fix),
            );
            return None;
        }
    };
    for variable in &loaded.unknown_variables {
        found.push(
            Finding::warning(Configuration, format!("the variable {variable} has no effect"))
                .because("It begins with METAMCP_, but names no key of the configuration.")
                .fix("Remove it, or correct its name: METAMCP_SECTION_KEY."),
        );
    }
    let servers = finding::count(loaded.config.servers.len(), "server");
    let what = format!("{}: {servers}", file.display());
    found.push(Finding::ok(Configuration, what).because(*why));
    if let Some(warning) = loaded.config.execute.warning() {
        found.push(
            Finding::warning(Configuration, "scripts run without isolation")
                .because(warning)
                .nix("services.metamcp.settings.execute.profile = \"standard\";"),
        );
    }
    for (name, server) in &loaded.config.servers {
        if let Some(state) = server.shared_state() {
            let what = format!("all clients of `{name}` share {state}");
            found.push(
                Finding::warning(Configuration, what)
                    .because("The server keeps it between the calls of different clients.")
                    .fix("Set `sharing = \"session\"` for this server, so that each client has its own.")
                    .nix(format!("services.metamcp.servers.{name}.sharing = \"session\";")),
            );
        }
    }
    Some(loaded.config)
}
