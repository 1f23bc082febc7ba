//! The unit file that is installed, against the one that this program ships.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::{Finding, Level};
use crate::config::defaults;

/// The unit that this program ships.
const SHIPPED: &str = include_str!("../../systemd/metamcp.service");

/// Where units are, those that go first at the beginning. Source: systemd.unit(5).
const DIRECTORIES: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

const NAME: &str = "metamcp.service";

/// The unit that is installed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// Its file.
    pub path: PathBuf,
    /// Its text, with that of its drop-ins behind it.
    pub text: String,
    /// What it starts is this very program; nothing where that cannot be told.
    pub is_this: Option<bool>,
}

/// Returns the unit that is installed on this host, if one is.
pub fn installed() -> Option<Installed> {
    let path = DIRECTORIES
        .iter()
        .map(|directory| Path::new(directory).join(NAME))
        .find(|path| path.is_file())?;
    let mut text = content(&path)?;
    for directory in DIRECTORIES.iter().rev() {
        let Ok(entries) = fs::read_dir(Path::new(directory).join(format!("{NAME}.d"))) else {
            continue;
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in
            paths.iter().filter(|path| path.extension().is_some_and(|found| found == "conf"))
        {
            text.push('\n');
            text.push_str(&content(path).unwrap_or_default());
        }
    }
    let is_this = program(&text).and_then(|program| is_same(Path::new(&program)));
    Some(Installed { path, text, is_this })
}

fn content(path: &Path) -> Option<String> {
    let size = fs::metadata(path).ok()?.len();
    (size <= defaults::PROBE_FILE_BYTES_MAX).then(|| fs::read_to_string(path).ok())?
}

/// Tells whether a program is this one, byte for byte.
fn is_same(program: &Path) -> Option<bool> {
    let ours = std::env::current_exe().ok()?;
    if fs::canonicalize(program).ok()? == fs::canonicalize(&ours).ok()? {
        return Some(true);
    }
    let sizes = [program, ours.as_path()].map(|path| fs::metadata(path).map(|found| found.len()));
    let [Ok(theirs), Ok(size)] = sizes else { return None };
    if theirs != size {
        return Some(false);
    }
    if size > defaults::PROBE_FILE_BYTES_MAX {
        return None;
    }
    Some(fs::read(program).ok()? == fs::read(&ours).ok()?)
}

/// Returns the settings of `[Service]`, each with its values in their order.
fn settings(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut is_service = false;
    for line in text.replace("\\\n", " ").lines().map(str::trim) {
        if line.starts_with('[') {
            is_service = line == "[Service]";
        } else if let Some((name, value)) = line.split_once('=')
            && is_service
            && !line.starts_with(['#', ';'])
        {
            let values = found.entry(name.trim().to_owned()).or_default();
            // An empty value takes back what came before.
            if value.trim().is_empty() {
                values.clear();
            }
            values.push(value.trim().to_owned());
        }
    }
    found
}

fn program(text: &str) -> Option<String> {
    let found = settings(text);
    let command = found.get("ExecStart")?.last()?;
    let program = command.split_whitespace().next()?;
    Some(program.trim_start_matches(['-', '@', ':', '+', '!']).to_owned())
}

/// The settings of the sandbox, which no installation needs to be without.
const SANDBOX: [&str; 21] = [
    "CapabilityBoundingSet",
    "DynamicUser",
    "LockPersonality",
    "PrivateDevices",
    "PrivateIPC",
    "PrivateUsers",
    "ProtectClock",
    "ProtectControlGroups",
    "ProtectHome",
    "ProtectHostname",
    "ProtectKernelLogs",
    "ProtectKernelModules",
    "ProtectKernelTunables",
    "ProtectProc",
    "RestrictAddressFamilies",
    "RestrictNamespaces",
    "RestrictRealtime",
    "SystemCallArchitectures",
    "SystemCallFilter",
    "UMask",
    "NoNewPrivileges",
];

/// The settings that the service counts on.
const NEEDED: [&str; 4] = ["Type", "KillMode", "Sockets", "WatchdogSec"];

/// Judges the unit that is installed. Pure.
pub fn unit(installed: Option<&Installed>) -> Vec<Finding> {
    const SUBJECT: &str = "unit";
    let Some(installed) = installed else {
        return vec![
            Finding::new(Level::Note, SUBJECT, "no unit of systemd is installed")
                .why("the service then lives as long as the shell that starts it")
                .fix(
                    "Install the units in `systemd/` of the project, and enable `metamcp.service`.",
                )
                .nix("services.metamcp.enable = true;"),
        ];
    };
    let (found, shipped) = (settings(&installed.text), settings(SHIPPED));
    let path = installed.path.display();
    let mut findings = Vec::new();
    let differs = |name: &&&str| {
        shipped.contains_key(**name) && normal(found.get(**name)) != normal(shipped.get(**name))
    };
    if installed.is_this == Some(false) {
        let program = program(&installed.text).unwrap_or_default();
        findings.push(
            Finding::new(Level::Warning, SUBJECT, "the unit starts another program than this one")
                .why(format!("`{path}` starts `{program}`: its version may be another one"))
                .fix("Change `ExecStart=`, or call the program that the unit starts.")
                .nix("services.metamcp.package"),
        );
    }
    let needed: Vec<&&str> = NEEDED.iter().filter(differs).collect();
    if !needed.is_empty() {
        findings.push(
            Finding::new(Level::Warning, SUBJECT, format!("{} is not as it is shipped", listed(&needed)))
                .why(format!("`{path}`: start, stop or the watchdog may not work as they should"))
                .fix("Compare it with `systemd/metamcp.service` of this version, then `systemctl daemon-reload`.")
                .nix("systemd.services.metamcp.serviceConfig: leave these to the module"),
        );
    }
    let relaxed: Vec<&&str> = SANDBOX.iter().filter(differs).collect();
    if !relaxed.is_empty() {
        findings.push(
            Finding::new(Level::Note, SUBJECT, format!("the sandbox is another one: {}", listed(&relaxed)))
                .why(format!("`{path}`: what a server needs is best relaxed for that one alone"))
                .fix("Run that server in a unit of its own (`socket = …`), and leave the sandbox of the service as it is.")
                .nix("services.metamcp.servers: the module gives each server a unit of its own"),
        );
    }
    let files = |limit: &str| limit.split(':').next().and_then(|soft| soft.parse::<u64>().ok());
    let limit = |settings: &BTreeMap<String, Vec<String>>| {
        settings.get("LimitNOFILE").and_then(|values| values.last()).and_then(|limit| files(limit))
    };
    match (limit(&found), limit(&shipped)) {
        (Some(found), Some(shipped)) if found >= shipped => {}
        (None, Some(_)) if found.get("LimitNOFILE").is_some_and(|values| values.last().is_some_and(|limit| limit.starts_with("infinity"))) => {}
        (_, Some(shipped)) => findings.push(
            Finding::new(Level::Warning, SUBJECT, "the limit of open files is low")
                .why("each client and each server takes some: with the usual 1,024, a few hundred clients fill it")
                .fix(format!("`LimitNOFILE={shipped}:524288` in the unit, then `systemctl daemon-reload`."))
                .nix(format!("systemd.services.metamcp.serviceConfig.LimitNOFILE = \"{shipped}:524288\";")),
        ),
        (_, None) => {}
    }
    if findings.is_empty() {
        findings
            .push(Finding::new(Level::Ok, SUBJECT, "as it is shipped").why(format!("`{path}`")));
    }
    findings
}

/// Returns values such that those that mean the same are the same.
fn normal(values: Option<&Vec<String>>) -> Vec<String> {
    let mut words: Vec<String> = values
        .into_iter()
        .flatten()
        .flat_map(|value| value.split_whitespace())
        .map(|word| match word {
            "true" | "on" | "1" => "yes".to_owned(),
            "false" | "off" | "0" => "no".to_owned(),
            word => word.trim_start_matches('0').to_owned(),
        })
        .collect();
    words.sort();
    words
}

fn listed(names: &[&&str]) -> String {
    let names: Vec<&str> = names.iter().map(|name| **name).collect();
    format!("`{}=`", names.join("=`, `"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str, is_this: bool) -> Vec<(Level, String)> {
        let installed =
            Installed { path: "/u".into(), text: text.to_owned(), is_this: Some(is_this) };
        unit(Some(&installed)).into_iter().map(|found| (found.level, found.what)).collect()
    }

    #[test]
    fn the_unit_that_is_shipped_is_as_it_should_be() {
        assert_eq!(judged(SHIPPED, true), [(Level::Ok, "as it is shipped".to_owned())]);
        let same = SHIPPED.replace("PrivateDevices=yes", "PrivateDevices=true");
        assert_eq!(judged(&same, true)[0].0, Level::Ok);
        assert_eq!(unit(None)[0].level, Level::Note);
        assert_eq!(program(SHIPPED).as_deref(), Some("/usr/bin/metamcp"));
    }

    #[test]
    fn what_was_changed_is_named() {
        let drop_in =
            "\n[Service]\nProtectHome=no\nSystemCallFilter=\nLimitNOFILE=1024\nType=simple\n";
        let found = judged(&format!("{SHIPPED}{drop_in}"), false);
        assert_eq!(
            found,
            [
                (Level::Warning, "the unit starts another program than this one".to_owned()),
                (Level::Warning, "`Type=` is not as it is shipped".to_owned()),
                (
                    Level::Note,
                    "the sandbox is another one: `ProtectHome=`, `SystemCallFilter=`".to_owned()
                ),
                (Level::Warning, "the limit of open files is low".to_owned()),
            ]
        );
    }
}
