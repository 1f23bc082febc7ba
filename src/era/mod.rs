//! The translation between the two eras of the protocol.
//!
//! Up to 2025-11-25 a client shakes hands, and a server may ask it something while a request runs.
//! From 2026-07-28 on every request stands for itself: it says who asks ([`protocol::modern`]), and a
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
//! [`protocol::modern`]: crate::protocol::modern

mod answer;
mod client;
mod input;
mod introduce;
pub mod listening;
mod request;
mod result;
pub mod subscription;
mod task;
mod tool;

pub use answer::{TranslatedResult, for_legacy, for_modern};
pub use client::ClientEra;
pub use input::{InputRequired, digest, response, retry};
pub use introduce::introduce;
pub use request::{TranslationError, request};
pub use result::decorate;
pub use task::{TaskRequest, TaskSupport, TaskTurn, without_tasks};
pub use tool::{legacy_list, modern_list};
