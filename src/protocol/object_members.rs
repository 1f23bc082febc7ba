//! The members of one JSON object as text, in their order.
//!
//! Translations change some members of an object; the values of the others are not parsed.

use std::{borrow::Cow, fmt, vec};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The largest number of members that are read. The protocol gives these objects a few members;
/// each takes 60 bytes beside its text.
const MEMBERS_MAX: usize = 100_000;

/// The members of an object, at most 100,000.
#[derive(Clone, Debug, Default)]
pub struct ObjectMembers<'a>(Vec<(String, Cow<'a, str>)>);

impl<'a> ObjectMembers<'a> {
    /// Returns the members of `json` if it is an object with at most 100,000 members. Repeated
    /// names stay: the protocol does not define which one counts.
    pub fn read(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// Returns the member `name` of the object `json` as JSON text.
    pub fn one(json: &'a str, name: &str) -> Option<&'a str> {
        match Self::read(json)?.take(name)? {
            Cow::Borrowed(value) => Some(value),
            // Unreachable: a value that was just read borrows from `json`.
            Cow::Owned(_) => None,
        }
    }

    /// Returns the member `name` as JSON text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| &**value)
    }

    /// Returns the members of the object `name`: none if it is missing or no object.
    pub fn object(&self, name: &str) -> ObjectMembers<'_> {
        self.get(name).and_then(ObjectMembers::read).unwrap_or_default()
    }

    /// Returns the member `name` unescaped if it is a string. An unpaired surrogate escape, as some
    /// languages write it, becomes a replacement character.
    pub fn string(&self, name: &str) -> Option<String> {
        let json = self.get(name).filter(|json| json.starts_with('"'))?;
        serde_json::from_str(json).or_else(|_| serde_json::from_str(&repair_surrogates(json))).ok()
    }

    /// Sets the member `name` to the JSON text `value`, in place or at the end.
    pub fn set(&mut self, name: &str, value: impl Into<Cow<'a, str>>) {
        let value = value.into();
        match self.0.iter_mut().find(|(found, _)| found == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Removes the member `name` and returns it.
    pub fn take(&mut self, name: &str) -> Option<Cow<'a, str>> {
        let found = self.get(name).is_some().then(|| {
            let place = self.0.iter().position(|(found, _)| found == name)?;
            Some(self.0.remove(place).1)
        });
        // Also remove repetitions, which would otherwise be found next.
        self.0.retain(|(found, _)| found != name);
        found.flatten()
    }

    /// Edits the members of the object `name`, and removes the object if no member is left.
    pub fn edit_object(&mut self, name: &str, edit: impl FnOnce(&mut ObjectMembers<'_>)) {
        let Some(text) = self.get(name).map(str::to_owned) else { return };
        let Some(mut inner) = ObjectMembers::read(&text) else { return };
        edit(&mut inner);
        if inner.is_empty() {
            self.take(name);
        } else {
            self.set(name, inner.to_string());
        }
    }

    /// Sets the member `name` of the object `object`, which is created if missing or no object.
    pub fn set_in_object(&mut self, object: &str, name: &str, value: &str) {
        let text = self.get(object).unwrap_or("{}").to_owned();
        let mut inner = ObjectMembers::read(&text).unwrap_or_default();
        inner.set(name, value);
        self.set(object, inner.to_string());
    }

    /// Returns the names of the members and their values as JSON text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), &**value))
    }

    /// Returns the name of a repeated member. Compares all pairs.
    pub fn repeated(&self) -> Option<&str> {
        let mut others = self.0.iter();
        while let Some((name, _)) = others.next() {
            if others.clone().any(|(other, _)| other == name) {
                return Some(name);
            }
        }
        None
    }

    /// Returns `true` if there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for ObjectMembers<'a> {
    type Item = (String, Cow<'a, str>);
    type IntoIter = vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Returns JSON text with a replacement character for each unpaired surrogate escape.
fn repair_surrogates(json: &str) -> String {
    const ESCAPE: usize = "\\u0000".len();
    let (mut repaired, mut rest) = (String::with_capacity(json.len()), json);
    while let Some(at) = rest.find('\\') {
        repaired.push_str(&rest[..at]);
        rest = &rest[at..];
        let (replacement, length) = match surrogate(rest) {
            Some(0xd800..0xdc00) if surrogate(&rest[ESCAPE..]).is_some_and(|low| low >= 0xdc00) => {
                (&rest[..2 * ESCAPE], 2 * ESCAPE)
            }
            Some(_) => ("\\ufffd", ESCAPE),
            // A backslash escapes the character after it.
            None => {
                let length = rest.chars().take(2).map(char::len_utf8).sum();
                (&rest[..length], length)
            }
        };
        repaired.push_str(replacement);
        rest = &rest[length..];
    }
    repaired + rest
}

/// Returns the surrogate with whose escape the JSON text begins.
fn surrogate(json: &str) -> Option<u16> {
    let digits = json.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok().filter(|unit| (0xd800..0xe000).contains(unit))
}

/// Writes the object as JSON text.
impl fmt::Display for ObjectMembers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, (name, value)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}:{value}", serde_json::Value::from(name.as_str()))?;
        }
        f.write_str("}")
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ObjectMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = ObjectMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    if members.len() == MEMBERS_MAX {
                        return Err(A::Error::custom("too many members"));
                    }
                    members.push((name, Cow::Borrowed(value.get())));
                }
                Ok(ObjectMembers(members))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unpaired_surrogate_is_replaced_and_the_rest_of_the_text_is_unchanged() {
        for (json, expected) in [
            (r#""a\ud800b""#, "a\u{fffd}b"),
            (r#""\udc00\ud83d\ude00\ud83d""#, "\u{fffd}\u{1f600}\u{fffd}"),
            (r#""\ud83d\ud83d\ude00\\ud800\n""#, "\u{fffd}\u{1f600}\\ud800\n"),
            (r#""\ud800\u0041ä""#, "\u{fffd}Aä"),
        ] {
            let object = format!(r#"{{"a":{json}}}"#);
            let members = ObjectMembers::read(&object).expect("an object");
            assert_eq!(members.string("a").as_deref(), Some(expected), "{json}");
        }
        assert_eq!(ObjectMembers::read(r#"{"a":7}"#).expect("an object").string("a"), None);
    }

    #[test]
    fn an_untouched_member_keeps_its_spelling() {
        let mut members =
            ObjectMembers::read(r#"{ "a":1e400, "b" : [1.0],"c":"x\u0041"}"#).expect("an object");
        assert_eq!(members.string("c").as_deref(), Some("xA"));
        members.set("b", "2");
        members.set("d", "{}");
        assert_eq!(members.take("a").as_deref(), Some("1e400"));
        assert_eq!(members.take("z"), None);
        assert_eq!(members.to_string(), r#"{"b":2,"c":"x\u0041","d":{}}"#);
    }

    #[test]
    fn only_an_object_has_members() {
        for other in ["[]", "1", "null", "{", ""] {
            assert!(ObjectMembers::read(other).is_none(), "{other}");
        }
        assert!(ObjectMembers::read("{}").expect("an object").is_empty());
    }

    #[test]
    fn an_inner_object_is_removed_with_its_last_member() {
        let mut members =
            ObjectMembers::read(r#"{"a":{"b":1,"c":1e400},"d":7}"#).expect("an object");
        let without = |name| move |inner: &mut ObjectMembers<'_>| drop(inner.take(name));
        members.edit_object("a", without("b"));
        members.edit_object("d", without("b"));
        members.edit_object("z", without("b"));
        assert_eq!(members.to_string(), r#"{"a":{"c":1e400},"d":7}"#);
        members.edit_object("a", without("c"));
        assert_eq!(members.to_string(), r#"{"d":7}"#);
    }

    #[test]
    fn taking_a_repeated_member_removes_all_its_repetitions() {
        let mut members = ObjectMembers::read(r#"{"a":1,"a":2,"b":3}"#).expect("an object");
        assert_eq!(members.take("a").as_deref(), Some("1"));
        assert_eq!(members.to_string(), r#"{"b":3}"#);
    }
}
