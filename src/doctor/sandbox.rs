//! The sandbox problems that the journal of a server's unit shows, and their fixes.
//!
//! Only certain cases count: the messages are those of systemd and the operating system. If a
//! failure can have other causes, the unit must also have the directive.
//!
//! Pure.

use crate::{import::nix_name, server_name::ServerName};

/// The arguments of `systemctl show` for the properties.
pub(super) const PROPERTIES: &str = "--property=MemoryDenyWriteExecute,PrivateNetwork";

/// The state of these properties in a server's unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SandboxDirectives {
    denies_jit: bool,
    has_no_network: bool,
}

/// The fix for a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SandboxRemedy {
    /// The fix in words.
    pub(super) fix: String,
    /// The option of the NixOS module, if the module created the unit.
    pub(super) nix: Option<String>,
}

impl SandboxDirectives {
    /// Parses the output of `systemctl show` for [`PROPERTIES`].
    pub(super) fn read(told: &str) -> Self {
        let has = |property: &str| told.lines().any(|line| line == format!("{property}=yes"));
        Self { denies_jit: has("MemoryDenyWriteExecute"), has_no_network: has("PrivateNetwork") }
    }

    /// Returns the fix for a server that has exited with these lines in its journal, if they show
    /// that the sandbox is the cause.
    pub(super) fn remedy(
        self,
        server: &ServerName,
        unit: &str,
        lines: &[String],
    ) -> Option<SandboxRemedy> {
        let has =
            |words: &[&str]| lines.iter().any(|line| words.iter().any(|word| line.contains(word)));
        // The journal may contain only one of these messages. The first comes from a process that
        // has exited by then; systemd 257 may report another status in the second.
        let fails_at = |step: &str, status: u8| {
            has(&[&format!("Failed at step {step} spawning "), &format!("status={status}/{step}")])
        };
        let drop_in = format!("in a drop-in of {unit}@.service");
        // Source: `exit_status_to_string` of systemd, and errno(3) as worded by glibc and Node.
        let (fix, option) = if self.denies_jit && has(&["status=5/TRAP"]) {
            (
                format!(
                    "It compiles while it runs, as Node and browsers do: set `MemoryDenyWriteExecute=no` {drop_in}."
                ),
                "sandbox.jit = true;",
            )
        } else if has(&["Failed with result 'oom-kill'"]) {
            (
                format!("It needs more memory than it may have: raise `MemoryMax=` {drop_in}."),
                "sandbox.memoryMax = \"2G\";",
            )
        } else if fails_at("CHDIR", 200) {
            (
                format!(
                    "Its working directory is not there, or the sandbox hides it: make it, or name it in `BindPaths=` {drop_in}."
                ),
                "sandbox.writablePaths = [ \"/ITS/DIRECTORY\" ];",
            )
        } else if fails_at("NAMESPACE", 226) {
            (
                format!(
                    "What the sandbox is to show is not there: make it, or correct the path {drop_in}."
                ),
                "sandbox.readOnlyPaths = [ \"/WHAT/IS/THERE\" ];",
            )
        } else if fails_at("CREDENTIALS", 243) {
            (
                format!(
                    "The file of a secret is not there: make it, or correct `LoadCredential=` {drop_in}."
                ),
                "credentials.KEY = \"/run/secrets/THE_FILE\";",
            )
        } else if fails_at("USER", 217) {
            (
                format!("Its user does not exist: make it, or correct `User=` {drop_in}."),
                "sandbox.user = null;",
            )
        } else if fails_at("GROUP", 216) {
            (
                format!("Its group does not exist: make it, or correct `Group=` {drop_in}."),
                "sandbox.group = null;",
            )
        } else if has(&["status=127/n/a"]) && has(&[": not found", ": command not found"]) {
            (
                format!(
                    "A program is not in its path: install it, or add its directory to `Environment=PATH=` {drop_in}."
                ),
                "extraPackages = [ pkgs.THE_PROGRAM ];",
            )
        } else if has(&["Read-only file system", "read-only file system", "EROFS"]) {
            (
                format!(
                    "It writes where it may only read: give it `StateDirectory=` and that as `HOME`, or name the place in `BindPaths=`, {drop_in}."
                ),
                "sandbox.state = true;",
            )
        } else if has(&["Address family not supported", "EAFNOSUPPORT"]) {
            (
                format!(
                    "It makes sockets of a kind that it may not: add to `RestrictAddressFamilies=` {drop_in}."
                ),
                "sandbox.addressFamilies = [ \"AF_INET\" \"AF_INET6\" \"AF_NETLINK\" \"AF_UNIX\" ];",
            )
        } else if self.has_no_network && has(&["Network is unreachable", "ENETUNREACH"]) {
            (
                format!("It needs the network, and has none: set `PrivateNetwork=no` {drop_in}."),
                "sandbox.network = true;",
            )
        } else {
            return None;
        };
        // The NixOS module names the unit like this.
        let is_ours = unit.strip_prefix("metamcp-server-") == Some(server.as_str());
        let nix = is_ours.then(|| of_server(server, option));
        Some(SandboxRemedy { fix, nix })
    }
}

/// Returns the assignment of a server's option in a NixOS module.
pub(super) fn of_server(server: &ServerName, option: &str) -> String {
    format!("services.metamcp.servers.{}.{option}", nix_name(server.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remedy(told: &str, unit: &str, lines: &[&str]) -> Option<SandboxRemedy> {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let server = ServerName::new("notes").expect("a name");
        SandboxDirectives::read(told).remedy(&server, unit, &lines)
    }

    /// Returns the option for a unit of the NixOS module.
    #[track_caller]
    fn option(told: &str, lines: &[&str]) -> Option<String> {
        let found = remedy(told, "metamcp-server-notes", lines)?;
        assert!(found.fix.contains("metamcp-server-notes@.service"), "{}", found.fix);
        found.nix?.strip_prefix("services.metamcp.servers.notes.").map(str::to_owned)
    }

    #[test]
    fn a_sandbox_failure_is_named_with_the_option_that_fixes_it() {
        // The messages are those of systemd 257 and Node 20.
        for (lines, expected) in [
            (
                &[
                    "Changing to the requested working directory failed: No such file or directory",
                    "Failed at step CHDIR spawning /bin/true: No such file or directory",
                ][..],
                "sandbox.writablePaths",
            ),
            (
                &[
                    "Failed to set up mount namespacing: /srv/nothing-here: No such file or directory",
                    "Failed at step NAMESPACE spawning /bin/true: No such file or directory",
                ],
                "sandbox.readOnlyPaths",
            ),
            (&["Failed at step CREDENTIALS spawning /bin/true: Protocol error"], "credentials.KEY"),
            (&["Failed at step USER spawning /bin/true: No such process"], "sandbox.user"),
            (&["Main process exited, code=exited, status=200/CHDIR"], "sandbox.writablePaths"),
            (&["Failed at step GROUP spawning /bin/true: No such process"], "sandbox.group"),
            (
                &[
                    "/bin/bash: line 1: exec: npx: not found",
                    "Main process exited, code=exited, status=127/n/a",
                ],
                "extraPackages",
            ),
            (&["  code: 'EROFS',", "status=1/FAILURE"], "sandbox.state"),
            (&["/bin/sh: 1: cannot create /srv/x: Read-only file system"], "sandbox.state"),
            (&["  code: 'EAFNOSUPPORT',"], "sandbox.addressFamilies"),
            (&["Failed with result 'oom-kill'."], "sandbox.memoryMax"),
        ] {
            let found = option("", lines).unwrap_or_default();
            assert!(found.starts_with(&format!("{expected} = ")), "{lines:?}: {found}");
        }
    }

    #[test]
    fn an_ambiguous_failure_is_blamed_on_the_sandbox_only_if_the_unit_has_the_directive() {
        let trap = ["Main process exited, code=killed, status=5/TRAP"];
        assert_eq!(
            option("MemoryDenyWriteExecute=yes\nPrivateNetwork=no\n", &trap).as_deref(),
            Some("sandbox.jit = true;")
        );
        assert_eq!(remedy("MemoryDenyWriteExecute=no\n", "metamcp-server-notes", &trap), None);
        assert_eq!(remedy("", "metamcp-server-notes", &trap), None);
        let cut_off = ["connect: Network is unreachable"];
        assert_eq!(
            option("PrivateNetwork=yes\n", &cut_off).as_deref(),
            Some("sandbox.network = true;")
        );
        assert_eq!(remedy("PrivateNetwork=no\n", "metamcp-server-notes", &cut_off), None);
        let other = ["Error: no key", "Main process exited, code=exited, status=1/FAILURE"];
        assert_eq!(remedy("PrivateNetwork=yes\n", "metamcp-server-notes", &other), None);
    }

    #[test]
    fn a_unit_that_the_module_has_not_made_is_not_changed_by_it() {
        let found =
            remedy("", "my-notes", &["Failed at step USER spawning /bin/true: No such process"])
                .expect("it is certain");
        assert!(found.fix.contains("my-notes@.service") && found.nix.is_none(), "{found:?}");
    }
}
