//! The conversion of types to text. Pure.

use super::type_shape::{NamedType, ObjectMember, TypeShape};
use crate::{config::defaults, redact};

pub(super) fn declaration(named: &NamedType) -> String {
    let about = comment(named.about.description.as_deref(), &named.about.tags, 0);
    format!("\n{about}export type {} = {};\n", named.name, named.text)
}

/// Returns the text of a type; `names` are the names of references.
pub(super) fn text(kind: &TypeShape, names: &[String], depth: usize) -> String {
    let of = |kind: &TypeShape| text(kind, names, depth);
    match kind {
        TypeShape::Unknown => "unknown".to_owned(),
        TypeShape::Never => "never".to_owned(),
        TypeShape::Word(word) => (*word).to_owned(),
        TypeShape::Literal(text) => text.clone(),
        TypeShape::Reference(to) => names[*to].clone(),
        TypeShape::Array(element) => format!("{}[]", part(element, names, depth)),
        TypeShape::Tuple { required, optional, rest } => {
            let mut elements: Vec<String> = required.iter().map(of).collect();
            elements.extend(optional.iter().map(|kind| format!("{}?", part(kind, names, depth))));
            elements.extend(rest.iter().map(|kind| format!("...{}[]", part(kind, names, depth))));
            format!("[{}]", elements.join(", "))
        }
        TypeShape::Object { members, others } => object(members, others.as_deref(), names, depth),
        TypeShape::Union(all) => joined(all, " | ", names, depth),
        TypeShape::Intersection(all) => joined(all, " & ", names, depth),
    }
}

fn joined(all: &[TypeShape], between: &str, names: &[String], depth: usize) -> String {
    let all: Vec<String> = all.iter().map(|kind| part(kind, names, depth)).collect();
    all.join(between)
}

/// Returns the text of a part of another type; a union or an intersection is in parentheses.
fn part(kind: &TypeShape, names: &[String], depth: usize) -> String {
    let text = text(kind, names, depth);
    match matches!(kind, TypeShape::Union(_) | TypeShape::Intersection(_)) {
        true => format!("({text})"),
        false => text,
    }
}

fn object(
    members: &[ObjectMember],
    others: Option<&TypeShape>,
    names: &[String],
    depth: usize,
) -> String {
    let inner = depth + 1;
    if members.is_empty() {
        let others = text(others.unwrap_or(&TypeShape::Never), names, depth);
        return format!("{{ [key: string]: {others} }}");
    }
    let indent = "  ".repeat(inner);
    let mut lines = String::from("{\n");
    for ObjectMember { name, is_optional, kind, about } in members {
        lines.push_str(&comment(about.description.as_deref(), &about.tags, inner));
        let mark = if *is_optional { "?" } else { "" };
        let kind = text(kind, names, inner);
        lines.push_str(&format!("{indent}{}{mark}: {kind};\n", key(name)));
    }
    if let Some(others) = others {
        lines.push_str(&format!("{indent}[key: string]: {};\n", text(others, names, inner)));
    }
    lines.push_str(&"  ".repeat(depth));
    lines.push('}');
    lines
}

/// Returns the name of a member, quoted unless it is an identifier.
fn key(name: &str) -> String {
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
