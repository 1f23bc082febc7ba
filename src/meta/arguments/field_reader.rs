//! A typed reader of the fields of one object of arguments.

use std::{borrow::Cow, time::Duration};

use serde_json::value::RawValue;

use super::error::ArgumentError;
use crate::{
    config::defaults,
    meta::definitions::MetaTool,
    protocol::{ObjectMembers, json_array::first_items},
    redact,
    similar_names::nearest,
    tool::{RequestedTool, json_type::kind_of},
};

/// Names that models use instead of the fields of a tool, and that differ too much for a typo.
const SYNONYMS: [(&str, &str); 14] = [
    ("arguments", "args"),
    ("parameters", "args"),
    ("params", "args"),
    ("input", "args"),
    ("name", "tool"),
    ("name", "tool_id"),
    ("tool_name", "tool"),
    ("toolName", "tool"),
    ("tool", "tool_id"),
    ("namespace", "server"),
    ("q", "query"),
    ("search", "query"),
    ("script", "code"),
    ("max_results", "limit"),
];

/// The fields of an object.
pub(in crate::meta) struct FieldReader<'a> {
    tool: MetaTool,
    /// The path of the object, with a dot at the end; empty for the arguments themselves.
    path: String,
    members: ObjectMembers<'a>,
    /// The `properties` of its schema.
    properties: ObjectMembers<'a>,
}

impl<'a> FieldReader<'a> {
    /// Reads the arguments of `tool`.
    pub(in crate::meta) fn of_tool(tool: MetaTool, text: &'a str) -> Result<Self, ArgumentError> {
        let schema = ObjectMembers::one(tool.definition(), "inputSchema").unwrap_or_default();
        Self::new(tool, String::new(), text, schema)
    }

    fn new(
        tool: MetaTool,
        path: String,
        text: &'a str,
        schema: &'static str,
    ) -> Result<Self, ArgumentError> {
        let properties = ObjectMembers::one(schema, "properties").unwrap_or_default();
        let properties = ObjectMembers::read(properties).unwrap_or_default();
        let Some(members) = ObjectMembers::read(text) else {
            return Err(ArgumentError::NotAnObject(tool));
        };
        let reader = Self { tool, path, members, properties };
        let unknown = reader.members.iter().find(|(name, _)| reader.properties.get(name).is_none());
        if let Some((name, _)) = unknown {
            return Err(reader.unknown(name));
        }
        match reader.members.repeated().map(|name| reader.at(name)) {
            Some(field) => Err(ArgumentError::Twice { tool, field }),
            None => Ok(reader),
        }
    }

    fn unknown(&self, name: &str) -> ArgumentError {
        let known: Vec<String> = self.properties.iter().map(|(name, _)| name.to_owned()).collect();
        let synonym = SYNONYMS
            .iter()
            .find(|(word, field)| *word == name && known.iter().any(|known| known == field));
        let meant = match synonym {
            Some((_, field)) => Some((*field).to_owned()),
            None => nearest(name, known.iter().cloned()).into_iter().next(),
        };
        let shown = redact::cut(name, defaults::SUGGESTION_BYTES_MAX);
        ArgumentError::Unknown { tool: self.tool, field: self.at(shown), meant, known }
    }

    /// Returns whether the field is present.
    pub(in crate::meta) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the field's JSON text; `null` counts as missing.
    fn get(&self, name: &str) -> Option<&str> {
        debug_assert!(self.properties.get(name).is_some(), "`{name}` is in the definition");
        self.members.get(name).filter(|value| *value != "null")
    }

    /// Returns a text; an empty one counts as missing.
    pub(in crate::meta) fn text(&self, name: &str) -> Result<Option<String>, ArgumentError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match serde_json::from_str::<String>(value) {
            Ok(text) if text.trim().is_empty() => Ok(None),
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(self.wrong_type(name, "a string", value)),
        }
    }

    /// Returns a text, which is required.
    pub(in crate::meta) fn required(&self, name: &str) -> Result<String, ArgumentError> {
        self.text(name)?.ok_or_else(|| self.missing(name))
    }

    /// Returns a list of texts; a single text is split at commas.
    pub(in crate::meta) fn texts(&self, name: &str) -> Result<Vec<String>, ArgumentError> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let value = unwrapped(value);
        if let Ok(all) = serde_json::from_str::<String>(&value) {
            let all = all.split(',').map(str::trim).filter(|one| !one.is_empty());
            return Ok(all.map(str::to_owned).collect());
        }
        serde_json::from_str(&value)
            .map_err(|_| self.wrong_type(name, "an array of strings", &value))
    }

    /// Returns the JSON text of an object, which is empty if the field is missing.
    pub(in crate::meta) fn object(&self, name: &str) -> Result<String, ArgumentError> {
        let Some(value) = self.get(name) else { return Ok("{}".to_owned()) };
        let object = unwrapped(value);
        if object.trim().is_empty() || object == r#""""# {
            return Ok("{}".to_owned());
        }
        match object.starts_with('{') {
            true => Ok(object.into_owned()),
            false => Err(self.wrong_type(name, "an object", value)),
        }
    }

    /// Reads each object of a list with `read`; a single object counts as a list of one.
    pub(in crate::meta) fn items<T>(
        &self,
        name: &'static str,
        read: impl Fn(&FieldReader<'_>) -> Result<T, ArgumentError>,
    ) -> Result<Vec<T>, ArgumentError> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let value = unwrapped(value);
        let items: Vec<&RawValue> = match value.starts_with('{') {
            true => serde_json::from_str(&value).map(|one| vec![one]),
            // One more than the limit of any list.
            false => first_items(&value, defaults::CHAIN_STEPS_LIMIT + 1).map(|(items, _)| items),
        }
        .map_err(|_| self.wrong_type(name, "an array of objects", &value))?;
        let schema = ObjectMembers::one(self.tool.definition(), "inputSchema")
            .and_then(|schema| ObjectMembers::one(schema, "properties"))
            .and_then(|properties| ObjectMembers::one(properties, name))
            .and_then(|array| ObjectMembers::one(array, "items"));
        let mut all = Vec::with_capacity(items.len());
        for (number, item) in items.into_iter().enumerate() {
            let name = format!("{name}[{number}]");
            let path = format!("{}.", self.at(&name));
            let item = unwrapped(item.get());
            match FieldReader::new(self.tool, path, &item, schema.unwrap_or_default()) {
                Ok(reader) => all.push(read(&reader)?),
                Err(ArgumentError::NotAnObject(_)) => {
                    return Err(self.wrong_type(&name, "an object", &item));
                }
                Err(other) => return Err(other),
            }
        }
        Ok(all)
    }

    /// Returns a boolean.
    pub(in crate::meta) fn flag(&self, name: &str, default: bool) -> Result<bool, ArgumentError> {
        match self.get(name) {
            None => Ok(default),
            Some("true" | r#""true""#) => Ok(true),
            Some("false" | r#""false""#) => Ok(false),
            Some(value) => Err(self.wrong_type(name, "true or false", value)),
        }
    }

    pub(in crate::meta) fn integer(&self, name: &str) -> Result<Option<i64>, ArgumentError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let plain = value.trim_matches('"');
        // `20.0` is the integer 20, and JavaScript writes large integers with an exponent.
        let whole = |number: &f64| number.fract() == 0.0 && number.abs() < 9e15;
        let found = plain.parse().ok().or_else(|| {
            let number = plain.parse::<f64>().ok().filter(whole)?;
            format!("{number:.0}").parse().ok()
        });
        found.map(Some).ok_or_else(|| self.wrong_type(name, "an integer", value))
    }

    /// Returns the meaning of a text that must be one of `words`.
    pub(in crate::meta) fn word<T: Copy>(
        &self,
        name: &str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, ArgumentError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(Some(*meaning));
        }
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        Err(self.invalid(name, format!("it must be one of {}", words.join(", "))))
    }

    /// Returns the tool of the field `tool_id`.
    pub(in crate::meta) fn tool_id(&self) -> Result<RequestedTool, ArgumentError> {
        Ok(RequestedTool { server: None, tool: self.required("tool_id")? })
    }

    /// Returns a maximum number of entries, clamped to `min` and `max`.
    pub(in crate::meta) fn count(
        &self,
        name: &'static str,
        min: usize,
        max: usize,
    ) -> Result<Option<usize>, ArgumentError> {
        let found = self.integer(name)?.map(|found| usize::try_from(found.max(0)).unwrap_or(max));
        Ok(found.map(|found| found.clamp(min, max)))
    }

    /// Returns a duration in milliseconds, from 1 to `max`.
    pub(in crate::meta) fn timeout(
        &self,
        name: &'static str,
        max: Duration,
    ) -> Result<Option<Duration>, ArgumentError> {
        let Some(found) = self.integer(name)? else { return Ok(None) };
        let found = u64::try_from(found).ok().filter(|found| *found > 0).map(Duration::from_millis);
        match found.filter(|found| *found <= max) {
            Some(found) => Ok(Some(found)),
            None => Err(self.invalid(name, format!("it must be 1 to {} ms", max.as_millis()))),
        }
    }

    /// Returns the error for a missing field.
    pub(in crate::meta) fn missing(&self, name: &str) -> ArgumentError {
        let meaning = self.meaning(name);
        ArgumentError::Missing { tool: self.tool, field: self.at(name), meaning }
    }

    /// Returns the error for an unusable value.
    pub(in crate::meta) fn invalid(&self, name: &str, problem: String) -> ArgumentError {
        let meaning = self.meaning(name);
        ArgumentError::Wrong { tool: self.tool, field: self.at(name), problem, meaning }
    }

    /// Returns the error for a value of another type.
    fn wrong_type(&self, name: &str, expected: &str, value: &str) -> ArgumentError {
        self.invalid(name, format!("it must be {expected}, not {}", kind(value)))
    }

    /// Returns the description of the field in the tool's definition.
    fn meaning(&self, name: &str) -> String {
        let name = name.split('[').next().unwrap_or_default();
        let schema = self.properties.get(name).and_then(ObjectMembers::read);
        schema.and_then(|schema| schema.string("description")).unwrap_or_default()
    }

    fn at(&self, name: &str) -> String {
        format!("{}{name}", self.path)
    }
}

/// Returns the object or array in the JSON text `value`, which may be wrapped in a string.
pub(in crate::meta) fn unwrapped(value: &str) -> Cow<'_, str> {
    if !value.starts_with('"') {
        return Cow::Borrowed(value);
    }
    let inner = serde_json::from_str::<String>(value).ok().filter(|inner| {
        inner.trim_start().starts_with(['{', '['])
            && serde_json::from_str::<&RawValue>(inner).is_ok()
    });
    inner.map_or(Cow::Borrowed(value), |inner| Cow::Owned(inner.trim().to_owned()))
}

/// Returns the kind of the JSON text `value`, in words.
fn kind(value: &str) -> &'static str {
    serde_json::from_str(value).map_or("this value", |value| kind_of(&value))
}
