//! The page that shows the service in a browser. It only reads.
//!
//! The page is complete without scripts. With them, its sections are replaced as they change. All
//! data comes from the control interface, so the page shows what `metamcp status` and its
//! neighbours show. Names and texts of servers and clients are hostile: only [`html::Html`] writes
//! them, and it escapes each. Pure.

mod calls_section;
mod clients_section;
mod facts;
pub mod html;
mod overview_section;
mod page;
mod servers_section;
mod table;
mod tools_section;

pub use page::{LIVE_SECTIONS, PageData, Section, content_policy, login_page, page, section};
pub use tools_section::{FoundTools, ToolsQuery};
