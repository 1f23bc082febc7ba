//! The configuration from variables: `METAMCP_<SECTION>_<KEY>`.
//!
//! A variable that names a section but no key is an error, as an unknown key in the file is. A
//! refused start is better than a bound that silently has no effect. Any other `METAMCP_` variable
//! may belong to another program, and only causes a warning.

use super::{
    Diagnostic, config_path,
    diagnostic::SettingOrigin,
    key_paths::{self, KEYS},
    sources::{ServerNames, SettingTarget, SourcedSetting},
    toml_messages::did_you_mean,
};

/// The prefix of all variables.
pub const PREFIX: &str = "METAMCP_";

/// Variables of metamcp that are no keys: of the command line, and of its child processes.
const OTHERS: [&str; 3] = [config_path::VARIABLE, "METAMCP_SOCKET", "METAMCP_CHILD"];

/// The variables that Kubernetes sets in every pod beside a service that is called `metamcp`.
const OF_KUBERNETES: [&str; 3] = ["METAMCP_SERVICE_HOST", "METAMCP_SERVICE_PORT", "METAMCP_PORT"];

/// A variable and its value, which is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct EnvironmentVariable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl std::fmt::Debug for EnvironmentVariable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

/// Returns the variables of this process that begin with [`PREFIX`], sorted by name.
pub fn of_process() -> Vec<EnvironmentVariable> {
    let ours = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        Some(EnvironmentVariable { name, value: value.to_string_lossy().into_owned() })
    });
    let mut ours: Vec<_> = ours.collect();
    ours.sort_by(|one, other| one.name.cmp(&other.name));
    ours
}

/// The settings that variables make.
pub(super) struct EnvironmentValues {
    /// The keys that they set.
    pub(super) settings: Vec<SourcedSetting>,
    /// The variables that name no key, and may belong to another program.
    pub(super) unknown: Vec<String>,
}

/// Finds the keys that the variables set, including those of the servers in `names`. An empty
/// variable counts as unset.
pub(super) fn settings(
    variables: &[EnvironmentVariable],
    names: &ServerNames,
) -> Result<EnvironmentValues, Box<Diagnostic>> {
    let mut found = EnvironmentValues { settings: Vec::new(), unknown: Vec::new() };
    if variables.is_empty() {
        return Ok(found);
    }
    let known = known(names);
    for variable in variables.iter().filter(|variable| !variable.value.trim().is_empty()) {
        let origin = SettingOrigin::Environment(variable.name.clone());
        let mut meant = known.iter().filter(|(name, _)| *name == variable.name);
        match (meant.next(), meant.next()) {
            (Some((_, path)), None) => found.settings.push(SourcedSetting {
                origin,
                target: SettingTarget::Key(path.clone()),
                value: variable.value.clone(),
            }),
            (Some((_, one)), Some((_, other))) => {
                let (one, other) = (one.join("."), other.join("."));
                let message = format!("`{}` may be `{one}` or `{other}`", variable.name);
                return Err(Diagnostic::of(origin, message)
                    .helped("set the key in the file, or with `--set KEY=VALUE`"));
            }
            (None, _) if is_foreign(&variable.name) => {}
            (None, _) if is_of_a_section(&variable.name) => {
                return Err(unknown(&variable.name, origin, &known, names));
            }
            (None, _) => found.unknown.push(variable.name.clone()),
        }
    }
    // A table comes before the keys in it.
    found.settings.sort_by_key(|setting| match &setting.target {
        SettingTarget::Key(path) => path.len(),
        SettingTarget::Written(_) | SettingTarget::Host | SettingTarget::Port => 0,
    });
    Ok(found)
}

/// Returns the variable for each key of every section and of each declared server.
fn known(names: &ServerNames) -> Vec<(String, Vec<String>)> {
    let mut known = Vec::new();
    let no_name = [String::new()];
    for key in KEYS.iter() {
        let servers: &[String] = match (key.is_of_server(), key.section()) {
            (false, _) => &no_name,
            (true, Some("provision")) => &names.provisionable,
            (true, _) => &names.declared,
        };
        for path in servers.iter().map(|server| key.path_for(server)) {
            known.push((variable(&path), path));
        }
    }
    known
}

/// Returns the name of the variable for the key at `path`.
pub(super) fn variable(path: &[String]) -> String {
    format!("{PREFIX}{}", path.join("_").to_ascii_uppercase().replace('-', "_"))
}

fn is_foreign(name: &str) -> bool {
    OTHERS.contains(&name)
        || OF_KUBERNETES.into_iter().any(|other| {
            name.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        })
}

fn is_of_a_section(name: &str) -> bool {
    let rest = name.strip_prefix(PREFIX).unwrap_or_default();
    key_paths::sections().any(|section| {
        rest.strip_prefix(&section.to_ascii_uppercase()).is_some_and(|rest| rest.starts_with('_'))
    })
}

fn unknown(
    name: &str,
    origin: SettingOrigin,
    known: &[(String, Vec<String>)],
    names: &ServerNames,
) -> Box<Diagnostic> {
    let all = known.iter().map(|(name, _)| name.as_str());
    let help = did_you_mean(name, all).unwrap_or_else(|| {
        if !name.starts_with("METAMCP_SERVERS_") {
            "run `metamcp schema` to see all keys".to_owned()
        } else if names.declared.is_empty() {
            "declare the server in the file: a variable only changes a declared server".to_owned()
        } else {
            let declared = names.declared.join(", ");
            format!("write METAMCP_SERVERS_NAME_KEY with the name of a declared server: {declared}")
        }
    });
    Diagnostic::of(origin, format!("unknown variable `{name}`")).helped(help)
}
