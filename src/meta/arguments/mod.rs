//! The reader of the arguments of the meta-tools.
//!
//! The definition of each tool is the only list of its fields, and the source of their descriptions
//! in errors. Models nest and spell arguments in their own ways, so every unambiguous form is
//! accepted: an object or a list written as a string, one item instead of a list, and `null` or an
//! empty text for a missing field. Pure.

mod error;
mod field_reader;
mod keyword_arguments;
mod page_arguments;

pub use error::ArgumentError;
pub(super) use field_reader::{FieldReader, unwrapped};
pub use keyword_arguments::{DetailLevel, DiscoverDetail};
pub use page_arguments::PageArguments;
