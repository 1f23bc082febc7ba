//! Variables of the environment that look like ours. Pure.

use super::{Finding, Level};
use crate::{config::defaults, redact};

/// How our variables begin.
const PREFIX: &str = "METAMCP_";

/// What they go on with: the sections of the configuration, and what the command line reads.
const KNOWN: [&str; 13] = [
    "SOCKET",
    "SERVICE_",
    "LISTEN_",
    "POOL_",
    "BREAKER_",
    "HEALTH_",
    "SEARCH_",
    "CATALOG_",
    "PROVISION_",
    "TOOLS_",
    "TASKS_",
    "SERVERS_",
    "SESSION_",
];

/// Judges the variables of these names.
pub fn variables(names: impl Iterator<Item = String>) -> Vec<Finding> {
    let is_known = |rest: &str| {
        KNOWN.iter().any(|known| match known.ends_with('_') {
            true => rest.starts_with(known),
            false => rest == *known,
        })
    };
    let mut unknown: Vec<String> = names
        .filter(|name| name.strip_prefix(PREFIX).is_some_and(|rest| !is_known(rest)))
        .map(|name| redact::tame(redact::cut(&name, defaults::SUGGESTION_BYTES_MAX)).into_owned())
        .collect();
    unknown.sort();
    unknown.truncate(defaults::FINDING_NAMES_MAX);
    let finding = |name: &String| {
        Finding::new(Level::Warning, "environment", format!("nobody reads `{name}`"))
            .why("a variable of ours is called METAMCP_SECTION_KEY, as in METAMCP_POOL_SIZE")
            .fix("Correct its name, or take it away.")
            .nix("services.metamcp.settings: the option instead of a variable")
    };
    unknown.iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_looks_like_ours_and_is_none_is_named() {
        let names =
            ["METAMCP_POOL_SIZE", "METAMCP_SOCKET", "METAMCP_POLL_SIZE", "PATH", "METAMCP_SOCKETS"];
        let found = variables(names.into_iter().map(str::to_owned));
        let what: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(what, ["nobody reads `METAMCP_POLL_SIZE`", "nobody reads `METAMCP_SOCKETS`"]);
    }
}
