//! The catalog of messages in the journal, for `journalctl -x`.
//!
//! Source: systemd, "Journal Message Catalogs".

use std::fmt::Write as _;

use super::{
    error_table::{ERROR_GROUPS, ErrorEntry},
    page_text::without_links,
};
use crate::telemetry::message_id::{CALL, CALL_SUM, CALLS_DROPPED, message_id};

/// The length of a line. `journalctl` puts three characters in front of it.
const LINE_BYTES_MAX: usize = 77;

/// The messages that are no failures, with their explanations.
const RECORDS: [(&str, &str, &str); 3] = [
    (
        CALL,
        "A client called a tool",
        "The client @MCP_CLIENT@ called @MCP_TOOL@ of server @MCP_SERVER@, with the outcome \
         @MCP_OUTCOME@ after @MCP_DURATION_USEC@ microseconds.\n\nThe outcome `tool_error` is a \
         failure that the tool itself reports: its answer went to the client, and the record does \
         not have it. `cancelled` means that the client did not wait for the answer.",
    ),
    (
        CALL_SUM,
        "A client called a tool many times in a second",
        "The client @MCP_CLIENT@ called @MCP_TOOL@ of server @MCP_SERVER@ @MCP_CALLS@ times. All \
         calls succeeded. Beyond 200 successful calls in a second, metamcp writes one record for \
         each client and tool, because the journal drops the messages of a service that writes \
         more.",
    ),
    (
        CALLS_DROPPED,
        "Records of calls were dropped",
        "The calls themselves were served. The journal took the records more slowly than calls \
         ended, so that metamcp dropped @MCP_DROPPED@ of them.\n\nRemedy: find out why the journal \
         is slow, or record only failures: set `telemetry.calls` to \"failures\".",
    ),
];

/// Returns the catalog.
pub fn message_catalog() -> String {
    let mut catalog =
        "# The messages of metamcp. Made from the table of docs/errors.md.\n".to_owned();
    for (code, subject, text) in RECORDS {
        add(&mut catalog, code, subject, text);
    }
    let mut known = Vec::new();
    for entry in ERROR_GROUPS.iter().flat_map(|group| group.entries).filter(|entry| is_named(entry))
    {
        if known.contains(&entry.code) {
            continue;
        }
        known.push(entry.code);
        let (cause, remedy) = (plain(entry.cause), plain(entry.remedy));
        let subject = format!("Error {}", entry.code);
        add(&mut catalog, entry.code, &subject, &format!("{cause}\n\nRemedy: {remedy}"));
    }
    catalog
}

/// Returns whether the code is a name, and not a number.
fn is_named(entry: &ErrorEntry) -> bool {
    entry.code.starts_with(|first: char| first.is_ascii_uppercase())
        && entry
            .code
            .chars()
            .all(|found| found.is_ascii_uppercase() || found == '_' || found.is_ascii_digit())
}

fn add(catalog: &mut String, code: &str, subject: &str, text: &str) {
    let id = message_id(code);
    // Writing to a string cannot fail.
    let _infallible = write!(
        catalog,
        "\n-- {id}\nSubject: {subject}\nDefined-By: metamcp\nDocumentation: man:metamcp-errors(7)\n\n{}\n",
        wrapped(text)
    );
}

/// Returns paragraphs in lines of a bounded length: `journalctl` wraps none.
fn wrapped(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            if !line.is_empty() && line.len() + 1 + word.len() > LINE_BYTES_MAX {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.join("\n")
}

/// Returns Markdown as plain text.
fn plain(markdown: &str) -> String {
    without_links(markdown).replace('`', "\"")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_catalog_explains_each_named_code_once() {
        let catalog = message_catalog();
        let ids: Vec<&str> = catalog.lines().filter_map(|line| line.strip_prefix("-- ")).collect();
        assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len());
        for entry in
            ERROR_GROUPS.iter().flat_map(|group| group.entries).filter(|entry| is_named(entry))
        {
            assert!(ids.contains(&message_id(entry.code).as_str()), "{}", entry.code);
        }
        assert!(ids.len() > 100, "{}", ids.len());
    }
}
