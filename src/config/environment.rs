//! The configuration from variables: `METAMCP_<SECTION>_<KEY>`.
//!
//! A variable of one of our sections that names no key is a mistake, as an unknown key in the file
//! is: a bound that somebody has set and that does not hold is worse than a start that is refused.
//! Every other variable that begins with `METAMCP_` may be somebody else's and is only told.

use super::{
    Diagnostic, config_path,
    diagnostic::SettingOrigin,
    keys::{self, KEYS, KeySegment},
    sources::{ServerNames, SettingTarget, SourcedSetting},
    toml_messages::did_you_mean,
};

/// What the name of every variable begins with.
pub const PREFIX: &str = "METAMCP_";

/// Variables of ours that are no keys: of the command line, and of processes that we started.
const OTHERS: [&str; 3] = [config_path::VARIABLE, "METAMCP_SOCKET", "METAMCP_CHILD"];

/// What Kubernetes sets in every pod beside a service that is called `metamcp`.
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

/// Returns the variables of this process that may be meant for us, by name.
pub fn of_process() -> Vec<EnvironmentVariable> {
    let ours = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        Some(EnvironmentVariable { name, value: value.to_string_lossy().into_owned() })
    });
    let mut ours: Vec<_> = ours.collect();
    ours.sort_by(|one, other| one.name.cmp(&other.name));
    ours
}

/// What the variables say.
pub(super) struct EnvironmentValues {
    /// The keys.
    pub(super) settings: Vec<SourcedSetting>,
    /// Those that name nothing, and may be somebody else's.
    pub(super) unknown: Vec<String>,
}

/// Finds the keys that variables name, those of the servers in `names` included. An empty variable is
/// as good as none.
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
                what: SettingTarget::Key(path.clone()),
                value: variable.value.clone(),
            }),
            (Some((_, one)), Some((_, other))) => {
                let message = format!(
                    "`{}` may be `{}` or `{}`",
                    variable.name,
                    one.join("."),
                    other.join(".")
                );
                return Err(Diagnostic::of(origin, message)
                    .helped("say it in the file, or with `--set KEY=VALUE`"));
            }
            (None, _) if is_foreign(&variable.name) => {}
            (None, _) if is_of_a_section(&variable.name) => {
                return Err(unknown(&variable.name, origin, &known, names));
            }
            (None, _) => found.unknown.push(variable.name.clone()),
        }
    }
    // A table before what stands in it.
    found.settings.sort_by_key(|setting| match &setting.what {
        SettingTarget::Key(path) => path.len(),
        SettingTarget::Written(_) | SettingTarget::Host | SettingTarget::Port => 0,
    });
    Ok(found)
}

/// Returns the variable for each key: of every section, and of each server that is declared.
fn known(names: &ServerNames) -> Vec<(String, Vec<String>)> {
    let mut known = Vec::new();
    for key in KEYS.iter() {
        let is_provisionable =
            matches!(key.path.first(), Some(KeySegment::Name(name)) if name == "provision");
        let is_of_server = key.path.contains(&KeySegment::Server);
        let no_name = [String::new()];
        let servers: &[String] = match (is_of_server, is_provisionable) {
            (false, _) => &no_name,
            (true, false) => &names.declared,
            (true, true) => &names.provisionable,
        };
        for server in servers {
            let path: Vec<String> = key
                .path
                .iter()
                .map(|step| match step {
                    KeySegment::Name(name) => name.clone(),
                    KeySegment::Server => server.clone(),
                })
                .collect();
            known.push((variable(&path), path));
        }
    }
    known
}

/// Returns the name of the variable for the key at `path`.
pub(super) fn variable(path: &[String]) -> String {
    let parts: Vec<String> =
        path.iter().map(|name| name.to_ascii_uppercase().replace('-', "_")).collect();
    format!("{PREFIX}{}", parts.join("_"))
}

fn is_foreign(name: &str) -> bool {
    OTHERS.contains(&name)
        || OF_KUBERNETES.into_iter().any(|other| {
            name.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        })
}

fn is_of_a_section(name: &str) -> bool {
    let rest = name.strip_prefix(PREFIX).unwrap_or_default();
    keys::sections().any(|section| {
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
    let of_servers = name.starts_with("METAMCP_SERVERS_");
    let help =
        did_you_mean(name, all).unwrap_or_else(|| match (of_servers, names.declared.len()) {
            (true, 0) => "no server is declared: variables only change those that are".to_owned(),
            (true, _) => format!(
                "write METAMCP_SERVERS_NAME_KEY for a server that is declared: {}",
                names.declared.join(", ")
            ),
            (false, _) => "`metamcp schema` shows all keys".to_owned(),
        });
    Diagnostic::of(origin, format!("unknown variable `{name}`")).helped(help)
}
