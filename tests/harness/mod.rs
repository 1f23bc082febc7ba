//! The test harness: the real program on inherited sockets, clients, and servers under control of
//! the test.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the program itself; each guard reaps what it started"
)]

pub(crate) mod claude_code;
pub(crate) mod client;
pub(crate) mod confined_process;
pub(crate) mod daemon;
pub(crate) mod era_client;
pub(crate) mod escape_program;
pub(crate) mod fake;
pub(crate) mod fake_stdio;
pub(crate) mod load;
pub(crate) mod login_upstream;
pub(crate) mod meta_client;
pub(crate) mod modern;
pub(crate) mod mutated_request;
pub(crate) mod operator;
pub(crate) mod random;
pub(crate) mod sandbox_peer;
pub(crate) mod script;
pub(crate) mod scripted_upstream;
pub(crate) mod slow_reader;
pub(crate) mod stdio;
pub(crate) mod stream;
pub(crate) mod stub_upstream;
pub(crate) mod terminal;
pub(crate) mod tls;
pub(crate) mod tls_front;
pub(crate) mod unit;

use std::time::Duration;

/// The deadline for any expected event. Generous: it only ends failing tests.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
