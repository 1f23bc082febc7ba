//! Keys with one of several words as value, and an error that lists the words.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor, value::StrDeserializer},
};

/// The start of serde's message for another value, by which `toml_messages` recognizes it.
pub(super) const EXPECTED: &str = "one of the words";

/// A word that names one value of `T`. `#[serde(deserialize_with)]` reads it as a `T`.
#[derive(Clone, Copy)]
pub(super) struct NamedValue<T>(pub(super) T);

impl<T> NamedValue<T> {
    /// Reads the word of a key.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(found: D) -> Result<T, D::Error>
    where
        T: Deserialize<'de>,
    {
        <Self as Deserialize>::deserialize(found).map(|found| found.0)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for NamedValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Found(PhantomData))
    }
}

struct Found<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Found<T> {
    type Value = NamedValue<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)?;
        // Only serde knows all words: its error for an unknown word lists them.
        let none = T::deserialize(StrDeserializer::<de::value::Error>::new(""));
        let message = none.err().map(|error| error.to_string()).unwrap_or_default();
        let words = message.split('`').skip(3).step_by(2);
        words.enumerate().try_for_each(|(place, word)| {
            write!(f, "{} `{word}`", if place == 0 { "" } else { "," })
        })
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
        T::deserialize(StrDeserializer::new(name)).map(NamedValue)
    }
}
