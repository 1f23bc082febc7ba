//! The translation between the two eras of the protocol.
//!
//! Up to 2025-11-25 a client shakes hands, and a server may ask it something while a request runs.
//! From 2026-07-28 on every request stands for itself: it says who asks ([`protocol::modern`]), and a
//! server that needs to know more answers with its questions.
//!
//! Pure: messages in, messages out. Who waits for whom meanwhile is [`crate::call`]'s to know.
//!
//! [`protocol::modern`]: crate::protocol::modern

mod client;
mod result;

pub use client::Client;
pub use result::decorate;
mod introduce;

pub use client::Client;
pub use introduce::introduce;
