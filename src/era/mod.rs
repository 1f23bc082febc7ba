//! The translation between the two eras of the protocol.
//!
//! Up to 2025-11-25, clients perform a handshake, and servers may send requests during a request.
//! From 2026-07-28, each request describes its client ([`protocol::client_meta`]). A server that
//! needs more input answers with questions ([`InputRequired`]).
//!
//! | | legacy client, modern server | modern client, legacy server |
//! |---|---|---|
//! | request | gains a description of the client | loses it |
//! | result | loses the new members | gains the new members |
//! | questions | `input_required` becomes requests, answers a retry | the reverse |
//! | unknown resource | -32602 becomes -32002 | -32002 becomes -32602 |
//! | missing capability | -32021 becomes -32602 | the server receives an error |
//! | tasks | core becomes extension ([`TaskRequest`]) | extension becomes core |
//!
//! Pure: messages in, messages out. [`crate::call`] coordinates the waiting for answers.
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
pub use client_meta::add_client_meta;
pub use input_required::{InputRequired, digest, response, retry, without_answers};
pub use request_translation::{TranslationError, request};
pub use result_fields::decorate;
pub use result_translation::{TranslatedResult, for_legacy, for_modern};
pub use task_translation::{TaskRequest, TaskSupport, TaskTurn, without_tasks};
pub use tool_definition::{legacy_list, modern_list};
