//! One set of servers, made of those of all files.
//!
//! Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::{
    context::DeclarationOrigin,
    credentials::{CredentialNames, ServerCredential},
    foreign_server::{ForeignServer, ForeignTransport},
    server_conversion::{self, ConvertedServer},
    to_toml,
    variable_syntax::ForeignText,
};
use crate::{
    config::{
        defaults,
        load::{self, LoadError},
    },
    name::ServerName,
    redact::is_control,
};

/// How much of a client's name for a server is shown, in characters.
const NAME_SHOWN_MAX: usize = 60;

/// What was read, ready to be written.
#[derive(Clone, Debug)]
pub struct ImportPlan {
    /// The servers, in the order in which they were found.
    pub servers: Vec<ImportedServer>,
    /// What is to be known of them.
    pub notes: Vec<ImportNote>,
}

/// One server.
#[derive(Clone, Debug)]
pub struct ImportedServer {
    /// What it is called here.
    pub name: ServerName,
    /// Where it was declared.
    pub origins: Vec<DeclarationOrigin>,
    /// Whether it is used.
    pub state: ImportState,
    pub(super) converted: ConvertedServer,
}

/// Whether a server is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportState {
    /// It is.
    Active,
    /// Its client does not use it: it is written as a comment.
    Disabled,
    /// It cannot be as it was declared, and is written as a comment: the reason.
    Refused(String),
}

/// Something that is to be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportNote {
    /// What kind of thing.
    pub kind: ImportNoteKind,
    /// The server, as it is called here, or as its client calls it if it is not here.
    pub server: String,
    /// What, in words.
    pub text: String,
}

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportNoteKind {
    /// The server has another name now.
    Renamed,
    /// It was declared more than once.
    Merged,
    /// It is this service itself.
    LeftOut,
    /// Its client does not use it.
    Disabled,
    /// It cannot be as it was declared.
    Refused,
    /// Something of it is another thing than it was.
    Changed,
    /// Something that its client says of it has no counterpart.
    Ignored,
}

impl ImportNoteKind {
    /// Returns the word for it in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Renamed => "renamed",
            Self::Merged => "merged",
            Self::LeftOut => "left-out",
            Self::Disabled => "disabled",
            Self::Refused => "refused",
            Self::Changed => "changed",
            Self::Ignored => "ignored",
        }
    }
}

/// Makes one set of servers.
pub fn import(found: Vec<ForeignServer>) -> ImportPlan {
    let mut notes = Vec::new();
    let groups = merge(found, &mut notes);
    let mut taken = BTreeSet::new();
    let mut names = CredentialNames::default();
    let mut servers = Vec::new();
    for (mut foreign, origins, merged) in groups {
        at_home(&mut foreign);
        let name = name(&foreign, &taken);
        taken.insert(name.clone());
        let mut note = |kind, text: String| {
            notes.push(ImportNote { kind, server: name.to_string(), text });
        };
        if name.as_str() != foreign.name {
            let client = foreign.origin.format.client();
            note(ImportNoteKind::Renamed, format!("{client} calls it {}", quoted(&foreign.name)));
        }
        merged.into_iter().for_each(|text| note(ImportNoteKind::Merged, text));
        let mut converted = server_conversion::convert(&foreign, &name, &mut names);
        let state = state(&foreign, &name, &mut converted);
        match &state {
            ImportState::Active => {}
            ImportState::Disabled => {
                let client = foreign.origin.format.client();
                note(
                    ImportNoteKind::Disabled,
                    format!("{client} does not use it; it is a comment"),
                );
            }
            ImportState::Refused(reason) => {
                note(ImportNoteKind::Refused, format!("{reason}; it is a comment"))
            }
        }
        for change in &converted.changes {
            note(ImportNoteKind::Changed, change.clone());
        }
        if !foreign.ignored.is_empty() {
            let keys = foreign.ignored.join(", ");
            note(ImportNoteKind::Ignored, format!("not taken over: {keys}"));
        }
        servers.push(ImportedServer { name, origins, state, converted });
    }
    ImportPlan { servers, notes }
}

impl ImportPlan {
    /// Returns the credentials that the servers in use refer to, with these servers.
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

    /// Returns the variables of the service's environment that the servers in use refer to, with the
    /// names of these servers.
    pub fn variables(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut needed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for server in self.active() {
            for variable in &server.converted.variables {
                needed.entry(variable).or_default().push(server.name.as_str());
            }
        }
        needed
    }

    /// Returns the servers that are used.
    pub fn active(&self) -> impl Iterator<Item = &ImportedServer> {
        self.servers.iter().filter(|server| server.state == ImportState::Active)
    }

    /// Returns the files that servers were read from, each once.
    pub fn sources(&self) -> Vec<(&'static str, &str)> {
        let mut sources = Vec::new();
        for origin in self.servers.iter().flat_map(|server| &server.origins) {
            let source = (origin.format.client(), origin.file.as_str());
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        sources
    }
}

/// A server, where it was declared, and what is to be said of its being declared more than once.
type Group = (ForeignServer, Vec<DeclarationOrigin>, Vec<String>);

/// Makes one of what is declared several times, and leaves out what is this service itself.
fn merge(found: Vec<ForeignServer>, notes: &mut Vec<ImportNote>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for foreign in found {
        if foreign.way.as_ref().is_ok_and(is_ourselves) {
            let text = format!("it is this service itself ({}), and is left out", foreign.origin);
            notes.push(ImportNote {
                kind: ImportNoteKind::LeftOut,
                server: shown(&foreign.name),
                text,
            });
            continue;
        }
        let is_same = |known: &&mut Group| known.0.way.is_ok() && known.0.way == foreign.way;
        if let Some((known, origins, said)) = groups.iter_mut().find(is_same) {
            let name = match known.name == foreign.name {
                true => String::new(),
                false => format!(" as {}", quoted(&foreign.name)),
            };
            said.push(format!("also declared{name} in {}", foreign.origin));
            // It is used if anybody uses it.
            known.is_disabled &= foreign.is_disabled;
            origins.push(foreign.origin);
            continue;
        }
        let is_nearly = |known: &&mut Group| {
            let ways = (&known.0.way, &foreign.way);
            known.0.name == foreign.name
                && matches!(ways, (Ok(known), Ok(found)) if known.is_same_server(found))
        };
        if let Some((known, origins, said)) = groups.iter_mut().find(is_nearly) {
            said.push(format!(
                "also declared in {}, with other variables or headers: those of {} are taken",
                foreign.origin, known.origin
            ));
            known.is_disabled &= foreign.is_disabled;
            origins.push(foreign.origin);
            continue;
        }
        let origins = vec![foreign.origin.clone()];
        groups.push((foreign, origins, Vec::new()));
    }
    groups
}

/// Tells whether a server is this service: at our address, or by the bridge to it.
fn is_ourselves(way: &ForeignTransport) -> bool {
    match way {
        ForeignTransport::Endpoint { url, .. } => url
            .as_plain()
            .and_then(|url| url.parse().ok())
            .is_some_and(|url| load::is_own_port(&url, defaults::HTTP_ADDRESS)),
        ForeignTransport::Program { command, args, .. } => {
            let program = command.as_plain().and_then(|command| command.rsplit('/').next());
            let first = args.first().and_then(ForeignText::as_plain);
            program == Some("metamcp") && first == Some("stdio")
        }
    }
}

/// Gives a program of a project that is named by a path from there the directory that is meant.
fn at_home(foreign: &mut ForeignServer) {
    let Ok(ForeignTransport::Program { command, args, cwd, .. }) = &mut foreign.way else { return };
    let Some(project) = &foreign.origin.project else { return };
    let is_relative = |text: &ForeignText| {
        let is_from_here =
            |text: &str| text.starts_with("./") || text.starts_with("../") || text == ".";
        text.as_plain().is_some_and(is_from_here)
    };
    if cwd.is_none() && (is_relative(command) || args.iter().any(is_relative)) {
        *cwd = Some(ForeignText::plain(project));
    }
    if is_relative(command)
        && let Some(path) = command.as_plain()
    {
        *command = ForeignText::plain(&format!("{project}/{}", path.trim_start_matches("./")));
    }
}

/// Returns a name that follows our grammar and that nobody has.
fn name(foreign: &ForeignServer, taken: &BTreeSet<ServerName>) -> ServerName {
    let base = legal(&foreign.name);
    let client = foreign.origin.format.word();
    // Names of a format's word and a number are never used up.
    let candidates = std::iter::once((base.clone(), String::new()))
        .chain(std::iter::once((base.clone(), format!("-{client}"))))
        .chain((2..).map(|n| (base.clone(), format!("-{client}-{n}"))));
    let mut legal = candidates.filter_map(|(base, suffix)| {
        let mut base = base;
        base.truncate(ServerName::LENGTH_MAX.saturating_sub(suffix.len()));
        ServerName::new(&format!("{}{suffix}", base.trim_end_matches(['-', '_']))).ok()
    });
    legal.find(|name| !taken.contains(name)).expect("there are more numbers than servers")
}

/// Returns the nearest text that is a server's name.
fn legal(text: &str) -> String {
    let mut name = String::new();
    for found in text.chars() {
        let found = if found.is_ascii_alphanumeric() || found == '_' { found } else { '-' };
        // Two in a row say no more than one.
        if found.is_ascii_alphanumeric() || !name.ends_with(['-', '_']) {
            name.push(found);
        }
    }
    let name = name.trim_matches(['-', '_']);
    if name.is_empty() { "server".to_owned() } else { name.to_owned() }
}

/// Tells whether a server can be used, by what our own loader says of it.
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

/// Returns a name of somebody else's on one line.
fn shown(text: &str) -> String {
    let text: String = text.chars().take(NAME_SHOWN_MAX).collect();
    text.replace(is_control, " ")
}

fn quoted(text: &str) -> String {
    format!("`{}`", shown(text))
}
