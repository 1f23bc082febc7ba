//! The output of `metamcp check --effective`.

use serde_json::{Map, Value};

use crate::config::{effective::EffectiveEntry, sources::dotted};

/// Returns the entries as valid TOML, with the source of each value as a comment.
pub(super) fn toml(entries: &[EffectiveEntry]) -> String {
    let mut text =
        "# Effective values: defaults < file < environment < flags. The texts of env and headers, and\n\
         # the login and query of a url, are hidden.\n"
            .to_owned();
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut table: &[String] = &[];
    // The keys of a table come before its subtables: otherwise the table would be opened twice.
    let mut entries: Vec<&EffectiveEntry> = entries.iter().collect();
    entries.sort_by_key(|entry| (entry.path.first(), table_length(&entry.path)));
    for entry in entries {
        let (in_table, rest) = entry.path.split_at(table_length(&entry.path));
        if in_table != table {
            flush(&mut text, &mut rows);
            table = in_table;
            text.push_str(&format!("\n[{}]\n", dotted(table)));
        }
        let row = match &entry.value {
            Some(value) => format!("{} = {}", dotted(rest), toml_value(value)),
            None => format!("# {}", dotted(rest)),
        };
        rows.push((row, entry.place()));
    }
    flush(&mut text, &mut rows);
    text
}

/// Returns the entries as a JSON object.
pub(super) fn json(entries: &[EffectiveEntry]) -> Value {
    let entry = |entry: &EffectiveEntry| (dotted(&entry.path), entry.to_json());
    Value::Object(entries.iter().map(entry).collect::<Map<_, _>>())
}

/// Returns the number of leading parts of a key that name its table.
fn table_length(path: &[String]) -> usize {
    match path.iter().position(|name| name == "servers") {
        Some(at @ (0 | 1)) if path.len() > at + 2 => at + 2,
        Some(_) | None => 1,
    }
}

/// The length up to which rows determine the column of the comments.
const WIDTH: usize = 60;

fn flush(text: &mut String, rows: &mut Vec<(String, String)>) {
    let lengths = rows.iter().map(|(row, _)| row.chars().count());
    let width = lengths.filter(|length| *length <= WIDTH).max().unwrap_or(0);
    for (row, place) in rows.drain(..) {
        text.push_str(&format!("{row:width$}  # {place}\n"));
    }
}

/// Writes a value as TOML on one line.
fn toml_value(value: &Value) -> String {
    // TOML has no null, and no entry contains one.
    toml::Value::try_from(value).map_or_else(|_| "\"\"".to_owned(), |value| value.to_string())
}
