//! Numbers within bounds.

use std::fmt::Display;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::refusal::{KEY, Refusal};

/// A whole number from `LEAST` to `MOST`. `#[serde(with)]` reads it as a plain number.
#[derive(JsonSchema)]
pub(super) struct BoundedNumber<const LEAST: usize, const MOST: usize>(
    #[schemars(range(min = LEAST, max = MOST))] pub(super) usize,
);

impl<const LEAST: usize, const MOST: usize> BoundedNumber<LEAST, MOST> {
    /// Reads the number of a key.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(found: D) -> Result<usize, D::Error> {
        Self::read::<usize, _, _>(found, KEY, Self::help)
    }

    /// Returns the remedy for a number beyond the bounds.
    pub(super) fn help() -> String {
        format!("use {LEAST} to {MOST}")
    }

    /// Writes the default of a key for the schema.
    pub(super) fn serialize<S: Serializer>(number: &usize, to: S) -> Result<S::Ok, S::Error> {
        number.serialize(to)
    }

    /// Reads the number of `key` as a `W`. `help` is the remedy for a number beyond the bounds.
    pub(super) fn read<'de, W, N, D>(
        found: D,
        key: &str,
        help: impl FnOnce() -> String,
    ) -> Result<N, D::Error>
    where
        W: Deserialize<'de> + Copy + Display + TryInto<usize>,
        N: TryFrom<usize>,
        D: Deserializer<'de>,
    {
        let found = W::deserialize(found)?;
        let number = found.try_into().ok().filter(|number| (LEAST..=MOST).contains(number));
        number
            .and_then(|number| N::try_from(number).ok())
            .ok_or_else(|| D::Error::custom(Refusal::new(format!("`{key}` is {found}"), help())))
    }
}

impl<'de, const LEAST: usize, const MOST: usize> Deserialize<'de> for BoundedNumber<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(found: D) -> Result<Self, D::Error> {
        Self::deserialize(found).map(Self)
    }
}
