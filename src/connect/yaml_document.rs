//! The edits of YAML: of the text below one key at the top level, in the form that Goose writes.

use super::{
    client_document::{ClientDocument, DocumentError},
    client_entry::{ClientEntry, EntryValue},
};
use crate::import::{yaml_key_rest, yaml_value};

/// A file in YAML, as lines.
pub(super) struct YamlDocument {
    /// The lines, each with its end.
    lines: Vec<String>,
    /// The key of the table of entries.
    key: &'static str,
}

/// The lines of an entry: its first one, and the one behind its last.
type EntryLines = std::ops::Range<usize>;

impl YamlDocument {
    pub(super) fn open(text: &str, key: &'static str) -> Result<Self, DocumentError> {
        yaml_value(text, key).map_err(DocumentError::Form)?;
        Ok(Self { lines: text.split_inclusive('\n').map(str::to_owned).collect(), key })
    }

    /// Returns the line of the key, if there is one.
    fn header(&self) -> Option<usize> {
        self.lines.iter().position(|line| yaml_key_rest(line.trim_end(), self.key).is_some())
    }

    /// Returns the lines of all entries: from below the key to the next key at the top level,
    /// without the comments and empty lines before that.
    fn block(&self) -> EntryLines {
        let Some(header) = self.header() else { return self.lines.len()..self.lines.len() };
        let mut end = header + 1;
        for (at, line) in self.lines.iter().enumerate().skip(header + 1) {
            if indent(line).is_some_and(|indent| indent == 0) {
                break;
            }
            if indent(line).is_some() {
                end = at + 1;
            }
        }
        header + 1..end
    }

    /// Returns the indent of the entries.
    fn entry_indent(&self) -> usize {
        let mut block = self.lines[self.block()].iter();
        block.find_map(|line| indent(line)).unwrap_or(2)
    }

    fn entry(&self, name: &str) -> Result<EntryLines, DocumentError> {
        let (block, wanted) = (self.block(), self.entry_indent());
        let is_entry = |line: &String| {
            let text = line.trim();
            let keys = [name.to_owned(), format!("'{name}'"), format!("\"{name}\"")];
            indent(line) == Some(wanted)
                && keys.iter().any(|key| yaml_key_rest(text, key).is_some())
        };
        let start = block.clone().find(|at| is_entry(&self.lines[*at]));
        let start = start.ok_or_else(|| DocumentError::NoEntry(name.to_owned()))?;
        let end = (start + 1..block.end)
            .find(|at| indent(&self.lines[*at]).is_some_and(|indent| indent <= wanted))
            .unwrap_or(block.end);
        // Empty lines and comments at the end belong to the next entry.
        let last = (start..end).rev().find(|at| indent(&self.lines[*at]).is_some());
        Ok(start..last.unwrap_or(start) + 1)
    }

    /// Adds lines at the end of the block; the key is made if there is none.
    fn append(&mut self, added: Vec<String>) -> Result<usize, DocumentError> {
        let ending =
            if self.lines.iter().any(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" };
        let added = added.into_iter().map(|line| format!("{line}{ending}"));
        if let Some(last) = self.lines.last_mut().filter(|last| !last.ends_with('\n')) {
            last.push_str(ending);
        }
        let Some(header) = self.header() else {
            self.lines.push(format!("{}:{ending}", self.key));
            self.lines.extend(added);
            return Ok(1);
        };
        match yaml_key_rest(self.lines[header].trim_end(), self.key) {
            Some("") => {}
            // An empty table on one line.
            Some("{}") => self.lines[header] = self.lines[header].replacen(" {}", "", 1),
            _ => return Err(DocumentError::Form(header + 1)),
        }
        let end = self.block().end;
        self.lines.splice(end..end, added);
        Ok(0)
    }
}

impl ClientDocument for YamlDocument {
    fn add(&mut self, name: &str, entry: &ClientEntry) -> Result<usize, DocumentError> {
        let space = " ".repeat(self.entry_indent());
        let mut lines = vec![format!("{space}{}:", quoted(name))];
        for (key, value) in &entry.0 {
            match value {
                EntryValue::Table(members) => {
                    lines.push(format!("{space}  {key}:"));
                    lines.extend(members.iter().map(|(key, value)| {
                        format!("{space}    {}: {}", quoted(key), quoted(value))
                    }));
                }
                EntryValue::List(items) => {
                    let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
                    lines.push(format!("{space}  {key}: [{}]", items.join(", ")));
                }
                EntryValue::Text(text) => lines.push(format!("{space}  {key}: {}", quoted(text))),
                EntryValue::Switch(is_on) => lines.push(format!("{space}  {key}: {is_on}")),
                EntryValue::Number(number) => lines.push(format!("{space}  {key}: {number}")),
            }
        }
        self.append(lines)
    }

    fn remove(&mut self, name: &str) -> Result<String, DocumentError> {
        let lines = self.entry(name)?;
        Ok(self.lines.drain(lines).collect())
    }

    fn restore(&mut self, name: &str, declaration: &str) -> Result<(), DocumentError> {
        match self.entry(name) {
            Ok(_) => Ok(()),
            Err(_) => self.append(declaration.lines().map(str::to_owned).collect()).map(|_| ()),
        }
    }

    fn set_flag(
        &mut self,
        name: &str,
        key: &str,
        value: Option<bool>,
    ) -> Result<Option<bool>, DocumentError> {
        let entry = self.entry(name)?;
        let mut members = entry.clone().skip(1);
        let first = members.clone().find_map(|at| indent(&self.lines[at]));
        let deeper = first.ok_or(DocumentError::Form(entry.start + 1))?;
        let found = members.find(|at| {
            let line = &self.lines[*at];
            indent(line) == Some(deeper) && yaml_key_rest(line.trim(), key).is_some()
        });
        let before = found.and_then(|at| match yaml_key_rest(self.lines[at].trim(), key) {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        });
        let line = |value: bool| format!("{}{key}: {value}\n", " ".repeat(deeper));
        match (found, value, before) {
            (Some(at), Some(value), Some(before)) => {
                // A comment behind the value stays.
                let was = format!("{key}: {before}");
                self.lines[at] = self.lines[at].replacen(&was, &format!("{key}: {value}"), 1);
            }
            (Some(at), Some(value), None) => self.lines[at] = line(value),
            (None, Some(value), _) => self.lines.insert(entry.start + 1, line(value)),
            (Some(at), None, _) => {
                self.lines.remove(at);
            }
            (None, None, _) => {}
        }
        Ok(before)
    }

    fn remove_empty_tables(&mut self, n: usize) {
        if let Some(header) = self.header().filter(|_| n > 0)
            && self.block().is_empty()
        {
            self.lines.remove(header);
        }
    }

    fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.trim().is_empty())
    }

    fn text(&self) -> String {
        self.lines.concat()
    }
}

/// Returns the indent of a line; `None` if it is empty or a comment.
fn indent(line: &str) -> Option<usize> {
    let text = line.trim_start_matches(' ');
    let has_text = !text.trim().is_empty() && !text.starts_with('#');
    has_text.then(|| line.len() - text.len())
}

/// Returns a scalar, in quotes unless it is plainly a text.
fn quoted(text: &str) -> String {
    let is_plain = text.starts_with(|found: char| found.is_ascii_alphabetic())
        && text.chars().all(|found| found.is_ascii_alphanumeric() || "_- ./".contains(found))
        && !text.ends_with(' ')
        && !matches!(text.to_ascii_lowercase().as_str(), "true" | "false" | "null" | "yes" | "no");
    match is_plain {
        true => text.to_owned(),
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}
