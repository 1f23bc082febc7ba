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

/// The level of detail about each tool in an answer of `mcp_discover`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscoverDetail {
    /// In the entry of the tool.
    Entry(DetailLevel),
    /// As TypeScript declarations of all tools together, for a script that calls them.
    Types,
}

impl DiscoverDetail {
    /// The levels by name.
    pub(in crate::meta) const WORDS: [(&'static str, Self); 4] = [
        ("summary", Self::Entry(DetailLevel::Summary)),
        ("schema", Self::Entry(DetailLevel::Schema)),
        ("full", Self::Entry(DetailLevel::Full)),
        ("types", Self::Types),
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        Self::WORDS.iter().find(|(_, detail)| *detail == self).map_or("", |(name, _)| name)
    }
}

impl Default for DiscoverDetail {
    fn default() -> Self {
        Self::Entry(DetailLevel::default())
    }
}
