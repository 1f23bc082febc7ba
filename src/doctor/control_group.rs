//! The group that may use the control socket: whether it exists, and how to create it.

use std::path::Path;

use nix::unistd::Group;

use super::{
    finding::{Finding, FindingArea::Permissions, Repair},
    host,
};
use crate::{
    config::{Config, defaults},
    files,
    systemd::own_unit::SystemdUnit,
};

/// The file with which the packages of metamcp declare their group.
const SYSUSERS: &str = "metamcp.conf";

/// Returns a finding if the group of the control socket does not exist.
pub(super) fn examine(config: Option<&Config>, unit: Option<&SystemdUnit>) -> Option<Finding> {
    let declared = config.and_then(|config| config.listen.control_group.clone());
    let (group, source) = match declared {
        Some(group) => (group, "`listen.control_group` names it."),
        None => {
            let system = unit.filter(|unit| !unit.is_of_user)?;
            (group_of_socket(system)?, "`SocketGroup=` of metamcp-control.socket names it.")
        }
    };
    // A group that cannot be looked up may exist.
    let is_missing = matches!(Group::from_name(&group), Ok(None));
    is_missing.then(|| {
        Finding::error(Permissions, format!("the group `{group}` does not exist"))
            .because(format!("{source} The service cannot give its control socket to it."))
            .fix(format!("Run `sudo metamcp doctor --fix`, or `sudo groupadd --system {group}`."))
            .nix(format!("users.groups.{group} = {{ }};"))
            .repair(Repair::MakeGroup(group))
    })
}

/// Returns the group in the socket unit beside the unit of the service.
fn group_of_socket(unit: &SystemdUnit) -> Option<String> {
    let file = unit.file()?.with_file_name("metamcp-control.socket");
    let bytes = files::bounded(&file, defaults::UNIT_FILE_BYTES_MAX).ok()?;
    socket_group(&String::from_utf8_lossy(&bytes)).map(str::to_owned)
}

fn socket_group(unit: &str) -> Option<&str> {
    let group = unit.lines().rev().find_map(|line| line.trim().strip_prefix("SocketGroup="))?;
    Some(group.trim()).filter(|group| !group.is_empty())
}

/// Creates a system group: as the package declares it, or else by `groupadd`, which a small system
/// may lack, or by systemd. Returns `false` if the group does not exist afterwards.
pub async fn make_group(name: &str) -> bool {
    let exists = || matches!(Group::from_name(name), Ok(Some(_)));
    if Path::new("/usr/lib/sysusers.d").join(SYSUSERS).exists() {
        let _output = host::output("systemd-sysusers", &[SYSUSERS]).await;
    }
    if !exists() {
        let _output = host::output("groupadd", &["--system", name]).await;
    }
    if !exists() {
        let _output = host::output("systemd-sysusers", &["--inline", &format!("g {name}")]).await;
    }
    exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;

    #[test]
    fn a_missing_group_of_the_control_socket_is_an_error() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let declare = |group: &str| {
            let text = format!("[listen]\ncontrol_group = \"{group}\"\n");
            std::fs::write(file.path(), text).expect("written");
            load::file(file.path()).expect("valid")
        };
        let found = examine(Some(&declare("no-such-group")), None).expect("a finding");
        assert_eq!(found.what, "the group `no-such-group` does not exist");
        assert_eq!(found.repair, Some(Repair::MakeGroup("no-such-group".to_owned())));
        let root = Group::from_gid(nix::unistd::Gid::from_raw(0))
            .expect("readable")
            .expect("there is one");
        assert_eq!(examine(Some(&declare(&root.name)), None), None);
        assert_eq!(socket_group("[Socket]\nSocketGroup=metamcp\n"), Some("metamcp"));
        assert_eq!(socket_group("[Socket]\n"), None);
    }
}
