//! The systemd unit that a service runs in.

use std::{collections::BTreeMap, fs, path::PathBuf};

use crate::files;

/// A unit and its manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemdUnit {
    /// The name of the unit, such as `metamcp.service`.
    pub name: String,
    /// The unit belongs to a user's manager, not to the system manager.
    pub is_of_user: bool,
}

/// The subgroup of a unit's control group in which systemd runs `ExecReload=` and similar commands.
/// Source: systemd.exec(5), `Delegate=`, and systemd's `src/core/execute.c`.
const CONTROL_GROUP: &str = "/.control";

/// The name of the unit in the packages of metamcp.
const NAME: &str = "metamcp.service";

/// The directories of unit files. Source: systemd.unit(5), "Unit File Load Path".
const SYSTEM_DIRECTORIES: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
const USER_DIRECTORIES: [&str; 5] = [
    "/etc/systemd/user",
    "/run/systemd/user",
    "/usr/local/lib/systemd/user",
    "/usr/lib/systemd/user",
    "/lib/systemd/user",
];

impl SystemdUnit {
    /// Returns the unit that the process with this id runs in, if it is a metamcp unit.
    pub fn of_process(pid: u64) -> Option<Self> {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        groups.lines().find_map(|line| Self::of_group(line.rsplit(':').next()?))
    }

    /// Returns the installed metamcp unit; the unit of the system takes precedence.
    pub fn installed() -> Option<Self> {
        [false, true]
            .map(|is_of_user| Self { name: NAME.to_owned(), is_of_user })
            .into_iter()
            .find(|unit| unit.file().is_some())
    }

    /// Returns the unit file that takes precedence.
    pub fn file(&self) -> Option<PathBuf> {
        self.directories().into_iter().map(|it| it.join(&self.name)).find(|file| file.exists())
    }

    /// Returns the drop-in files of the unit, in the order in which systemd reads them.
    pub fn drop_ins(&self) -> Vec<PathBuf> {
        let mut found = BTreeMap::new();
        // A directory that is earlier in the list overrides later ones.
        for directory in self.directories().into_iter().rev() {
            let Ok(entries) = fs::read_dir(directory.join(format!("{}.d", self.name))) else {
                continue;
            };
            for file in entries.flatten().map(|entry| entry.path()) {
                if file.extension().is_some_and(|extension| extension == "conf") {
                    found.insert(file.file_name().map(ToOwned::to_owned), file);
                }
            }
        }
        found.into_values().collect()
    }

    /// Returns the directories that the manager searches, in order of precedence.
    fn directories(&self) -> Vec<PathBuf> {
        if !self.is_of_user {
            return SYSTEM_DIRECTORIES.into_iter().map(PathBuf::from).collect();
        }
        let [own, data] = [("XDG_CONFIG_HOME", ".config"), ("XDG_DATA_HOME", ".local/share")]
            .map(|(variable, below_home)| files::own_directory(variable, below_home))
            .map(|base| base.map(|base| base.join("systemd/user")));
        let shared = USER_DIRECTORIES.into_iter().map(PathBuf::from);
        own.into_iter().chain(shared).chain(data).collect()
    }

    /// Returns the innermost unit of a control group, if its name is that of metamcp. A service
    /// started in a terminal is in the unit of the terminal.
    fn of_group(path: &str) -> Option<Self> {
        let mut parts = path.split('/').rev();
        let name = parts.find(|part| part.ends_with(".service"))?;
        let is_of_user = parts.any(|part| part.starts_with("user@"));
        name.starts_with("metamcp").then(|| Self { name: name.to_owned(), is_of_user })
    }
}

/// Returns the control group of this process, if systemd has started it as the main process of a
/// unit.
pub fn group_of_main_process() -> Option<String> {
    let is_main = |pid: &str| pid.parse() == Ok(std::process::id());
    let is_unit = std::env::var("SYSTEMD_EXEC_PID").is_ok_and(|pid| is_main(&pid));
    is_unit.then(|| group_of("self")).flatten()
}

/// Returns whether a process is in the control group of the unit whose main process is this one.
/// Processes that systemd runs there for the unit, such as `ExecReload=`, do not count.
pub fn shares_our_group(pid: i32) -> bool {
    let (ours, its) = (group_of_main_process(), group_of(&pid.to_string()));
    ours.zip(its).is_some_and(|(ours, its)| is_within(&its, unit_group(&ours)))
}

fn group_of(process: &str) -> Option<String> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    // Source: cgroups(7): the entry of version 2 has the number 0 and no controllers.
    groups.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
}

/// Returns the group of the innermost unit. A process may be in a group within it that the unit
/// delegates, and its children may leave that for another one there.
fn unit_group(group: &str) -> &str {
    let is_unit = group.ends_with(".service");
    let within = group.rfind(".service/").filter(|_| !is_unit);
    within.map_or(group, |at| &group[..at + ".service".len()])
}

fn is_within(group: &str, unit: &str) -> bool {
    // The root group is not a unit.
    let Some(rest) = group.strip_prefix(unit).filter(|_| unit != "/") else { return false };
    rest.is_empty() || (rest.starts_with('/') && !rest.starts_with(CONTROL_GROUP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_counts_as_in_the_unit_unless_systemd_runs_it_beside_the_service() {
        let unit = "/system.slice/metamcp.service";
        for (group, expected) in [
            (unit.to_owned(), true),
            (format!("{unit}/deeper"), true),
            (format!("{unit}/.control"), false),
            (format!("{unit}d"), false),
            ("/system.slice".to_owned(), false),
            ("/".to_owned(), false),
        ] {
            assert_eq!(is_within(&group, unit), expected, "{group}");
        }
        assert!(!is_within("/anything", "/"), "a container may have no units");
    }

    #[test]
    fn a_group_that_a_unit_delegates_belongs_to_the_unit() {
        let unit = "/user.slice/user@1.service/app.slice/metamcp.service";
        for (group, expected) in [
            (unit.to_owned(), unit),
            (format!("{unit}/service"), unit),
            (format!("{unit}/sandbox-1-0"), unit),
            ("/container".to_owned(), "/container"),
        ] {
            assert_eq!(unit_group(&group), expected, "{group}");
        }
    }

    #[test]
    fn the_unit_of_a_process_is_that_of_its_control_group() {
        let unit = |name: &str, is_of_user| Some(SystemdUnit { name: name.to_owned(), is_of_user });
        for (path, expected) in [
            ("/system.slice/metamcp.service", unit("metamcp.service", false)),
            ("/system.slice/metamcp.service/main", unit("metamcp.service", false)),
            (
                "/system.slice/system-metamcp.slice/metamcp@a.service",
                unit("metamcp@a.service", false),
            ),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/metamcp.service",
                unit("metamcp.service", true),
            ),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/terminal.service", None),
            ("/user.slice/user-1000.slice/session-3.scope", None),
            ("/", None),
        ] {
            assert_eq!(SystemdUnit::of_group(path), expected, "{path}");
        }
    }
}
