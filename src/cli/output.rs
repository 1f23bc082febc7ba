//! All printing. A reader that has gone away is no reason to fail; a full disk is one.

use std::{
    io::{self, Write as _},
    sync::OnceLock,
};

use serde_json::Value;

use super::{indent, terminal, text_table::TextTable};
use crate::telemetry::log;

/// Prints to standard output as it is.
pub(super) fn print(text: &str) {
    bytes(text.as_bytes());
}

/// Prints to standard output as it is, be it text or not.
pub(super) fn bytes(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    if let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush())
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        // The first one is why; those that follow come of it.
        let _is_first = LOST.set(error);
    }
}

/// Why something that was printed has not arrived.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Returns why something that was printed to standard output has not arrived, unless nobody reads it.
pub(super) fn lost() -> Option<&'static io::Error> {
    LOST.get()
}

/// Prints to standard error: as it is, or as entries of priority "error" where that is the journal.
pub(super) fn complain(text: &str) {
    let mut stderr = io::stderr();
    let text = if log::is_journal(&stderr) {
        // The prefix is how a line on standard error tells the journal its priority.
        text.lines().map(|line| format!("<3>{line}\n")).collect()
    } else {
        text.to_owned()
    };
    let _reader_gone = stderr.write_all(text.as_bytes());
}

/// Prints JSON text with the members in their order and the numbers as they are spelled, indented;
/// the same text always in the same way.
pub(super) fn json(text: &str) {
    print(&format!("{}\n", indent::indent(text)));
}

/// Prints a table, as wide as the terminal is and in colour where there is one.
pub(super) fn table(table: &TextTable) {
    let columns = terminal::size().map(|(columns, _)| columns);
    print(&table.render(columns, terminal::is_coloured()));
}

/// Prints a table as [`table`] does, or the line `nothing` where it is empty.
pub(super) fn table_or(table: &TextTable, nothing: &str) {
    match table.is_empty() {
        true => print(nothing),
        false => self::table(table),
    }
}

/// Prints a text of a server, and ends its last line: to a terminal so that nothing in it steers
/// that, else byte for byte.
pub(super) fn content(text: &str) {
    match terminal::is_stdout_terminal() {
        true => print(&terminal::escape_lines(text)),
        false => print(text),
    }
    if !text.ends_with('\n') {
        print("\n");
    }
}

/// Returns a word of a server, fit for a terminal; nothing where it is no text.
pub(super) fn word(value: &Value) -> String {
    terminal::escape(value.as_str().unwrap_or_default())
}

/// Returns a text of a server or of the service with its lines, fit for a terminal.
pub(super) fn text(text: &str) -> String {
    terminal::escape_lines(text)
}

/// Returns the first line of a text that says something, fit for a terminal.
pub(super) fn first_line(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    terminal::escape(line.unwrap_or_default())
}
