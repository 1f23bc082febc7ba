//! The configuration of a service that a command runs, starts or checks.

use std::path::PathBuf;

use super::{CONFIG, FAILED, Failed, overrides::ConfigOverrides};
use crate::{
    config::{self, ConfigSources, LoadedConfig, credential_directories, environment},
    demo::Demo,
    error_report::chain,
};

/// Returns the sources of the configuration: the file that `file` names or else the usual one, the
/// variables and the flags.
pub(super) fn sources(
    file: Option<PathBuf>,
    overrides: &ConfigOverrides,
) -> Result<ConfigSources, Failed> {
    let flags = overrides.settings()?;
    let file = file.or_else(config::usual_file);
    let without_file = if file.is_none() { demonstration()? } else { String::new() };
    Ok(ConfigSources { file, without_file, variables: environment::of_process(), flags })
}

/// Returns the configuration of the demonstration servers, used without a file.
fn demonstration() -> Result<String, Failed> {
    let program = own_program()?;
    let program = toml::Value::String(program.to_string_lossy().into_owned());
    let servers = Demo::ALL.into_iter().map(|demo| {
        let name = demo.name();
        format!(
            "[servers.{name}]\ncommand = {program}\nargs = [\"demo-server\", \"{name}\"]\nstart = \"eager\"\n"
        )
    });
    Ok(servers.collect())
}

/// Returns the configuration sources of a service that is started without flags.
pub(super) fn without_flags(file: PathBuf) -> ConfigSources {
    let variables = environment::of_process();
    ConfigSources { file: Some(file), variables, ..ConfigSources::default() }
}

/// Loads the configuration from all its sources, for a process that reads its credentials.
pub(super) fn load(sources: &ConfigSources) -> Result<LoadedConfig, Failed> {
    credential_directories::follow_config(sources.file.as_deref());
    read(sources)
}

/// Reads the configuration from all its sources.
pub(super) fn read(sources: &ConfigSources) -> Result<LoadedConfig, Failed> {
    sources.load().map_err(|error| Failed::new(CONFIG, chain(&error)))
}

pub(super) fn no_file() -> Failed {
    Failed::new(CONFIG, "there is no configuration file").hint(
        "Write ~/.config/metamcp/metamcp.toml, or name yours with --config or METAMCP_CONFIG.",
    )
}

/// Returns the program file of metamcp.
pub(super) fn own_program() -> Result<PathBuf, Failed> {
    std::env::current_exe().map_err(|error| {
        Failed::new(FAILED, format!("cannot find the program file of metamcp: {error}"))
    })
}
