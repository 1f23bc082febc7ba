//! The report of an import: as comments, as text, and as JSON.
//!
//! Pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    credentials::ServerCredential,
    declaration_origin::DeclarationOrigin,
    plan::{ImportNoteKind, ImportPlan, ImportState, ImportedServer},
    server_conversion::ServerSetting,
};
use crate::redact::is_control;

/// The destination of the imported configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportTarget {
    /// A configuration file.
    File,
    /// A NixOS module.
    Module,
}

/// Returns the lines of the header comment.
pub(super) fn head(import: &ImportPlan, place: ReportTarget) -> Vec<String> {
    let by = match (import.servers.is_empty(), import.sources().is_empty()) {
        (true, _) => "Written by `metamcp import`, which has found no servers",
        (false, true) => "Written by `metamcp add`",
        (false, false) => "Written by `metamcp import` from",
    };
    let mut lines = vec![by.to_owned()];
    for (client, file) in import.sources() {
        lines.push(format!("  {file} ({client})"));
    }
    for paragraph in [credentials(import, place), variables(import, place), programs(import, place)]
    {
        if !paragraph.is_empty() {
            lines.push(String::new());
            lines.extend(paragraph);
        }
    }
    lines
}

fn credentials(import: &ImportPlan, place: ReportTarget) -> Vec<String> {
    let needed = import.credentials();
    if needed.is_empty() {
        return Vec::new();
    }
    let title = match place {
        ReportTarget::File => {
            "Credentials to create, each a file in `credentials` beside the configuration:"
        }
        ReportTarget::Module => "Files with secrets to create, readable by root:",
    };
    let mut lines = vec![title.to_owned()];
    for (credential, servers) in needed {
        let first = servers.first().and_then(|server| server.origins.first());
        let origin = first.map(|origin| format!(" in {}", origin.file)).unwrap_or_default();
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        let name = match place {
            ReportTarget::File => credential.name.clone(),
            ReportTarget::Module => credential.path(),
        };
        let holds = &credential.holds;
        lines.push(format!("  {name}: {holds}, for {}{origin}", names.join(", ")));
    }
    lines
}

fn variables(import: &ImportPlan, place: ReportTarget) -> Vec<String> {
    let needed = import.variables();
    if needed.is_empty() {
        return Vec::new();
    }
    let option = match place {
        ReportTarget::File => "Environment= of the unit",
        ReportTarget::Module => "systemd.services.metamcp.environment",
    };
    let mut lines = vec![format!("Variables to set for the service ({option}):")];
    for (name, servers) in needed {
        lines.push(format!("  {name}, for {}", servers.join(", ")));
    }
    lines
}

/// Lists the programs that the servers need: on NixOS, the path of a service has few.
fn programs(import: &ImportPlan, place: ReportTarget) -> Vec<String> {
    let mut programs: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for server in import.active() {
        if let Some(program) = program(server) {
            programs.entry(program).or_default().push(server.name.as_str());
        }
    }
    if place == ReportTarget::File || programs.is_empty() {
        return Vec::new();
    }
    let title = "Programs to provide with `package` or `extraPackages` of the servers:".to_owned();
    let line =
        |(program, servers): (_, Vec<&str>)| format!("  {program}, for {}", servers.join(", "));
    std::iter::once(title).chain(programs.into_iter().map(line)).collect()
}

/// Returns the program that starts a server, if it is found by its name.
pub(super) fn program(server: &ImportedServer) -> Option<String> {
    let find = |key| server.converted.settings.iter().find(|(known, _)| *known == key);
    let (_, ServerSetting::Text(command)) = find("command")? else { return None };
    let program = match find("args") {
        // The script of a shell contains the program.
        Some((_, ServerSetting::List(args))) if command == "/bin/sh" => {
            args.get(1)?.strip_prefix("exec ")?.split(' ').next()?
        }
        _ => command,
    };
    (!program.contains(['/', '"', '\''])).then(|| program.to_owned())
}

/// Returns the comment lines above one server.
pub(super) fn about(import: &ImportPlan, server: &ImportedServer) -> Vec<String> {
    let mut lines: Vec<String> = server.origins.iter().map(ToString::to_string).collect();
    let name = server.name.as_str();
    let notes = import.notes.iter().filter(|note| note.server == name);
    lines.extend(
        notes.filter(|note| note.kind != ImportNoteKind::Merged).map(|note| note.text.clone()),
    );
    lines
}

/// Returns a text on one line, with control characters replaced.
pub(super) fn one_line(text: &str) -> String {
    text.replace(is_control, " ")
}

impl ImportPlan {
    /// Returns the notes and tasks for the user, one per line; for NixOS if `is_nix`.
    pub fn to_text(&self, is_nix: bool) -> String {
        let place = if is_nix { ReportTarget::Module } else { ReportTarget::File };
        let notes = self.notes.iter().map(|note| format!("{}: {}", note.server, note.text));
        let tasks = [credentials(self, place), variables(self, place), programs(self, place)];
        let lines = notes.chain(tasks.into_iter().flatten());
        lines.map(|line| format!("{}\n", one_line(&line))).collect()
    }

    /// Returns the whole plan as JSON.
    pub fn to_json(&self) -> Value {
        let credential = |(credential, servers): (&ServerCredential, Vec<&ImportedServer>)| {
            let servers: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
            json!({
                "name": credential.name, "holds": credential.holds,
                "file": credential.file, "servers": servers,
            })
        };
        let variable =
            |(name, servers): (&str, Vec<&str>)| json!({ "name": name, "servers": servers });
        json!({
            "servers": Value::from_iter(self.servers.iter().map(server)),
            "credentials": Value::from_iter(self.credentials().into_iter().map(credential)),
            "variables": Value::from_iter(self.variables().into_iter().map(variable)),
            "notes": self.notes,
        })
    }
}

fn server(server: &ImportedServer) -> Value {
    let origin = |origin: &DeclarationOrigin| {
        json!({
            "client": origin.client.word(), "file": origin.file, "project": origin.project,
        })
    };
    let setting = |(key, setting): &(&str, _)| ((*key).to_owned(), json!(setting));
    let origins = Value::from_iter(server.origins.iter().map(origin));
    let settings = Value::from_iter(server.converted.settings.iter().map(setting));
    let (state, reason) = match &server.state {
        ImportState::Active => ("active", None),
        ImportState::Disabled => ("disabled", None),
        ImportState::Refused(reason) => ("refused", Some(reason)),
    };
    json!({
        "name": server.name, "state": state, "reason": reason,
        "origins": origins, "settings": settings,
    })
}
