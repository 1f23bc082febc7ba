//! The services that all views share: from a client's request and a server to their [`Exchange`].
//!
//! A [`Forwarder`] knows the pool, the clients' sessions and the current configuration. The outcome
//! of routing a request is a [`RequestOutcome`]: an answer of metamcp itself, or an exchange.
//!
//! [`Exchange`]: crate::call::Exchange

mod forwarder;
mod request_outcome;

pub use forwarder::{Forwarder, client_exchange, is_shared};
pub use request_outcome::{RequestOutcome, discovery_result, initialize_result, missing, quoted};
