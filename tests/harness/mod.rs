//! What tests need to run the real program: a daemon on inherited sockets, a client, the fake.

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
pub(crate) mod peer;
pub(crate) mod pipe;
pub(crate) mod scripted;
pub(crate) mod slow;
pub(crate) mod stream;
pub(crate) mod terminal;
pub(crate) mod tls;
pub(crate) mod unit;

use std::time::Duration;

/// The one deadline for anything that must happen. Generous: it only ends tests that fail.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
