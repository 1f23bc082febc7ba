//! The places of keys in the text of the configuration.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::{diagnostic::ConfigProblem, refusal::Refusal};

/// The places of keys in the text, for rules over several keys.
pub(super) struct KeyPlaces<'i>(DeTable<'i>);

impl<'i> KeyPlaces<'i> {
    /// Returns the places of all keys of the text that `root` was read from.
    pub(super) fn of(root: DeTable<'i>) -> Self {
        Self(root)
    }

    /// Returns the place of the value of `key`, such as `pool.size`, if the text has it.
    pub(super) fn find(&self, key: &str) -> Option<Range<usize>> {
        self.element(key, &[])
    }

    /// Returns a mistake in the value of `key`.
    pub(super) fn problem(&self, key: &str, message: impl Into<String>) -> ConfigProblem {
        ConfigProblem::at(self.find(key).unwrap_or_default(), message)
    }

    /// Returns the refusal of an element of the list `key`. In a list of lists, each index leads
    /// one list down.
    pub(super) fn refused(&self, key: &str, indices: &[usize], refusal: Refusal) -> ConfigProblem {
        ConfigProblem::refused(self.element(key, indices).unwrap_or_default(), refusal)
    }

    fn element(&self, key: &str, indices: &[usize]) -> Option<Range<usize>> {
        let (tables, name) = key.rsplit_once('.')?;
        let table = tables
            .split('.')
            .try_fold(&self.0, |table, name| table.get(name)?.get_ref().as_table())?;
        let value =
            indices.iter().try_fold(table.get(name)?, |value, index| match value.get_ref() {
                DeValue::Array(values) => values.get(*index),
                _ => None,
            })?;
        Some(value.span())
    }
}
