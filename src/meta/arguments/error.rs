//! The errors in the arguments of a meta tool.

use serde_json::json;

use crate::{
    meta::definitions::MetaTool,
    protocol::{RpcError, rpc_error::INVALID_PARAMS},
};

/// An error in the arguments of a meta tool. Fields are named by their path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// A required field is missing.
    #[error("`{}` without `{field}`", .tool.name())]
    Missing {
        /// The tool.
        tool: MetaTool,
        /// The field.
        field: String,
        /// Its meaning, from the tool's definition.
        meaning: String,
    },
    /// The tool has no such field.
    #[error("`{}` has no argument `{field}`", .tool.name())]
    Unknown {
        /// The tool.
        tool: MetaTool,
        /// The field.
        field: String,
        /// The field that may be meant.
        meant: Option<String>,
        /// All fields that the tool has.
        known: Vec<String>,
    },
    /// A field has an unusable value.
    #[error("`{field}` of `{}` cannot be used: {problem}", .tool.name())]
    Wrong {
        /// The tool.
        tool: MetaTool,
        /// The field.
        field: String,
        /// The problem with the value.
        problem: String,
        /// Its meaning, from the tool's definition.
        meaning: String,
    },
    /// A field occurs twice.
    #[error("`{}` with `{field}` twice", .tool.name())]
    Twice {
        /// The tool.
        tool: MetaTool,
        /// The field.
        field: String,
    },
    /// The arguments are not an object.
    #[error("the arguments of `{}` are not an object", .0.name())]
    NotAnObject(MetaTool),
}

impl ArgumentError {
    /// Returns the stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "MISSING_PARAMETER",
            Self::Unknown { .. }
            | Self::Wrong { .. }
            | Self::Twice { .. }
            | Self::NotAnObject(_) => "INVALID_ARGUMENTS",
        }
    }

    /// Returns what the caller can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Missing { field, meaning, .. } => format!("Add `{field}`: {meaning}"),
            Self::Unknown { meant: Some(meant), .. } => format!("Did you mean `{meant}`?"),
            Self::Unknown { known, .. } if known.is_empty() => "It takes none.".to_owned(),
            Self::Unknown { known, .. } => format!("It takes `{}`.", known.join("`, `")),
            Self::Wrong { field, meaning, .. } => format!("`{field}` is this: {meaning}"),
            Self::Twice { field, .. } => format!("Send one `{field}`."),
            Self::NotAnObject(tool) => {
                format!("Send an object with the arguments of `{}` by name.", tool.name())
            }
        }
    }

    /// Returns the error as a client sees it.
    pub fn to_rpc(&self) -> RpcError {
        let context = match self {
            Self::Missing { tool, field, .. } => json!({ "tool": tool.name(), "parameter": field }),
            Self::Unknown { tool, field, known, .. } => {
                json!({ "tool": tool.name(), "parameter": field, "known": known })
            }
            Self::Wrong { tool, field, problem, .. } => json!({
                "tool": tool.name(),
                "parameter": field,
                "validationErrors": [format!("Field '{field}': {problem}")],
            }),
            Self::Twice { tool, field } => json!({ "tool": tool.name(), "parameter": field }),
            Self::NotAnObject(tool) => json!({ "tool": tool.name() }),
        };
        RpcError::new(INVALID_PARAMS, self.code(), self.to_string())
            .suggest(self.hint())
            .context(context)
    }
}
