//! One problem of arguments, in words that help to fix it.

use std::{collections::BTreeSet, fmt};

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};
use serde_json::{Map, Value};

use super::step_budget::spend;
use crate::{
    config::defaults::{PROBLEMS_MAX, QUOTE_BYTES_MAX, SUGGESTION_BYTES_MAX},
    redact,
    similar_names::{self, nearest},
    tool::json_type::kind_of,
};

/// The maximum number of values or names that a problem lists, for readers.
const LISTED_MAX: usize = 20;

/// The keywords of a field's schema that a problem repeats: short ones that describe the value.
const REPEATED_KEYWORDS: [&str; 15] = [
    "type",
    "description",
    "enum",
    "const",
    "default",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "exclusiveMinimum",
    "exclusiveMaximum",
];

/// One problem of arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgumentProblem {
    /// The field, as `a.b[0]`; empty for the arguments as a whole.
    pub field: String,
    /// The problem.
    pub message: String,
    /// The keywords of the field's schema, in short.
    pub expected: Option<Value>,
}

/// Writes the problem as `Field 'a.b': …`.
impl fmt::Display for ArgumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => write!(f, "The arguments: {}", self.message),
            field => write!(f, "Field '{field}': {}", self.message),
        }
    }
}

/// Adds the problems of a validator's error to `problems`; `schema` is that of all arguments.
pub(super) fn add(
    error: &ValidationError<'_>,
    schema: &Value,
    problems: &mut Vec<ArgumentProblem>,
) {
    let field = dotted(error.instance_path().as_str());
    // The last part of the path is the keyword.
    let path = error.schema_path().as_str();
    let parent = path.rsplit_once('/').and_then(|(parent, _)| schema.pointer(parent));
    let properties = parent.and_then(|parent| parent.get("properties")).and_then(Value::as_object);
    match error.kind() {
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let message = match written_for(name, error.instance(), properties) {
                Some(other) => format!("it is missing; did you write `{other}` instead?"),
                None => "it is missing".to_owned(),
            };
            let expected = properties.and_then(|all| all.get(name)).map(excerpt);
            problems.push(ArgumentProblem { field: within(&field, name), message, expected });
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            for name in unexpected.iter().take(PROBLEMS_MAX + 1) {
                let (field, message) = (within(&field, name), unknown(name, properties));
                problems.push(ArgumentProblem { field, message, expected: None });
            }
        }
        _ => {
            let expected = parent.map(excerpt);
            let expected = expected.filter(|excerpt| *excerpt != Value::Object(Map::new()));
            problems.push(ArgumentProblem { field, message: message(error), expected });
        }
    }
}

/// Returns the fields that may be misspelt in arguments that fit, because the schema allows fields
/// besides the `known` ones.
pub(super) fn misspelt(args: &Value, known: &BTreeSet<String>) -> Vec<ArgumentProblem> {
    let Some(args) = args.as_object().filter(|_| !known.is_empty()) else { return Vec::new() };
    let unknown_names = args.keys().filter(|name| !known.contains(*name)).take(LISTED_MAX);
    let doubts = unknown_names.filter_map(|name| {
        spend_on_names(name, known.iter());
        let open = known.iter().filter(|known| !args.contains_key(*known)).map(String::as_str);
        let meant = similar_names::misspelt(name, open)?;
        let message = format!("the tool has no such field; did you mean `{meant}`?");
        Some(ArgumentProblem { field: name.clone(), message, expected: None })
    });
    doubts.take(PROBLEMS_MAX).collect()
}

/// Returns the field that may have been written for `missing`.
fn written_for(
    missing: &str,
    instance: &Value,
    properties: Option<&Map<String, Value>>,
) -> Option<String> {
    let known = |name: &str| properties.is_some_and(|all| all.contains_key(name));
    let unknown_names = instance.as_object()?.keys().filter(|name| !known(name)).take(LISTED_MAX);
    let mut misspelt = unknown_names.filter(|name| {
        spend_on_names(name, [missing].iter());
        similar_names::misspelt(name, [missing].into_iter()).is_some()
    });
    misspelt.next().cloned()
}

/// Spends the cost of comparing each letter with each letter.
fn spend_on_names(name: &str, known: impl Iterator<Item = impl AsRef<str>>) {
    let bytes: usize = known.map(|known| known.as_ref().len()).sum();
    spend((bytes * name.len().min(SUGGESTION_BYTES_MAX) / 16) as u64);
}

fn unknown(name: &str, properties: Option<&Map<String, Value>>) -> String {
    let known: Vec<&String> = properties.into_iter().flat_map(Map::keys).collect();
    spend_on_names(name, known.iter());
    let near = nearest(name, known.iter().map(|known| (*known).clone()));
    match (near.first(), known.as_slice()) {
        (Some(near), _) => format!("there is no such field; did you mean `{near}`?"),
        (None, []) => "there is no such field: it must have no fields".to_owned(),
        (None, known) => {
            let known = known.iter().map(|name| name.as_str()).take(LISTED_MAX);
            let known: Vec<&str> = known.collect();
            format!("there is no such field; use one of `{}`", known.join("`, `"))
        }
    }
}

/// Returns the problem of one value, as in "Field 'a': …".
fn message(error: &ValidationError<'_>) -> String {
    let message = match error.kind() {
        Kind::Type { kind } => {
            format!("it must be {}, not {}", types(kind), kind_of(error.instance()))
        }
        Kind::Enum { options } => match options.as_array() {
            Some(options) => one_of(options, error.instance()),
            None => "it is not an allowed value".to_owned(),
        },
        Kind::Constant { expected_value } => format!("it must be {expected_value}"),
        Kind::Minimum { limit } => format!("it must be at least {limit}"),
        Kind::Maximum { limit } => format!("it must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("it must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("it must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("it must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("it must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("it must have at most {limit} characters"),
        Kind::MinItems { limit } => format!("it must have at least {limit} items"),
        Kind::MaxItems { limit } => format!("it must have at most {limit} items"),
        Kind::AdditionalItems { limit } => format!("it must have at most {limit} items"),
        Kind::MinProperties { limit } => format!("it must have at least {limit} fields"),
        Kind::MaxProperties { limit } => format!("it must have at most {limit} fields"),
        Kind::UniqueItems => "its items must differ from each other".to_owned(),
        Kind::Pattern { pattern } => format!("it must match the pattern `{pattern}`"),
        Kind::Format { format } => format!("it must be a {format}"),
        Kind::FalseSchema => "it must be absent".to_owned(),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => matches_none(context, error),
        Kind::OneOfMultipleValid { .. } => "it must match one alternative, not several".to_owned(),
        Kind::Contains => "a required item is missing".to_owned(),
        Kind::PropertyNames { .. } => "one of its fields has a forbidden name".to_owned(),
        Kind::Not { .. } => "it is a forbidden value".to_owned(),
        Kind::UnevaluatedItems { .. } => "it has forbidden items".to_owned(),
        // The text of the other errors does not contain the value.
        Kind::BacktrackLimitExceeded { .. }
        | Kind::RegexEngineFailure { .. }
        | Kind::ContentEncoding { .. }
        | Kind::ContentMediaType { .. }
        | Kind::Custom { .. }
        | Kind::FromUtf8 { .. }
        | Kind::Required { .. }
        | Kind::AdditionalProperties { .. }
        | Kind::UnevaluatedProperties { .. }
        | Kind::Referencing(_) => error.masked_with("it").to_string(),
    };
    redact::cut(&message, QUOTE_BYTES_MAX).to_owned()
}

/// Describes the values that a field may have; of many values, only the nearest one.
fn one_of(options: &[Value], found: &Value) -> String {
    let shown: Vec<String> = options.iter().take(LISTED_MAX).map(Value::to_string).collect();
    let shown = shown.join(", ");
    let n_others = options.len().saturating_sub(LISTED_MAX);
    if n_others == 0 {
        return format!("it must be one of {shown}");
    }
    let words = options.iter().filter_map(Value::as_str).map(str::to_owned);
    match found.as_str().and_then(|found| nearest(found, words).into_iter().next()) {
        Some(near) => format!("it must be one of {} values; did you mean `{near}`?", options.len()),
        None => format!("it must be one of {shown} or {n_others} others"),
    }
}

/// Describes a value that matches none of several alternatives, by its problem with the nearest.
fn matches_none(context: &[Vec<ValidationError<'static>>], error: &ValidationError<'_>) -> String {
    let is_other_type = |error: &ValidationError<'_>, at: &str| {
        matches!(error.kind(), Kind::Type { .. }) && error.instance_path().as_str() == at
    };
    let at = error.instance_path().as_str();
    let of_type = |branch: &&Vec<ValidationError<'static>>| {
        !branch.iter().any(|error| is_other_type(error, at))
    };
    if let Some(nearest) = context.iter().filter(of_type).min_by_key(|branch| branch.len())
        && let Some(first) = nearest.first()
    {
        let reason = match first.kind() {
            Kind::Required { property } => format!("{property} is missing"),
            _ => message(first),
        };
        let field = match first.instance_path().as_str() {
            path if path == at => String::new(),
            path => format!("'{}': ", dotted(path)),
        };
        let n_alternatives = context.len();
        return format!(
            "it matches none of {n_alternatives} alternatives; in the nearest, {field}{reason}"
        );
    }
    let mut expected: Vec<String> = Vec::new();
    for error in context.iter().flatten() {
        if let Kind::Type { kind } = error.kind()
            && is_other_type(error, at)
        {
            expected.push(types(kind));
        }
    }
    expected.dedup();
    format!("it must be {}, not {}", expected.join(" or "), kind_of(error.instance()))
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => article(kind.as_str()),
        TypeKind::Multiple(kinds) => {
            let words: Vec<String> = kinds.iter().map(|kind| article(kind.as_str())).collect();
            words.join(" or ")
        }
    }
}

fn article(kind: &str) -> String {
    match kind {
        "null" => kind.to_owned(),
        "array" | "integer" | "object" => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

/// Returns the keywords of a field's schema, without those inside the field.
fn excerpt(schema: &Value) -> Value {
    let mut found = Map::new();
    for name in REPEATED_KEYWORDS {
        let Some(value) = schema.get(name) else { continue };
        let shown = match value {
            Value::String(text) => Value::from(redact::cut(text, QUOTE_BYTES_MAX)),
            // Some of many values would look like all of them.
            Value::Array(items) if items.len() > LISTED_MAX => continue,
            other => other.clone(),
        };
        if shown.to_string().len() <= 2 * QUOTE_BYTES_MAX {
            found.insert(name.to_owned(), shown);
        }
    }
    Value::Object(found)
}

/// Returns a JSON pointer with dots and brackets: `a.b[0]`.
fn dotted(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            path = format!("{path}[{part}]");
        } else {
            path = within(&path, &part);
        }
    }
    path
}

fn within(place: &str, name: &str) -> String {
    let name = redact::cut(name, SUGGESTION_BYTES_MAX);
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}
