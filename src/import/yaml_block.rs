//! A parser for one key of a YAML file, in the forms that Goose and its documentation use.
//!
//! Pure. Blocks, sequences, one-line scalars and flow collections are read. Anchors, tags, merges
//! and scalars that continue on further lines are refused, so nothing is read wrongly.

use serde_json::{Map, Value};

/// The deepest nesting that is read.
const DEPTH_MAX: usize = 32;

/// The line that is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct YamlBlockError {
    /// The line, from 1.
    pub(super) line: usize,
}

/// Returns the value of `key` at the top level; null if there is none.
pub(super) fn read(text: &str, key: &str) -> Result<Value, YamlBlockError> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = lines.iter().enumerate().filter(|(_, line)| key_rest(line, key).is_some());
    let Some((start, line)) = found.next() else { return Ok(Value::Null) };
    if let Some((second, _)) = found.next() {
        return Err(YamlBlockError { line: second + 1 });
    }
    let rest = key_rest(line, key).unwrap_or_default();
    let mut reader = YamlReader { lines: &lines, at: start + 1 };
    let value = reader.value(rest, 0, start, 0)?;
    match reader.peek()? {
        Some((indent, _)) if indent > 0 => Err(reader.error()),
        _ => Ok(value),
    }
}

/// Returns the value of `key` as [`read`] does.
///
/// # Errors
///
/// The line that is not understood, from 1.
pub(crate) fn value(text: &str, key: &str) -> Result<Value, usize> {
    read(text, key).map_err(|error| error.line)
}

/// Returns the text behind `key:` if the line begins with it.
pub(crate) fn key_rest<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(key)?.strip_prefix(':')?;
    (rest.is_empty() || rest.starts_with([' ', '\r'])).then(|| without_comment(rest))
}

/// A position in the lines of a file.
struct YamlReader<'a> {
    lines: &'a [&'a str],
    /// The next line.
    at: usize,
}

impl<'a> YamlReader<'a> {
    /// Returns the next line that is neither blank nor a comment: its indent and its text.
    fn peek(&mut self) -> Result<Option<(usize, &'a str)>, YamlBlockError> {
        while let Some(line) = self.lines.get(self.at) {
            let text = line.trim_start_matches(' ');
            if text.starts_with('\t') {
                return Err(self.error());
            }
            let trimmed = text.trim_end();
            if !trimmed.is_empty() && !trimmed.starts_with('#') {
                return Ok(Some((line.len() - text.len(), trimmed)));
            }
            self.at += 1;
        }
        Ok(None)
    }

    fn error(&self) -> YamlBlockError {
        YamlBlockError { line: self.at + 1 }
    }

    /// Reads the value behind a key of a line with `indent`, where `rest` is on that line.
    fn value(
        &mut self,
        rest: &str,
        indent: usize,
        line: usize,
        depth: usize,
    ) -> Result<Value, YamlBlockError> {
        if rest.is_empty() {
            return match self.peek()? {
                Some((deeper, _)) if deeper > indent => self.block(deeper, depth + 1),
                Some((same, text)) if same == indent && is_item(text) => {
                    self.block(same, depth + 1)
                }
                _ => Ok(Value::Null),
            };
        }
        if rest.starts_with(['|', '>']) {
            return Ok(Value::String(self.literal(indent)));
        }
        let mut inline = InlineYaml { rest };
        let value = inline.value(depth).filter(|_| inline.rest.trim().is_empty());
        let value = value.ok_or(YamlBlockError { line: line + 1 })?;
        match self.peek()? {
            // The scalar continues.
            Some((deeper, _)) if deeper > indent => Err(self.error()),
            _ => Ok(value),
        }
    }

    fn block(&mut self, indent: usize, depth: usize) -> Result<Value, YamlBlockError> {
        if depth > DEPTH_MAX {
            return Err(self.error());
        }
        match self.peek()? {
            Some((_, text)) if is_item(text) => self.sequence(indent, depth),
            _ => self.mapping(indent, depth),
        }
    }

    fn mapping(&mut self, indent: usize, depth: usize) -> Result<Value, YamlBlockError> {
        let mut members = Map::new();
        while let Some((found, text)) = self.peek()? {
            if found < indent || is_item(text) {
                break;
            }
            let (key, rest) =
                split_key(text).filter(|_| found == indent).ok_or_else(|| self.error())?;
            let line = self.at;
            self.at += 1;
            let value = self.value(rest, indent, line, depth)?;
            if members.insert(key, value).is_some() {
                return Err(YamlBlockError { line: line + 1 });
            }
        }
        Ok(Value::Object(members))
    }

    fn sequence(&mut self, indent: usize, depth: usize) -> Result<Value, YamlBlockError> {
        let mut items = Vec::new();
        while let Some((found, text)) = self.peek()? {
            if found < indent || (found == indent && !is_item(text)) {
                break;
            }
            let rest = text.strip_prefix('-').filter(|_| found == indent);
            let rest = without_comment(rest.ok_or_else(|| self.error())?);
            // A table in a list does not occur in declarations of servers.
            if !rest.starts_with(['"', '\'', '[', '{']) && split_key(rest).is_some() {
                return Err(self.error());
            }
            let line = self.at;
            self.at += 1;
            items.push(self.value(rest, indent, line, depth)?);
        }
        Ok(Value::Array(items))
    }

    /// Skips the lines of a literal text, and returns them.
    fn literal(&mut self, indent: usize) -> String {
        let mut text = Vec::new();
        while let Some(line) = self.lines.get(self.at) {
            let deeper = line.len() - line.trim_start_matches(' ').len() > indent;
            if !deeper && !line.trim().is_empty() {
                break;
            }
            text.push(line.trim());
            self.at += 1;
        }
        text.join("\n").trim_end().to_owned()
    }
}

fn is_item(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

/// Splits `key: rest`; `None` if the line has another form.
fn split_key(text: &str) -> Option<(String, &str)> {
    if text.starts_with(['"', '\'']) {
        let mut inline = InlineYaml { rest: text };
        let key = inline.quoted()?;
        let rest = inline.rest.strip_prefix(':')?;
        return (rest.is_empty() || rest.starts_with(' ')).then(|| (key, without_comment(rest)));
    }
    let end = text.find(": ").or_else(|| text.strip_suffix(':').map(str::len))?;
    let (key, rest) = (&text[..end], &text[end + 1..]);
    let is_plain = !key.is_empty() && !key.starts_with(SPECIAL) && !key.contains(" #");
    is_plain.then(|| (key.trim_end().to_owned(), without_comment(rest)))
}

/// The characters that a plain scalar cannot begin with.
const SPECIAL: [char; 16] =
    ['&', '*', '!', '|', '>', '%', '@', '`', '?', ',', '[', ']', '{', '}', '#', '"'];

/// Removes the comment behind a value, and the spaces around it.
fn without_comment(rest: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, found) in rest.char_indices() {
        match (quote, found) {
            (None, '#') if before.is_whitespace() => return rest[..at].trim(),
            (None, '"' | '\'') if before.is_whitespace() || "[{,".contains(before) => {
                quote = Some(found);
            }
            (Some('"'), '"') if before == '\\' => {}
            (Some(open), found) if open == found => quote = None,
            _ => {}
        }
        before = found;
    }
    rest.trim()
}

/// The rest of a line with a value.
struct InlineYaml<'a> {
    rest: &'a str,
}

impl InlineYaml<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
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
                let text = std::mem::take(&mut self.rest).trim();
                (!text.contains(": ") && !text.ends_with(':')).then(|| scalar(text))
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
                let key = self.rest[..end].trim().to_owned();
                self.rest = &self.rest[end..];
                key
            }
        };
        self.rest = self.rest.trim_start().strip_prefix(':')?;
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
        let is_plain = !text.starts_with(SPECIAL) && !text.contains(": ") && !text.contains(" #");
        is_plain.then(|| scalar(text))
    }

    /// Reads a quoted text.
    fn quoted(&mut self) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_block_of_a_key_is_read_with_its_comments_left_out() {
        let text = "a: |\n  extensions:\n# c\nextensions: # mine\n  one:\n    enabled: true # on\n    cmd: \"np\\\"x # no\"\n    args:\n    - -y\n    - 'it''s'\n    envs: {A: b, \"C\": 'd, e'}\n    list: [1, 'two', three, 4.5]\n    text: >-\n      long\n\n      text\n    none:\n    url: http://a:1/b#c\n\n  'two x': {}\nb: &x 1\n";
        let read = read(text, "extensions").expect("read");
        assert_eq!(
            read,
            json!({
                "one": {
                    "enabled": true, "cmd": "np\"x # no", "args": ["-y", "it's"],
                    "envs": {"A": "b", "C": "d, e"}, "list": [1, "two", "three", 4.5],
                    "text": "long\n\ntext", "none": null, "url": "http://a:1/b#c",
                },
                "two x": {},
            })
        );
        assert_eq!(super::read("a: 1\n", "extensions"), Ok(Value::Null));
        assert_eq!(super::read("extensions: {}\n", "extensions"), Ok(json!({})));
    }

    #[test]
    fn a_form_that_is_not_understood_is_refused_at_its_line() {
        for (text, line) in [
            ("k:\n  a: &x\n    b: 1\n", 2),
            ("k:\n  a: *x\n", 2),
            ("k:\n  <<: *x\n", 2),
            ("k:\n  a: b\n    c\n", 3),
            ("k:\n\ta: b\n", 2),
            ("k:\n  a: 1\n  a: 2\n", 3),
            ("k:\n  a: [1,\n    2]\n", 2),
            ("k:\n  a: !t b\n", 2),
            ("k:\n  a:\n    - b: 1\n", 3),
            ("k:\n    a: 1\n  b: 2\n", 3),
            ("k: 1\nk: 2\n", 2),
        ] {
            assert_eq!(read(text, "k"), Err(YamlBlockError { line }), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(k:)?[ \nak:\\-\\[\\]{}'\",#|>\\\\]{0,60}") {
            let _value_or_refusal = read(&text, "k");
        }
    }
}
