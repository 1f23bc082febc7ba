//! From a JSON Schema to types. Pure.
//!
//! Bounded in depth and size: what is beyond is `unknown`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    names::{Names, pascal},
    print::literal,
    types::{Property, Type},
};
use crate::config::defaults;

/// What turns one schema into types.
pub(super) struct Converter<'a> {
    root: &'a Value,
    /// What the whole schema is called.
    name: &'a str,
    names: &'a mut Names,
    /// What is called by a name, by where it is in the schema.
    known: BTreeMap<String, String>,
    /// What is still to be declared: where it is, and its name.
    left: Vec<(String, String)>,
    n_parts: usize,
}

impl<'a> Converter<'a> {
    /// Prepares to turn `root` into a type called `name`, and those that it needs.
    pub(super) fn new(root: &'a Value, name: &'a str, names: &'a mut Names) -> Self {
        let known = BTreeMap::from([(String::new(), name.to_owned())]);
        Self { root, name, names, known, left: Vec::new(), n_parts: 0 }
    }

    /// Returns the types by their names, that of the whole schema first.
    pub(super) fn convert(mut self) -> Vec<(String, Type)> {
        let whole = self.of(self.root, 0);
        let mut types = vec![(self.name.to_owned(), whole)];
        while let Some((pointer, name)) = self.left.pop() {
            let found = self.root.pointer(&pointer).cloned().unwrap_or(Value::Bool(true));
            let found = self.of(&found, 0);
            types.push((name, found));
        }
        break_circles(&mut types);
        types
    }

    fn of(&mut self, schema: &Value, depth: usize) -> Type {
        self.n_parts += 1;
        if depth > defaults::TYPE_DEPTH_MAX || self.n_parts > defaults::TYPE_PARTS_MAX {
            return Type::Unknown;
        }
        let schema = match schema {
            Value::Bool(false) => return Type::Never,
            Value::Object(schema) => schema,
            Value::Bool(true)
            | Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {
                return Type::Unknown;
            }
        };
        let mut parts = Vec::new();
        for name in ["$ref", "$dynamicRef"] {
            if let Some(reference) = schema.get(name).and_then(Value::as_str) {
                parts.push(self.referred(reference));
            }
        }
        parts.push(self.own(schema, depth));
        for found in list(schema, "allOf") {
            parts.push(self.of(found, depth + 1));
        }
        for name in ["anyOf", "oneOf"] {
            let any = list(schema, name);
            if !any.is_empty() {
                let any: Vec<Type> = any.iter().map(|found| self.of(found, depth + 1)).collect();
                parts.push(Type::union(any));
            }
        }
        let whole = Type::intersection(parts);
        match schema.get("nullable") {
            // What is anything may be null already.
            Some(Value::Bool(true)) => Type::union([whole, Type::Word("null")]),
            _ => whole,
        }
    }

    /// Returns what the schema says itself.
    fn own(&mut self, schema: &Map<String, Value>, depth: usize) -> Type {
        if let Some(value) = schema.get("const") {
            return self.value(value, depth);
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            return match values.len() > defaults::TYPE_LITERALS_MAX {
                true => Type::union(values.iter().map(kind_of)),
                false => {
                    let values: Vec<Type> =
                        values.iter().map(|value| self.value(value, depth + 1)).collect();
                    Type::union(values)
                }
            };
        }
        match schema.get("type") {
            Some(Value::String(kind)) => self.of_kind(kind, schema, depth),
            Some(Value::Array(kinds)) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                let kinds: Vec<Type> =
                    kinds.map(|kind| self.of_kind(kind, schema, depth)).collect();
                Type::union(kinds)
            }
            _ => {
                let has = |names: &[&str]| names.iter().any(|name| schema.contains_key(*name));
                if has(&["properties", "required", "additionalProperties", "patternProperties"]) {
                    self.object(schema, depth)
                } else if has(&["items", "prefixItems"]) {
                    self.array(schema, depth)
                } else {
                    Type::Unknown
                }
            }
        }
    }

    fn of_kind(&mut self, kind: &str, schema: &Map<String, Value>, depth: usize) -> Type {
        match kind {
            "null" => Type::Word("null"),
            "boolean" => Type::Word("boolean"),
            "number" | "integer" => Type::Word("number"),
            "string" => Type::Word("string"),
            "array" => self.array(schema, depth),
            "object" => self.object(schema, depth),
            _ => Type::Unknown,
        }
    }

    fn array(&mut self, schema: &Map<String, Value>, depth: usize) -> Type {
        // Up to draft 7, a list of schemas is what `prefixItems` is now.
        let (first, others) = match (schema.get("prefixItems"), schema.get("items")) {
            (Some(Value::Array(first)), others) => (first, others),
            (_, Some(Value::Array(first))) => (first, schema.get("additionalItems")),
            (_, items) => {
                let items = items.map_or(Type::Unknown, |items| self.of(items, depth + 1));
                return Type::Array(Box::new(items));
            }
        };
        let n_required = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let mut items = Vec::new();
        for (found, number) in first.iter().zip(0_u64..) {
            if self.n_parts > defaults::TYPE_PARTS_MAX {
                return Type::Array(Box::new(Type::Unknown));
            }
            items.push((self.of(found, depth + 1), number >= n_required));
        }
        let rest = match others {
            Some(Value::Bool(false)) => None,
            Some(others) => Some(Box::new(self.of(others, depth + 1))),
            None => Some(Box::new(Type::Unknown)),
        };
        Type::Tuple(items, rest)
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> Type {
        let required: Vec<&str> =
            list(schema, "required").iter().filter_map(Value::as_str).collect();
        let mut properties: Vec<Property> = Vec::new();
        if let Some(Value::Object(found)) = schema.get("properties") {
            for (name, found) in found {
                if self.n_parts > defaults::TYPE_PARTS_MAX {
                    return Type::Object(Vec::new(), Some(Box::new(Type::Unknown)));
                }
                let value = self.of(found, depth + 1);
                properties.push(Property {
                    name: name.clone(),
                    is_optional: !required.contains(&name.as_str()),
                    value,
                    description: words(found, "description").or_else(|| words(found, "title")),
                    notes: notes(found),
                });
            }
        }
        for name in required.iter().take(defaults::TYPE_LITERALS_MAX) {
            if !properties.iter().any(|property| property.name == *name) {
                properties.push(Property {
                    name: (*name).to_owned(),
                    is_optional: false,
                    value: Type::Unknown,
                    description: None,
                    notes: Vec::new(),
                });
            }
        }
        let mut others = Vec::new();
        if let Some(Value::Object(found)) = schema.get("patternProperties") {
            others.extend(found.values().map(|found| self.of(found, depth + 1)));
        }
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => {}
            Some(found) => others.push(self.of(found, depth + 1)),
            // Nothing is said of it at all.
            None if properties.is_empty() && others.is_empty() => others.push(Type::Unknown),
            None => {}
        }
        let index = (!others.is_empty()).then(|| {
            // Every property has to be what any property is.
            let own = properties.iter().map(|property| property.value.clone());
            let missing = properties.iter().any(|property| property.is_optional);
            let missing = missing.then_some(Type::Word("undefined"));
            Box::new(Type::union(others.into_iter().chain(own).chain(missing)))
        });
        Type::Object(properties, index)
    }

    /// Returns the type of one value.
    fn value(&mut self, value: &Value, depth: usize) -> Type {
        self.n_parts += 1;
        if depth > defaults::TYPE_DEPTH_MAX || self.n_parts > defaults::TYPE_PARTS_MAX {
            return Type::Unknown;
        }
        match value {
            Value::Null => Type::Word("null"),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => Type::Literal(literal(value)),
            Value::Array(items) => {
                let items: Vec<(Type, bool)> =
                    items.iter().map(|item| (self.value(item, depth + 1), false)).collect();
                Type::Tuple(items, None)
            }
            Value::Object(members) => {
                let property = |(name, value): (&String, &Value)| Property {
                    name: name.clone(),
                    is_optional: false,
                    value: self.value(value, depth + 1),
                    description: None,
                    notes: Vec::new(),
                };
                Type::Object(members.iter().map(property).collect(), None)
            }
        }
    }

    /// Returns the type of another part of the schema, by its name.
    fn referred(&mut self, reference: &str) -> Type {
        let Some(pointer) = self.pointer(reference) else { return Type::Unknown };
        if let Some(known) = self.known.get(&pointer) {
            return Type::Named(known.clone());
        }
        if self.known.len() >= defaults::TYPE_NAMES_MAX {
            return Type::Unknown;
        }
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let wanted = format!("{}{}", self.name, pascal(last));
        let name = self.names.take(&wanted);
        self.known.insert(pointer.clone(), name.clone());
        self.left.push((pointer, name.clone()));
        Type::Named(name)
    }

    /// Returns where in the schema a reference leads, if it leads anywhere there.
    fn pointer(&self, reference: &str) -> Option<String> {
        let fragment = match reference.split_once('#') {
            Some(("", fragment)) => fragment,
            Some((base, fragment)) => {
                let own = self.root.get("$id").and_then(Value::as_str);
                (own == Some(base)).then_some(fragment)?
            }
            None => {
                let own = self.root.get("$id").and_then(Value::as_str);
                (own == Some(reference)).then_some("")?
            }
        };
        let fragment = percent_decoded(fragment);
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&fragment).is_some().then_some(fragment);
        }
        // An anchor, which is nearly always that of a definition.
        ["$defs", "definitions"].into_iter().find_map(|list| {
            let defined = self.root.get(list)?.as_object()?;
            let is_meant = |found: &Value| {
                ["$anchor", "$dynamicAnchor"].iter().any(|name| found[*name] == fragment.as_str())
            };
            let (name, _) = defined.iter().find(|(_, found)| is_meant(found))?;
            Some(format!("/{list}/{}", name.replace('~', "~0").replace('/', "~1")))
        })
    }
}

/// Returns the schemas in a list.
fn list<'v>(schema: &'v Map<String, Value>, name: &str) -> &'v [Value] {
    schema.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn words(schema: &Value, name: &str) -> Option<String> {
    schema.get(name)?.as_str().map(str::to_owned)
}

/// Returns what a schema says that no type can.
fn notes(schema: &Value) -> Vec<String> {
    const BOUNDS: [&str; 14] = [
        "format",
        "pattern",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "uniqueItems",
        "contentEncoding",
        "default",
    ];
    let mut notes = Vec::new();
    if schema["type"] == "integer" {
        notes.push("@type integer".to_owned());
    }
    for name in BOUNDS {
        match schema.get(name) {
            None => {}
            Some(Value::String(text)) if name != "default" => notes.push(format!("@{name} {text}")),
            Some(value) => notes.push(format!("@{name} {value}")),
        }
    }
    if schema["deprecated"] == true {
        notes.push("@deprecated".to_owned());
    }
    notes
}

/// Returns what kind a value is of.
fn kind_of(value: &Value) -> Type {
    match value {
        Value::Null => Type::Word("null"),
        Value::Bool(_) => Type::Word("boolean"),
        Value::Number(_) => Type::Word("number"),
        Value::String(_) => Type::Word("string"),
        Value::Array(_) | Value::Object(_) => Type::Unknown,
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut left = text.as_bytes();
    while let [first, rest @ ..] = left {
        let code = rest.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                left = &rest[2..];
            }
            _ => {
                bytes.push(*first);
                left = rest;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Takes apart what would be the same as itself, which no compiler takes.
fn break_circles(types: &mut [(String, Type)]) {
    loop {
        let edges: BTreeMap<&str, Vec<&str>> =
            types.iter().map(|(name, found)| (name.as_str(), found.bare_names())).collect();
        let Some((from, to)) = circle(&edges).map(|(from, to)| (from.to_owned(), to.to_owned()))
        else {
            return;
        };
        if let Some((_, found)) = types.iter_mut().find(|(name, _)| *name == from) {
            let whole = std::mem::replace(found, Type::Unknown);
            *found = whole.without_bare(&to);
        }
    }
}

/// Returns a step that closes a circle, if there is one.
fn circle<'n>(edges: &BTreeMap<&'n str, Vec<&'n str>>) -> Option<(&'n str, &'n str)> {
    let mut done: Vec<&str> = Vec::new();
    for start in edges.keys() {
        // The way so far, with how many steps were tried from each.
        let mut way: Vec<(&str, usize)> = vec![(start, 0)];
        while let Some((at, tried)) = way.last_mut() {
            let (at, next) = (*at, edges.get(at).and_then(|next| next.get(*tried)).copied());
            *tried += 1;
            match next {
                Some(next) if way.iter().any(|(on_way, _)| *on_way == next) => {
                    return Some((at, next));
                }
                Some(next) if done.contains(&next) => {}
                Some(next) => way.push((next, 0)),
                None => {
                    done.push(at);
                    way.pop();
                }
            }
        }
    }
    None
}
