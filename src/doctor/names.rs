//! What tools are called, and what clients make of that. Pure.

use std::collections::BTreeSet;

use super::{Finding, Level};
use crate::{config::defaults, name::ServerName};

/// Judges the names of a server's tools.
pub fn names(server: &ServerName, tools: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let subject = format!("server {server}");
    let is_plain = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    let long = |name: &&String| {
        let whole = server.qualify(name);
        whole.len() > defaults::EXPOSED_NAME_MAX || !is_plain(&whole)
    };
    let aliased: Vec<&String> = tools.iter().filter(long).collect();
    if !aliased.is_empty() {
        let text = format!("{} tools have names that clients do not take", aliased.len());
        findings.push(
            Finding::new(Level::Note, &subject, text)
                .why(format!(
                    "a name may have 64 letters, digits, `_` and `-`, with `mcp__metamcp__{server}__` in front: {}",
                    shown(aliased.into_iter())
                ))
                .fix("They are shown under a shorter name. To have their own, give the server a shorter name, or use `/meta` or `/servers/NAME`.")
                .nix("services.metamcp.settings.servers: give the server a shorter name"),
        );
    }
    let mut known = BTreeSet::new();
    let twice: Vec<&String> = tools.iter().filter(|name| !known.insert(*name)).collect();
    if !twice.is_empty() {
        findings.push(
            Finding::new(
                Level::Warning,
                &subject,
                format!("{} tools are listed twice", twice.len()),
            )
            .why(shown(twice.into_iter()))
            .fix("Tell whoever maintains the server: only the first of each can be called."),
        );
    }
    findings
}

fn shown<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<String> = names
        .map(|name| {
            crate::redact::tame(crate::redact::cut(name, defaults::SUGGESTION_BYTES_MAX))
                .into_owned()
        })
        .collect();
    let n_more = names.len().saturating_sub(defaults::FINDING_NAMES_MAX);
    let first: Vec<&str> =
        names.iter().take(defaults::FINDING_NAMES_MAX).map(String::as_str).collect();
    let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
    format!("`{}`{more}", first.join("`, `"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_clients_do_not_take_and_names_that_come_twice_are_told() {
        let server = ServerName::new("git").expect("a name");
        let long = "x".repeat(46);
        let names = |tools: &[&str]| {
            super::names(&server, &tools.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
        };
        assert!(names(&["log", "show", &"x".repeat(45)]).is_empty());
        for tools in [["log", long.as_str()], ["log", "a.b"]] {
            let found = names(&tools);
            assert_eq!((found.len(), found[0].level), (1, Level::Note), "{found:?}");
        }
        let found = names(&["log", "log", "show"]);
        assert_eq!((found.len(), found[0].level), (1, Level::Warning));
    }
}
