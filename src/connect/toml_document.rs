//! The edits of TOML.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::{
    client_document::{ClientDocument, DocumentError},
    client_entry::{ClientEntry, EntryValue},
};

/// A file in TOML, with its comments.
pub(super) struct TomlDocument {
    document: DocumentMut,
    /// The key of the table of entries.
    key: &'static str,
}

impl TomlDocument {
    pub(super) fn open(text: &str, key: &'static str) -> Result<Self, DocumentError> {
        let document = text.parse().map_err(|error: toml_edit::TomlError| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let before = text.get(..at).unwrap_or_default();
            let line = before.rsplit('\n').next().unwrap_or_default();
            DocumentError::Syntax {
                line: before.matches('\n').count() + 1,
                column: line.chars().count() + 1,
            }
        })?;
        Ok(Self { document, key })
    }

    /// Returns the table of entries, and the number of tables that were made.
    fn table(&mut self) -> Result<(&mut dyn TableLike, usize), DocumentError> {
        let n_made = usize::from(!self.document.contains_key(self.key));
        let table = self.document.entry(self.key).or_insert_with(|| {
            let mut table = Table::new();
            // Without a header of its own.
            table.set_implicit(true);
            Item::Table(table)
        });
        let no_table = || DocumentError::NoTable(self.key.to_owned());
        Ok((table.as_table_like_mut().ok_or_else(no_table)?, n_made))
    }

    /// Inserts a table of an entry at the end, below an empty line.
    fn insert(&mut self, name: &str, mut item: Item) -> Result<usize, DocumentError> {
        let is_first = self.document.to_string().trim().is_empty();
        let (table, n_made) = self.table()?;
        if let Item::Table(table) = &mut item {
            table.set_position(None);
            table.decor_mut().set_prefix(if is_first { "" } else { "\n" });
        }
        table.insert(name, item);
        Ok(n_made)
    }
}

impl ClientDocument for TomlDocument {
    fn add(&mut self, name: &str, entry: &ClientEntry) -> Result<usize, DocumentError> {
        let mut table = Table::new();
        for (key, value) in &entry.0 {
            table.insert(key, Item::Value(of_entry(value)));
        }
        self.insert(name, Item::Table(table))
    }

    fn remove(&mut self, name: &str) -> Result<String, DocumentError> {
        let no_entry = || DocumentError::NoEntry(name.to_owned());
        let (table, _) = self.table()?;
        let entry = table.remove(name).ok_or_else(no_entry)?;
        let mut alone = DocumentMut::new();
        alone.insert(name, entry);
        Ok(alone.to_string())
    }

    fn restore(&mut self, name: &str, declaration: &str) -> Result<(), DocumentError> {
        let mut alone = Self::open(declaration, self.key)?;
        let no_entry = || DocumentError::NoEntry(name.to_owned());
        let entry = alone.document.remove(name).ok_or_else(no_entry)?;
        if self.table()?.0.contains_key(name) {
            return Ok(());
        }
        self.insert(name, entry).map(|_| ())
    }

    fn set_flag(
        &mut self,
        name: &str,
        key: &str,
        value: Option<bool>,
    ) -> Result<Option<bool>, DocumentError> {
        let no_entry = || DocumentError::NoEntry(name.to_owned());
        let entry = self.table()?.0.get_mut(name).ok_or_else(no_entry)?;
        let no_table = || DocumentError::NoTable(name.to_owned());
        let entry = entry.as_table_like_mut().ok_or_else(no_table)?;
        let before = entry.get(key).and_then(Item::as_bool);
        match (entry.get_mut(key).and_then(Item::as_value_mut), value) {
            (Some(known), Some(value)) => {
                let decor = known.decor().clone();
                *known = Value::from(value);
                *known.decor_mut() = decor;
            }
            (None, Some(value)) => {
                entry.insert(key, toml_edit::value(value));
            }
            (_, None) => {
                entry.remove(key);
            }
        }
        Ok(before)
    }

    fn remove_empty_tables(&mut self, n: usize) {
        let table = self.document.get(self.key).and_then(Item::as_table_like);
        if n > 0 && table.is_some_and(TableLike::is_empty) {
            self.document.remove(self.key);
        }
    }

    fn is_empty(&self) -> bool {
        self.document.to_string().trim().is_empty()
    }

    fn text(&self) -> String {
        self.document.to_string()
    }
}

fn of_entry(value: &EntryValue) -> Value {
    match value {
        EntryValue::Text(text) => Value::from(text.as_str()),
        EntryValue::Switch(is_on) => Value::from(*is_on),
        EntryValue::Number(number) => Value::from(i64::from(*number)),
        EntryValue::List(items) => Value::from(items.iter().collect::<Array>()),
        EntryValue::Table(members) => {
            let members = members.iter().map(|(key, value)| (key.as_str(), value.as_str()));
            Value::from(members.collect::<InlineTable>())
        }
    }
}
