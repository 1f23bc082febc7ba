//! A parser for a YAML file, in the forms that Goose and its documentation use.
//!
//! Pure. Blocks, sequences, literal texts, and values that end on their line are read. All else is
//! refused wherever it stands: anchors, tags, merges, tabs, several documents, and values that
//! continue on further lines. So no line is read as something else than it is.

use std::ops::Range;

use serde_json::{Map, Value};

use super::yaml_inline::{DEPTH_MAX, InlineYaml, SPECIAL, is_item, without_comment};

/// The line that is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct YamlError {
    /// The line, from 1.
    pub(crate) line: usize,
}

/// A file, and the places of its members.
#[derive(Debug)]
pub(crate) struct YamlFile {
    /// A table; null if there is only space.
    pub(crate) value: Value,
    /// The members of all tables in blocks.
    pub(crate) members: Vec<YamlMember>,
}

/// A member of a table.
#[derive(Clone, Debug)]
pub(crate) struct YamlMember {
    /// The keys that lead to it. An item of a list is an empty key.
    pub(crate) path: Vec<String>,
    /// Its lines, counted from 0, without space and comments at their end.
    pub(crate) lines: Range<usize>,
    /// The spaces before its key.
    pub(crate) indent: usize,
}

/// Reads a file, without a byte order mark.
///
/// # Errors
///
/// The first line that is not understood.
pub(crate) fn read(text: &str) -> Result<YamlFile, YamlError> {
    if let Some((at, _)) = text.char_indices().find(|(at, found)| is_odd(&text[*at..], *found)) {
        return Err(YamlError { line: text[..at].matches('\n').count() + 1 });
    }
    let mut reader = YamlReader {
        lines: text.lines().map(str::to_owned).collect(),
        is_ended: text.ends_with('\n'),
        at: 0,
        end: 0,
        path: Vec::new(),
        members: Vec::new(),
    };
    if let Some(first) = reader.next_content()
        && without_comment(&reader.lines[first]) == "---"
    {
        reader.at = first + 1;
    }
    let value = match reader.peek()? {
        Some((0, text)) if !is_item(&text) => reader.mapping(0, 0)?,
        None => Value::Null,
        Some(_) => return Err(reader.error()),
    };
    match reader.peek()? {
        Some(_) => Err(reader.error()),
        None => Ok(YamlFile { value, members: reader.members }),
    }
}

/// Returns whether a character ends a line only in some versions of YAML, or cannot occur in it.
fn is_odd(rest: &str, found: char) -> bool {
    match found {
        '\n' | '\t' => false,
        '\r' => !rest.starts_with("\r\n"),
        found => found.is_control() || "\u{2028}\u{2029}\u{feff}".contains(found),
    }
}

/// A position in the lines of a file.
struct YamlReader {
    lines: Vec<String>,
    /// The last line has a line break.
    is_ended: bool,
    /// The next line.
    at: usize,
    /// The line behind the last one with content.
    end: usize,
    path: Vec<String>,
    members: Vec<YamlMember>,
}

impl YamlReader {
    /// Returns the next line that is neither blank nor a comment.
    fn next_content(&self) -> Option<usize> {
        let has_content = |line: &String| !is_blank(line) && !line.trim().starts_with('#');
        (self.at..self.lines.len()).find(|at| has_content(&self.lines[*at]))
    }

    /// Returns the indent and the text of the next line with content, at which the reader is then.
    fn peek(&mut self) -> Result<Option<(usize, String)>, YamlError> {
        let Some(at) = self.next_content() else { return Ok(None) };
        self.at = at;
        let line = self.lines[at].trim_end_matches(' ');
        let text = line.trim_start_matches(' ');
        let is_marker = |marker| line.strip_prefix(marker).is_some_and(is_end_of_word);
        match line.contains('\t') || is_marker("---") || is_marker("...") {
            true => Err(self.error()),
            false => Ok(Some((line.len() - text.len(), text.to_owned()))),
        }
    }

    fn error(&self) -> YamlError {
        YamlError { line: self.at + 1 }
    }

    /// Passes the line at which the reader is.
    fn pass(&mut self) {
        self.at += 1;
        self.end = self.at;
    }

    /// Reads the value behind a key, or behind the dash of an item, of a line with `indent`. `rest`
    /// is on that line, which is passed.
    fn value(&mut self, rest: &str, indent: usize, depth: usize) -> Result<Value, YamlError> {
        let line = self.at;
        if rest.starts_with(['|', '>']) {
            return self.literal(rest, indent);
        }
        let mut inline = InlineYaml { rest };
        let value = inline.value(depth);
        let is_comment = |rest: &str| rest.starts_with(' ') && rest.trim().starts_with('#');
        let is_whole = inline.rest.trim().is_empty() || is_comment(inline.rest);
        let value = value.filter(|_| is_whole).ok_or(YamlError { line })?;
        match self.peek()? {
            // The scalar continues.
            Some((deeper, _)) if deeper > indent => Err(self.error()),
            _ => Ok(value),
        }
    }

    /// Reads the block below a line with `indent`; null if there is none.
    fn deeper(&mut self, indent: usize, depth: usize) -> Result<Value, YamlError> {
        match self.peek()? {
            Some((deeper, _)) if deeper > indent => self.block(depth + 1),
            _ => Ok(Value::Null),
        }
    }

    fn block(&mut self, depth: usize) -> Result<Value, YamlError> {
        match self.peek()? {
            Some(_) if depth > DEPTH_MAX => Err(self.error()),
            Some((indent, text)) if is_item(&text) => self.sequence(indent, depth),
            Some((indent, _)) => self.mapping(indent, depth),
            None => Ok(Value::Null),
        }
    }

    fn mapping(&mut self, indent: usize, depth: usize) -> Result<Value, YamlError> {
        let mut members = Map::new();
        while let Some((found, text)) = self.peek()? {
            if found < indent || is_item(&text) {
                break;
            }
            let (key, rest) =
                split_key(&text).filter(|_| found == indent).ok_or_else(|| self.error())?;
            if members.contains_key(&key) || key == "<<" {
                return Err(self.error());
            }
            let start = self.at;
            self.pass();
            self.path.push(key.clone());
            let value = match rest {
                "" => match self.peek()? {
                    Some((same, next)) if same == indent && is_item(&next) => {
                        self.block(depth + 1)?
                    }
                    _ => self.deeper(indent, depth)?,
                },
                rest => self.value(rest, indent, depth)?,
            };
            let lines = start..self.end;
            self.members.push(YamlMember { path: self.path.clone(), lines, indent });
            self.path.pop();
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }

    fn sequence(&mut self, indent: usize, depth: usize) -> Result<Value, YamlError> {
        let mut items = Vec::new();
        self.path.push(String::new());
        while let Some((found, text)) = self.peek()? {
            if found < indent || (found == indent && !is_item(&text)) {
                break;
            }
            let rest = text.strip_prefix('-').filter(|_| found == indent);
            let rest = rest.ok_or_else(|| self.error())?.trim_start_matches(' ');
            if is_item(rest) || split_key(rest).is_some() {
                // The dash counts as space before what follows on its line.
                self.lines[self.at] =
                    format!("{}{rest}", " ".repeat(found + text.len() - rest.len()));
                items.push(self.block(depth + 1)?);
                continue;
            }
            self.pass();
            items.push(match without_comment(rest) {
                "" => self.deeper(indent, depth)?,
                _ => self.value(rest, indent, depth)?,
            });
        }
        self.path.pop();
        Ok(Value::Array(items))
    }

    /// Passes the lines of a literal text, and returns them without spaces around them.
    fn literal(&mut self, head: &str, indent: usize) -> Result<Value, YamlError> {
        let marks = without_comment(&head[1..]);
        let is_mark = |found: char| matches!(found, '+' | '-' | '1'..='9');
        if marks.len() > 2 || !marks.chars().all(is_mark) {
            return Err(YamlError { line: self.at });
        }
        let mut text = Vec::new();
        let mut first = None;
        while let Some(line) = self.lines.get(self.at) {
            let found = line.len() - line.trim_start_matches(' ').len();
            let is_blank = is_blank(line);
            if found <= indent && !is_blank {
                break;
            }
            // A line before the margin may be a comment or an error.
            if !is_blank && found < *first.get_or_insert(found) {
                return Err(self.error());
            }
            text.push(line.trim().to_owned());
            match is_blank && !marks.contains('+') {
                true => self.at += 1,
                false => self.pass(),
            }
        }
        // A further line would change the end of the text.
        if self.end == self.lines.len() && !self.is_ended {
            return Err(YamlError { line: self.end });
        }
        Ok(Value::String(text.join("\n").trim_end().to_owned()))
    }
}

/// Returns whether a line has only spaces and tabs, of the spaces that YAML knows.
fn is_blank(line: &str) -> bool {
    line.trim_matches([' ', '\t']).is_empty()
}

fn is_end_of_word(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(' ')
}

/// Splits `key: rest`, where the rest keeps its comment unless it is nothing else; `None` if the
/// line has another form.
pub(crate) fn split_key(text: &str) -> Option<(String, &str)> {
    let (key, rest) = if text.starts_with(['"', '\'']) {
        let mut inline = InlineYaml { rest: text };
        (inline.quoted()?, inline.rest.strip_prefix(':')?)
    } else {
        let end = text.find(": ").or_else(|| text.strip_suffix(':').map(str::len))?;
        let key = &text[..end];
        let is_plain = !key.is_empty() && !key.starts_with(SPECIAL) && !key.contains(" #");
        (is_plain.then(|| key.trim_end().to_owned())?, &text[end + 1..])
    };
    let value = rest.trim();
    is_end_of_word(rest).then_some((key, if value.starts_with('#') { "" } else { value }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value(text: &str) -> Value {
        read(text).unwrap_or_else(|error| panic!("{error:?}\n{text}")).value
    }

    #[test]
    fn a_file_is_read_with_its_comments_left_out() {
        let text = "---\na: |\n  extensions:\n  # text\n# c\nextensions: # mine\n  one:\n    enabled: true # on\n    cmd: \"np\\\"x # no\" # c\n    args:\n    - -y\n    - 'it''s'\n    -\n    envs: {A: b, \"C\": 'd, e'}\n    list: [1, 'two', three, 4.5]\n    text: >-\n      long\n\n      text\n    none:\n    url: http://a:1/b#c\n    say: it's \"so # c\n\n  'two x': {}\nhooks:\n- name: a\n  run: |\n    b: c\n- - d\n  - e: f\n";
        assert_eq!(
            value(text),
            json!({
                "a": "extensions:\n# text",
                "extensions": {
                    "one": {
                        "enabled": true, "cmd": "np\"x # no", "args": ["-y", "it's", null],
                        "envs": {"A": "b", "C": "d, e"}, "list": [1, "two", "three", 4.5],
                        "text": "long\n\ntext", "none": null, "url": "http://a:1/b#c",
                        "say": "it's \"so",
                    },
                    "two x": {},
                },
                "hooks": [{"name": "a", "run": "b: c"}, ["d", {"e": "f"}]],
            })
        );
        assert_eq!(value("# nothing\n"), Value::Null);
    }

    #[test]
    fn the_lines_of_a_member_end_before_the_space_and_comments_of_the_next() {
        let text = "a:\n  b: |\n    x\n    # y\n\n  # c\n  c:\n    - d\n\n# e\ne: |+\n  f\n\n";
        let members = read(text).expect("readable").members;
        let lines = |path: &[&str]| {
            members.iter().find(|member| member.path == path).map(|member| member.lines.clone())
        };
        assert_eq!(lines(&["a"]), Some(0..8));
        assert_eq!(lines(&["a", "b"]), Some(1..4));
        assert_eq!(lines(&["a", "c"]), Some(6..8));
        assert_eq!(lines(&["e"]), Some(10..13));
    }

    #[test]
    fn a_form_that_is_not_understood_is_refused_at_its_line() {
        for (text, line) in [
            ("k:\n  a: &x\n    b: 1\n", 2),
            ("k:\n  a: *x\n", 2),
            ("k:\n  <<: *x\n", 2),
            ("k:\n  <<: {a: b}\n", 2),
            ("k:\n  a: b\n    c\n", 3),
            ("k:\n\ta: b\n", 2),
            ("k:\ta\n", 1),
            ("k:\n  a: 1\n  a: 2\n", 3),
            ("k:\n  a: 1\n  'a': 2\n", 3),
            ("k:\n  a: [1,\n    2]\n", 2),
            ("k: 'a\nb: c'\n", 1),
            ("k: !t b\n", 1),
            ("k:\n    a: 1\n  b: 2\n", 3),
            ("k: 1\nk: 2\n", 2),
            ("{k: 1}\n", 1),
            ("  k: 1\n", 1),
            ("- k: 1\n", 1),
            ("k: 1\n...\n", 2),
            ("k: 1\n---\nl: 1\n", 2),
            ("%YAML 1.2\n---\nk: 1\n", 1),
            ("k: 1\rl: 2\n", 1),
            ("k: 1\nl: a\u{2028}b: c\n", 2),
            ("? k\n: 1\n", 1),
            ("k: |\n   a\n  # b\n", 3),
            ("k: |\n  a", 2),
            ("k: | a\n", 1),
            ("k: - a\n", 1),
            ("k: {a:b}\n", 1),
        ] {
            assert_eq!(read(text).map(|file| file.value), Err(YamlError { line }), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(k:)?[ \nak:\\-\\[\\]{}'\",#|>\\\\]{0,60}") {
            let _value_or_refusal = read(&text);
        }
    }
}
