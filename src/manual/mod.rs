//! The manual: the parts of `docs/` that follow from declarations in code, and the manual pages.

mod command_reference;
mod configuration_keys;
mod configuration_page;
mod error_table;
mod errors_page;
mod message_catalog;
mod page_text;

pub use command_reference::command_reference;
pub use configuration_keys::{ConfigurationKey, configuration_keys, sections};
pub use configuration_page::configuration_page;
pub use error_table::{ERROR_GROUPS, ErrorEntry, ErrorGroup};
pub use errors_page::errors_page;
pub use message_catalog::message_catalog;
pub use page_text::{PAGE_DATE, PAGE_SOURCE};
