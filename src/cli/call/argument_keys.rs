//! Arguments of a tool as `--key value`, read by its schema. Pure.

use serde_json::{Map, Value};

use super::{schema::SchemaCursor, value::convert};
use crate::meta::nearest;

/// What is wrong with a word of the command line, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArgumentSyntaxError {
    pub(super) text: String,
    pub(super) hint: String,
}

impl ArgumentSyntaxError {
    pub(super) fn new(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { text: text.into(), hint: hint.into() }
    }
}

/// Where a key leads: the names of the members from the outermost on, and what is there.
#[derive(Clone, Debug)]
pub(super) struct ResolvedKey<'a> {
    path: Vec<String>,
    place: SchemaCursor<'a>,
    /// The schema has this very name, and does not only allow it.
    pub(super) is_named: bool,
}

/// The arguments that were read so far.
#[derive(Debug)]
pub(super) struct ParsedArguments<'a> {
    schema: SchemaCursor<'a>,
    values: Map<String, Value>,
}

impl<'a> ParsedArguments<'a> {
    /// Returns no arguments, to be read by `schema`.
    pub(super) fn new(schema: &'a Value) -> Self {
        Self { schema: SchemaCursor::root(schema), values: Map::new() }
    }

    /// Returns what was read.
    pub(super) fn into_values(self) -> Map<String, Value> {
        self.values
    }

    /// Finds the argument with this key: `key`, `outer.inner`, with `-` for `_` or the other way.
    pub(super) fn find(&self, key: &str) -> Option<ResolvedKey<'a>> {
        resolve(self.schema, key, true)
    }

    /// Says which arguments there are instead of `key`.
    pub(super) fn unknown(&self, key: &str, also: &[&str]) -> ArgumentSyntaxError {
        let known = self.schema.properties().into_iter().map(|(name, _)| name.to_owned());
        let also = also.iter().map(|name| (*name).to_owned());
        let near = nearest(key.trim_start_matches("no-"), known.chain(also));
        let hint = match near.first() {
            Some(near) => format!("Did you mean `--{near}`? `--help` behind the tool shows its arguments."),
            None => "`--help` behind the tool shows its arguments; what its schema does not name goes in as JSON.".to_owned(),
        };
        ArgumentSyntaxError::new(format!("the tool has no argument `{key}`"), hint)
    }

    /// Tells whether a key can stand alone, and whether the word behind it is its value all the same.
    pub(super) fn is_flag(found: &ResolvedKey<'_>, next: Option<&str>) -> bool {
        let types = found.place.types();
        let is_value = |next: &str| match next {
            "true" | "false" => true,
            next => {
                types.names() != ["boolean"]
                    && types.names() != ["boolean", "null"]
                    && !is_key(next)
            }
        };
        types.boolean && !next.is_some_and(is_value)
    }

    /// Adds a value that is written as `text`.
    ///
    /// # Errors
    ///
    /// [`ArgumentSyntaxError`] when it cannot be one, or is there already.
    pub(super) fn add(
        &mut self,
        key: &str,
        found: &ResolvedKey<'a>,
        text: &str,
    ) -> Result<(), ArgumentSyntaxError> {
        let types = found.place.types();
        let is_list = types.array && (!types.string || found.place.items().is_some());
        if is_list && !text.trim_start().starts_with('[') {
            let item = match found.place.items() {
                Some(items) => convert(items, text),
                None => Ok(serde_json::from_str(text).unwrap_or_else(|_| text.into())),
            };
            let item = item.map_err(|expected| mistyped(key, text, &expected))?;
            return self.put(key, found, |old| match old {
                None => Some(Value::Array(vec![item])),
                Some(Value::Array(mut items)) => {
                    items.push(item);
                    Some(Value::Array(items))
                }
                Some(_) => None,
            });
        }
        let value =
            convert(found.place, text).map_err(|expected| mistyped(key, text, &expected))?;
        self.put(key, found, |old| match (old, value) {
            (None, value) => Some(value),
            (Some(Value::Array(mut items)), Value::Array(more)) => {
                items.extend(more);
                Some(Value::Array(items))
            }
            (Some(_), _) => None,
        })
    }

    /// Adds a switch.
    ///
    /// # Errors
    ///
    /// [`ArgumentSyntaxError`] when it is none, or is there already.
    pub(super) fn switch(
        &mut self,
        key: &str,
        found: &ResolvedKey<'a>,
        is_on: bool,
    ) -> Result<(), ArgumentSyntaxError> {
        if !found.place.types().boolean {
            let expected = found.place.types().names().join(" or ");
            return Err(ArgumentSyntaxError::new(
                format!("`--{key}` is no switch"),
                format!("Give it a value: {expected}."),
            ));
        }
        self.put(key, found, |old| old.is_none().then_some(Value::Bool(is_on)))
    }

    /// Puts what `change` makes of the value that is there; nothing means that there is one already.
    fn put(
        &mut self,
        key: &str,
        found: &ResolvedKey<'_>,
        change: impl FnOnce(Option<Value>) -> Option<Value>,
    ) -> Result<(), ArgumentSyntaxError> {
        let twice = || {
            let hint = "Give it once; only a list takes several.";
            ArgumentSyntaxError::new(format!("`--{key}` is given twice"), hint)
        };
        let Some((last, outer)) = found.path.split_last() else { return Ok(()) };
        let mut members = &mut self.values;
        for name in outer {
            let inner = members.entry(name).or_insert_with(|| Value::Object(Map::new()));
            members = inner.as_object_mut().ok_or_else(twice)?;
        }
        let value = change(members.get(last).cloned()).ok_or_else(twice)?;
        members.insert(last.clone(), value);
        Ok(())
    }
}

/// Tells whether a word is meant as a key: `--key`.
pub(super) fn is_key(word: &str) -> bool {
    word.strip_prefix("--")
        .is_some_and(|name| name.starts_with(|it: char| it.is_alphanumeric() || it == '_'))
}

fn mistyped(key: &str, text: &str, expected: &str) -> ArgumentSyntaxError {
    ArgumentSyntaxError::new(
        format!("`--{key}` cannot be `{text}`"),
        format!("Expected: {expected}."),
    )
}

fn resolve<'a>(place: SchemaCursor<'a>, key: &str, is_outermost: bool) -> Option<ResolvedKey<'a>> {
    if let Some((name, place)) = member(place, key) {
        return Some(ResolvedKey { path: vec![name.to_owned()], place, is_named: true });
    }
    // The longest name first: a name may have dots of its own.
    for (dot, _) in key.rmatch_indices('.') {
        let inside = |(name, place)| {
            let mut found = resolve(place, &key[dot + 1..], false)?;
            found.path.insert(0, str::to_owned(name));
            Some(found)
        };
        if let Some(found) = member(place, &key[..dot]).and_then(inside) {
            return Some(found);
        }
    }
    let is_map = !is_outermost && place.types().object;
    let path = vec![key.to_owned()];
    match place.others() {
        Some(others) => Some(ResolvedKey { path, place: others, is_named: false }),
        None if place.is_open() && (is_outermost || is_map) => {
            Some(ResolvedKey { path, place: SchemaCursor::root(&Value::Null), is_named: false })
        }
        None => None,
    }
}

/// Finds a property by its name, or by one that differs only in how words are joined.
fn member<'a>(place: SchemaCursor<'a>, name: &str) -> Option<(&'a str, SchemaCursor<'a>)> {
    let properties = place.properties();
    let exact = properties.iter().find(|(known, _)| *known == name);
    if let Some(found) = exact {
        return Some(*found);
    }
    let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
    let wanted = plain(name);
    let mut alike = properties.into_iter().filter(|(known, _)| plain(known) == wanted);
    let first = alike.next()?;
    // Of two that are alike none was named.
    alike.next().is_none().then_some(first)
}
