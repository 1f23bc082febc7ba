//! Arguments that are one of a few words.

/// How much is told of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetailLevel {
    /// What it does.
    #[default]
    Summary,
    /// What it takes, too.
    Schema,
    /// All that its server says about it.
    Full,
}

impl DetailLevel {
    pub(super) const WORDS: [(&'static str, Self); 3] =
        [("summary", Self::Summary), ("schema", Self::Schema), ("full", Self::Full)];

    /// Returns what it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Schema => "schema",
            Self::Full => "full",
        }
    }
}

/// What a tool runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// A function of the gateway: there is none here.
    Local,
    /// A program of a provider: there is none here.
    Provider,
    /// An MCP server.
    Mcp,
}

impl BackendKind {
    pub(super) const WORDS: [(&'static str, Self); 3] =
        [("local", Self::Local), ("provider", Self::Provider), ("mcp", Self::Mcp)];
}
