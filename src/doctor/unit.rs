//! The comparison of the service's unit with the shipped one.
//!
//! Pure.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::finding::{Finding, FindingArea::Unit};
use crate::config::FILE_VARIABLE;

/// The shipped unit of the host.
pub(super) const SHIPPED: &str = include_str!("../../systemd/metamcp.service");

/// The shipped unit for `systemctl --user`.
const SHIPPED_FOR_USER: &str = include_str!("../../systemd/user/metamcp.service");

/// The shipped drop-in for a systemd without `Type=notify-reload`.
const SHIPPED_FOR_252: &str = include_str!("../../systemd/metamcp.service.d/systemd-252.conf");

/// The values in effect for each directive of `[Service]`.
pub(super) type UnitDirectives = BTreeMap<String, Vec<String>>;

/// The directives that differ between hosts.
const LOCAL: [&str; 10] = [
    "User",
    "ExecStart",
    "ExecReload",
    "Environment",
    "EnvironmentFile",
    "LoadCredential",
    "LoadCredentialEncrypted",
    "SetCredential",
    "SupplementaryGroups",
    "WorkingDirectory",
];

/// The prefixes of directives that restrict the service.
const HARDENING: [&str; 10] = [
    "CapabilityBoundingSet",
    "DynamicUser",
    "Lock",
    "NoNewPrivileges",
    "Private",
    "Protect",
    "ReadOnly",
    "Restrict",
    "SystemCall",
    "UMask",
];

/// Reads the `[Service]` sections of a unit and its drop-ins, in this order.
///
/// Source: systemd.service(5), systemd.syntax(7): an empty value clears the previous ones.
pub(super) fn read<'a>(files: impl IntoIterator<Item = &'a str>) -> UnitDirectives {
    let mut found = UnitDirectives::new();
    for text in files {
        let text = text.replace("\\\n", " ");
        let mut is_service = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                is_service = line == "[Service]";
            } else if let Some((key, value)) = line.split_once('=')
                && is_service
                && !line.starts_with(['#', ';'])
            {
                let values = found.entry(key.trim().to_owned()).or_default();
                match value.trim() {
                    "" => values.clear(),
                    value => values.push(value.to_owned()),
                }
            }
        }
    }
    found
}

/// Returns the words of `ExecStart=`, without its prefix characters.
pub(super) fn command(directives: &UnitDirectives) -> Vec<&str> {
    let line = last(directives, "ExecStart").unwrap_or_default();
    let line = line.trim_start_matches(['-', '@', ':', '+', '!']);
    line.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect()
}

/// Returns the configuration file named by the command; `own` is the user's configuration
/// directory, which a unit may write as `%E`.
pub(super) fn config_of(command: &[&str], own: Option<&Path>) -> Option<PathBuf> {
    let at = command.iter().position(|word| *word == "--config");
    let after = at.and_then(|at| command.get(at + 1)).copied();
    let named = after.or_else(|| command.iter().find_map(|word| word.strip_prefix("--config=")))?;
    Some(expanded(named, own))
}

/// Returns the configuration file named by the unit's environment; `own` as in [`config_of`].
///
/// Source: systemd.exec(5), `Environment=`: assignments separated by spaces, each of which may be
/// quoted as a whole; the last assignment of a variable counts.
pub(super) fn config_of_environment(
    directives: &UnitDirectives,
    own: Option<&Path>,
) -> Option<PathBuf> {
    let mut named = None;
    for mut rest in directives.get("Environment")?.iter().map(|line| line.trim()) {
        while let Some(first) = rest.chars().next() {
            let (start, ends): (usize, fn(char, char) -> bool) = match first {
                '"' | '\'' => (1, |next, first| next == first),
                _ => (0, |next, _| next.is_whitespace()),
            };
            let end = rest[start..].find(|next| ends(next, first)).map(|at| start + at);
            let word = &rest[start..end.unwrap_or(rest.len())];
            let assigned = word.strip_prefix(FILE_VARIABLE).and_then(|rest| rest.strip_prefix('='));
            named = assigned.or(named);
            rest = end.map_or("", |end| rest[end + 1..].trim_start());
        }
    }
    named.filter(|named| !named.is_empty()).map(|named| expanded(named, own))
}

fn expanded(named: &str, own: Option<&Path>) -> PathBuf {
    match (named.strip_prefix("%E/"), own) {
        (Some(rest), Some(own)) => own.join(rest),
        (_, Some(_) | None) => PathBuf::from(named),
    }
}

/// Returns the findings about a unit that differs from the shipped one for the same manager.
pub(super) fn compare(installed: &UnitDirectives, is_of_user: bool) -> Vec<Finding> {
    let shipped = read([if is_of_user { SHIPPED_FOR_USER } else { SHIPPED }]);
    let differs = |key: &&String| installed.get(*key) != shipped.get(*key);
    let (hardening, others): (Vec<&String>, Vec<&String>) = shipped
        .keys()
        .filter(differs)
        .filter(|key| !is_narrower(key, installed, &shipped) && !is_for_older(key, installed))
        .filter(|key| !LOCAL.contains(&key.as_str()) && key.as_str() != "LimitNOFILE")
        .partition(|key| HARDENING.iter().any(|start| key.starts_with(start)));
    let listed = |keys: &[&String]| {
        let keys: Vec<String> = keys.iter().map(|key| format!("{key}=")).collect();
        keys.join(" ")
    };
    let mut found = Vec::new();
    if !hardening.is_empty() {
        let what = format!("the sandbox differs from the shipped one: {}", listed(&hardening));
        found.push(
            Finding::warning(Unit, what)
                .because("Every server that runs as a child may use what the sandbox leaves open.")
                .fix("Install the shipped unit, and relax in a drop-in only what a server needs.")
                .nix("# remove these directives from systemd.services.metamcp.serviceConfig"),
        );
    }
    if !others.is_empty() {
        let what = format!("the unit differs from the shipped one: {}", listed(&others));
        found.push(
            Finding::note(Unit, what)
                .because("Notifications, the watchdog and the stop rely on the shipped values.")
                .fix("Compare it with `systemd/metamcp.service` of this version."),
        );
    }
    let files = |directives: &UnitDirectives| {
        let soft = last(directives, "LimitNOFILE")?.split(':').next()?;
        if soft == "infinity" { Some(u64::MAX) } else { soft.parse().ok() }
    };
    let has = files(installed).unwrap_or(DEFAULT_FILES);
    if has < files(&shipped).unwrap_or_default() {
        let wanted = last(&shipped, "LimitNOFILE").unwrap_or_default();
        found.push(
            Finding::warning(Unit, format!("LimitNOFILE= allows {has} open files"))
                .because("Each client and each pipe of a server takes one. At the limit, metamcp accepts no more clients.")
                .fix(format!("Set `LimitNOFILE={wanted}` in a drop-in of metamcp.service."))
                .nix(format!("systemd.services.metamcp.serviceConfig.LimitNOFILE = \"{wanted}\";")),
        );
    }
    found
}

/// Returns `true` if a directive has the value shipped for an older systemd.
fn is_for_older(key: &str, installed: &UnitDirectives) -> bool {
    let older = read([SHIPPED_FOR_252]);
    last(&older, key).is_some_and(|wanted| last(installed, key) == Some(wanted))
}

/// Returns the value of a directive that takes effect if only one can.
fn last<'a>(directives: &'a UnitDirectives, key: &str) -> Option<&'a str> {
    directives.get(key)?.last().map(String::as_str)
}

/// Returns `true` if a differing directive restricts the service more than the shipped one.
///
/// The NixOS module allows fewer socket families if no server is a child. For a user of the host,
/// it sets separately each restriction that a dynamic user implies.
fn is_narrower(key: &str, installed: &UnitDirectives, shipped: &UnitDirectives) -> bool {
    let words = |directives: &UnitDirectives| -> Vec<String> {
        let values = directives.get(key).into_iter().flatten();
        values.flat_map(|value| value.split_whitespace().map(str::to_owned)).collect()
    };
    let says = |key: &str, wanted: &[&str]| {
        last(installed, key).is_some_and(|value| wanted.contains(&value))
    };
    match key {
        "RestrictAddressFamilies" => {
            let (has, most) = (words(installed), words(shipped));
            !has.is_empty() && has.iter().all(|family| most.contains(family))
        }
        "DynamicUser" => {
            ["NoNewPrivileges", "PrivateTmp", "RestrictSUIDSGID"].iter().all(|key| says(key, &YES))
                && says("ProtectSystem", &["strict"])
        }
        _ => false,
    }
}

/// The values that mean yes. Source: systemd.syntax(7).
const YES: [&str; 4] = ["1", "yes", "true", "on"];

/// The default limit of open files. Source: systemd.exec(5).
const DEFAULT_FILES: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_unit_has_no_finding() {
        let own = Path::new("/home/ada/.config");
        for (shipped, is_of_user, config) in [
            (SHIPPED, false, "/etc/metamcp/metamcp.toml"),
            (SHIPPED_FOR_USER, true, "/home/ada/.config/metamcp/metamcp.toml"),
        ] {
            let shipped = read([shipped]);
            assert_eq!(compare(&shipped, is_of_user), []);
            assert_ne!(compare(&shipped, !is_of_user), []);
            let command = command(&shipped);
            assert_eq!(command[0], "/usr/bin/metamcp");
            assert_eq!(config_of(&command, Some(own)), Some(PathBuf::from(config)));
        }
    }

    #[test]
    fn a_drop_in_that_relaxes_the_unit_is_reported() {
        let relaxed = "[Service]\nProtectHome=no\nProtectHome=\nLimitNOFILE=512\nKillMode=process\nExecStart=\nExecStart=-/x/metamcp serve \\\n  --config=/y\n[Unit]\nA=b";
        let found = read([SHIPPED, relaxed]);
        let findings: Vec<String> =
            compare(&found, false).into_iter().map(|finding| finding.what).collect();
        assert_eq!(
            findings,
            [
                "the sandbox differs from the shipped one: ProtectHome=",
                "the unit differs from the shipped one: KillMode=",
                "LimitNOFILE= allows 512 open files",
            ]
        );
        assert_eq!(command(&found), ["/x/metamcp", "serve", "--config=/y"]);
        assert_eq!(config_of(&command(&found), None), Some(PathBuf::from("/y")));
    }

    #[test]
    fn the_environment_of_a_unit_names_a_configuration() {
        for (environment, expected) in [
            ("Environment=METAMCP_CONFIG=/a", Some("/a")),
            ("Environment=A=b  METAMCP_CONFIG=/a C=d", Some("/a")),
            ("Environment=\"METAMCP_CONFIG=/a b\" 'C=d'", Some("/a b")),
            ("Environment=METAMCP_CONFIG=/a\nEnvironment=METAMCP_CONFIG=%E/b", Some("/own/b")),
            ("Environment=METAMCP_CONFIG=/a\nEnvironment=", None),
            ("Environment=METAMCP_CONFIG=", None),
            ("Environment=METAMCP_CONFIGS=/a XMETAMCP_CONFIG=/a", None),
            ("Environment=\"METAMCP_CONFIG=/a", Some("/a")),
            ("ExecStart=/bin/true", None),
        ] {
            let found = read([&*format!("[Service]\n{environment}\n")]);
            let named = config_of_environment(&found, Some(Path::new("/own")));
            assert_eq!(named, expected.map(PathBuf::from), "{environment}");
        }
    }

    #[test]
    fn the_drop_in_for_an_older_systemd_is_not_reported() {
        assert_eq!(compare(&read([SHIPPED, SHIPPED_FOR_252]), false), []);
        let other = read([SHIPPED, "[Service]\nType=exec"]);
        assert_eq!(compare(&other, false).len(), 1);
    }

    #[test]
    fn a_drop_in_that_restricts_more_is_not_reported() {
        let alone = "[Service]\nRestrictAddressFamilies=\nRestrictAddressFamilies=AF_UNIX\nPrivateNetwork=true";
        assert_eq!(compare(&read([SHIPPED, alone]), false), []);
        let owned = "[Service]\nDynamicUser=false\nUser=ada\nNoNewPrivileges=true\nPrivateTmp=true\nProtectSystem=strict\nRestrictSUIDSGID=true";
        assert_eq!(compare(&read([SHIPPED, owned]), false), []);
        for relaxed in [
            "[Service]\nRestrictAddressFamilies=AF_PACKET",
            "[Service]\nRestrictAddressFamilies=",
            "[Service]\nDynamicUser=false\nUser=ada\nProtectSystem=strict",
        ] {
            assert_eq!(compare(&read([SHIPPED, relaxed]), false).len(), 1, "{relaxed}");
        }
    }
}
