//! The tools to test the real program: a daemon on inherited sockets, clients, the fake.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the program itself; each guard reaps what it started"
)]

pub(crate) mod canned;
pub(crate) mod claude_code;
pub(crate) mod client;
pub(crate) mod daemon;
pub(crate) mod dice;
pub(crate) mod fake;
pub(crate) mod load;
pub(crate) mod meta;
pub(crate) mod modern;

pub(crate) mod mutant;
pub(crate) mod operator;
pub(crate) mod peer;
pub(crate) mod pipe;
pub(crate) mod scripted;
pub(crate) mod slow;
pub(crate) mod stdio;
pub(crate) mod stream;
pub(crate) mod terminal;
pub(crate) mod tls;
pub(crate) mod unit;

use std::time::Duration;

/// The deadline for any expected event. Generous: it only ends failing tests.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
