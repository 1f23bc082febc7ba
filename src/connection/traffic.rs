//! Numbers of one connection: what went through it, and what went by.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

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
    pub(super) cut_off: AtomicU64,
    pub(super) overflow: AtomicU64,
    pub(super) heard: Heard,
}

/// When the server was heard last.
#[derive(Debug)]
pub(super) struct Heard {
    born: Instant,
    /// Since then, in milliseconds.
    last_ms: AtomicU64,
    /// When it was taken for lost, likewise.
    lost_ms: AtomicU64,
}

/// Numbers of one connection, for status output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Traffic {
    /// Requests that wait for an answer now.
    pub in_flight: usize,
    /// Requests whose client has gone and whose answer is still to come.
    pub draining: usize,
    /// Requests sent so far, our own handshake included.
    pub requests: u64,
    /// Answers that nobody waited for any more.
    pub late_answers: u64,
    /// Lines that were no JSON-RPC message.
    pub noise_lines: u64,
    /// Requests that were given up because their client did not read what came for them.
    pub cut_off: u64,
    /// Notifications that came faster than they could be handed on.
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

impl std::iter::Sum for Traffic {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            in_flight: sum.in_flight + one.in_flight,
            draining: sum.draining + one.draining,
            requests: sum.requests + one.requests,
            late_answers: sum.late_answers + one.late_answers,
            noise_lines: sum.noise_lines + one.noise_lines,
            cut_off: sum.cut_off + one.cut_off,
            dropped_notifications: sum.dropped_notifications + one.dropped_notifications,
        })
    }
}

impl Default for Heard {
    fn default() -> Self {
        Self { born: Instant::now(), last_ms: AtomicU64::new(0), lost_ms: AtomicU64::new(u64::MAX) }
    }
}

impl Heard {
    /// Takes note that the server said something.
    pub(super) fn now(&self) {
        self.last_ms.store(self.age_ms(), Ordering::Relaxed);
    }

    /// Takes note that the server is taken for lost.
    pub(super) fn lost(&self) {
        self.lost_ms.store(self.age_ms(), Ordering::Relaxed);
    }

    /// Tells whether the server said something after it was taken for lost.
    pub(super) fn is_after_loss(&self) -> bool {
        self.last_ms.load(Ordering::Relaxed) > self.lost_ms.load(Ordering::Relaxed)
    }

    fn age_ms(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns how long nothing has been heard.
    pub(super) fn silence(&self) -> Duration {
        let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
        self.born.elapsed().saturating_sub(last)
    }
}
