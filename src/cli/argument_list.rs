//! The arguments of a tool, as given on the command line, and the members of its result.

use serde_json::Value;

use super::{
    call::schema::SchemaCursor,
    call::value::spelled,
    terminal::{self, escape, width},
    text_table::CellColour,
};

/// The depth to which nested arguments are shown, and the largest number of lines. Deeper arguments
/// are given as JSON.
const DEPTH_MAX: usize = 3;
const LINES_MAX: usize = 200;

/// The largest width of the names and types beside which a description begins, in columns. Below
/// longer ones it begins on the next line.
const LEFT_COLUMNS_MAX: usize = 36;

/// The indentation of a description on a line of its own.
const INDENT: usize = 8;

/// The list of the members that a schema declares.
#[derive(Debug, Default)]
pub(super) struct ArgumentList {
    rows: Vec<ArgumentRow>,
}

#[derive(Debug)]
struct ArgumentRow {
    key: String,
    kind: String,
    text: String,
    is_required: bool,
}

impl ArgumentList {
    /// Reads the members of a schema. `dashes` is the prefix of an argument: `--`, or nothing for
    /// the members of a result.
    pub(super) fn read(schema: &Value, dashes: &'static str) -> Self {
        let mut list = Self::default();
        list.add(SchemaCursor::root(schema), ("", dashes), DEPTH_MAX);
        list
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn add(&mut self, place: SchemaCursor<'_>, (prefix, dashes): (&str, &str), depth: usize) {
        let mut required = place.required();
        if dashes.is_empty() && prefix.is_empty() {
            // A caller provides no result, so no member is required.
            required.clear();
        }
        let mut properties = place.properties();
        // Required arguments come first.
        properties.sort_by_key(|(name, _)| !required.contains(name));
        for (name, property) in properties {
            if self.rows.len() == LINES_MAX {
                return;
            }
            let is_required = required.contains(name);
            let key = format!("{prefix}{}", escape(name));
            self.rows.push(ArgumentRow {
                key: format!("{dashes}{key}"),
                kind: kind(property),
                text: about(property, is_required),
                is_required,
            });
            if depth <= 1 {
                continue;
            }
            if property.types().object {
                self.add(property, (&format!("{key}."), dashes), depth - 1);
            }
            // The members of the objects in a list are written as JSON, not as keys.
            if let Some(items) = property.items().filter(|items| items.types().object) {
                self.add(items, (&format!("{key}[]."), ""), depth - 1);
            }
        }
    }

    /// Returns the list as text. Descriptions are wrapped at the number of `columns`, if known.
    pub(super) fn render(&self, columns: Option<usize>, is_coloured: bool) -> String {
        let widest = |part: fn(&ArgumentRow) -> &str| {
            let widths = self.rows.iter().map(|row| width(part(row)));
            widths.filter(|width| *width <= LEFT_COLUMNS_MAX / 2 + 4).max().unwrap_or(0)
        };
        let (keys, kinds) = (widest(|row| row.key.as_str()), widest(|row| row.kind.as_str()));
        let left = 2 + keys + 2 + kinds + 2;
        let mut text = String::new();
        for row in &self.rows {
            let paint = |colour: CellColour, text: &str| match is_coloured {
                true => colour.paint(text),
                false => text.to_owned(),
            };
            let key =
                if row.is_required { paint(CellColour::Bold, &row.key) } else { row.key.clone() };
            let gap = " ".repeat(keys.saturating_sub(width(&row.key)) + 2);
            text.push_str(&format!("  {key}{gap}{}", paint(CellColour::Dim, &row.kind)));
            let used = 2 + keys.max(width(&row.key)) + 2 + width(&row.kind);
            let (indent, is_beside) = match used + 2 <= left {
                true => (left, true),
                false => (INDENT, false),
            };
            let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(indent).max(20));
            for (index, line) in wrap(&row.text, room).into_iter().enumerate() {
                match index == 0 && is_beside {
                    true => text.push_str(&" ".repeat(left - used)),
                    false => text.push_str(&format!("\n{}", " ".repeat(indent))),
                }
                text.push_str(&line);
            }
            text.push('\n');
        }
        text
    }

    /// Returns the list for standard output.
    pub(super) fn shown(&self) -> String {
        self.render(terminal::size().map(|(columns, _)| columns), terminal::is_coloured())
    }
}

/// Returns the description of an argument, on one line.
fn about(property: SchemaCursor<'_>, is_required: bool) -> String {
    let mut text = Vec::new();
    if is_required {
        text.push("(required)".to_owned());
    }
    if let Some(description) = property.keyword("description").and_then(Value::as_str) {
        text.extend(description.split_whitespace().map(escape));
    }
    if let Some(default) = property.keyword("default") {
        text.push(format!("[default: {}]", escape(&spelled(default))));
    }
    text.join(" ")
}

/// Breaks a text into lines of at most `columns`, at spaces; a longer word has a line of its own.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let wide = width(word);
        match lines.last_mut().filter(|_| used + 1 + wide <= columns) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
                used += 1 + wide;
            }
            None => {
                lines.push(word.to_owned());
                used = wide;
            }
        }
    }
    lines
}

/// Returns the type of a value in one word: `integer`, `string…` for a list, or the allowed values.
fn kind(place: SchemaCursor<'_>) -> String {
    let values: Vec<String> = place.values().into_iter().map(|it| escape(&spelled(it))).collect();
    if !values.is_empty() && values.iter().map(String::len).sum::<usize>() <= VALUES_BYTES_MAX {
        return values.join("|");
    }
    let types = place.types();
    match place.items().filter(|_| types.names() == ["array"]) {
        Some(items) => format!("{}…", items.types().names().join("|")),
        None => types.names().join("|"),
    }
}

/// The largest total length of the allowed values that are shown, in bytes: half a line.
const VALUES_BYTES_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_description_is_wrapped_and_the_fields_of_nested_arguments_are_shown() {
        let schema = json!({
            "required": ["edits"],
            "properties": {
                "path": { "type": "string", "description": "The file to edit, relative to the root of the project.\nIt must exist and be a text file." },
                "edits": { "type": "array", "description": "The changes.", "items": {
                    "type": "object", "required": ["old"],
                    "properties": { "old": { "type": "string" }, "new": { "type": "string", "default": "" } } } },
                "options": { "type": "object", "properties": { "backup": { "type": "boolean" } } },
            },
        });
        let list = ArgumentList::read(&schema, "--");
        insta::assert_snapshot!(list.render(Some(60), false));
        for line in list.render(Some(60), false).lines() {
            assert!(width(line) <= 60, "{line}");
        }
    }

    #[test]
    fn a_word_that_is_too_long_has_its_own_line() {
        assert_eq!(wrap("a bc  def", 4), ["a bc", "def"]);
        assert_eq!(wrap("abcdef gh", 4), ["abcdef", "gh"]);
        assert!(wrap("", 4).is_empty());
    }
}
