//! A schema prepared for compilation: within bounds, and with a step spent first in each part.
//!
//! A part that looks at no value would spend nothing, such as an `anyOf` of `false`, nor would the
//! chain of references to it. So each schema object gets a `type` that every value has, which the
//! validator looks at first. A boolean in a list of schemas becomes such an object. The verdict is
//! the same. Each object also gets the keyword [`MARK`], which spends a step when it is compiled.

use std::collections::BTreeSet;

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value, json};

use super::{metered_arguments::StepCosts, step_budget::spend};
use crate::config::defaults::{
    PATTERN_BYTES_MAX, PATTERN_WEIGHT_MAX, PATTERNS_WEIGHT_MAX, REFERENCE_CHAIN_MAX,
    SCHEMA_DEPTH_MAX, SUBSCHEMAS_MAX, UNEVALUATED_REFERENCES_MAX,
};

/// The keyword that metamcp adds to each part of a schema.
pub(super) const MARK: &str = "!metamcp";

/// The weight of a pattern with look-around: it backtracks more often than others of its size.
const LOOKAROUND_WEIGHT: u64 = 800;

/// The weight of the format `regex`: each group of the text is compared with all others.
const REGEX_FORMAT_WEIGHT: u64 = 8_000;

/// The steps for reading a class of a pattern, and for one that ignores case. They are measured by
/// time; a step of compiling takes 10 µs.
const CLASS_STEPS: u64 = 4;
const CASELESS_CLASS_STEPS: u64 = 500;

/// The keywords whose value is a schema, or a list of schemas.
const APPLICATORS: [&str; 17] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "extends",
];

/// The keywords whose value has a schema in each of its members.
const NAMED_APPLICATORS: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// The reason that a schema exceeds the bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooComplex {
    /// It has too many parts.
    #[error("it has more than {SUBSCHEMAS_MAX} parts")]
    Parts,
    /// Its parts are nested too deep.
    #[error("its parts are nested deeper than {SCHEMA_DEPTH_MAX} levels")]
    Depth,
    /// A pattern is too long, or matches in too many ways.
    #[error("its pattern of {0} bytes is too expensive to match")]
    Pattern(usize),
    /// All patterns together are too large.
    #[error("all its patterns together are too expensive to match")]
    Patterns,
    /// A chain of references is too long.
    #[error("it has more than {REFERENCE_CHAIN_MAX} references in a row")]
    Chain,
    /// A reference leads to a place that may not be a schema.
    #[error("its reference `{0}` may not lead to a schema")]
    Reference(Box<str>),
    /// It has `unevaluated…` keywords and too many references.
    #[error(
        "it has an `unevaluated…` keyword and more than {UNEVALUATED_REFERENCES_MAX} references"
    )]
    Unevaluated,
    /// It has the keyword that is reserved for metamcp.
    #[error("it has the keyword `{MARK}`, which metamcp reserves")]
    Marked,
}

pub(super) struct BoundedSchema {
    /// The schema to compile.
    pub(super) schema: Value,
    /// The costs of looks at arguments.
    pub(super) costs: StepCosts,
    /// The approximate number of states of all its patterns.
    pub(super) patterns_weight: u64,
}

impl BoundedSchema {
    /// Prepares `schema`, and spends steps on all work beyond one look at each part.
    pub(super) fn new(mut schema: Value) -> Result<Self, TooComplex> {
        if is_marked(&schema) {
            return Err(TooComplex::Marked);
        }
        let mut walk = Walk::default();
        walk.visit(&mut schema, 0)?;
        let mut n_followed = 0;
        while let Some(reference) = walk.references.get(n_followed).cloned() {
            walk.follow(&mut schema, &reference)?;
            n_followed += 1;
        }
        for reference in &walk.references {
            is_short_chain(&schema, reference).then_some(()).ok_or(TooComplex::Chain)?;
        }
        if walk.has_unevaluated && walk.n_references > UNEVALUATED_REFERENCES_MAX {
            return Err(TooComplex::Unevaluated);
        }
        Ok(Self { schema, costs: walk.costs, patterns_weight: walk.patterns_weight })
    }
}

/// A walk through all parts of a schema.
#[derive(Default)]
struct Walk {
    n_parts: usize,
    n_references: usize,
    /// The references, each once.
    references: Vec<String>,
    known: BTreeSet<String>,
    /// The names by which a part can be referred to.
    anchors: BTreeSet<String>,
    has_resources: bool,
    has_unevaluated: bool,
    patterns_weight: u64,
    costs: StepCosts,
}

impl Walk {
    fn visit(&mut self, schema: &mut Value, depth: usize) -> Result<(), TooComplex> {
        let Value::Object(members) = schema else { return Ok(()) };
        if members.contains_key(MARK) {
            return Ok(());
        }
        self.n_parts += 1;
        if self.n_parts > SUBSCHEMAS_MAX {
            return Err(TooComplex::Parts);
        }
        if depth > SCHEMA_DEPTH_MAX {
            return Err(TooComplex::Depth);
        }
        self.record(members, depth)?;
        members.insert(MARK.to_owned(), Value::Bool(true));
        for name in APPLICATORS {
            match members.get_mut(name) {
                Some(Value::Array(parts)) => {
                    for part in parts {
                        spell_out(part);
                        self.visit(part, depth + 1)?;
                    }
                }
                Some(part) => self.visit(part, depth + 1)?,
                None => {}
            }
        }
        for name in NAMED_APPLICATORS {
            let parts = members.get_mut(name).and_then(Value::as_object_mut);
            for part in parts.into_iter().flat_map(Map::values_mut) {
                self.visit(part, depth + 1)?;
            }
        }
        members.entry("type").or_insert_with(every_type);
        Ok(())
    }

    /// Records the references, the names and the costs of a part.
    fn record(&mut self, members: &Map<String, Value>, depth: usize) -> Result<(), TooComplex> {
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        for name in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(reference) = text(name) {
                self.n_references += 1;
                if self.known.insert(reference.to_owned()) {
                    self.references.push(reference.to_owned());
                }
            }
        }
        for name in ["$anchor", "$dynamicAnchor"] {
            self.anchors.extend(text(name).map(str::to_owned));
        }
        for id in [text("$id"), text("id")].into_iter().flatten() {
            match id.strip_prefix('#') {
                Some(anchor) => drop(self.anchors.insert(anchor.to_owned())),
                None => self.has_resources |= depth > 0,
            }
        }
        self.has_unevaluated |= members.contains_key("unevaluatedProperties")
            || members.contains_key("unevaluatedItems");
        for name in ["enum", "const", "required", "pattern"] {
            let bytes = members.get(name).map_or(0, bytes);
            self.costs.repeated_bytes = self.costs.repeated_bytes.max(bytes);
        }
        if text("format") == Some("regex") {
            self.costs.text = self.costs.text.max(REGEX_FORMAT_WEIGHT);
        }
        if let Some(pattern) = text("pattern") {
            self.costs.text = self.costs.text.max(self.weigh(pattern)?);
        }
        let patterned = members.get("patternProperties").and_then(Value::as_object);
        let mut of_names = 0;
        for pattern in patterned.into_iter().flat_map(Map::keys) {
            of_names += self.weigh(pattern)?;
        }
        // `additionalProperties` matches them again.
        self.costs.name = self.costs.name.max(2 * of_names);
        Ok(())
    }

    fn weigh(&mut self, pattern: &str) -> Result<u64, TooComplex> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(TooComplex::Pattern(pattern.len()));
        }
        spend(steps_to_read(pattern));
        let weight = weight_of(pattern);
        if weight > PATTERN_WEIGHT_MAX {
            return Err(TooComplex::Pattern(pattern.len()));
        }
        self.patterns_weight += weight;
        if self.patterns_weight > PATTERNS_WEIGHT_MAX {
            return Err(TooComplex::Patterns);
        }
        Ok(weight)
    }

    /// Visits the target of a reference, which may be at a place where no part is expected.
    fn follow(&mut self, schema: &mut Value, reference: &str) -> Result<(), TooComplex> {
        spend(steps_to_follow(reference));
        let unbounded = || TooComplex::Reference(reference.chars().take(100).collect());
        let Some((_, fragment)) = reference.split_once('#') else { return Ok(()) };
        let Some(pointer) = decoded(fragment) else { return Err(unbounded()) };
        if !pointer.starts_with('/') {
            let is_known = pointer.is_empty() || self.anchors.contains(pointer.as_str());
            return is_known.then_some(()).ok_or_else(unbounded);
        }
        // The pointer may be relative to a part with an identifier of its own.
        if self.has_resources {
            return Err(unbounded());
        }
        let Some(target) = schema.pointer_mut(&pointer) else { return Ok(()) };
        if target.get(MARK).is_some() {
            return Ok(());
        }
        // A value that arguments are compared with must not change.
        let is_data = pointer.split('/').any(|name| matches!(name, "enum" | "const"));
        if is_data && target.is_object() {
            return Err(unbounded());
        }
        self.visit(target, pointer.matches('/').count())
    }
}

/// Returns whether any object has the reserved keyword.
fn is_marked(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.contains_key(MARK) || members.values().any(is_marked),
        Value::Array(items) => items.iter().any(is_marked),
        _ => false,
    }
}

/// Replaces a boolean by an object with the same meaning that looks at the value.
fn spell_out(part: &mut Value) {
    match part {
        Value::Bool(true) => *part = json!({}),
        Value::Bool(false) => *part = json!({ "not": {} }),
        _ => {}
    }
}

fn every_type() -> Value {
    json!(["array", "boolean", "integer", "null", "number", "object", "string"])
}

/// Returns whether a chain of references ends within the limit.
fn is_short_chain(schema: &Value, reference: &str) -> bool {
    let mut reference = reference.to_owned();
    for _ in 0..REFERENCE_CHAIN_MAX {
        spend(steps_to_follow(&reference));
        let pointer = reference.split_once('#').and_then(|(_, fragment)| decoded(fragment));
        let next = pointer.and_then(|pointer| schema.pointer(&pointer)?.get("$ref")?.as_str());
        match next {
            Some(next) if next != reference => reference = next.to_owned(),
            // A part that refers to itself is compiled to nothing.
            Some(_) | None => return true,
        }
    }
    false
}

/// Returns the decoded fragment of a URI.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Returns the approximate size of the texts in a value, in bytes.
fn bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| bytes(item) + 1).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| name.len() + bytes(member)).sum()
        }
        _ => 8,
    }
}

fn steps_to_follow(reference: &str) -> u64 {
    1 + reference.len() as u64 / 64
}

/// Returns the maximum steps for reading a pattern. A named class is a list of up to 800 ranges.
/// Ignoring the case of a class takes a look at each of its characters, up to a million.
fn steps_to_read(pattern: &str) -> u64 {
    let n_classes = pattern.bytes().filter(|byte| matches!(byte, b'\\' | b'[')).count() as u64;
    1 + n_classes * if ignores_case(pattern) { CASELESS_CLASS_STEPS } else { CLASS_STEPS }
}

/// Returns whether a pattern sets the flag `i` anywhere.
fn ignores_case(pattern: &str) -> bool {
    pattern.split("(?").skip(1).any(|rest| {
        let mut flags = rest.bytes().take_while(|byte| byte.is_ascii_alphabetic() || *byte == b'-');
        flags.any(|flag| flag == b'i')
    })
}

/// Returns the approximate number of states of a pattern, the worst cost of matching a character.
fn weight_of(pattern: &str) -> u64 {
    match regex_syntax::Parser::new().parse(pattern) {
        Ok(hir) => weight(&hir),
        Err(_) => LOOKAROUND_WEIGHT,
    }
}

fn weight(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Unicode(class)) => {
            // A range of characters beyond ASCII takes a few ranges of bytes.
            1 + 3 * class.ranges().iter().filter(|range| range.end() > '\u{7f}').count() as u64
        }
        HirKind::Class(Class::Bytes(_)) => 1,
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1);
            weight(&repetition.sub).saturating_mul(u64::from(times)).saturating_add(1)
        }
        HirKind::Capture(capture) => weight(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().fold(1, |sum, part| weight(part).saturating_add(sum))
        }
    }
}
