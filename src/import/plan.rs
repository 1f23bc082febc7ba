//! The import plan: one set of servers from all files.
//!
//! Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde::Serialize;

use super::{
    credentials::{CredentialNames, ServerCredential},
    declaration_origin::DeclarationOrigin,
    foreign_server::{ForeignServer, ForeignTransport},
    own_endpoints::OwnEndpoints,
    server_conversion::{self, ConvertedServer},
    to_toml,
    variable_syntax::ForeignText,
};
use crate::{
    config::load::{self, LoadError},
    redact::is_control,
    server_name::ServerName,
};

/// The largest number of characters shown of a client's name for a server.
const NAME_SHOWN_MAX: usize = 60;

/// The imported servers, ready to be written.
#[derive(Clone, Debug)]
pub struct ImportPlan {
    /// The servers, in the order in which they were found.
    pub servers: Vec<ImportedServer>,
    /// The notes about the servers.
    pub notes: Vec<ImportNote>,
}

/// One imported server.
#[derive(Clone, Debug)]
pub struct ImportedServer {
    /// Its name in metamcp.
    pub name: ServerName,
    /// The origins of its declarations.
    pub origins: Vec<DeclarationOrigin>,
    /// Its usability.
    pub state: ImportState,
    pub(super) converted: ConvertedServer,
}

/// The usability of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportState {
    /// It is used.
    Active,
    /// Its client has disabled it: it is written as a comment.
    Disabled,
    /// It is invalid as declared, and written as a comment, with this reason.
    Refused(String),
}

/// A note for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportNote {
    /// The kind of the note.
    pub kind: ImportNoteKind,
    /// The server: its name in metamcp, or the client's name if it is not imported.
    pub server: String,
    /// The text of the note.
    pub text: String,
}

/// The kind of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImportNoteKind {
    /// The server has a new name.
    Renamed,
    /// The server was declared more than once.
    Merged,
    /// The declaration refers to metamcp itself.
    LeftOut,
    /// Its client has disabled the server.
    Disabled,
    /// The server is invalid as declared.
    Refused,
    /// A value differs from the declaration.
    Changed,
    /// A key of the declaration has no counterpart.
    Ignored,
}

/// Combines servers into one plan, without metamcp itself.
pub fn import(found: Vec<ForeignServer>, own: &OwnEndpoints) -> ImportPlan {
    let mut notes = Vec::new();
    let groups = merge(found, own, &mut notes);
    let mut taken = BTreeSet::new();
    let mut names = CredentialNames::default();
    let mut servers = Vec::new();
    for (mut foreign, origins, merged) in groups {
        set_directory(&mut foreign);
        let name = name(&foreign, &taken);
        taken.insert(name.clone());
        let mut note = |kind, text: String| {
            notes.push(ImportNote { kind, server: name.to_string(), text });
        };
        if name.as_str() != foreign.name {
            let client = foreign.origin.client.title();
            note(ImportNoteKind::Renamed, format!("{client} calls it {}", quoted(&foreign.name)));
        }
        merged.into_iter().for_each(|text| note(ImportNoteKind::Merged, text));
        let mut converted = server_conversion::convert(&foreign, &name, &mut names);
        let state = state(&foreign, &name, &mut converted);
        match &state {
            ImportState::Active => {}
            ImportState::Disabled => {
                let client = foreign.origin.client.title();
                let text = format!("disabled in {client}, so written as a comment");
                note(ImportNoteKind::Disabled, text);
            }
            ImportState::Refused(reason) => {
                note(ImportNoteKind::Refused, format!("written as a comment: {reason}"));
            }
        }
        for change in &converted.changes {
            note(ImportNoteKind::Changed, change.clone());
        }
        if !foreign.ignored.is_empty() {
            let keys = foreign.ignored.join(", ");
            note(ImportNoteKind::Ignored, format!("not imported: {keys}"));
        }
        servers.push(ImportedServer { name, origins, state, converted });
    }
    ImportPlan { servers, notes }
}

impl ImportPlan {
    /// Returns the credentials of the active servers, each with its servers.
    pub fn credentials(&self) -> Vec<(&ServerCredential, Vec<&ImportedServer>)> {
        let mut needed: Vec<(&ServerCredential, Vec<&ImportedServer>)> = Vec::new();
        for server in self.active() {
            for credential in &server.converted.credentials {
                match needed.iter_mut().find(|(known, _)| known.name == credential.name) {
                    Some((_, servers)) => servers.push(server),
                    None => needed.push((credential, vec![server])),
                }
            }
        }
        needed
    }

    /// Returns the environment variables that the active servers refer to, each with the names of
    /// its servers.
    pub fn variables(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut needed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for server in self.active() {
            for variable in &server.converted.variables {
                needed.entry(variable).or_default().push(server.name.as_str());
            }
        }
        needed
    }

    /// Returns the active servers.
    pub fn active(&self) -> impl Iterator<Item = &ImportedServer> {
        self.servers.iter().filter(|server| server.state == ImportState::Active)
    }

    /// Returns the files that contain the servers, without duplicates.
    pub fn sources(&self) -> Vec<(&'static str, &str)> {
        let mut sources = Vec::new();
        for origin in self.servers.iter().flat_map(|server| &server.origins) {
            let source = (origin.client.title(), origin.file.as_str());
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        sources
    }
}

/// A server, the origins of its declarations, and the notes about duplicates.
type Group = (ForeignServer, Vec<DeclarationOrigin>, Vec<String>);

/// Merges duplicate declarations, and omits metamcp itself.
fn merge(found: Vec<ForeignServer>, own: &OwnEndpoints, notes: &mut Vec<ImportNote>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for foreign in found {
        if foreign.is_metamcp(own) {
            let text = format!("left out: it is metamcp itself ({})", foreign.origin);
            let server = shown(&foreign.name);
            notes.push(ImportNote { kind: ImportNoteKind::LeftOut, server, text });
            continue;
        }
        let is_same =
            |(known, ..): &Group| known.transport.is_ok() && known.transport == foreign.transport;
        let is_similar = |(known, ..): &Group| {
            let transports = (&known.transport, &foreign.transport);
            known.name == foreign.name
                && matches!(transports, (Ok(known), Ok(found)) if known.is_same_server(found))
        };
        let duplicate = groups.iter().position(is_same);
        let Some(index) = duplicate.or_else(|| groups.iter().position(is_similar)) else {
            let origins = vec![foreign.origin.clone()];
            groups.push((foreign, origins, Vec::new()));
            continue;
        };
        let (known, origins, merged) = &mut groups[index];
        merged.push(if duplicate.is_none() {
            format!(
                "also declared in {}, with other variables or headers: those of {} are used",
                foreign.origin, known.origin
            )
        } else if known.name == foreign.name {
            format!("also declared in {}", foreign.origin)
        } else {
            format!("also declared as {} in {}", quoted(&foreign.name), foreign.origin)
        });
        // It is active if one of the declarations is active.
        known.is_disabled &= foreign.is_disabled;
        origins.push(foreign.origin);
    }
    groups
}

/// Sets the project as working directory of a program with relative paths, and makes a relative
/// working directory absolute.
fn set_directory(foreign: &mut ForeignServer) {
    let Ok(ForeignTransport::Program { command, args, cwd, .. }) = &mut foreign.transport else {
        return;
    };
    let Some(project) = &foreign.origin.project else { return };
    let is_relative = |text: &ForeignText| {
        let starts = |text: &str| text.starts_with("./") || text.starts_with("../") || text == ".";
        text.as_plain().is_some_and(starts)
    };
    match cwd.as_ref().map(ForeignText::as_plain) {
        None if is_relative(command) || args.iter().any(is_relative) => {
            *cwd = Some(ForeignText::plain(project));
        }
        Some(Some(path)) if !path.starts_with('/') => {
            let path = format!("{project}/{}", path.trim_start_matches("./"));
            *cwd = Some(ForeignText::plain(&path));
        }
        _ => {}
    }
    if is_relative(command)
        && let Some(path) = command.as_plain()
    {
        *command = ForeignText::plain(&format!("{project}/{}", path.trim_start_matches("./")));
    }
}

/// Returns an unused name that follows the grammar of server names.
fn name(foreign: &ForeignServer, taken: &BTreeSet<ServerName>) -> ServerName {
    let base = valid(&foreign.name);
    let client = foreign.origin.client.word();
    // The names with a suffix and a number are never exhausted.
    let suffixes = [String::new(), format!("-{client}")].into_iter();
    let suffixes = suffixes.chain((2..).map(|n| format!("-{client}-{n}")));
    let mut names = suffixes.filter_map(|suffix| {
        let mut base = base.clone();
        base.truncate(ServerName::LENGTH_MAX.saturating_sub(suffix.len()));
        ServerName::new(&format!("{}{suffix}", base.trim_end_matches(['-', '_']))).ok()
    });
    names.find(|name| !taken.contains(name)).expect("there are more numbers than servers")
}

/// Returns the nearest valid server name.
pub(super) fn valid(text: &str) -> String {
    let mut name = String::new();
    for found in text.chars() {
        let found = if found.is_ascii_alphanumeric() || found == '_' { found } else { '-' };
        // A run of separators becomes one separator.
        if found.is_ascii_alphanumeric() || !name.ends_with(['-', '_']) {
            name.push(found);
        }
    }
    let name = name.trim_matches(['-', '_']);
    if name.is_empty() { "server".to_owned() } else { name.to_owned() }
}

/// Returns whether a server is usable, as metamcp's own loader judges it.
fn state(
    foreign: &ForeignServer,
    name: &ServerName,
    converted: &mut ConvertedServer,
) -> ImportState {
    if let Some(reason) = converted.refused.take() {
        return ImportState::Refused(reason);
    }
    let text = to_toml::table(name, &converted.settings);
    match load::content(Path::new("imported.toml"), &text) {
        Ok(_) if foreign.is_disabled => ImportState::Disabled,
        Ok(_) => ImportState::Active,
        Err(LoadError::Content(mistake)) => ImportState::Refused(match mistake.help {
            Some(help) => format!("{}: {help}", mistake.message),
            None => mistake.message,
        }),
        Err(LoadError::Read { .. }) => ImportState::Refused("it cannot be read back".to_owned()),
    }
}

/// Returns a foreign name on one line, shortened.
fn shown(text: &str) -> String {
    let text: String = text.chars().take(NAME_SHOWN_MAX).collect();
    text.replace(is_control, " ")
}

fn quoted(text: &str) -> String {
    format!("`{}`", shown(text))
}
