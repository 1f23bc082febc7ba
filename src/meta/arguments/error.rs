//! The errors in the arguments of a meta-tool.

use serde_json::json;

use crate::{
    meta::definitions::MetaTool,
    protocol::{RpcError, rpc_error::INVALID_PARAMS},
};

/// An error in the arguments of a meta-tool. Fields are named by their path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// A required field is missing.
    #[error("argument `{field}` of `{}` is missing", .tool.name())]
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
        /// The most similar field, or its synonym.
        meant: Option<String>,
        /// All fields that the tool has.
        known: Vec<String>,
    },
    /// A field has an unusable value.
    #[error("argument `{field}` of `{}` is invalid: {problem}", .tool.name())]
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
    #[error("argument `{field}` of `{}` occurs twice", .tool.name())]
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

    /// Returns the error as the record of the call tells it: without a name or a value that the
    /// client chose.
    pub fn recorded_cause(&self) -> String {
        match self {
            Self::Missing { .. } | Self::Twice { .. } | Self::NotAnObject(_) => self.to_string(),
            Self::Unknown { tool, .. } => {
                format!("the call has an argument that `{}` does not know", tool.name())
            }
            Self::Wrong { tool, field, .. } => {
                format!("argument `{field}` of `{}` is invalid", tool.name())
            }
        }
    }

    /// Returns the remedy for the caller.
    pub fn hint(&self) -> String {
        match self {
            Self::Missing { field, meaning, .. } => format!("Add `{field}`: {meaning}"),
            Self::Unknown { meant: Some(meant), .. } => format!("Did you mean `{meant}`?"),
            Self::Unknown { known, .. } if known.is_empty() => {
                "The tool takes no arguments.".to_owned()
            }
            Self::Unknown { known, .. } => format!("The tool takes `{}`.", known.join("`, `")),
            Self::Wrong { field, meaning, .. } => format!("Pass this as `{field}`: {meaning}"),
            Self::Twice { field, .. } => format!("Send `{field}` once."),
            Self::NotAnObject(tool) => {
                format!("Send the arguments of `{}` by name, in an object.", tool.name())
            }
        }
    }

    /// Returns the error as a client sees it.
    pub fn to_rpc(&self) -> RpcError {
        let context = match self {
            Self::Missing { tool, field, .. } | Self::Twice { tool, field } => {
                json!({ "tool": tool.name(), "parameter": field })
            }
            Self::Unknown { tool, field, known, .. } => {
                json!({ "tool": tool.name(), "parameter": field, "known": known })
            }
            Self::Wrong { tool, field, problem, .. } => json!({
                "tool": tool.name(),
                "parameter": field,
                "validationErrors": [format!("Field '{field}': {problem}")],
            }),
            Self::NotAnObject(tool) => json!({ "tool": tool.name() }),
        };
        RpcError::new(INVALID_PARAMS, self.code(), self.to_string())
            .suggest(self.hint())
            .context(context)
    }
}
