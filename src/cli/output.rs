//! All printing. A reader that has gone away is no reason to fail.

use std::io::Write as _;

use serde_json::Value;

use crate::{redact, telemetry::log};

/// Prints to standard output as it is.
pub(super) fn print(text: &str) {
    let _reader_gone = std::io::stdout().write_all(text.as_bytes());
}

/// Prints to standard error: as it is, or as entries of priority "error" where that is the journal.
pub(super) fn complain(text: &str) {
    let mut stderr = std::io::stderr();
    let text = if log::is_journal(&stderr) {
        // The prefix is how a line on standard error tells the journal its priority.
        text.lines().map(|line| format!("<3>{line}\n")).collect()
    } else {
        text.to_owned()
    };
    let _reader_gone = stderr.write_all(text.as_bytes());
}

/// Prints rows in aligned columns; the last column is not padded.
pub(super) fn table<const N: usize>(rows: &[[String; N]]) {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        print(&format!("{}\n", line.trim_end()));
    }
}

/// Returns a word of a server, fit for a terminal.
pub(super) fn word(value: &Value) -> String {
    let escaped = |found: char| match redact::is_unruly(found) {
        true => found.escape_default().to_string(),
        false => found.to_string(),
    };
    value.as_str().unwrap_or_default().chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_word_of_a_server_cannot_steer_the_terminal() {
        let shown = word(&json!("a\u{1b}[2Jb\u{202e}c ä \u{1f642}"));
        assert_eq!(shown, "a\\u{1b}[2Jb\\u{202e}c ä \u{1f642}");
    }
}
