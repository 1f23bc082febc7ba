//! All output. A closed pipe is not a failure; a full disk is.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, IsTerminal as _, Write as _},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::Value;

use super::{terminal, text_table::TextTable};
use crate::{redact, telemetry::log};

/// Prints a text to standard output unchanged.
pub(super) fn print(text: &str) {
    bytes(text.as_bytes());
}

/// Prints bytes to standard output unchanged.
pub(super) fn bytes(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    if let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush())
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        // The first error is the cause of later ones.
        let _is_first = LOST.set(error);
    }
}

/// The first error of writing to standard output.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Returns the first error of writing to standard output; a closed pipe is not an error.
pub(super) fn lost() -> Option<&'static io::Error> {
    LOST.get()
}

/// Prints to standard error; if that is the journal, as entries of priority "error".
pub(super) fn eprint(text: &str) {
    let mut stderr = io::stderr();
    let text = if log::is_journal(&stderr) {
        // The journal reads the priority of a line from this prefix.
        text.lines().map(|line| format!("<3>{line}\n")).collect()
    } else {
        text.to_owned()
    };
    let _reader_gone = stderr.write_all(text.as_bytes());
}

/// Prints advice to standard error, unless the user wants none.
pub(super) fn hint(text: &str) {
    if !is_quiet() {
        eprint(text);
    }
}

/// Omits hints and progress from now on.
pub(super) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Returns `true` if hints and progress are omitted.
pub(super) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// The user wants no hints and no progress.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Prints the console output of a script to standard error. For a terminal, control characters are
/// escaped; otherwise each byte is unchanged.
pub(super) fn console(text: &str) {
    let mut stderr = io::stderr();
    let text = match stderr.is_terminal() {
        true => terminal::escape_lines(text).into(),
        false => Cow::from(text),
    };
    let _reader_gone = stderr.write_all(text.as_bytes());
}

/// Prints JSON text, indented; members keep their order and numbers their spelling.
pub(super) fn json(text: &str) {
    print(&format!("{}\n", indent(text)));
}

/// Prints a table, cut to the width of the terminal and in colour if that is supported.
pub(super) fn table(table: &TextTable) {
    let columns = terminal::size().map(|(columns, _)| columns);
    print(&table.render(columns, terminal::is_coloured()));
}

/// Prints a table as [`table`] does, or the line `nothing` if it is empty.
pub(super) fn table_or(table: &TextTable, nothing: &str) {
    match table.is_empty() {
        true => print(nothing),
        false => self::table(table),
    }
}

/// Prints a text of a server and completes its last line. For a terminal, control characters are
/// escaped; otherwise each byte is unchanged.
pub(super) fn content(text: &str) {
    match terminal::is_stdout_terminal() {
        true => print(&terminal::escape_lines(text)),
        false => print(text),
    }
    if !text.ends_with('\n') {
        print("\n");
    }
}

/// Returns the elements of a list, or nothing for another type.
pub(super) fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns a text of a server, escaped for a terminal, or an empty text for another type.
pub(super) fn word(value: &Value) -> String {
    terminal::escape(value.as_str().unwrap_or_default())
}

/// Returns a text of several lines, escaped for a terminal.
pub(super) fn text(text: &str) -> String {
    terminal::escape_lines(text)
}

/// Returns the first line that is not blank, escaped for a terminal.
pub(super) fn first_line(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    terminal::escape(line.unwrap_or_default())
}

/// Returns JSON text indented by two spaces per level; members keep their order and numbers their
/// spelling. Terminal control characters are escaped, which changes no value.
fn indent(text: &str) -> String {
    let mut indented = String::with_capacity(text.len() * 2);
    let mut level = 0;
    let mut characters = text.chars().peekable();
    while let Some(found) = characters.next() {
        match found {
            '"' => {
                indented.push('"');
                copy_string(&mut characters, &mut indented);
            }
            '{' | '[' => {
                indented.push(found);
                while characters.next_if(char::is_ascii_whitespace).is_some() {}
                match characters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => indented.push(end),
                    None => {
                        level += 1;
                        new_line(&mut indented, level);
                    }
                }
            }
            '}' | ']' => {
                level = level.saturating_sub(1);
                new_line(&mut indented, level);
                indented.push(found);
            }
            ',' => {
                indented.push(',');
                new_line(&mut indented, level);
            }
            ':' => indented.push_str(": "),
            found if found.is_ascii_whitespace() => {}
            found => indented.push(found),
        }
    }
    indented
}

/// Copies a string up to its closing quote.
fn copy_string(characters: &mut impl Iterator<Item = char>, indented: &mut String) {
    let mut is_escaped = false;
    for found in characters {
        if redact::is_control(found) {
            let mut units = [0; 2];
            for unit in found.encode_utf16(&mut units) {
                // Writing to a string cannot fail.
                let _infallible = write!(indented, "\\u{unit:04x}");
            }
            continue;
        }
        indented.push(found);
        match found {
            '"' if !is_escaped => return,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
}

fn new_line(indented: &mut String, level: usize) {
    indented.push('\n');
    for _ in 0..level {
        indented.push_str("  ");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn members_keep_their_order_and_numbers_their_spelling() {
        let text = r#"{"b":[1.0,1e400,-0],"a":{},"e":[ ],"s":"a\"}{\\","x": null}"#;
        insta::assert_snapshot!(indent(text), @r#"
        {
          "b": [
            1.0,
            1e400,
            -0
          ],
          "a": {},
          "e": [],
          "s": "a\"}{\\",
          "x": null
        }
        "#);
    }

    #[test]
    fn the_cli_escapes_characters_that_would_steer_a_terminal() {
        assert_eq!(indent("\"a\u{9b}2J\u{202e}\u{e0041}\""), r#""a\u009b2J\u202e\udb40\udc41""#);
    }

    proptest! {
        #[test]
        fn indenting_changes_no_value(key in any::<String>(), value in any::<String>(), number in any::<i64>()) {
            let value = serde_json::json!({ key: [value, number, { "a": {} }], "n": null });
            let read: Value = serde_json::from_str(&indent(&value.to_string())).unwrap();
            prop_assert_eq!(read, value);
        }
    }
}
