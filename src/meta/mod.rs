//! The meta tools: what they are called, what they take, and what they answer with.
//!
//! Everything here is pure: text in, text out. It starts no server, asks nobody and knows no time
//! but the one that it is told; what drives it is the view.

pub mod arguments;
pub mod definitions;
pub mod error;
pub mod fields;
pub mod outcome;
pub mod similar;
pub mod tool_id;

pub use arguments::{ArgumentError, Arguments};
pub use definitions::{Set, Tool};
pub use error::{ErrorCode, ErrorObject};
pub use fields::Fields;
pub use outcome::Outcome;
pub use tool_id::{ToolId, Wanted};
