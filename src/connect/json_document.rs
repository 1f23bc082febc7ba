//! The edits of JSON with comments.

use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use super::{
    client_document::{ClientDocument, DocumentError},
    client_entry::{ClientEntry, EntryValue},
};
use crate::import::JSON_OPTIONS;

/// The text of a new file.
const EMPTY: &str = "{}\n";

/// A file in JSON, with its comments.
pub(super) struct JsonDocument {
    root: CstRootNode,
    /// The keys that lead to the table of entries.
    path: &'static [&'static str],
}

impl JsonDocument {
    /// Opens a text. The first of `tables` that leads to a table is used, deepest first.
    pub(super) fn open(
        text: &str,
        tables: &'static [&'static [&'static str]],
    ) -> Result<Self, DocumentError> {
        let text = if text.trim().is_empty() { EMPTY } else { text };
        let root = CstRootNode::parse(text, &JSON_OPTIONS).map_err(|error| {
            DocumentError::Syntax { line: error.line_display(), column: error.column_display() }
        })?;
        if root.object_value().is_none() {
            return Err(DocumentError::NoTable("root".to_owned()));
        }
        let document = |path| Self { root: root.clone(), path };
        let mut found = tables.iter().rev().filter(|path| document(path).table().is_some());
        let path = found.next().or(tables.first()).copied().unwrap_or(&[]);
        Ok(document(path))
    }

    /// Returns the table of entries, if there is one.
    fn table(&self) -> Option<CstObject> {
        let root = self.root.object_value()?;
        self.path.iter().try_fold(root, |table, key| table.object_value(key))
    }

    fn entry(&self, name: &str) -> Result<CstObjectProp, DocumentError> {
        let entry = self.table().and_then(|table| table.get(name));
        entry.ok_or_else(|| DocumentError::NoEntry(name.to_owned()))
    }

    /// Returns the table of entries, and the number of tables that were made.
    fn table_or_new(&self) -> Result<(CstObject, usize), DocumentError> {
        let no_table = |key: &str| DocumentError::NoTable(key.to_owned());
        let mut table = self.root.object_value().ok_or_else(|| no_table("root"))?;
        let mut n_made = 0;
        for key in self.path {
            n_made += usize::from(table.get(key).is_none());
            table = table.object_value_or_create(key).ok_or_else(|| no_table(key))?;
        }
        Ok((table, n_made))
    }
}

impl ClientDocument for JsonDocument {
    fn add(&mut self, name: &str, entry: &ClientEntry) -> Result<usize, DocumentError> {
        let (table, n_made) = self.table_or_new()?;
        let members = entry.0.iter().map(|(key, value)| (key.clone(), input(value))).collect();
        table.append(name, CstInputValue::Object(members));
        Ok(n_made)
    }

    fn remove(&mut self, name: &str) -> Result<String, DocumentError> {
        let entry = self.entry(name)?;
        let value = entry.value().and_then(|value: CstNode| value.to_serde_value());
        entry.remove();
        Ok(value.unwrap_or_default().to_string())
    }

    fn restore(&mut self, name: &str, declaration: &str) -> Result<(), DocumentError> {
        let (table, _) = self.table_or_new()?;
        let value: Value = serde_json::from_str(declaration).unwrap_or_default();
        if table.get(name).is_none() {
            table.append(name, of_value(&value));
        }
        Ok(())
    }

    fn set_flag(
        &mut self,
        name: &str,
        key: &str,
        value: Option<bool>,
    ) -> Result<Option<bool>, DocumentError> {
        let table = self.entry(name)?.object_value();
        let table = table.ok_or_else(|| DocumentError::NoTable(name.to_owned()))?;
        let flag = table.get(key);
        let before = flag.as_ref().and_then(CstObjectProp::value);
        let before = before.and_then(|value| value.as_boolean_lit()).map(|value| value.value());
        match (flag, value) {
            (Some(flag), Some(value)) => flag.set_value(CstInputValue::Bool(value)),
            (Some(flag), None) => flag.remove(),
            (None, Some(value)) => {
                table.append(key, CstInputValue::Bool(value));
            }
            (None, None) => {}
        }
        Ok(before)
    }

    fn remove_empty_tables(&mut self, n: usize) {
        for length in (1..=self.path.len()).rev().take(n) {
            let Some(root) = self.root.object_value() else { return };
            let (last, before) = self.path[..length].split_last().unwrap_or((&"", &[]));
            let parent = before.iter().try_fold(root, |table, key| table.object_value(key));
            let found = parent.and_then(|parent| parent.get(last));
            let Some(found) = found else { return };
            if found.object_value().is_some_and(|table| is_bare(&table)) {
                found.remove();
            }
        }
    }

    fn is_empty(&self) -> bool {
        let is_braces = |child: &CstNode| !child.is_comment();
        let is_plain = self.root.children().iter().all(is_braces);
        is_plain && self.root.object_value().is_some_and(|root| is_bare(&root))
    }

    fn text(&self) -> String {
        self.root.to_string()
    }
}

/// Returns whether a table has neither members nor comments.
fn is_bare(table: &CstObject) -> bool {
    table.properties().is_empty() && !table.children().iter().any(CstNode::is_comment)
}

fn input(value: &EntryValue) -> CstInputValue {
    let text = |text: &String| CstInputValue::String(text.clone());
    match value {
        EntryValue::Text(value) => text(value),
        EntryValue::Switch(is_on) => CstInputValue::Bool(*is_on),
        EntryValue::Number(number) => CstInputValue::Number(number.to_string()),
        EntryValue::List(items) => CstInputValue::Array(items.iter().map(text).collect()),
        EntryValue::Table(members) => {
            let members = members.iter().map(|(key, value)| (key.clone(), text(value)));
            CstInputValue::Object(members.collect())
        }
    }
}

fn of_value(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(is_true) => CstInputValue::Bool(*is_true),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(of_value).collect()),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (key.clone(), of_value(value)));
            CstInputValue::Object(members.collect())
        }
    }
}
