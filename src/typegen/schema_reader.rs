//! The conversion of a schema to types.
//!
//! A part that a schema refers to becomes a named type, which may refer to itself.
//!
//! Pure.

use std::collections::{BTreeSet, HashMap, VecDeque};

use serde_json::{Map, Value};

use super::{
    type_names::TypeNames,
    type_shape::{NamedType, ObjectMember, TypeDoc, TypeShape},
    writer,
};
use crate::config::defaults;

/// A reader of one schema.
pub(super) struct SchemaReader<'a> {
    root: &'a Value,
    names: &'a mut TypeNames,
    /// The index of each named type in `types`, by its JSON pointer.
    known: HashMap<String, usize>,
    types: Vec<TypeDraft>,
    /// The types that are not read yet.
    queue: VecDeque<usize>,
    n_parts_left: usize,
}

/// A named type that may not be read yet.
struct TypeDraft {
    name: String,
    pointer: String,
    about: TypeDoc,
    kind: TypeShape,
}

impl<'a> SchemaReader<'a> {
    /// Returns a reader of `root`, which gives the type `name` of at most `n_parts_max` parts.
    pub(super) fn new(
        name: String,
        root: &'a Value,
        names: &'a mut TypeNames,
        n_parts_max: usize,
    ) -> Self {
        let mut reader = Self {
            root,
            names,
            known: HashMap::new(),
            types: Vec::new(),
            queue: VecDeque::new(),
            n_parts_left: n_parts_max,
        };
        reader.draft(name, String::new());
        reader
    }

    /// Reads the schema and all parts that it refers to.
    pub(super) fn read_all(&mut self) {
        while let Some(at) = self.queue.pop_front() {
            let root = self.root;
            let found = root.pointer(&self.types[at].pointer).unwrap_or(&Value::Null);
            let kind = self.read(found, 0);
            self.types[at].kind = kind;
            self.types[at].about = about(found);
        }
    }

    /// Returns the types, the one of the schema itself first.
    pub(super) fn into_named(self) -> Vec<NamedType> {
        let (labels, kinds): (Vec<_>, Vec<_>) =
            self.types.into_iter().map(|draft| ((draft.name, draft.about), draft.kind)).unzip();
        let named = labels.into_iter().zip(grounded(kinds));
        named.map(|((name, about), kind)| NamedType { name, about, kind }).collect()
    }

    fn draft(&mut self, name: String, pointer: String) -> usize {
        let at = self.types.len();
        self.known.insert(pointer.clone(), at);
        let (about, kind) = (TypeDoc::default(), TypeShape::Unknown);
        self.types.push(TypeDraft { name, pointer, about, kind });
        self.queue.push_back(at);
        at
    }

    fn read(&mut self, schema: &Value, depth: usize) -> TypeShape {
        if depth > defaults::TYPEGEN_DEPTH_MAX || !self.takes_part() {
            return TypeShape::Unknown;
        }
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(false) => return TypeShape::Never,
            _ => return TypeShape::Unknown,
        };
        let mut parts = Vec::new();
        if let Some(Value::String(to)) = schema.get("$ref") {
            parts.push(self.referred(to));
        }
        parts.push(match (schema.get("const"), schema.get("enum")) {
            (Some(value), _) => self.literal(value, depth),
            (None, Some(Value::Array(values))) => {
                let values: Vec<TypeShape> =
                    values.iter().map(|value| self.literal(value, depth)).collect();
                TypeShape::any_of(values)
            }
            (None, _) => self.by_type(schema, depth),
        });
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(choices)) = schema.get(keyword) {
                let choices: Vec<TypeShape> =
                    choices.iter().map(|choice| self.read(choice, depth + 1)).collect();
                parts.push(TypeShape::any_of(choices));
            }
        }
        if let Some(Value::Array(all)) = schema.get("allOf") {
            parts.extend(all.iter().map(|one| self.read(one, depth + 1)).collect::<Vec<_>>());
        }
        let kind = TypeShape::all_of(parts);
        match schema.get("nullable") {
            Some(Value::Bool(true)) => TypeShape::any_of([kind, TypeShape::NULL]),
            _ => kind,
        }
    }

    /// Counts one more part of the type, and returns whether it is within the limit.
    fn takes_part(&mut self) -> bool {
        let is_left = self.n_parts_left > 0;
        self.n_parts_left = self.n_parts_left.saturating_sub(1);
        is_left
    }

    /// Returns the type for a reference; unknown if it leaves the schema.
    fn referred(&mut self, to: &str) -> TypeShape {
        let pointer = to.strip_prefix('#').and_then(decoded);
        let Some(pointer) = pointer.filter(|pointer| self.root.pointer(pointer).is_some()) else {
            return TypeShape::Unknown;
        };
        if let Some(at) = self.known.get(&pointer) {
            return TypeShape::Reference(*at);
        }
        let name = self.names.of_part(&self.types[0].name, &pointer);
        TypeShape::Reference(self.draft(name, pointer))
    }

    fn literal(&mut self, value: &Value, depth: usize) -> TypeShape {
        if depth > defaults::TYPEGEN_DEPTH_MAX || !self.takes_part() {
            return TypeShape::Unknown;
        }
        match value {
            Value::Null => TypeShape::NULL,
            Value::Bool(_) | Value::Number(_) => TypeShape::Literal(value.to_string()),
            Value::String(text) => TypeShape::Literal(writer::quoted(text)),
            Value::Array(values) => {
                let values = values.iter().take(defaults::TYPEGEN_TUPLE_MAX);
                let required = values.map(|value| self.literal(value, depth + 1)).collect();
                TypeShape::Tuple { required, optional: Vec::new(), rest: None }
            }
            Value::Object(members) => {
                let members = members.iter().map(|(name, value)| ObjectMember {
                    name: name.clone(),
                    is_optional: false,
                    kind: self.literal(value, depth + 1),
                    about: TypeDoc::default(),
                });
                TypeShape::Object { members: members.collect(), others: None }
            }
        }
    }

    /// Returns the type by the keyword `type`, or else by the other keywords.
    fn by_type(&mut self, schema: &Map<String, Value>, depth: usize) -> TypeShape {
        let has = |keywords: &[&str]| keywords.iter().any(|keyword| schema.contains_key(*keyword));
        let words: BTreeSet<&str> = match schema.get("type") {
            Some(Value::String(word)) => [word.as_str()].into(),
            Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
            _ => {
                let is_object =
                    has(&["properties", "patternProperties", "additionalProperties", "required"]);
                let is_array = has(&["items", "prefixItems"]);
                let words = [is_object.then_some("object"), is_array.then_some("array")];
                words.into_iter().flatten().collect()
            }
        };
        if words.is_empty() {
            return TypeShape::Unknown;
        }
        let kinds: Vec<TypeShape> = words
            .into_iter()
            .map(|word| match word {
                "string" => TypeShape::STRING,
                "number" | "integer" => TypeShape::NUMBER,
                "boolean" => TypeShape::BOOLEAN,
                "null" => TypeShape::NULL,
                "array" => self.array(schema, depth),
                "object" => self.object(schema, depth),
                _ => TypeShape::Unknown,
            })
            .collect();
        TypeShape::any_of(kinds)
    }

    fn array(&mut self, schema: &Map<String, Value>, depth: usize) -> TypeShape {
        // Before 2020-12 a list of types was called `items`, and its rest `additionalItems`.
        let (first, rest) = match (schema.get("prefixItems"), schema.get("items")) {
            (Some(Value::Array(first)), rest) => (first.as_slice(), rest),
            (_, Some(Value::Array(first))) => (first.as_slice(), schema.get("additionalItems")),
            (_, rest) => (&[][..], rest),
        };
        let count = |keyword: &str| {
            schema.get(keyword).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok())
        };
        let most = count("maxItems").unwrap_or(usize::MAX);
        let n_first = first.len().min(defaults::TYPEGEN_TUPLE_MAX);
        let rest = match rest {
            _ if most <= n_first => None,
            _ if n_first < first.len() => Some(TypeShape::Unknown),
            Some(Value::Bool(false)) => None,
            Some(rest) => Some(self.read(rest, depth + 1)),
            None => Some(TypeShape::Unknown),
        };
        if let ([], Some(rest)) = (first, &rest) {
            return TypeShape::Array(Box::new(rest.clone()));
        }
        let n_required = count("minItems").unwrap_or(0).min(n_first);
        let mut required: Vec<TypeShape> =
            first[..n_first.min(most)].iter().map(|one| self.read(one, depth + 1)).collect();
        let optional = required.split_off(n_required.min(required.len()));
        TypeShape::Tuple { required, optional, rest: rest.map(Box::new) }
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> TypeShape {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let required: BTreeSet<&str> = required.filter_map(Value::as_str).collect();
        let none = Map::new();
        let properties = |keyword: &str| match schema.get(keyword) {
            Some(Value::Object(found)) => found,
            _ => &none,
        };
        let declared = properties("properties");
        let mut members = Vec::new();
        for (name, schema) in declared {
            let is_optional = !required.contains(name.as_str());
            let (kind, about) = (self.read(schema, depth + 1), about(schema));
            members.push(ObjectMember { name: name.clone(), is_optional, kind, about });
        }
        let more = ["additionalProperties", "unevaluatedProperties"];
        let more = more.iter().find_map(|keyword| schema.get(*keyword));
        let patterns = properties("patternProperties").values();
        let others: Vec<TypeShape> =
            patterns.chain(more).map(|schema| self.read(schema, depth + 1)).collect();
        let others = TypeShape::any_of(others);
        for name in required.into_iter().filter(|name| !declared.contains_key(*name)) {
            if !self.takes_part() {
                break;
            }
            let kind = match is_small(&others) && others != TypeShape::Never {
                true => others.clone(),
                false => TypeShape::Unknown,
            };
            let (name, about) = (name.to_owned(), TypeDoc::default());
            members.push(ObjectMember { name, is_optional: false, kind, about });
        }
        let others = match others {
            TypeShape::Never if members.is_empty() => match more {
                Some(_) => Some(TypeShape::Never),
                None => return TypeShape::any_object(),
            },
            TypeShape::Never => None,
            others => Some(beside(others, &members)),
        };
        TypeShape::Object { members, others: others.map(Box::new) }
    }
}

/// Returns the type of undeclared members, widened by the types of the declared members, because an
/// index signature applies to those, too.
fn beside(others: TypeShape, members: &[ObjectMember]) -> TypeShape {
    if members.is_empty() || others == TypeShape::Unknown {
        return others;
    }
    // A type with parts would be written twice, and its parts four times.
    if !is_small(&others) || members.iter().any(|member| !is_small(&member.kind)) {
        return TypeShape::Unknown;
    }
    let missing = members.iter().any(|member| member.is_optional);
    let missing = missing.then_some(TypeShape::Word("undefined"));
    let declared = members.iter().map(|member| member.kind.clone());
    TypeShape::any_of([others].into_iter().chain(declared).chain(missing))
}

/// Returns whether a type contains no types other than alternatives.
fn is_small(kind: &TypeShape) -> bool {
    match kind {
        TypeShape::Unknown
        | TypeShape::Never
        | TypeShape::Word(_)
        | TypeShape::Literal(_)
        | TypeShape::Reference(_) => true,
        TypeShape::Union(all) => all.iter().all(is_small),
        TypeShape::Array(_)
        | TypeShape::Tuple { .. }
        | TypeShape::Object { .. }
        | TypeShape::Intersection(_) => false,
    }
}

/// Returns the description and the tags of a schema.
fn about(schema: &Value) -> TypeDoc {
    let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
    let mut tags = Vec::new();
    tags.extend(text("format").map(|format| format!("@format {format}")));
    tags.extend(text("pattern").map(|pattern| format!("@pattern {pattern}")));
    for bound in ["minimum", "maximum"] {
        let found = schema.get(bound).filter(|found| found.is_number());
        tags.extend(found.map(|found| format!("@{bound} {found}")));
    }
    tags.extend(schema.get("default").map(|value| format!("@default {value}")));
    if schema.get("deprecated") == Some(&Value::Bool(true)) {
        tags.push("@deprecated".to_owned());
    }
    let description = text("description").or_else(|| text("title"));
    TypeDoc { description: description.map(str::to_owned), tags }
}

/// Returns the JSON pointer in a URL fragment, decoded.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let code = (*first == b'%').then(|| others.get(..2)).flatten();
        match code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[2..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8(bytes).ok().filter(|pointer| pointer.is_empty() || pointer.starts_with('/'))
}

/// Returns the types in a form that compilers accept: none consists of itself alone, and none has
/// too many alternatives.
fn grounded(mut kinds: Vec<TypeShape>) -> Vec<TypeShape> {
    let edges: Vec<BTreeSet<usize>> = kinds
        .iter()
        .map(|kind| {
            let mut found = BTreeSet::new();
            kind.bare(&mut |to| found.extend([to]));
            found
        })
        .collect();
    let mut dependents = vec![Vec::new(); kinds.len()];
    for (from, found) in edges.iter().enumerate() {
        found.iter().for_each(|to| dependents[*to].push(from));
    }
    let mut n_open: Vec<usize> = edges.iter().map(BTreeSet::len).collect();
    let mut ready: VecDeque<usize> = (0..kinds.len()).filter(|at| n_open[*at] == 0).collect();
    // The number of alternatives of each type, once all its parts are known.
    let mut breadths: Vec<Option<usize>> = vec![None; kinds.len()];
    let mut stuck = 0..kinds.len();
    loop {
        while let Some(at) = ready.pop_front() {
            if breadths[at].is_some() {
                continue;
            }
            let breadth = |to: usize| breadths[to].unwrap_or(1);
            breadths[at] = Some(kinds[at].clone().bounded(&breadth).1);
            for from in &dependents[at] {
                n_open[*from] = n_open[*from].saturating_sub(1);
                if n_open[*from] == 0 {
                    ready.push_back(*from);
                }
            }
        }
        // The others are cycles, or contain one: one type of a cycle drops its references.
        let Some(mut at) = stuck.clone().find(|at| breadths[*at].is_none()) else { break };
        stuck.start = at;
        let mut seen = BTreeSet::new();
        while seen.insert(at) {
            let open = |to: &&usize| breadths[**to].is_none();
            at = edges[at].iter().find(open).copied().unwrap_or(at);
        }
        let kind = std::mem::replace(&mut kinds[at], TypeShape::Unknown);
        kinds[at] = kind.replace_bare(&mut |to| match breadths[to] {
            Some(_) => TypeShape::Reference(to),
            None => TypeShape::Unknown,
        });
        ready.push_back(at);
    }
    let breadth = |to: usize| breadths[to].unwrap_or(1);
    kinds.into_iter().map(|kind| kind.bounded(&breadth).0).collect()
}
