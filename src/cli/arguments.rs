//! The tables of a tool's arguments, as given on the command line, and of its result's members.

use serde_json::Value;

use super::{
    call::schema::SchemaCursor,
    call::value::spelled,
    output,
    terminal::escape,
    text_table::{CellColour, TableCell, TextTable},
};

/// The depth to which nested arguments are shown, and the largest number of lines. Deeper arguments
/// are given as JSON.
const DEPTH_MAX: usize = 3;
const LINES_MAX: usize = 200;

/// Returns a table of the members that a schema declares; the first column is indented. `dashes` is
/// the prefix of an argument: `--`, or nothing for the members of a result.
pub(super) fn table(schema: &Value, dashes: &'static str) -> TextTable {
    let mut rows = SchemaRows { table: TextTable::default(), n_left: LINES_MAX, dashes };
    rows.add(SchemaCursor::root(schema), "", DEPTH_MAX);
    rows.table
}

struct SchemaRows {
    table: TextTable,
    n_left: usize,
    dashes: &'static str,
}

impl SchemaRows {
    fn add(&mut self, place: SchemaCursor<'_>, prefix: &str, depth: usize) {
        let mut required = place.required();
        if self.dashes.is_empty() {
            // A caller provides no result, so no member is required.
            required.clear();
        }
        let mut properties = place.properties();
        // Required arguments come first.
        properties.sort_by_key(|(name, _)| !required.contains(name));
        for (name, property) in properties {
            if self.n_left == 0 {
                return;
            }
            self.n_left -= 1;
            let is_required = required.contains(name);
            let key = format!("{prefix}{}", escape(name));
            let cell = TableCell::from(format!("  {}{key}", self.dashes));
            let mut text = Vec::new();
            if is_required {
                text.push("(required)".to_owned());
            }
            if let Some(description) = property.keyword("description") {
                text.push(output::first_line(description));
            }
            if let Some(default) = property.keyword("default") {
                text.push(format!("[default: {}]", escape(&spelled(default))));
            }
            self.table.row([
                if is_required { cell.colour(CellColour::Bold) } else { cell },
                TableCell::from(kind(property)).colour(CellColour::Dim),
                text.join(" ").into(),
            ]);
            if depth > 1 && property.types().object {
                self.add(property, &format!("{key}."), depth - 1);
            }
        }
    }
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
