//! The tools of servers, as operators and meta-tools refer to them: ids, arguments, results, errors.

pub mod call_warnings;
pub mod error;
pub mod field_selection;
mod json_digest;
pub mod json_type;
pub mod schema_collapse;
pub mod schema_path;
pub mod summary;
pub mod tool_id;
pub mod tool_result;
pub mod validation;

pub use call_warnings::{ToolWarning, warnings};
pub use error::{ErrorCode, ErrorObject};
pub use field_selection::FieldSelection;
pub use tool_id::{RequestedTool, ToolId};
pub use tool_result::{text_block, with_note};
pub use validation::{ArgumentVerdict, SchemaCache};
