//! The tools of servers, as operators and meta-tools refer to them: ids, arguments, results, errors.
//!
//! [`ToolDirectory`] resolves the name of a tool and searches all of them; [`ArgumentChecker`]
//! checks the arguments of a call; [`ErrorObject`] tells a model why a call failed. Most of the
//! rest is pure: text in, text out.

mod argument_checker;
pub mod call_warnings;
mod directory;
pub mod error;
pub mod field_selection;
mod found_tools;
mod json_digest;
pub mod json_type;
pub mod schema_collapse;
pub mod schema_path;
pub mod summary;
pub mod tool_id;
pub mod tool_result;
pub mod validation;

pub use argument_checker::{ArgumentChecker, tool_call};
pub use call_warnings::{ToolWarning, warnings};
pub use directory::{ResolvedTool, ToolDirectory};
pub use error::{ErrorCode, ErrorObject};
pub use field_selection::FieldSelection;
pub use found_tools::{FindQuery, FindResult, FoundTool, KnownTools};
pub use tool_id::{RequestedTool, ToolId};
pub use tool_result::{text_block, with_note};
pub use validation::{ArgumentVerdict, SchemaCache};
