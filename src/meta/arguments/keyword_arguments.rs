//! Arguments that are one of a few words.

/// The level of detail about a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetailLevel {
    /// A short description.
    #[default]
    Summary,
    /// The description and the input schema.
    Schema,
    /// The full definition.
    Full,
}

impl DetailLevel {
    /// The levels by name, in their order.
    pub(in crate::meta) const WORDS: [(&'static str, Self); 3] =
        [("summary", Self::Summary), ("schema", Self::Schema), ("full", Self::Full)];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        Self::WORDS[self as usize].0
    }
}
