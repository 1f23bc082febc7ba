//! The translation between the two eras of the protocol.
//!
//! Up to 2025-11-25 a client shakes hands, and a server may ask it something while a request runs.
//! From 2026-07-28 on every request stands for itself: it says who asks ([`protocol::client_meta`]), and a
//! server that needs to know more answers with its questions ([`InputRequired`]).
//!
//! | | legacy client, modern server | modern client, legacy server |
//! |---|---|---|
//! | request | is introduced | loses its introduction |
//! | result | loses what is new | is decorated with what is new |
//! | the server asks | `input_required` becomes requests, their answers a retry | requests become `input_required`, the retry their answers |
//! | unknown resource | -32602 becomes -32002 | -32002 becomes -32602 |
//! | missing capability | -32021 becomes -32602 | the server is told |
//! | tasks | the core's become the extension's ([`TaskRequest`]) | the extension's become the core's |
//!
//! Pure: messages in, messages out. Who waits for whom meanwhile is [`crate::call`]'s to know.
//!
//! [`protocol::client_meta`]: crate::protocol::client_meta

mod client_era;
mod client_meta;
pub mod client_subscription;
mod input_required;
mod request_translation;
mod result_fields;
mod result_translation;
pub mod server_subscription;
mod task_translation;
mod tool_definition;

pub use client_era::ClientEra;
pub use client_meta::introduce;
pub use input_required::{InputRequired, digest, response, retry};
pub use request_translation::{TranslationError, request};
pub use result_fields::decorate;
pub use result_translation::{TranslatedResult, for_legacy, for_modern};
pub use task_translation::{TaskRequest, TaskSupport, TaskTurn, without_tasks};
pub use tool_definition::{legacy_list, modern_list};
