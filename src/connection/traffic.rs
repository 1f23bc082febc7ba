//! Numbers of one connection: what went through it, and what went by.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::protocol::mcp::List;

/// How often each list was announced to have changed.
#[derive(Debug, Default)]
pub(super) struct ListRevisions {
    tools: AtomicU64,
    prompts: AtomicU64,
    resources: AtomicU64,
}

/// What went by without a receiver.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) late: AtomicU64,
    pub(super) noise: AtomicU64,
    pub(super) overflow: AtomicU64,
}

/// Numbers of one connection, for status output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Traffic {
    /// Requests that wait for an answer now.
    pub in_flight: usize,
    /// Requests sent so far, our own handshake included.
    pub requests: u64,
    /// Answers that nobody waited for any more.
    pub late_answers: u64,
    /// Lines that were no JSON-RPC message.
    pub noise_lines: u64,
    /// Notifications that a client was too slow to take.
    pub dropped_notifications: u64,
}

impl ListRevisions {
    pub(super) fn of(&self, list: List) -> &AtomicU64 {
        match list {
            List::Tools => &self.tools,
            List::Prompts => &self.prompts,
            List::Resources | List::ResourceTemplates => &self.resources,
        }
    }

    pub(super) fn bump(&self, list: List) {
        self.of(list).fetch_add(1, Ordering::Relaxed);
    }
}
