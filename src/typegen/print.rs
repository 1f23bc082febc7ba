//! Types as text. Pure.

use std::fmt::Write as _;

use serde_json::Value;

use super::{
    names::is_identifier,
    types::{Property, Type},
};
use crate::{config::defaults, redact};

/// Returns the declaration of a type.
pub(super) fn declaration(name: &str, found: &Type) -> String {
    format!("export type {name} = {};\n\n", shown(found, 0))
}

/// Returns a comment above what is about to come, `indent` steps in; nothing where there is nothing to
/// say.
pub(super) fn comment(description: Option<&str>, notes: &[String], indent: usize) -> String {
    let description =
        redact::cut(description.unwrap_or_default(), defaults::TYPE_COMMENT_BYTES_MAX);
    let notes = notes.iter().map(|note| redact::cut(note, defaults::TYPE_COMMENT_BYTES_MAX));
    let notes = notes.map(|note| note.replace(['\n', '\r'], " "));
    let lines: Vec<String> = description
        .trim()
        .lines()
        .map(str::to_owned)
        .chain(notes)
        // Nothing in a comment may end it.
        .map(|line| redact::tame(line.trim_end()).replace("*/", "*\\/"))
        .collect();
    let margin = "  ".repeat(indent);
    match lines.as_slice() {
        [] => String::new(),
        [line] => format!("{margin}/** {line} */\n"),
        lines => {
            let mut text = format!("{margin}/**\n");
            for line in lines {
                let _infallible = writeln!(text, "{}", format!("{margin} * {line}").trim_end());
            }
            text + &margin + " */\n"
        }
    }
}

/// Returns a text in quotes, with everything escaped that could end it or hide in it.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for found in text.chars() {
        match found {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\u{2028}' | '\u{2029}' => {
                let _infallible = write!(quoted, "\\u{:04x}", u32::from(found));
            }
            found if redact::is_unruly(found) => {
                let _infallible = write!(quoted, "\\u{{{:x}}}", u32::from(found));
            }
            found => quoted.push(found),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns a plain value as it is written in a type.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// How strongly parts of a type hold together, the weakest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bond {
    Union,
    Intersection,
    Whole,
}

fn bond(found: &Type) -> Bond {
    match found {
        Type::Union(_) => Bond::Union,
        Type::Intersection(_) => Bond::Intersection,
        Type::Unknown
        | Type::Never
        | Type::Word(_)
        | Type::Literal(_)
        | Type::Array(_)
        | Type::Tuple(..)
        | Type::Object(..)
        | Type::Named(_) => Bond::Whole,
    }
}

/// Returns a type as it stands where nothing weaker than `least` may.
fn within(found: &Type, least: Bond, indent: usize) -> String {
    let text = shown(found, indent);
    if bond(found) < least { format!("({text})") } else { text }
}

fn shown(found: &Type, indent: usize) -> String {
    match found {
        Type::Unknown => "unknown".to_owned(),
        Type::Never => "never".to_owned(),
        Type::Word(word) => (*word).to_owned(),
        Type::Literal(text) | Type::Named(text) => text.clone(),
        Type::Array(items) => format!("{}[]", within(items, Bond::Whole, indent)),
        Type::Tuple(items, rest) => tuple(items, rest.as_deref(), indent),
        Type::Object(properties, index) => object(properties, index.as_deref(), indent),
        Type::Union(types) => joined(types, " | ", Bond::Intersection, indent),
        Type::Intersection(types) => joined(types, " & ", Bond::Whole, indent),
    }
}

fn joined(types: &[Type], sign: &str, least: Bond, indent: usize) -> String {
    let shown: Vec<String> = types.iter().map(|found| within(found, least, indent)).collect();
    shown.join(sign)
}

fn tuple(items: &[(Type, bool)], rest: Option<&Type>, indent: usize) -> String {
    let mut shown: Vec<String> = Vec::new();
    for (item, is_optional) in items {
        shown.push(match is_optional {
            true => format!("{}?", within(item, Bond::Whole, indent)),
            false => self::shown(item, indent),
        });
    }
    if let Some(rest) = rest {
        shown.push(format!("...{}[]", within(rest, Bond::Whole, indent)));
    }
    format!("[{}]", shown.join(", "))
}

fn object(properties: &[Property], index: Option<&Type>, indent: usize) -> String {
    if properties.is_empty() {
        return match index {
            Some(index) => format!("{{ [key: string]: {} }}", shown(index, indent)),
            None => "{ [key: string]: never }".to_owned(),
        };
    }
    let inner = indent + 1;
    let margin = "  ".repeat(inner);
    let mut text = String::from("{\n");
    for property in properties {
        text.push_str(&comment(property.description.as_deref(), &property.notes, inner));
        let name = match is_identifier(&property.name) {
            true => property.name.clone(),
            false => quoted(&property.name),
        };
        let sign = if property.is_optional { "?" } else { "" };
        let value = shown(&property.value, inner);
        let _infallible = writeln!(text, "{margin}{name}{sign}: {value};");
    }
    if let Some(index) = index {
        let _infallible = writeln!(text, "{margin}[key: string]: {};", shown(index, inner));
    }
    text + &"  ".repeat(indent) + "}"
}
