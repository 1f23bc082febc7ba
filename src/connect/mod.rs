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

use std::{collections::BTreeSet, net::SocketAddr, path::Path};

use client_document::ClientDocument;
pub use client_document::DocumentError;
pub use client_entry::{ClientEntry, ClientLink, EntryValue};
pub use connection_record::{ConnectionRecord, SwitchedEntry, SwitchedHow};
pub use disconnecting::disconnect;
pub use line_diff::{DiffLine, unified};
use open_document::open;

use crate::{
    config::Config,
    import::{self, ForeignServer, ImportContext, ImportReadError, KnownClient},
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
    /// The address of metamcp, to recognize its own entries.
    pub address: SocketAddr,
    /// The configuration whose servers are switched off in the client's file.
    pub served: Option<&'a Config>,
}

/// A change of a client's file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileChange {
    /// The new text; `None` if the file is to be removed.
    pub text: Option<String>,
    /// The entries of metamcp that are added.
    pub entries: BTreeSet<String>,
    /// The entries that are switched off, or on again.
    pub switched: Vec<SwitchedEntry>,
    /// The tables of entries that are made.
    pub n_tables_made: usize,
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
    let text = text.unwrap_or_default();
    let found = servers(client, text)?;
    let mut document = open(client, text)?;
    let entry = ClientEntry::new(client.profile(), request.name, &request.link);
    let mut change =
        FileChange { text: None, entries: BTreeSet::new(), switched: Vec::new(), n_tables_made: 0 };
    let known = found.iter().find(|server| server.name() == request.name);
    let is_same = known.is_some() && holds_entry(client, &found, &entry, request.name);
    if !is_same {
        match known {
            Some(known) if !known.is_metamcp(request.address) => {
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
    if is_same && change.switched.is_empty() {
        return Ok(None);
    }
    let after = document.text();
    verify(client, &found, &after, &change, request.name)?;
    change.text = Some(after);
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
    address: SocketAddr,
) -> Result<Vec<String>, ImportReadError> {
    let found = servers(client, text)?;
    let own = found.iter().filter(|server| server.is_metamcp(address));
    Ok(own.map(|server| server.name().to_owned()).collect())
}

/// Returns the servers that a file declares for all projects.
fn servers(client: KnownClient, text: &str) -> Result<Vec<ForeignServer>, ImportReadError> {
    if text.trim_matches(['\u{feff}', ' ', '\n', '\r', '\t']).is_empty() {
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

/// Checks that the changed text declares the same servers as before, but for the change.
fn verify(
    client: KnownClient,
    before: &[ForeignServer],
    after: &str,
    change: &FileChange,
    name: &str,
) -> Result<(), ClientFileError> {
    let after = servers(client, after).map_err(|_| ClientFileError::Unverified)?;
    let is_switched = |name: &str| change.switched.iter().any(|switched| switched.name == name);
    let is_kept = |server: &ForeignServer| {
        is_switched(server.name())
            || server.name() == name
            || after.iter().any(|after| after.is_same_declaration(server))
    };
    let has_entry = after.iter().any(|server| server.name() == name);
    let is_off =
        |name: &str| !after.iter().any(|server| server.name() == name && !server.is_disabled());
    let are_off = change.switched.iter().all(|switched| is_off(&switched.name));
    let is_good = before.iter().all(is_kept) && has_entry && are_off;
    is_good.then_some(()).ok_or(ClientFileError::Unverified)
}

#[cfg(test)]
mod tests;
