//! The entry of metamcp in the files of clients: written, and undone.
//!
//! Texts in, a text out. [`ClientProfile`](crate::import::ClientProfile) describes each
//! client; a document edits one language and keeps everything else in the file, comments included.
//! A file that is not understood is never changed.

mod client_document;
mod client_entry;
mod connection_record;
mod disconnecting;
mod json_document;
mod line_diff;
mod open_document;
mod toml_document;
mod yaml_document;

use std::{collections::BTreeSet, path::Path};

use client_document::ClientDocument;
pub use client_document::DocumentError;
pub use client_entry::{ClientEntry, ClientLink, EntryValue};
pub use connection_record::{ConnectionRecord, SwitchedEntry, SwitchedHow};
pub use disconnecting::{KeptEntry, KeptReason, disconnect, retain_current};
pub use line_diff::{DiffLine, unified};
use open_document::open;
use serde_json::{Value, json};

use crate::{
    config::{Config, TextForm},
    import::{self, ForeignServer, ImportContext, ImportReadError, KnownClient, OwnEndpoints},
};

/// The name of the variable with the token.
pub const TOKEN_VARIABLE: &str = "METAMCP_TOKEN";

/// A request to connect a client.
#[derive(Clone, Debug)]
pub struct ConnectRequest<'a> {
    /// The client.
    pub client: KnownClient,
    /// The name of the entry.
    pub name: &'a str,
    /// The way to metamcp.
    pub link: ClientLink,
    /// The ways to metamcp, to recognize its own entries.
    pub own: &'a OwnEndpoints,
    /// The configuration whose servers are switched off in the client's file.
    pub served: Option<&'a Config>,
}

/// A change of a client's file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileChange {
    /// The new text; `None` if the file is to be removed.
    pub text: Option<String>,
    /// The entries of metamcp that are added or removed.
    pub entries: BTreeSet<String>,
    /// The entries that are switched off, or on again.
    pub switched: Vec<SwitchedEntry>,
    /// The tables of entries that are made.
    pub n_tables_made: usize,
    /// The entries that are not as `connect` left them, and so stay as they are.
    pub kept: Vec<KeptEntry>,
}

impl FileChange {
    /// Returns whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.switched.is_empty()
    }

    /// Returns the names of the entries that are changed.
    fn names(&self) -> BTreeSet<&str> {
        let switched = self.switched.iter().map(|switched| switched.name.as_str());
        self.entries.iter().map(String::as_str).chain(switched).collect()
    }
}

/// The reason why a client's file cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum ClientFileError {
    /// The file cannot be parsed.
    #[error(transparent)]
    Read(#[from] ImportReadError),
    /// The file has an unknown shape.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// Another server has the name of the entry.
    #[error("it declares another server as `{0}`")]
    Taken(String),
    /// The changed text would not declare what it should.
    #[error("its form is not understood well enough to change it")]
    Unverified,
}

/// Returns the change that connects a client; `None` if it is connected already. `text` is its
/// file, if there is one.
///
/// # Errors
///
/// [`ClientFileError`] says why the file cannot be changed.
pub fn connect(
    request: &ConnectRequest<'_>,
    text: Option<&str>,
) -> Result<Option<FileChange>, ClientFileError> {
    let client = request.client;
    let (form, text) = TextForm::split(text.unwrap_or_default());
    let found = servers(client, &text)?;
    let mut document = open(client, &text)?;
    let entry = ClientEntry::new(client.profile(), request.name, &request.link);
    let mut change = FileChange::default();
    let known = found.iter().find(|server| server.name() == request.name);
    if !holds_entry(client, &found, &entry, request.name) {
        match known {
            Some(known) if !known.is_metamcp(request.own) => {
                return Err(ClientFileError::Taken(request.name.to_owned()));
            }
            Some(_) => {
                document.remove(request.name)?;
            }
            None => {}
        }
        change.n_tables_made = document.add(request.name, &entry)?;
        change.entries.insert(request.name.to_owned());
    }
    if let Some(config) = request.served {
        for name in served_names(&found, config) {
            change.switched.push(switch_off(client, document.as_mut(), name)?);
        }
    }
    if change.is_empty() {
        return Ok(None);
    }
    let after = document.text();
    verify(client, &text, &after, &change)?;
    let found = servers(client, &after)?;
    let is_on = |name: &str| found.iter().any(|it| it.name() == name && !it.is_disabled());
    if !holds_entry(client, &found, &entry, request.name)
        || change.switched.iter().any(|switched| is_on(&switched.name))
    {
        return Err(ClientFileError::Unverified);
    }
    change.text = Some(form.join(&after));
    Ok(Some(change))
}

/// Returns the text of a new file with the entry, to paste into one that cannot be changed.
pub fn snippet(request: &ConnectRequest<'_>) -> String {
    let alone = ConnectRequest { served: None, ..request.clone() };
    let change = connect(&alone, None).ok().flatten();
    change.and_then(|change| change.text).unwrap_or_default()
}

/// Returns the names of metamcp's entries in a file.
///
/// # Errors
///
/// [`ImportReadError`] when the text cannot be parsed.
pub fn own_entries(
    client: KnownClient,
    text: &str,
    own: &OwnEndpoints,
) -> Result<Vec<String>, ImportReadError> {
    let found = servers(client, text)?;
    let own = found.iter().filter(|server| server.is_metamcp(own));
    Ok(own.map(|server| server.name().to_owned()).collect())
}

/// Returns whether a text has nothing but space, which JSON does not allow.
fn is_blank(text: &str) -> bool {
    text.trim_matches(['\u{feff}', ' ', '\n', '\r', '\t']).is_empty()
}

/// Returns the servers that a file declares for all projects.
fn servers(client: KnownClient, text: &str) -> Result<Vec<ForeignServer>, ImportReadError> {
    if is_blank(text) {
        return Ok(Vec::new());
    }
    let context = ImportContext::default();
    let mut found = import::read(Path::new(""), text, Some(client), &context)?;
    found.retain(|server| !server.is_of_project());
    Ok(found)
}

/// Returns the active servers of a file that metamcp serves under the same name.
fn served_names<'a>(found: &'a [ForeignServer], config: &Config) -> Vec<&'a str> {
    let is_served = |server: &&ForeignServer| {
        let mut same = config.servers.iter().filter(|(name, _)| server.has_name(name));
        !server.is_disabled() && same.any(|(_, config)| server.is_declared_as(&config.transport))
    };
    found.iter().filter(is_served).map(ForeignServer::name).collect()
}

/// Switches an entry off by the client's own flag, or else removes it.
fn switch_off(
    client: KnownClient,
    document: &mut dyn ClientDocument,
    name: &str,
) -> Result<SwitchedEntry, DocumentError> {
    let how = match client.profile().switch {
        Some(switch) => {
            SwitchedHow::Flag { before: document.set_flag(name, switch.key, Some(switch.off))? }
        }
        None => SwitchedHow::Removed { declaration: document.remove(name)? },
    };
    Ok(SwitchedEntry { name: name.to_owned(), how })
}

/// Returns whether the file has exactly this entry.
fn holds_entry(
    client: KnownClient,
    found: &[ForeignServer],
    entry: &ClientEntry,
    name: &str,
) -> bool {
    let alone = open(client, "").and_then(|mut document| {
        document.add(name, entry)?;
        Ok(document.text())
    });
    let wanted = alone.ok().and_then(|text| servers(client, &text).ok()).unwrap_or_default();
    let same =
        |known: &&ForeignServer| wanted.iter().any(|wanted| wanted.is_same_declaration(known));
    !wanted.is_empty()
        && found.iter().filter(|known| known.name() == name).any(|known| same(&known))
}

/// Checks that the changed text means the same as before, but for the changed entries.
fn verify(
    client: KnownClient,
    before: &str,
    after: &str,
    change: &FileChange,
) -> Result<(), ClientFileError> {
    let names = change.names();
    let is_same = others(client, before, &names)? == others(client, after, &names)?;
    is_same.then_some(()).ok_or(ClientFileError::Unverified)
}

/// Returns all of a file but the entries `names`. A table of entries without any counts as none.
fn others(
    client: KnownClient,
    text: &str,
    names: &BTreeSet<&str>,
) -> Result<Value, ClientFileError> {
    if is_blank(text) {
        return Ok(json!({}));
    }
    let mut document = import::document(client, text).map_err(|_| ClientFileError::Unverified)?;
    for path in client.profile().tables.iter().rev() {
        let table = path.iter().try_fold(&mut document, |table, key| table.get_mut(*key));
        if let Some(Value::Object(table)) = table {
            table.retain(|name, _| !names.contains(name.as_str()));
        }
        for length in (1..=path.len()).rev() {
            let (last, before) = path[..length].split_last().unwrap_or((&"", &[]));
            let parent = before.iter().try_fold(&mut document, |table, key| table.get_mut(*key));
            if let Some(Value::Object(parent)) = parent
                && parent.get(*last).is_some_and(|table| *table == json!({}) || table.is_null())
            {
                parent.remove(*last);
            }
        }
    }
    Ok(if document.is_null() { json!({}) } else { document })
}

#[cfg(test)]
mod tests;
