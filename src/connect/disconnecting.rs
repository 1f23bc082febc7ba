//! The removal of metamcp's entries from a client's file.

use std::net::SocketAddr;

use super::{
    ClientFileError, FileChange,
    connection_record::{ConnectionRecord, SwitchedHow},
    open_document::open,
    servers,
};
use crate::import::KnownClient;

/// Returns the change that disconnects a client; `None` if nothing of metamcp is in its file.
/// Without a record, the entries that lead to `address` are removed.
///
/// # Errors
///
/// [`ClientFileError`] says why the file cannot be changed.
pub fn disconnect(
    client: KnownClient,
    text: &str,
    record: Option<&ConnectionRecord>,
    address: SocketAddr,
) -> Result<Option<FileChange>, ClientFileError> {
    let found = servers(client, text)?;
    let mut document = open(client, text)?;
    let is_own = |name: &str| record.is_some_and(|record| record.entries.contains(name));
    let own = found.iter().filter(|server| server.is_metamcp(address) || is_own(server.name()));
    let mut change = FileChange {
        text: None,
        entries: own.map(|server| server.name().to_owned()).collect(),
        switched: Vec::new(),
        n_tables_made: 0,
    };
    for name in &change.entries {
        document.remove(name)?;
    }
    for switched in record.iter().flat_map(|record| &record.switched) {
        let is_there = found.iter().any(|server| server.name() == switched.name);
        match (&switched.how, client.profile().switch) {
            (SwitchedHow::Flag { before }, Some(switch)) if is_there => {
                document.set_flag(&switched.name, switch.key, *before)?;
            }
            (SwitchedHow::Removed { declaration }, _) if !is_there => {
                document.restore(&switched.name, declaration)?;
            }
            // The user has changed it meanwhile.
            _ => continue,
        }
        change.switched.push(switched.clone());
    }
    if change.entries.is_empty() && change.switched.is_empty() {
        return Ok(None);
    }
    document.remove_empty_tables(record.map_or(0, |record| record.n_tables_made));
    let is_removed = record.is_some_and(|record| record.was_made) && document.is_empty();
    change.text = Some(document.text()).filter(|_| !is_removed);
    Ok(Some(change))
}
