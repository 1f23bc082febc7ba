//! Edits of the servers in a configuration file. All other text stays as it is, byte for byte. Pure.

use std::ops::Range;

use toml_edit::{Document, DocumentMut, Item, Table, value};

use super::TextForm;
use crate::server_name::ServerName;

/// The table of the servers.
const SERVERS: &str = "servers";

/// The key that disables a server.
const ENABLED: &str = "enabled";

/// The reason why an edit is impossible.
#[derive(Debug, thiserror::Error)]
pub enum FileEditError {
    /// The file is not TOML. The parser quotes the line, which may contain a secret, so its message
    /// is left out.
    #[error("the configuration is not valid TOML")]
    Syntax,
    /// The file declares the server already.
    #[error("server `{0}` is declared already")]
    Declared(ServerName),
    /// The file does not declare the server.
    #[error("server `{0}` is not declared")]
    NotDeclared(ServerName),
}

/// Returns a configuration with one more server: at its end, or in the list of servers if that is one
/// value. `table` is the table of the server as TOML.
///
/// # Errors
///
/// [`FileEditError`] if the server is declared already, or the text is not TOML.
pub fn with_server(text: &str, name: &ServerName, table: &str) -> Result<String, FileEditError> {
    let (form, text) = TextForm::split(text);
    let document = parsed(&text)?;
    if declared(document.as_table(), name).is_some() {
        return Err(FileEditError::Declared(name.clone()));
    }
    if document.get(SERVERS).is_some_and(Item::is_value) {
        let (mut document, mut added) = (parsed_to_change(&text)?, parsed_to_change(table)?);
        let server = added[SERVERS][name.as_str()].as_table_mut().map(std::mem::take);
        if let (Some(servers), Some(server)) = (document[SERVERS].as_inline_table_mut(), server) {
            servers.insert(name.as_str(), server.into_inline_table().into());
        }
        return Ok(form.join(&document.to_string()));
    }
    let before = text.trim_end();
    Ok(form.join(&match before.is_empty() {
        true => table.to_owned(),
        false => format!("{before}\n\n{table}"),
    }))
}

/// Returns a configuration without a server, and without the comment directly above it.
///
/// # Errors
///
/// [`FileEditError`] if it does not declare the server, or the text is not TOML.
pub fn without_server(text: &str, name: &ServerName) -> Result<String, FileEditError> {
    let (form, text) = TextForm::split(text);
    let document = parsed(&text)?;
    let server = declared(document.as_table(), name)
        .ok_or_else(|| FileEditError::NotDeclared(name.clone()))?;
    let mut blocks = Vec::new();
    if let Some(table) = server.as_table() {
        collect_blocks(table, &mut blocks);
    }
    blocks.sort_by_key(|block| std::cmp::Reverse(block.start));
    let mut left = text.clone();
    for block in blocks {
        left.replace_range(lines_of(&left, &block), "");
    }
    if declared(parsed(&left)?.as_table(), name).is_none() {
        return Ok(form.join(&left));
    }
    // Within another table, too: as `name.command = …` or `name = { … }`.
    let mut document = parsed_to_change(&left)?;
    let servers = document.get_mut(SERVERS).and_then(Item::as_table_like_mut);
    if let Some(servers) = servers {
        servers.remove(name.as_str());
    }
    Ok(form.join(&document.to_string()))
}

/// Returns a configuration in which a server is enabled or disabled.
///
/// # Errors
///
/// [`FileEditError`] if it does not declare the server, or the text is not TOML.
pub fn with_enabled(
    text: &str,
    name: &ServerName,
    is_enabled: bool,
) -> Result<String, FileEditError> {
    let (form, text) = TextForm::split(text);
    set_enabled(&text, name, is_enabled).map(|edited| form.join(&edited))
}

fn set_enabled(text: &str, name: &ServerName, is_enabled: bool) -> Result<String, FileEditError> {
    let document = parsed(text)?;
    let server = declared(document.as_table(), name)
        .ok_or_else(|| FileEditError::NotDeclared(name.clone()))?;
    let mut edited = text.to_owned();
    let written = server.as_table_like().and_then(|table| table.get(ENABLED)?.span());
    if let Some(written) = written {
        let line = line_around(text, &written);
        match is_enabled && text[line.clone()].trim() == "enabled = false" {
            true => edited.replace_range(line, ""),
            false => edited.replace_range(written, &is_enabled.to_string()),
        }
        return Ok(edited);
    }
    if is_enabled {
        return Ok(edited);
    }
    match server.as_table().filter(|table| !table.is_implicit()).and_then(Table::span) {
        Some(header) if text[header.clone()].starts_with('[') => {
            let end = line_around(text, &header).end;
            let is_ended = text[..end].ends_with('\n');
            edited.insert_str(
                end,
                if is_ended { "enabled = false\n" } else { "\nenabled = false\n" },
            );
            Ok(edited)
        }
        _ => {
            let mut document = parsed_to_change(text)?;
            document[SERVERS][name.as_str()][ENABLED] = value(false);
            Ok(document.to_string())
        }
    }
}

/// Returns the declaration of a server.
fn declared<'a>(root: &'a Table, name: &ServerName) -> Option<&'a Item> {
    root.get(SERVERS)?.as_table_like()?.get(name.as_str())
}

fn parsed(text: &str) -> Result<Document<&str>, FileEditError> {
    Document::parse(text).map_err(|_quoting| FileEditError::Syntax)
}

fn parsed_to_change(text: &str) -> Result<DocumentMut, FileEditError> {
    text.parse().map_err(|_quoting| FileEditError::Syntax)
}

/// Adds the texts of a table and of those below it: each from its header to the end of its last
/// value.
fn collect_blocks(table: &Table, blocks: &mut Vec<Range<usize>>) {
    if !table.is_implicit()
        && !table.is_dotted()
        && let Some(header) = table.span()
    {
        let end = table.iter().map(|(_, item)| value_end(item)).max().unwrap_or(0);
        blocks.push(header.start..header.end.max(end));
    }
    for (_, item) in table {
        if let Item::Table(below) = item {
            collect_blocks(below, blocks);
        }
    }
}

/// Returns the end of a value in the table itself; 0 for a table with a header of its own.
fn value_end(item: &Item) -> usize {
    match item {
        Item::Value(value) => value.span().map_or(0, |span| span.end),
        Item::Table(table) if table.is_dotted() => {
            table.iter().map(|(_, item)| value_end(item)).max().unwrap_or(0)
        }
        Item::Table(_) | Item::ArrayOfTables(_) | Item::None => 0,
    }
}

/// Returns the lines of a block, with the comments directly above it, the keys below it that a `#`
/// disables, and the blank lines that its absence would double.
fn lines_of(text: &str, block: &Range<usize>) -> Range<usize> {
    let mut lines = line_around(text, block);
    let is_comment = |line: &str| line.trim_start().starts_with('#');
    while let Some(above) = line_before(text, lines.start)
        && is_comment(&text[above.clone()])
    {
        lines.start = above.start;
    }
    // Other comments below belong to what follows.
    let mut end = lines.end;
    while let Some(below) = line_after(text, end)
        && is_disabled_key(&text[below.clone()])
    {
        end = below.end;
    }
    let next = line_after(text, end);
    if next.clone().is_none_or(|next| text[next].trim().is_empty()) {
        lines.end = end;
    }
    while let Some(below) = line_after(text, lines.end)
        && text[below.clone()].trim().is_empty()
    {
        lines.end = below.end;
    }
    if line_after(text, lines.end).is_none() {
        // At the end of the file.
        while let Some(above) = line_before(text, lines.start)
            && text[above.clone()].trim().is_empty()
        {
            lines.start = above.start;
        }
    }
    lines
}

/// Returns whether a line is a comment with a key and its value.
fn is_disabled_key(line: &str) -> bool {
    let disabled = line.trim_start().strip_prefix('#').unwrap_or_default();
    disabled.contains('=') && parsed(disabled).is_ok()
}

/// Returns the whole lines around a part of the text, with their line breaks.
fn line_around(text: &str, part: &Range<usize>) -> Range<usize> {
    let start = text[..part.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[part.end..].find('\n').map_or(text.len(), |at| part.end + at + 1);
    start..end
}

/// Returns the line that ends at `end`.
fn line_before(text: &str, end: usize) -> Option<Range<usize>> {
    (end > 0).then(|| line_around(text, &(end - 1..end - 1)))
}

/// Returns the line that begins at `start`.
fn line_after(text: &str, start: usize) -> Option<Range<usize>> {
    (start < text.len()).then(|| line_around(text, &(start..start)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GIT: &str = "[servers.git]\ncommand = \"git-mcp\"\nargs = [\"-v\"]\n";

    fn name(name: &str) -> ServerName {
        ServerName::new(name).expect("a name")
    }

    #[test]
    fn a_server_is_added_at_the_end_and_everything_else_stays() {
        let text = "# mine\n[service]\n  drain_timeout = '5s' # short\n\n[servers.time] # UTC\ncommand='t'\n";
        let added = with_server(text, &name("git"), GIT).expect("added");
        assert_eq!(added, format!("{text}\n{GIT}"));
        assert_eq!(with_server("", &name("git"), GIT).expect("added"), GIT);
        let again = with_server(&added, &name("git"), GIT);
        assert!(matches!(again, Err(FileEditError::Declared(_))), "{again:?}");
        assert!(matches!(with_server("[a", &name("git"), GIT), Err(FileEditError::Syntax)));
    }

    #[test]
    fn a_server_is_removed_with_the_comment_above_it_and_other_comments_stay() {
        let text = "[servers.a]\ncommand = 'a'\n\n# about all\n\n# b is slow\n[servers.b] # b\ncommand = 'b'\n# args = []\n\n[servers.b.env]\nX = '''\n[servers.c]\n'''\n\n# about the rest\n\n# c\n[servers.c]\ncommand = 'c'\n";
        let removed = without_server(text, &name("b")).expect("removed");
        assert_eq!(
            removed,
            "[servers.a]\ncommand = 'a'\n\n# about all\n\n# about the rest\n\n# c\n[servers.c]\ncommand = 'c'\n"
        );
        let last = without_server(&removed, &name("c")).expect("removed");
        assert_eq!(last, "[servers.a]\ncommand = 'a'\n\n# about all\n\n# about the rest\n");
        let none = without_server(text, &name("d"));
        assert!(matches!(none, Err(FileEditError::NotDeclared(_))), "{none:?}");
    }

    #[test]
    fn a_comment_below_a_removed_server_stays_unless_it_disables_a_key() {
        let text = "[servers.b]\ncommand = 'b'\n# cwd = '/srv'\n\n[servers.c]\ncommand = 'c'\n# the slow ones\n\n[servers.d]\ncommand = 'd'\n";
        let removed = without_server(text, &name("c")).expect("removed");
        assert_eq!(
            removed,
            "[servers.b]\ncommand = 'b'\n# cwd = '/srv'\n\n# the slow ones\n\n[servers.d]\ncommand = 'd'\n"
        );
        let removed = without_server(&removed, &name("b")).expect("removed");
        assert_eq!(removed, "# the slow ones\n\n[servers.d]\ncommand = 'd'\n");
    }

    #[test]
    fn a_server_is_added_to_servers_that_are_one_value() {
        let text = "servers = { a = { command = 'a' } } # all\n[listen]\nhttp = '127.0.0.1:0'\n";
        let table = format!("{GIT}env = {{ A = \"b\" }}\n");
        let added = with_server(text, &name("git"), &table).expect("added");
        assert_eq!(
            added,
            "servers = { a = { command = 'a' } , git = { command = \"git-mcp\", args = [\"-v\"], env = { A = \"b\" } } } # all\n[listen]\nhttp = '127.0.0.1:0'\n"
        );
        assert_eq!(without_server(&added, &name("git")).expect("removed"), text);
    }

    #[test]
    fn a_server_that_is_declared_in_two_forms_is_removed_from_both() {
        let dotted = "[servers]\na.command = 'a'\nb.command = 'b'\n\n[servers.a.env]\nK = 'v'\n";
        let before = "[servers.a.env]\nK = 'v'\n\n[servers]\na.command = 'a'\nb.command = 'b'\n";
        for text in [dotted, before] {
            let removed = without_server(text, &name("a")).expect("removed");
            assert_eq!(removed.trim(), "[servers]\nb.command = 'b'");
        }
    }

    #[test]
    fn a_server_without_a_header_of_its_own_is_edited_too() {
        let inline = "servers = { a = { command = 'a' }, b = { command = 'b' } }\n";
        let removed = without_server(inline, &name("a")).expect("removed");
        assert_eq!(removed, "servers = { b = { command = 'b' } }\n");
        let dotted = "[servers]\na.command = 'a'\nb.command = 'b' # b\n";
        let removed = without_server(dotted, &name("a")).expect("removed");
        assert_eq!(removed, "[servers]\nb.command = 'b' # b\n");
        for text in [inline, dotted] {
            let off = with_enabled(text, &name("b"), false).expect("disabled");
            let table: toml::Table = off.parse().expect("TOML");
            assert_eq!(table["servers"]["b"]["enabled"], toml::Value::Boolean(false), "{off}");
            let on = with_enabled(&off, &name("b"), true).expect("enabled");
            let table: toml::Table = on.parse().expect("TOML");
            assert_ne!(
                table["servers"]["b"].get("enabled"),
                Some(&toml::Value::Boolean(false)),
                "{on}"
            );
        }
    }

    #[test]
    fn a_server_is_disabled_and_enabled_in_place() {
        let text = "[servers.a] # a\ncommand = 'a'\n\n[servers.b]\ncommand = 'b'\n";
        let off = with_enabled(text, &name("a"), false).expect("disabled");
        assert_eq!(
            off,
            "[servers.a] # a\nenabled = false\ncommand = 'a'\n\n[servers.b]\ncommand = 'b'\n"
        );
        assert_eq!(with_enabled(&off, &name("a"), false).expect("unchanged"), off);
        assert_eq!(with_enabled(&off, &name("a"), true).expect("enabled"), text);
        let noted = "[servers.a]\ncommand = 'a'\nenabled = true # since May\n";
        let off = with_enabled(noted, &name("a"), false).expect("disabled");
        assert_eq!(off, "[servers.a]\ncommand = 'a'\nenabled = false # since May\n");
        assert_eq!(with_enabled(&off, &name("a"), true).expect("enabled"), noted);
    }

    #[test]
    fn line_ends_and_the_byte_order_mark_stay() {
        let text = "\u{feff}[servers]\r\na.command = 'a'\r\n\r\n[servers.b]\r\ncommand = 'b'\r\n";
        let added = with_server(text, &name("git"), GIT).expect("added");
        assert_eq!(added, format!("{text}\r\n{}", GIT.replace('\n', "\r\n")));
        assert_eq!(without_server(&added, &name("git")).expect("removed"), text);
        for server in ["a", "b"] {
            let edited = with_enabled(text, &name(server), false).expect("disabled");
            assert!(edited.starts_with('\u{feff}') && !edited.replace("\r\n", "").contains('\n'));
        }
    }

    proptest! {
        #[test]
        fn a_server_that_is_added_and_removed_leaves_the_text(
            lines in prop::collection::vec(prop_oneof![
                Just(""), Just("# a comment"), Just("[servers.time] # UTC\ncommand = 't'"),
                Just("[servers.time.env]\nA = '1'"), Just("[listen]\nhttp = []\n"),
                Just("[service]\n  drain_timeout = '5s' # short"), Just("  # indented"),
            ], 0..8)
        ) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            prop_assume!(text.parse::<DocumentMut>().is_ok());
            let added = with_server(&text, &name("git"), GIT).expect("added");
            prop_assert!(added.starts_with(text.trim_end()), "{}", added);
            let off = with_enabled(&added, &name("git"), false).expect("disabled");
            prop_assert_eq!(&with_enabled(&off, &name("git"), true).expect("enabled"), &added);
            let removed = without_server(&added, &name("git")).expect("removed");
            prop_assert_eq!(removed.trim_end(), text.trim_end());
        }

        #[test]
        fn the_removal_of_a_server_changes_no_other(
            blocks in prop::collection::vec(
                ("[a-d]", prop_oneof![Just(""), Just("\n"), Just("# c\n"), Just("\n# c\n\n")]), 1..5
            ),
        ) {
            let mut seen = std::collections::BTreeSet::new();
            let text: String = blocks.iter().filter(|(server, _)| seen.insert(server.clone()))
                .map(|(server, space)| format!("[servers.{server}]\ncommand = '{server}'\n{space}"))
                .collect();
            let servers = |text: &str| -> toml::Table {
                let table: toml::Table = text.parse().expect("TOML");
                table.get("servers").and_then(|found| found.as_table().cloned()).unwrap_or_default()
            };
            let (first, _) = &blocks[0];
            let removed = without_server(&text, &name(first)).expect("removed");
            let mut expected = servers(&text);
            expected.remove(first.as_str());
            prop_assert_eq!(servers(&removed), expected);
        }
    }
}
