//! The edits of YAML: of the text below one key at the top level, in the form that Goose writes.

use serde_json::Value;

use super::{
    client_document::{ClientDocument, DocumentError},
    client_entry::{ClientEntry, EntryValue},
};
use crate::import::{YamlMember, yaml_file, yaml_key, yaml_without_comment};

/// A file in YAML, as lines.
pub(super) struct YamlDocument {
    /// The lines, each with its end.
    lines: Vec<String>,
    /// The key of the table of entries.
    key: &'static str,
}

impl YamlDocument {
    pub(super) fn open(text: &str, key: &'static str) -> Result<Self, DocumentError> {
        let file = yaml_file(text).map_err(|error| DocumentError::Form(error.line))?;
        match &file.value[key] {
            Value::Null | Value::Object(_) => {}
            _ => return Err(DocumentError::NoTable(key.to_owned())),
        }
        Ok(Self { lines: text.split_inclusive('\n').map(str::to_owned).collect(), key })
    }

    /// Returns the members of the file. A text that is edited stays readable.
    fn members(&self) -> Vec<YamlMember> {
        yaml_file(&self.text()).map(|file| file.members).unwrap_or_default()
    }

    /// Returns the table of entries, and the entries.
    fn table(&self) -> Option<(YamlMember, Vec<YamlMember>)> {
        let is_entry = |member: &YamlMember| member.path.len() == 2 && member.path[0] == self.key;
        let members = self.members();
        let header = members.iter().find(|member| member.path == [self.key])?.clone();
        Some((header, members.into_iter().filter(is_entry).collect()))
    }

    /// Returns the indent of the entries.
    fn entry_indent(&self) -> usize {
        self.table().and_then(|(_, entries)| Some(entries.first()?.indent)).unwrap_or(2)
    }

    fn entry(&self, name: &str) -> Result<YamlMember, DocumentError> {
        let mut entries = self.table().map(|(_, entries)| entries).unwrap_or_default().into_iter();
        let found = entries.find(|entry| entry.path[1] == name);
        found.ok_or_else(|| DocumentError::NoEntry(name.to_owned()))
    }

    /// Adds lines at the end of the table; it is made if there is none.
    fn append(&mut self, added: Vec<String>) -> Result<usize, DocumentError> {
        if let Some(last) = self.lines.last_mut().filter(|last| !last.ends_with('\n')) {
            last.push('\n');
        }
        let Some((header, _)) = self.table() else {
            self.lines.push(format!("{}:\n", self.key));
            self.lines.extend(added);
            return Ok(1);
        };
        let line = &mut self.lines[header.lines.start];
        match rest_of(line) {
            Some("") => {}
            // An empty table on one line.
            Some("{}") => *line = line.replacen(" {}", "", 1),
            _ => return Err(DocumentError::Form(header.lines.start + 1)),
        }
        self.lines.splice(header.lines.end..header.lines.end, added);
        Ok(0)
    }
}

impl ClientDocument for YamlDocument {
    fn add(&mut self, name: &str, entry: &ClientEntry) -> Result<usize, DocumentError> {
        let space = " ".repeat(self.entry_indent());
        let mut lines = vec![format!("{space}{}:\n", quoted(name))];
        for (key, value) in &entry.0 {
            match value {
                EntryValue::Table(members) => {
                    lines.push(format!("{space}  {key}:\n"));
                    lines.extend(members.iter().map(|(key, value)| {
                        format!("{space}    {}: {}\n", quoted(key), quoted(value))
                    }));
                }
                EntryValue::List(items) => {
                    let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
                    lines.push(format!("{space}  {key}: [{}]\n", items.join(", ")));
                }
                EntryValue::Text(text) => lines.push(format!("{space}  {key}: {}\n", quoted(text))),
                EntryValue::Switch(is_on) => lines.push(format!("{space}  {key}: {is_on}\n")),
                EntryValue::Number(number) => lines.push(format!("{space}  {key}: {number}\n")),
            }
        }
        self.append(lines)
    }

    fn remove(&mut self, name: &str) -> Result<String, DocumentError> {
        let entry = self.entry(name)?;
        let removed = self.lines.drain(entry.lines).collect();
        if let Some((header, entries)) = self.table()
            && entries.is_empty()
        {
            // Nothing at all would not be a table.
            let line = &mut self.lines[header.lines.start];
            *line = line.replacen(':', ": {}", 1);
        }
        Ok(removed)
    }

    fn restore(&mut self, name: &str, declaration: &str) -> Result<(), DocumentError> {
        if self.entry(name).is_ok() {
            return Ok(());
        }
        let n_spaces = |line: &str| line.len() - line.trim_start_matches(' ').len();
        let (former, space) = (n_spaces(declaration), " ".repeat(self.entry_indent()));
        let lines = declaration.lines().map(|line| match line.trim() {
            "" => "\n".to_owned(),
            _ => format!("{space}{}\n", &line[n_spaces(line).min(former)..]),
        });
        self.append(lines.collect()).map(|_| ())
    }

    fn set_flag(
        &mut self,
        name: &str,
        key: &str,
        value: Option<bool>,
    ) -> Result<Option<bool>, DocumentError> {
        let entry = self.entry(name)?;
        let members = self.members();
        let mut members = members
            .iter()
            .filter(|member| member.path.len() == 3 && member.path[..2] == entry.path);
        let Some(deeper) = members.clone().next().map(|member| member.indent) else {
            return Err(DocumentError::Form(entry.lines.start + 1));
        };
        let Some(at) = members.find(|it| it.path[2] == key).map(|it| it.lines.start) else {
            if let Some(value) = value {
                let line = format!("{}{key}: {value}\n", " ".repeat(deeper));
                self.lines.insert(entry.lines.start + 1, line);
            }
            return Ok(None);
        };
        let line = &mut self.lines[at];
        let before = match rest_of(line) {
            Some("true") => true,
            Some("false") => false,
            _ => return Err(DocumentError::Form(at + 1)),
        };
        match value {
            Some(value) => {
                // A comment behind the value stays.
                let start = line.find(':').unwrap_or_default();
                let rest = line[start..].replacen(&before.to_string(), &value.to_string(), 1);
                line.replace_range(start.., &rest);
            }
            None => {
                self.lines.remove(at);
            }
        }
        Ok(Some(before))
    }

    fn remove_empty_tables(&mut self, n: usize) {
        if let Some((header, entries)) = self.table().filter(|_| n > 0)
            && entries.is_empty()
        {
            self.lines.remove(header.lines.start);
        }
    }

    fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.trim().is_empty())
    }

    fn text(&self) -> String {
        self.lines.concat()
    }
}

/// Returns the text behind the key of a line, without a comment.
fn rest_of(line: &str) -> Option<&str> {
    yaml_key(line.trim()).map(|(_, rest)| yaml_without_comment(rest))
}

/// Returns a scalar, in quotes unless it is plainly a text.
fn quoted(text: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_plain = text.starts_with(|found: char| found.is_ascii_alphabetic())
        && text.chars().all(|found| found.is_ascii_alphanumeric() || "_- ./".contains(found))
        && !text.ends_with(' ')
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    match is_plain {
        true => text.to_owned(),
        false => Value::from(text).to_string(),
    }
}
