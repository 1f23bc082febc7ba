//! The checks of tool names in the merged view against the limits of clients.
//!
//! Pure.

use std::collections::BTreeMap;

use super::finding::{Finding, FindingArea::Names, count};
use crate::{config::defaults, redact::sanitize, server_name::ServerName, view::alias};

/// The largest number of names in one finding; `metamcp tools` lists all of them.
const SHOWN_MAX: usize = 3;

/// Returns the findings about the tools of all servers.
pub(super) fn examine(tools: &[(ServerName, Vec<String>)]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut n_all = 0;
    for (server, names) in tools {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        names.iter().for_each(|name| *counts.entry(name).or_default() += 1);
        n_all += counts.len();
        let twice: Vec<&str> =
            counts.iter().filter(|(_, n)| **n > 1).map(|(name, _)| *name).collect();
        if !twice.is_empty() {
            let what =
                format!("lists {} more than once: {}", count(twice.len(), "tool"), shown(&twice));
            found.push(
                Finding::warning(Names, what)
                    .of(server)
                    .because("Clients see only the first of each.")
                    .fix("Report it to the server's author."),
            );
        }
        let other: Vec<&str> = counts
            .keys()
            .filter(|name| alias::exposed(server, name) != server.qualify(name))
            .copied()
            .collect();
        if let Some(first) = other.first() {
            let verb = if other.len() == 1 { "is" } else { "are" };
            let tools = count(other.len(), "tool");
            let what = format!("{tools} {verb} shown under another name: {}", shown(&other));
            let (name, exposed) = (server.qualify(first), alias::exposed(server, first));
            found.push(
                Finding::note(Names, what)
                    .of(server)
                    .because(format!(
                        "Clients accept 64 characters with their own prefix, only letters, digits, `_` and `-`. They see `{}` as `{exposed}`.",
                        sanitize(&name),
                    ))
                    .fix("Give the server a shorter name, or use `/servers/NAME`, where its tools keep their names."),
            );
        }
    }
    if n_all > defaults::DOCTOR_TOOLS_MAX {
        found.push(
            Finding::warning(Names, format!("{n_all} tools in the merged view"))
                .because(format!(
                    "Some clients refuse more than {}, and each definition takes context in every session.",
                    defaults::DOCTOR_TOOLS_MAX
                ))
                .fix("Have clients use `/meta`, or set `listen.root = \"meta\"`.")
                .nix("services.metamcp.settings.listen.root = \"meta\";"),
        );
    } else if found.is_empty() && !tools.is_empty() {
        let what = format!("{}, all under their own names", count(n_all, "tool"));
        found.push(Finding::ok(Names, what));
    }
    found
}

fn shown(names: &[&str]) -> String {
    let mut shown: Vec<String> =
        names.iter().take(SHOWN_MAX).map(|name| format!("`{}`", sanitize(name))).collect();
    if names.len() > SHOWN_MAX {
        shown.push(format!("and {} more", names.len() - SHOWN_MAX));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::FindingSeverity;

    fn examined(server: &str, names: &[&str]) -> Vec<Finding> {
        let server = ServerName::new(server).expect("a name");
        examine(&[(server, names.iter().map(|name| (*name).to_owned()).collect())])
    }

    #[test]
    fn tool_names_that_clients_do_not_accept_are_reported() {
        assert_eq!(examined("git", &["log"])[0].level, FindingSeverity::Ok);
        let found = examined("git", &["log", "page.click", "log"]);
        assert_eq!(found[0].what, "lists 1 tool more than once: `log`");
        assert_eq!(found[1].what, "1 tool is shown under another name: `page.click`");
        let many: Vec<String> = (0..129).map(|n| format!("t{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(examined("git", &many)[0].what, "129 tools in the merged view");
    }
}
