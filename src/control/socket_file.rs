//! The file of a control socket: whether a process listens there, and who may connect.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use nix::unistd::{Gid, Group, Uid, User, getegid, geteuid, getgroups};

/// The permission of a group to connect to a socket. Source: unix(7), "Pathname socket ownership".
const GROUP_WRITE: u32 = 0o020;

/// The permission of a group to pass through a directory.
const GROUP_SEARCH: u32 = 0o010;

/// The flag of a listening socket in `/proc/net/unix`. Source: `__SO_ACCEPTCON` in Linux'
/// `include/uapi/linux/net.h`.
const LISTENING: u64 = 1 << 16;

/// The reason why this user may not connect to a control socket, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketDenial {
    /// The observation and its reason.
    pub text: String,
    /// The remedy.
    pub hint: String,
}

/// The facts about a control socket that refuses this user.
#[derive(Clone, Debug, Default)]
struct SocketFacts {
    socket: String,
    /// A process listens there; `None` if that is unknown.
    is_served: Option<bool>,
    /// The user of this process.
    user: String,
    /// The owner of the socket, or else of its directory.
    owner: Option<String>,
    /// The group that may connect.
    group: Option<String>,
    /// The group database lists the user in this group.
    is_listed: bool,
    /// The process has this group.
    is_member: bool,
}

impl SocketDenial {
    /// Examines why this user may not connect to the socket at `path`.
    pub fn examine(path: &Path) -> Self {
        Self::judge(&SocketFacts::read(path))
    }

    fn judge(facts: &SocketFacts) -> Self {
        let SocketFacts { socket, user, .. } = facts;
        let service = match facts.is_served {
            Some(true) => "the service runs".to_owned(),
            Some(false) | None => format!("the service may run at `{socket}`"),
        };
        let denial = |reason: &str, hint: String| Self {
            text: format!("{service}, but you may not talk to it: {reason}"),
            hint,
        };
        match (&facts.group, &facts.owner) {
            (Some(group), _) if facts.is_member => denial(
                "another rule of this host forbids it",
                format!(
                    "You are in group `{group}`: look at the permissions of `{socket}` and of its directories."
                ),
            ),
            (Some(group), _) if facts.is_listed => denial(
                &format!("this session began before you were added to group `{group}`"),
                format!("Log in again, or run the command with `sg {group} -c '…'`."),
            ),
            (Some(group), _) => denial(
                &format!("you are not in group `{group}`"),
                format!("Run `sudo usermod -aG {group} {user}` and log in again."),
            ),
            (None, Some(owner)) => denial(
                &format!("only `{owner}` may"),
                format!(
                    "Run the command as `{owner}`, or set `listen.control_group` and restart the service."
                ),
            ),
            (None, None) => denial(
                "its socket is not accessible",
                "Run the command as root, or as the user of the service.".to_owned(),
            ),
        }
    }
}

impl SocketFacts {
    fn read(path: &Path) -> Self {
        let found = fs::metadata(path).ok().map(|file| (file, GROUP_WRITE));
        let directory = || Some((fs::metadata(path.parent()?).ok()?, GROUP_SEARCH));
        let found = found.or_else(directory);
        let owner = found.as_ref().map(|(file, _)| user_name(Uid::from_raw(file.uid())));
        let group = found.filter(|(file, bit)| file.mode() & bit != 0).map(|(file, _)| file.gid());
        let group = group.map(Gid::from_raw);
        let user = user_name(geteuid());
        let entry = group.and_then(|group| Group::from_gid(group).ok().flatten());
        let is_listed = entry.as_ref().is_some_and(|entry| entry.mem.contains(&user));
        let is_member = group.is_some_and(|group| {
            getegid() == group || getgroups().is_ok_and(|groups| groups.contains(&group))
        });
        let group = group.map(|group| entry.map_or_else(|| group.to_string(), |entry| entry.name));
        let socket = path.display().to_string();
        Self { socket, is_served: is_served(path), user, owner, group, is_listed, is_member }
    }
}

/// Returns whether a process of this network namespace listens at the socket `path`; `None` if that
/// is unknown.
pub fn is_served(path: &Path) -> Option<bool> {
    let table = fs::read_to_string("/proc/net/unix").ok()?;
    Some(has_listener(&table, path))
}

/// Returns whether a table as in `/proc/net/unix` has a listening socket `path`. Source: unix(7),
/// "/proc interfaces".
fn has_listener(table: &str, path: &Path) -> bool {
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace().skip(3);
        let flags = fields.next().and_then(|flags| u64::from_str_radix(flags, 16).ok());
        let is_listening = flags.is_some_and(|flags| flags & LISTENING != 0);
        is_listening && fields.nth(3).is_some_and(|found| Path::new(found) == path)
    })
}

fn user_name(user: Uid) -> String {
    let entry = User::from_uid(user).ok().flatten();
    entry.map_or_else(|| user.to_string(), |entry| entry.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> SocketFacts {
        SocketFacts {
            socket: "/run/metamcp/control.sock".to_owned(),
            is_served: Some(true),
            user: "alice".to_owned(),
            owner: Some("root".to_owned()),
            group: Some("metamcp".to_owned()),
            ..SocketFacts::default()
        }
    }

    #[test]
    fn a_user_outside_the_group_learns_the_group_and_the_command() {
        let denial = SocketDenial::judge(&facts());
        assert_eq!(
            denial.text,
            "the service runs, but you may not talk to it: you are not in group `metamcp`"
        );
        assert_eq!(denial.hint, "Run `sudo usermod -aG metamcp alice` and log in again.");
    }

    #[test]
    fn a_user_who_must_log_in_again_is_told_so() {
        let denial = SocketDenial::judge(&SocketFacts { is_listed: true, ..facts() });
        assert!(denial.text.contains("this session began before"), "{denial:?}");
        let denial = SocketDenial::judge(&SocketFacts { is_member: true, ..facts() });
        assert!(denial.hint.contains("look at the permissions"), "{denial:?}");
    }

    #[test]
    fn a_socket_without_a_group_names_its_owner() {
        let facts = SocketFacts { group: None, is_served: None, ..facts() };
        let denial = SocketDenial::judge(&facts);
        assert!(denial.text.ends_with("you may not talk to it: only `root` may"), "{denial:?}");
        assert!(denial.text.starts_with("the service may run at `/run/"), "{denial:?}");
    }

    #[test]
    fn only_a_listening_socket_with_this_path_counts() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01  1234 /run/a.sock\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 91234 /run/b.sock\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 91235\n";
        assert!(has_listener(table, Path::new("/run/a.sock")));
        assert!(!has_listener(table, Path::new("/run/b.sock")));
        assert!(!has_listener(table, Path::new("/run/c.sock")));
    }
}
