//! The values of YAML that end on their line: scalars, and collections in brackets.
//!
//! Pure.

use serde_json::{Map, Value};

/// The deepest nesting that is read.
pub(super) const DEPTH_MAX: usize = 32;

/// The characters that a plain scalar cannot begin with.
pub(super) const SPECIAL: [char; 16] =
    ['&', '*', '!', '|', '>', '%', '@', '`', '?', ',', '[', ']', '{', '}', '#', '"'];

/// The rest of a line with a value.
pub(super) struct InlineYaml<'a> {
    pub(super) rest: &'a str,
}

impl InlineYaml<'_> {
    /// Reads a value; `None` if it has another form, or continues on the next line.
    pub(super) fn value(&mut self, depth: usize) -> Option<Value> {
        self.rest = self.rest.trim_start();
        match self.rest.chars().next()? {
            _ if depth > DEPTH_MAX => None,
            '"' | '\'' => self.quoted().map(Value::String),
            '[' => self
                .flow('[', ']', depth)
                .map(|items| items.into_iter().map(|(_, value)| value).collect()),
            '{' => {
                let members = self.flow('{', '}', depth)?;
                let members: Option<Map<String, Value>> =
                    members.into_iter().map(|(key, value)| Some((key?, value))).collect();
                members.map(Value::Object)
            }
            found if SPECIAL.contains(&found) => None,
            _ => {
                let text = without_comment(std::mem::take(&mut self.rest));
                let is_plain = !text.contains(": ") && !text.ends_with(':') && !is_item(text);
                is_plain.then(|| scalar(text))
            }
        }
    }

    /// Reads the items of a collection, with their keys in a table.
    fn flow(
        &mut self,
        open: char,
        close: char,
        depth: usize,
    ) -> Option<Vec<(Option<String>, Value)>> {
        self.rest = self.rest.strip_prefix(open)?;
        let mut items = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            if let Some(rest) = self.rest.strip_prefix(close) {
                self.rest = rest;
                return Some(items);
            }
            let key = if open == '{' { Some(self.flow_key()?) } else { None };
            items.push((key, self.flow_value(depth)?));
            self.rest = self.rest.trim_start();
            match self.rest.strip_prefix(',') {
                Some(rest) => self.rest = rest,
                None if self.rest.starts_with(close) => {}
                None => return None,
            }
        }
    }

    fn flow_key(&mut self) -> Option<String> {
        let key = match self.rest.starts_with(['"', '\'']) {
            true => self.quoted()?,
            false => {
                let end = self.rest.find([':', ',', '}'])?;
                let key = self.rest[..end].trim();
                self.rest = &self.rest[end..];
                let is_plain = !key.is_empty() && !key.starts_with(SPECIAL) && !key.contains(" #");
                is_plain.then(|| key.to_owned())?
            }
        };
        self.rest = self.rest.trim_start().strip_prefix(": ")?;
        Some(key)
    }

    fn flow_value(&mut self, depth: usize) -> Option<Value> {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with(['"', '\'', '[', '{']) {
            return self.value(depth + 1);
        }
        let end = self.rest.find([',', ']', '}'])?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        let text = text.trim();
        let is_plain = !text.is_empty()
            && !text.starts_with(SPECIAL)
            && !text.contains(['[', '{'])
            && !text.contains(": ")
            && !text.ends_with(':')
            && !text.contains(" #")
            && !is_item(text);
        is_plain.then(|| scalar(text))
    }

    /// Reads a quoted text.
    pub(super) fn quoted(&mut self) -> Option<String> {
        let quote = self.rest.chars().next()?;
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1).peekable();
        while let Some((at, found)) = characters.next() {
            match found {
                '\'' if quote == '\''
                    && characters.peek().is_some_and(|(_, next)| *next == '\'') =>
                {
                    characters.next();
                    text.push('\'');
                }
                found if found == quote => {
                    self.rest = &self.rest[at + 1..];
                    return Some(text);
                }
                '\\' if quote == '"' => text.push(match characters.next()?.1 {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    '0' => '\0',
                    found @ ('"' | '\\' | '/' | ' ') => found,
                    _ => return None,
                }),
                found => text.push(found),
            }
        }
        None
    }
}

/// Returns whether a line is an item of a list.
pub(super) fn is_item(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

/// Removes the comment behind a plain value or a quoted one, and the spaces around it.
pub(crate) fn without_comment(rest: &str) -> &str {
    match rest.starts_with('#') {
        true => "",
        false => rest.split_once(" #").map_or(rest, |(before, _)| before).trim(),
    }
}

/// Returns the value of a plain scalar. Source: the core schema of YAML 1.2.
fn scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        text => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => number.into(),
            (_, Ok(number)) if text.starts_with(|found: char| found.is_ascii_digit()) => {
                number.into()
            }
            _ => Value::String(text.to_owned()),
        },
    }
}
