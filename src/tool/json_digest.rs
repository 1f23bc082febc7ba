//! A digest of the value of a JSON text, independent of its formatting.
//!
//! It is computed while the text is read, in constant memory. A tree of the values of a small text
//! may take eighty times its size. Pure.

use std::{
    fmt,
    hash::{BuildHasher, Hash},
};

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor},
};

/// A digest that is the same for JSON texts with the same value: white space, escapes and the order
/// of members make no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JsonFingerprint(u64);

impl JsonFingerprint {
    /// Returns the digest of a text, or `None` if it is not JSON. Digests of different `hasher`s
    /// cannot be compared.
    pub(super) fn of(text: &str, hasher: &impl BuildHasher) -> Option<Self> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let digest = Digest(hasher).deserialize(&mut reader).ok()?;
        reader.end().ok()?;
        Some(Self(digest))
    }
}

/// A reader of one value.
struct Digest<'a, H>(&'a H);

impl<H: BuildHasher> Digest<'_, H> {
    /// Digests a value; the number `kind` stands for its type.
    fn hash<E>(&self, kind: u8, value: impl Hash) -> Result<u64, E> {
        Ok(self.0.hash_one((kind, value)))
    }
}

impl<'de, H: BuildHasher> DeserializeSeed<'de> for Digest<'_, H> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, H: BuildHasher> Visitor<'de> for Digest<'_, H> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<u64, E> {
        self.hash(0, ())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<u64, E> {
        self.hash(1, value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        self.hash(2, value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
        self.hash(3, value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<u64, E> {
        self.hash(4, value.to_bits())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<u64, E> {
        self.hash(5, value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<u64, A::Error> {
        let mut digest = 0;
        while let Some(item) = items.next_element_seed(Digest(self.0))? {
            digest = self.hash(6, (digest, item))?;
        }
        self.hash(6, digest)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<u64, A::Error> {
        // A sum, because the order of members does not matter.
        let mut digest = 0_u64;
        while let Some(Name(name)) = members.next_key()? {
            let value = members.next_value_seed(Digest(self.0))?;
            digest = digest.wrapping_add(self.hash(7, (name, value))?);
        }
        self.hash(8, digest)
    }
}

/// The name of a member, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

#[cfg(test)]
mod tests {
    use std::hash::RandomState;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_digest_ignores_the_formatting_of_json() {
        let hasher = RandomState::new();
        let of = |text: &str| JsonFingerprint::of(text, &hasher);
        assert_eq!(of(r#"{"a":[1,"x"],"b":null}"#), of(" {\"b\": null, \"a\":[1, \"\\u0078\"]}\n"));
        for other in [
            r#"{"a":["x",1],"b":null}"#,
            r#"{"a":[1,"x"],"b":false}"#,
            r#"{"a":[1,"x"]}"#,
            r#"{"a":[1.0,"x"],"b":null}"#,
            r#"{"a":[[1,"x"]],"b":null}"#,
        ] {
            assert_ne!(of(r#"{"a":[1,"x"],"b":null}"#), of(other), "{other}");
        }
        assert_ne!(of("[]"), of("{}"));
        assert_ne!(of("[[]]"), of("[]"));
        for broken in ["", "{", "[] []", "{\"a\":}"] {
            assert_eq!(of(broken), None, "{broken}");
        }
    }

    proptest! {
        #[test]
        fn two_texts_have_the_same_digest_if_they_have_the_same_value(
            texts in prop::collection::vec("(\\[|\\]|\\{|\\}|1|-1|1\\.5|true|null|\"a\"|\"b\"|:|,){1,9}", 2..12)
        ) {
            let hasher = RandomState::new();
            for (one, other) in texts.iter().zip(texts.iter().skip(1)) {
                let values = [one, other].map(|text| serde_json::from_str::<Value>(text).ok());
                let digests = [one, other].map(|text| JsonFingerprint::of(text, &hasher));
                prop_assert_eq!(values[0].is_some(), digests[0].is_some(), "{}", one);
                // Of two members of one name, a tree keeps the last.
                let is_plain = |text: &str| text.matches(':').count() < 2;
                if is_plain(one) && is_plain(other) {
                    prop_assert_eq!(values[0] == values[1], digests[0] == digests[1]);
                }
            }
        }
    }
}
