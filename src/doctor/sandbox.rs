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
    pub(super) fn read(output: &str) -> Self {
        let has = |property: &str| output.lines().any(|line| line == format!("{property}=yes"));
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
        let (fix, option) = self.fix(lines)?;
        // The NixOS module names the unit like this.
        let is_of_module = unit.strip_prefix("metamcp-server-") == Some(server.as_str());
        let nix = is_of_module.then(|| of_server(server, option));
        Some(SandboxRemedy { fix: format!("{fix} in a drop-in of {unit}@.service."), nix })
    }

    /// Returns the fix, which a drop-in of the unit applies, and the option of the NixOS module.
    // One row for each failure: a table, however long.
    fn fix(self, lines: &[String]) -> Option<(&'static str, &'static str)> {
        let has =
            |words: &[&str]| lines.iter().any(|line| words.iter().any(|word| line.contains(word)));
        // The journal may contain only one of these messages. The first comes from a process that
        // has exited by then; systemd 257 may report another status in the second.
        let fails_at = |step: &str, status: u8| {
            has(&[&format!("Failed at step {step} spawning "), &format!("status={status}/{step}")])
        };
        let lacks_program =
            has(&["status=127/n/a"]) && has(&[": not found", ": command not found"]);
        // Source: `exit_status_to_string` of systemd, and errno(3) as worded by glibc and Node.
        let rows = [
            (
                self.denies_jit && has(&["status=5/TRAP"]),
                "The server compiles code at run time, as Node and browsers do: set `MemoryDenyWriteExecute=no`",
                "sandbox.jit = true;",
            ),
            (
                has(&["Failed with result 'oom-kill'"]),
                "The server needs more memory than its limit: raise `MemoryMax=`",
                "sandbox.memoryMax = \"2G\";",
            ),
            (
                fails_at("CHDIR", 200),
                "Its working directory is missing or hidden by the sandbox: create it, or name it in `BindPaths=`",
                "sandbox.writablePaths = [ \"/ITS/DIRECTORY\" ];",
            ),
            (
                fails_at("NAMESPACE", 226),
                "A path that the sandbox shows is missing: create it, or correct the path",
                "sandbox.readOnlyPaths = [ \"/EXISTING/PATH\" ];",
            ),
            (
                fails_at("CREDENTIALS", 243),
                "The file of a secret is missing: create it, or correct `LoadCredential=`",
                "credentials.KEY = \"/run/secrets/THE_FILE\";",
            ),
            (
                fails_at("USER", 217),
                "Its user does not exist: create it, or correct `User=`",
                "sandbox.user = null;",
            ),
            (
                fails_at("GROUP", 216),
                "Its group does not exist: create it, or correct `Group=`",
                "sandbox.group = null;",
            ),
            (
                lacks_program,
                "A program that it runs is not in its `PATH`: install it, or add its directory to `Environment=PATH=`",
                "extraPackages = [ pkgs.THE_PROGRAM ];",
            ),
            (
                has(&["Read-only file system", "read-only file system", "EROFS"]),
                "The server writes to a read-only path: set `StateDirectory=` and use it as `HOME`, or name the path in `BindPaths=`,",
                "sandbox.state = true;",
            ),
            (
                has(&["Address family not supported", "EAFNOSUPPORT"]),
                "The server opens sockets of a forbidden kind: add the kind to `RestrictAddressFamilies=`",
                "sandbox.addressFamilies = [ \"AF_INET\" \"AF_INET6\" \"AF_NETLINK\" \"AF_UNIX\" ];",
            ),
            (
                self.has_no_network && has(&["Network is unreachable", "ENETUNREACH"]),
                "The server needs the network: set `PrivateNetwork=no`",
                "sandbox.network = true;",
            ),
        ];
        rows.into_iter().find_map(|(is_shown, fix, option)| is_shown.then_some((fix, option)))
    }
}

/// Returns the assignment of a server's option in a NixOS module.
pub(super) fn of_server(server: &ServerName, option: &str) -> String {
    format!("services.metamcp.servers.{}.{option}", nix_name(server.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remedy(properties: &str, unit: &str, lines: &[&str]) -> Option<SandboxRemedy> {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let server = ServerName::new("notes").expect("a name");
        SandboxDirectives::read(properties).remedy(&server, unit, &lines)
    }

    /// Returns the option for a unit of the NixOS module.
    #[track_caller]
    fn option(properties: &str, lines: &[&str]) -> Option<String> {
        let found = remedy(properties, "metamcp-server-notes", lines)?;
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
    fn a_unit_that_the_nixos_module_did_not_create_gets_no_nix_option() {
        let found =
            remedy("", "my-notes", &["Failed at step USER spawning /bin/true: No such process"])
                .expect("it is certain");
        assert!(found.fix.contains("my-notes@.service") && found.nix.is_none(), "{found:?}");
    }
}
