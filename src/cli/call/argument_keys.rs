//! The parser of tool arguments given as `--key value`, guided by the tool's schema. Pure.

use std::iter::Peekable;

use serde_json::{Map, Value};

use super::{schema::SchemaCursor, value::convert};
use crate::{cli::Failed, similar_names::nearest};

/// The location of a key: the member names from the outermost inward, and the schema there.
#[derive(Clone, Debug)]
pub(super) struct ResolvedKey<'a> {
    path: Vec<String>,
    place: SchemaCursor<'a>,
    /// The schema declares this exact name, and does not merely permit it.
    pub(super) is_named: bool,
}

/// The arguments read so far.
#[derive(Debug)]
pub(super) struct ParsedArguments<'a> {
    schema: SchemaCursor<'a>,
    values: Map<String, Value>,
}

impl<'a> ParsedArguments<'a> {
    /// Returns an empty set of arguments that follow `schema`.
    pub(super) fn new(schema: &'a Value) -> Self {
        Self { schema: SchemaCursor::root(schema), values: Map::new() }
    }

    pub(super) fn into_values(self) -> Map<String, Value> {
        self.values
    }

    /// Finds the argument with this key: `key` or `outer.inner`; `-` and `_` are interchangeable.
    pub(super) fn find(&self, key: &str) -> Option<ResolvedKey<'a>> {
        resolve(self.schema, key, true)
    }

    /// Returns the error for an unknown `key`, with the nearest name as a hint.
    pub(super) fn unknown(&self, key: &str, also: &[&str]) -> Failed {
        // A member is compared with the other members of its object.
        let (outer, last) = key.rsplit_once('.').unwrap_or(("", key));
        let place = match outer {
            "" => Some(self.schema),
            outer => self.find(outer).map(|found| found.place),
        };
        let known = place.into_iter().flat_map(SchemaCursor::properties);
        let known = known.map(|(name, _)| name.to_owned());
        let also = also.iter().filter(|_| outer.is_empty()).map(|name| (*name).to_owned());
        let near = nearest(last.trim_start_matches("no-"), known.chain(also));
        let prefix = if outer.is_empty() { String::new() } else { format!("{outer}.") };
        let hint = match near.first() {
            Some(near) => format!(
                "Did you mean `--{prefix}{near}`? Add `--help` after the tool to see its arguments."
            ),
            None => {
                "Add `--help` after the tool to see its arguments. Give others as one JSON object."
                    .to_owned()
            }
        };
        Failed::usage(format!("the tool has no argument `{key}`"), hint)
    }

    /// Returns `true` if the key stands alone, so that the `next` word is not its value.
    fn is_flag(found: &ResolvedKey<'_>, next: Option<&str>) -> bool {
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

    /// Reads the value of a key: the text `given` after its `=`, or the next of `words`.
    ///
    /// # Errors
    ///
    /// [`Failed`] when there is no value, or as [`Self::add`] returns it.
    pub(super) fn read_value<'w>(
        &mut self,
        key: &str,
        found: &ResolvedKey<'a>,
        given: Option<&str>,
        words: &mut Peekable<impl Iterator<Item = &'w str>>,
    ) -> Result<(), Failed> {
        if given.is_none() && Self::is_flag(found, words.peek().copied()) {
            return self.switch(key, found, true);
        }
        let text = given.or_else(|| words.next_if(|next| !is_key(next)));
        self.add(key, found, text.ok_or_else(|| missing_value(key))?)
    }

    /// Adds the value that `text` stands for.
    ///
    /// # Errors
    ///
    /// [`Failed`] when `text` does not fit the schema, or a value is present.
    fn add(&mut self, key: &str, found: &ResolvedKey<'a>, text: &str) -> Result<(), Failed> {
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
        let value = convert(found.place, text);
        let value = value.map_err(|expected| mistyped(key, text, &expected))?;
        self.put(key, found, |old| match (old, value) {
            (None, value) => Some(value),
            (Some(Value::Array(mut items)), Value::Array(more)) => {
                items.extend(more);
                Some(Value::Array(items))
            }
            (Some(_), _) => None,
        })
    }

    /// Sets a boolean argument.
    ///
    /// # Errors
    ///
    /// [`Failed`] when the argument is not a boolean, or has a value already.
    pub(super) fn switch(
        &mut self,
        key: &str,
        found: &ResolvedKey<'a>,
        is_on: bool,
    ) -> Result<(), Failed> {
        if !found.place.types().boolean {
            let expected = found.place.types().names().join(" or ");
            return Err(Failed::usage(
                format!("`--{key}` is not a switch"),
                format!("Give it a value: {expected}."),
            ));
        }
        self.put(key, found, |old| old.is_none().then_some(Value::Bool(is_on)))
    }

    /// Stores the value that `change` returns for the present one; `None` means "given twice".
    fn put(
        &mut self,
        key: &str,
        found: &ResolvedKey<'_>,
        change: impl FnOnce(Option<Value>) -> Option<Value>,
    ) -> Result<(), Failed> {
        let twice = || {
            let hint = "Give it once. Only a list takes several values.";
            Failed::usage(format!("`--{key}` is given twice"), hint)
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

/// Returns `true` if a word has the form of a key: `--key`.
pub(super) fn is_key(word: &str) -> bool {
    word.strip_prefix("--")
        .is_some_and(|name| name.starts_with(|it: char| it.is_alphanumeric() || it == '_'))
}

pub(super) fn missing_value(key: &str) -> Failed {
    let hint =
        format!("Write the value after the key. If it begins with `--`, write `--{key}=VALUE`.");
    Failed::usage(format!("`--{key}` needs a value"), hint)
}

fn mistyped(key: &str, text: &str, expected: &str) -> Failed {
    Failed::usage(format!("`--{key}` cannot be `{text}`"), format!("Expected: {expected}."))
}

fn resolve<'a>(place: SchemaCursor<'a>, key: &str, is_outermost: bool) -> Option<ResolvedKey<'a>> {
    if let Some((name, place)) = member(place, key) {
        return Some(ResolvedKey { path: vec![name.to_owned()], place, is_named: true });
    }
    // The longest name comes first, because a name may contain dots itself.
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

/// Finds a property by its name, ignoring case, `-` and `_` if no name is equal.
fn member<'a>(place: SchemaCursor<'a>, name: &str) -> Option<(&'a str, SchemaCursor<'a>)> {
    let properties = place.properties();
    if let Some(exact) = properties.iter().find(|(known, _)| *known == name) {
        return Some(*exact);
    }
    let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
    let wanted = plain(name);
    let mut alike = properties.into_iter().filter(|(known, _)| plain(known) == wanted);
    let first = alike.next()?;
    // If two names match, neither is chosen.
    alike.next().is_none().then_some(first)
}
