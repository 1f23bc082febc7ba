//! The conversion of types to text. Pure.

use super::type_shape::{NamedType, ObjectMember, TypeDoc, TypeShape};
use crate::{config::defaults, redact, tool::summary::summary};

/// The way in which types are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypeStyle {
    /// The type of a value of any type.
    unknown: &'static str,
    /// If `true`, a comment has one line, and a type without comments has one, too.
    is_brief: bool,
}

impl TypeStyle {
    /// The style of a module of declarations.
    pub(super) const MODULE: Self = Self { unknown: "unknown", is_brief: false };

    /// The style of a value that a script passes: `unknown` accepts every value.
    pub(super) const SCRIPT_INPUT: Self = Self { unknown: "unknown", is_brief: true };

    /// The style of a value that a script gets. The script alone knows what it expects of a value
    /// without a declared type. It may use an `any` in that way, and would have to convert each
    /// `unknown` first, which proves nothing.
    pub(super) const SCRIPT_OUTPUT: Self = Self { unknown: "any", is_brief: true };
}

/// A writer of types.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypeWriter<'a> {
    pub(super) style: TypeStyle,
    /// The types that a reference may lead to.
    pub(super) named: &'a [NamedType],
}

impl TypeWriter<'_> {
    /// Returns the declaration of a named type, which begins with `keyword`.
    pub(super) fn declaration(&self, keyword: &str, named: &NamedType) -> String {
        let about = self.comment(&named.name, &named.about, 0);
        format!("{about}{keyword} {} = {};\n", named.name, self.text(&named.kind, 0))
    }

    /// Returns the text of a type.
    pub(super) fn text(&self, kind: &TypeShape, depth: usize) -> String {
        let of = |kind: &TypeShape| self.text(kind, depth);
        let part = |kind: &TypeShape| self.part(kind, depth);
        match kind {
            TypeShape::Unknown => self.style.unknown.to_owned(),
            TypeShape::Never => "never".to_owned(),
            TypeShape::Word(word) => (*word).to_owned(),
            TypeShape::Literal(text) => text.clone(),
            TypeShape::Reference(to) => self.named[*to].name.clone(),
            TypeShape::Array(element) => format!("{}[]", part(element)),
            TypeShape::Tuple { required, optional, rest } => {
                let mut elements: Vec<String> = required.iter().map(of).collect();
                elements.extend(optional.iter().map(|kind| format!("{}?", part(kind))));
                elements.extend(rest.iter().map(|kind| format!("...{}[]", part(kind))));
                format!("[{}]", elements.join(", "))
            }
            TypeShape::Object { members, others } => self.object(members, others.as_deref(), depth),
            TypeShape::Union(all) => self.joined(all, " | ", depth),
            TypeShape::Intersection(all) => self.joined(all, " & ", depth),
        }
    }

    fn joined(&self, all: &[TypeShape], between: &str, depth: usize) -> String {
        let all: Vec<String> = all.iter().map(|kind| self.part(kind, depth)).collect();
        all.join(between)
    }

    /// Returns the text of a part of another type; a union or an intersection is in parentheses.
    fn part(&self, kind: &TypeShape, depth: usize) -> String {
        let text = self.text(kind, depth);
        match matches!(kind, TypeShape::Union(_) | TypeShape::Intersection(_)) {
            true => format!("({text})"),
            false => text,
        }
    }

    fn object(&self, members: &[ObjectMember], others: Option<&TypeShape>, depth: usize) -> String {
        let others =
            |depth| others.map(|kind| format!("[key: string]: {}", self.text(kind, depth)));
        if members.is_empty() {
            let others = others(depth).unwrap_or_else(|| "[key: string]: never".to_owned());
            return format!("{{ {others} }}");
        }
        let (inner, indent) = (depth + 1, "  ".repeat(depth + 1));
        let member = |ObjectMember { name, is_optional, kind, .. }: &ObjectMember| {
            let mark = if *is_optional { "?" } else { "" };
            format!("{}{mark}: {}", key(name), self.text(kind, inner))
        };
        let lines = members
            .iter()
            .map(|found| (self.comment(&found.name, &found.about, inner), member(found)));
        let lines = lines.chain(others(inner).map(|others| (String::new(), others)));
        let lines: Vec<(String, String)> = lines.collect();
        let is_plain = |(about, text): &(String, String)| about.is_empty() && !text.contains('\n');
        if self.style.is_brief && lines.iter().all(is_plain) {
            let texts: Vec<String> = lines.into_iter().map(|(_, text)| text).collect();
            return format!("{{ {} }}", texts.join("; "));
        }
        let lines = lines.iter().map(|(about, text)| match about.strip_suffix('\n') {
            Some(about) if self.style.is_brief => format!("{about} {text};\n"),
            _ => format!("{about}{indent}{text};\n"),
        });
        format!("{{\n{}{}}}", lines.collect::<String>(), "  ".repeat(depth))
    }

    /// Returns the comment about the type or the member of this name.
    fn comment(&self, name: &str, about: &TypeDoc, depth: usize) -> String {
        let TypeDoc { description, tags } = about;
        let description = description.as_deref();
        if !self.style.is_brief {
            return comment(description, tags, depth);
        }
        // Some schemas have the name once more, as a title.
        brief_comment(description.filter(|text| !is_same_name(text, name)), tags, depth)
    }
}

/// Returns whether two names have the same letters and digits.
fn is_same_name(one: &str, other: &str) -> bool {
    let letters = |name: &str| {
        name.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect::<String>()
    };
    letters(one) == letters(other)
}

/// Returns the name of a member, quoted unless it is an identifier.
pub(super) fn key(name: &str) -> String {
    let is_word = |found: char| found.is_ascii_alphanumeric() || matches!(found, '_' | '$');
    let is_plain =
        name.chars().all(is_word) && name.starts_with(|found: char| !found.is_ascii_digit());
    if is_plain { name.to_owned() } else { quoted(name) }
}

pub(super) fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    // It must not contain a line end, or a character that misleads readers.
    let is_strange =
        |found: char| matches!(found, '\u{2028}' | '\u{2029}') || redact::is_control(found);
    if !json.contains(is_strange) {
        return json;
    }
    json.chars()
        .map(|found| match is_strange(found) {
            true => format!("\\u{{{:x}}}", u32::from(found)),
            false => found.to_string(),
        })
        .collect()
}

/// Returns a comment for the next declaration; empty without a description and tags.
pub(super) fn comment(description: Option<&str>, tags: &[String], depth: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for text in description.into_iter().chain(tags.iter().map(String::as_str)) {
        let text = text.trim();
        let shown = redact::cut(text, defaults::TYPEGEN_COMMENT_BYTES_MAX);
        let is_line_end = |found: char| matches!(found, '\r' | '\u{2028}' | '\u{2029}');
        let safe = redact::sanitize(shown).replace(is_line_end, " ").replace("*/", "*\\/");
        lines.extend(safe.lines().map(|line| line.trim_end().to_owned()));
        if shown.len() < text.len() {
            lines.push("[…]".to_owned());
        }
    }
    let indent = "  ".repeat(depth);
    match &lines[..] {
        [] => String::new(),
        // A line with `@` at the end of a comment can be a directive to the compiler.
        [line] if !line.contains('@') => format!("{indent}/** {line} */\n"),
        lines => {
            let lines = lines.iter().map(|line| format!("{indent} * {line}").trim_end().to_owned());
            let lines: Vec<String> = lines.collect();
            format!("{indent}/**\n{}\n{indent} */\n", lines.join("\n"))
        }
    }
}

/// Returns a comment of one line for the next declaration; empty without a description and tags.
pub(super) fn brief_comment(description: Option<&str>, tags: &[String], depth: usize) -> String {
    let tags: Vec<&str> = tags.iter().map(|tag| tag.trim_start_matches('@')).collect();
    let tags = tags.join(", ");
    let text = match description.map(str::trim) {
        None | Some("") => tags,
        Some(description) if tags.is_empty() => description.to_owned(),
        Some(description) => format!("{description} ({tags})"),
    };
    let text = summary(&text).replace("*/", "*\\/");
    // A comment that begins with `@` can be a directive to the compiler.
    match text.trim_start_matches(['@', '/', '*', ' ']) {
        "" => String::new(),
        text => format!("{}/** {text} */\n", "  ".repeat(depth)),
    }
}
