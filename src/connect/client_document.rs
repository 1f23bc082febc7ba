//! A client's file as a document that can be edited.

use super::client_entry::ClientEntry;

/// The reason why a document cannot be edited.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The text is not in the language of the client's files.
    #[error("it cannot be parsed: line {line}, column {column}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// A value is not a table.
    #[error("its `{0}` is not a table")]
    NoTable(String),
    /// There is no such entry.
    #[error("it has no entry `{0}`")]
    NoEntry(String),
    /// The text has a form that is not understood.
    #[error("the form of line {0} is not understood")]
    Form(usize),
}

/// A client's file, which keeps all that is not edited.
pub(super) trait ClientDocument {
    /// Adds an entry, and returns the number of tables that were made for it.
    fn add(&mut self, name: &str, entry: &ClientEntry) -> Result<usize, DocumentError>;

    /// Removes an entry, and returns its declaration for [`ClientDocument::restore`].
    fn remove(&mut self, name: &str) -> Result<String, DocumentError>;

    /// Adds an entry as [`ClientDocument::remove`] returned it.
    fn restore(&mut self, name: &str, declaration: &str) -> Result<(), DocumentError>;

    /// Sets or removes a switch of an entry, and returns its former value.
    fn set_flag(
        &mut self,
        name: &str,
        key: &str,
        value: Option<bool>,
    ) -> Result<Option<bool>, DocumentError>;

    /// Removes up to `n` tables around the entries if they are empty.
    fn remove_empty_tables(&mut self, n: usize);

    /// Returns whether nothing is left but an empty document.
    fn is_empty(&self) -> bool;

    /// Returns the text.
    fn text(&self) -> String;
}
