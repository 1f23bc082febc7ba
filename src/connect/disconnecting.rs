//! The removal of metamcp's entries from a client's file, as far as they are as `connect` left them.

use std::fmt;

use super::{
    ClientEntry, ClientFileError, ClientLink, FileChange,
    connection_record::{ConnectionRecord, SwitchedEntry, SwitchedHow},
    holds_entry,
    open_document::open,
    servers, verify,
};
use crate::{
    config::TextForm,
    import::{ForeignServer, KnownClient, OwnEndpoints},
};

/// An entry that is not as `connect` left it, and so stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptEntry {
    /// Its name.
    pub name: String,
    /// The reason.
    pub reason: KeptReason,
}

/// The reason why an entry stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptReason {
    /// The entry of metamcp leads elsewhere now.
    Changed,
    /// An entry that was switched off is gone.
    Gone,
    /// An entry that was switched off is on.
    Active,
    /// An entry that was removed is there again.
    DeclaredAgain,
    /// An entry that was removed is there under this name.
    DeclaredAs(String),
}

impl fmt::Display for KeptReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => {
                write!(f, "it was changed after `connect`, and is not metamcp any more")
            }
            Self::Gone => write!(f, "it was removed after `connect`"),
            Self::Active => write!(f, "it was switched on after `connect`"),
            Self::DeclaredAgain => write!(f, "it was declared again after `connect`"),
            Self::DeclaredAs(name) => write!(f, "it was declared as `{name}` after `connect`"),
        }
    }
}

/// Returns the change that disconnects a client, which may be empty. The entries that lead to
/// metamcp are removed, and those of the record that are unchanged.
///
/// # Errors
///
/// [`ClientFileError`] says why the file cannot be changed.
pub fn disconnect(
    client: KnownClient,
    text: &str,
    record: Option<&ConnectionRecord>,
    own: &OwnEndpoints,
) -> Result<FileChange, ClientFileError> {
    let (form, text) = TextForm::split(text);
    let found = servers(client, &text)?;
    let mut document = open(client, &text)?;
    let mut change = FileChange::default();
    for server in &found {
        let name = server.name();
        let link = record.and_then(|record| record.entries.get(name));
        let is_unchanged = |link| is_as_written(client, &found, name, link);
        if server.is_metamcp(own) || link.is_some_and(is_unchanged) {
            document.remove(name)?;
            change.entries.insert(name.to_owned());
        } else if link.is_some() {
            change.kept.push(KeptEntry { name: name.to_owned(), reason: KeptReason::Changed });
        }
    }
    for switched in record.iter().flat_map(|record| &record.switched) {
        let name = &switched.name;
        match kept_reason(client, &found, switched) {
            Some(reason) => change.kept.push(KeptEntry { name: name.clone(), reason }),
            None => {
                match (&switched.how, client.profile().switch) {
                    (SwitchedHow::Flag { before }, Some(switch)) => {
                        document.set_flag(name, switch.key, *before)?;
                    }
                    (SwitchedHow::Removed { declaration }, _) => {
                        document.restore(name, declaration)?;
                    }
                    // The client has no flag any more.
                    (SwitchedHow::Flag { .. }, None) => continue,
                }
                change.switched.push(switched.clone());
            }
        }
    }
    if !change.is_empty() {
        document.remove_empty_tables(record.map_or(0, |record| record.n_tables_made));
    }
    let after = document.text();
    verify(client, &text, &after, &change)?;
    let is_removed = record.is_some_and(|record| record.was_made) && document.is_empty();
    change.text = (!is_removed).then(|| form.join(&after));
    Ok(change)
}

/// Removes what is no longer as `connect` left it from a record.
pub fn retain_current(record: &mut ConnectionRecord, client: KnownClient, text: &str) {
    let found = servers(client, &TextForm::split(text).1).unwrap_or_default();
    record.entries.retain(|name, link| is_as_written(client, &found, name, link));
    record.switched.retain(|switched| kept_reason(client, &found, switched).is_none());
}

/// Returns whether an entry of metamcp is as `connect` wrote it.
fn is_as_written(
    client: KnownClient,
    found: &[ForeignServer],
    name: &str,
    link: &ClientLink,
) -> bool {
    holds_entry(client, found, &ClientEntry::new(client.profile(), name, link), name)
}

/// Returns the reason why an entry that was switched off stays as it is, if there is one.
fn kept_reason(
    client: KnownClient,
    found: &[ForeignServer],
    switched: &SwitchedEntry,
) -> Option<KeptReason> {
    let named = found.iter().find(|server| server.name() == switched.name);
    match (&switched.how, named) {
        (SwitchedHow::Flag { .. }, Some(server)) if server.is_disabled() => None,
        (SwitchedHow::Flag { .. }, Some(_)) => Some(KeptReason::Active),
        (SwitchedHow::Flag { .. }, None) => Some(KeptReason::Gone),
        (SwitchedHow::Removed { .. }, Some(_)) => Some(KeptReason::DeclaredAgain),
        (SwitchedHow::Removed { declaration }, None) => {
            let alone = open(client, "").and_then(|mut document| {
                document.restore(&switched.name, declaration)?;
                Ok(document.text())
            });
            let alone = alone.ok().and_then(|text| servers(client, &text).ok()).unwrap_or_default();
            let same = found
                .iter()
                .find(|server| alone.iter().any(|alone| alone.has_transport_of(server)))?;
            Some(KeptReason::DeclaredAs(same.name().to_owned()))
        }
    }
}
