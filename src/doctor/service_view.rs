//! The differences between the environment of the service and that of this shell.
//!
//! Pure.

use std::path::{Path, PathBuf};

use super::{
    finding::{
        Finding,
        FindingArea::{Configuration, Servers, Service},
        FindingSeverity,
    },
    probe::ProbeOutcome,
    sockets::{ServiceReport, ServiceState},
};
use crate::{
    control::service_environment::{ServerFiles, ServiceEnvironment},
    server_name::ServerName,
};

/// Returns the findings about the service itself; `file` is the configuration that is examined.
pub(super) fn compare(service: &ServiceEnvironment, file: Option<&Path>) -> Vec<Finding> {
    let shown = |path: &Option<PathBuf>| {
        path.as_ref().map_or("none".to_owned(), |path| format!("`{}`", path.display()))
    };
    let unit = service.unit.as_ref().map_or("without a unit".to_owned(), |it| format!("in {it}"));
    let groups = service.groups.join(", ");
    let what = format!("the service runs as `{}` (groups: {groups}), {unit}", service.user);
    let path = service.path.as_deref().unwrap_or("not set");
    let about = format!(
        "Its configuration is {}, its home {}, its working directory {}.\nIts PATH is {path}.",
        shown(&service.configuration),
        shown(&service.home),
        shown(&service.working_directory)
    );
    let mut found = vec![Finding::ok(Service, what).because(about)];
    let Some(file) = file else { return found };
    if service.configuration.as_deref().is_none_or(|of_service| of_service != file) {
        let what = format!(
            "the service runs with {}, and this command examines `{}`",
            shown(&service.configuration),
            file.display()
        );
        let fix = match &service.configuration {
            Some(file) => format!("Run `metamcp doctor --config {}`.", file.display()),
            None => "Restart the service with `--config`.".to_owned(),
        };
        found.push(
            Finding::warning(Configuration, what)
                .because("Findings about servers are about the examined file.")
                .fix(fix),
        );
    }
    found
}

/// Returns the finding about a program or a file that only this shell can use.
pub(super) fn compare_files(
    name: &ServerName,
    service: &ServiceEnvironment,
    command: &str,
    here: &ServerFiles,
) -> Option<Finding> {
    let there = service.servers.get(name.as_str())?;
    let user = &service.user;
    if let (Some(program), None) = (&here.program, &there.program) {
        let finding =
            Finding::error(Servers, format!("the service cannot start `{command}`")).of(name);
        return Some(match command.contains('/') {
            true => finding
                .because(format!("This shell can execute it; user `{user}` of the service cannot, or its unit hides it."))
                .fix("Install the program where the service can execute it, such as /usr/local/bin; `ProtectHome=` of a unit hides /home."),
            false => finding
                .because(format!("This shell finds `{}`, which is not on the service's PATH, or not executable for user `{user}`.", program.display()))
                .fix(format!("Write `command = \"{}\"` if user `{user}` can execute it, or add its directory to the PATH of the service: `Environment=PATH=…` in a drop-in.", program.display())),
        });
    }
    let only_here = |file: &&PathBuf| !here.unreadable.contains_key(*file);
    let file = there.unreadable.keys().find(only_here)?;
    let reason = there.unreadable.get(file).map(String::as_str).unwrap_or_default();
    let what = format!("the service cannot read `{}`", file.display());
    Some(
        Finding::error(Servers, what)
            .of(name)
            .because(format!("For user `{user}` of the service: {reason}. This shell can read it."))
            .fix(format!("Give user `{user}` access to the file, or move it where the service can read it; `ProtectHome=` and `PrivateTmp=` of a unit hide /home and /tmp.")),
    )
}

/// Returns the finding about a server that the service has tried, without a probe.
pub(super) fn known_state(name: &ServerName, service: &ServiceReport) -> Option<Finding> {
    let state = service.states.get(name)?;
    let why = || state.error.clone().unwrap_or_default();
    let finding = match state.status.as_str() {
        "connected" => Finding::ok(Servers, "the service is connected to it"),
        "closed" => Finding::ok(Servers, "idle: the service connects it with the next request"),
        "connecting" => Finding::note(Servers, "the service is connecting it"),
        "needs login" => {
            Finding::warning(Servers, "needs a login").fix(format!("Run `metamcp login {name}`."))
        }
        "error" => Finding::error(Servers, "the service cannot connect it")
            .because(why())
            .fix(format!("Run `metamcp doctor --server {name}`.")),
        _ => return None,
    };
    Some(finding.of(name))
}

/// Adjusts the outcome of a probe to the state of the server in the service.
pub(super) fn judge(outcome: &mut ProbeOutcome, state: &ServiceState) {
    let name = &outcome.connection.server;
    let is_error = |finding: &Finding| finding.level == FindingSeverity::Error;
    let is_broken_here = outcome.findings.iter().any(is_error);
    if state.status == "connected" {
        for finding in outcome.findings.iter_mut().filter(|finding| is_error(finding)) {
            finding.level = FindingSeverity::Warning;
            let why = finding.why.take().unwrap_or_default();
            finding.why =
                Some(format!("{why}\nThe service itself is connected to it.").trim().to_owned());
        }
    } else if let Some(error) = state.error.as_ref().filter(|_| state.status == "error")
        && !is_broken_here
        && outcome.connection.protocol_version.is_some()
    {
        outcome.findings.push(
            Finding::error(Servers, "the service cannot connect it, although this shell can")
                .of(name)
                .because(error.clone())
                .fix(
                    "Compare user, PATH and files of the service (above) with those of this shell.",
                ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> ServiceEnvironment {
        ServiceEnvironment {
            user: "metamcp".to_owned(),
            path: Some("/usr/bin".to_owned()),
            configuration: Some("/etc/metamcp/metamcp.toml".into()),
            servers: [("a".to_owned(), ServerFiles::default())].into(),
            ..ServiceEnvironment::default()
        }
    }

    fn name() -> ServerName {
        ServerName::new("a").expect("a name")
    }

    #[test]
    fn a_program_that_only_the_shell_finds_is_an_error() {
        let here = ServerFiles { program: Some("/home/ada/bin/npx".into()), ..Default::default() };
        let found = compare_files(&name(), &service(), "npx", &here).expect("a finding");
        assert_eq!(found.what, "the service cannot start `npx`");
        assert!(found.why.is_some_and(|why| why.contains("/home/ada/bin/npx")));
        assert_eq!(compare_files(&name(), &service(), "npx", &ServerFiles::default()), None);
    }

    #[test]
    fn a_file_that_only_the_shell_can_read_is_an_error() {
        let mut service = service();
        let there = service.servers.get_mut("a").expect("it is there");
        there.unreadable = [("/home/ada/notes".into(), "permission denied".to_owned())].into();
        let found = compare_files(&name(), &service, "npx", &ServerFiles::default());
        assert_eq!(found.expect("a finding").what, "the service cannot read `/home/ada/notes`");
        let here = ServerFiles {
            unreadable: service.servers["a"].unreadable.clone(),
            ..Default::default()
        };
        assert_eq!(compare_files(&name(), &service, "npx", &here), None);
    }

    #[test]
    fn another_configuration_than_the_one_of_the_service_is_a_warning() {
        let same = compare(&service(), Some(Path::new("/etc/metamcp/metamcp.toml")));
        assert_eq!(same.len(), 1);
        let found = compare(&service(), Some(Path::new("/home/ada/x.toml")));
        assert_eq!(found[1].level, FindingSeverity::Warning);
        assert!(found[1].fix.as_ref().is_some_and(|fix| fix.contains("--config /etc/metamcp")));
    }
}
