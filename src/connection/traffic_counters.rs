//! The counters of one connection: its traffic, and the data that had no receiver.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::{config::defaults::UNANSWERED_MESSAGES_MAX, protocol::list_page::ListKind};

/// The number of announced changes of each list.
///
/// It also identifies a connection, even after that was closed.
#[derive(Debug, Default)]
pub struct ListRevisions {
    tools: AtomicU64,
    prompts: AtomicU64,
    resources: AtomicU64,
}

/// The counters of data without a receiver.
#[derive(Debug, Default)]
pub(super) struct DropCounters {
    pub(super) late: AtomicU64,
    pub(super) noise: AtomicU64,
    pub(super) cut_off: AtomicU64,
    pub(super) overflow: AtomicU64,
    /// `true` if an attempt in the other era was made before this connection.
    pub(super) is_reopened: AtomicBool,
    pub(super) heard: LastHeard,
}

/// The times at which the server was heard and checked.
#[derive(Debug)]
pub(super) struct LastHeard {
    created: Instant,
    /// The time of the last sign of life, in milliseconds since `created`.
    last_ms: AtomicU64,
    /// The time of the last message of a flood, likewise.
    flooded_ms: AtomicU64,
    /// The time at which the server was taken for lost, likewise.
    lost_ms: AtomicU64,
    /// The time of the last ping, likewise.
    pinged_ms: AtomicU64,
    /// The number of pings in a row that the server missed.
    missed_pings: AtomicU32,
    /// The time at which the server became suspect, likewise; 0 if it was heard since. A request
    /// got no answer while nothing else was heard, or was given up without an answer.
    suspected_ms: AtomicU64,
    suspected: Notify,
    /// The number of messages since the last answer.
    n_without_answer: AtomicU32,
}

/// The counters of one connection, for status output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ConnectionTraffic {
    /// Requests that wait for an answer.
    pub in_flight: usize,
    /// Requests that were given up and that the server has not answered yet.
    pub draining: usize,
    /// Requests sent so far, including the handshake.
    pub requests: u64,
    /// Answers that came after their request had ended.
    pub late_answers: u64,
    /// Lines that were not JSON-RPC messages.
    pub noise_lines: u64,
    /// Requests that were given up because their client did not read its messages.
    pub cut_off: u64,
    /// Notifications that were dropped because they came faster than they could be passed on.
    pub dropped_notifications: u64,
    /// The time since the server was heard or pinged last, in milliseconds; of several connections,
    /// the longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_check_ms: Option<u64>,
    /// Pings in a row that the server did not answer; of several connections, the largest number.
    pub missed_pings: u32,
}

impl ListRevisions {
    /// Returns a number that grows whenever the server announces that `list` has changed.
    pub fn of(&self, list: ListKind) -> u64 {
        self.counter(list).load(Ordering::Relaxed)
    }

    fn counter(&self, list: ListKind) -> &AtomicU64 {
        match list {
            ListKind::Tools => &self.tools,
            ListKind::Prompts => &self.prompts,
            ListKind::Resources | ListKind::ResourceTemplates => &self.resources,
        }
    }

    pub(super) fn increment(&self, list: ListKind) {
        self.counter(list).fetch_add(1, Ordering::Relaxed);
    }
}

impl std::iter::Sum for ConnectionTraffic {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            in_flight: sum.in_flight + one.in_flight,
            draining: sum.draining + one.draining,
            requests: sum.requests + one.requests,
            late_answers: sum.late_answers + one.late_answers,
            noise_lines: sum.noise_lines + one.noise_lines,
            cut_off: sum.cut_off + one.cut_off,
            dropped_notifications: sum.dropped_notifications + one.dropped_notifications,
            last_check_ms: sum.last_check_ms.max(one.last_check_ms),
            missed_pings: sum.missed_pings.max(one.missed_pings),
        })
    }
}

impl Default for LastHeard {
    fn default() -> Self {
        Self {
            created: Instant::now(),
            last_ms: AtomicU64::new(0),
            flooded_ms: AtomicU64::new(0),
            lost_ms: AtomicU64::new(u64::MAX),
            pinged_ms: AtomicU64::new(0),
            missed_pings: AtomicU32::new(0),
            suspected_ms: AtomicU64::new(0),
            suspected: Notify::new(),
            n_without_answer: AtomicU32::new(0),
        }
    }
}

impl LastHeard {
    /// Records an answer of the server.
    pub(super) fn note_answer(&self) {
        self.n_without_answer.store(0, Ordering::Relaxed);
        self.note_sign_of_life();
    }

    /// Records a message that answers nothing. After [`UNANSWERED_MESSAGES_MAX`] of them, further
    /// ones are no sign that the server works.
    pub(super) fn note_unanswering(&self) {
        let n_before = self.n_without_answer.load(Ordering::Relaxed);
        if n_before < UNANSWERED_MESSAGES_MAX {
            self.n_without_answer.store(n_before + 1, Ordering::Relaxed);
            self.note_sign_of_life();
        } else {
            self.flooded_ms.store(self.age_ms(), Ordering::Relaxed);
        }
    }

    /// Records a sign of life.
    pub(super) fn note_sign_of_life(&self) {
        self.last_ms.store(self.age_ms(), Ordering::Relaxed);
        self.suspected_ms.store(0, Ordering::Relaxed);
    }

    /// Records that the server is taken for lost.
    pub(super) fn note_lost(&self) {
        self.lost_ms.store(self.age_ms(), Ordering::Relaxed);
    }

    /// Returns whether the server was heard after it was taken for lost.
    pub(super) fn has_recovered(&self) -> bool {
        self.last_ms.load(Ordering::Relaxed) > self.lost_ms.load(Ordering::Relaxed)
    }

    /// Records that a request got no answer within `timeout`: suspect, if nothing else was heard in
    /// that time. A flood counts while the server may work on an older request.
    pub(super) fn note_missed_answer(&self, timeout: Duration, has_older: bool) {
        let flooded = Duration::from_millis(self.flooded_ms.load(Ordering::Relaxed));
        let heard = if has_older { self.last().max(flooded) } else { self.last() };
        if self.age().saturating_sub(heard) >= timeout {
            self.mark_suspected();
        }
    }

    /// Makes the server suspect until it is heard again. The time of the first suspicion stays if
    /// the server is suspect already.
    pub(super) fn mark_suspected(&self) {
        let now_ms = self.age_ms().max(1);
        let suspecting =
            self.suspected_ms.compare_exchange(0, now_ms, Ordering::Relaxed, Ordering::Relaxed);
        if suspecting.is_ok() {
            self.suspected.notify_one();
        }
    }

    /// Returns the age of the connection when the server became suspect, if it was not heard since.
    pub(super) fn suspected_at(&self) -> Option<Duration> {
        let suspected_ms = self.suspected_ms.load(Ordering::Relaxed);
        (suspected_ms > 0).then(|| Duration::from_millis(suspected_ms))
    }

    /// Waits until the server becomes suspect. For one waiter at a time. Cancel safe: a suspicion
    /// that was not received ends the next wait.
    pub(super) async fn suspected(&self) {
        self.suspected.notified().await;
    }

    /// Records that a ping was sent.
    pub(super) fn note_ping(&self) {
        self.pinged_ms.store(self.age_ms(), Ordering::Relaxed);
    }

    /// Records the number of pings in a row that the server missed.
    pub(super) fn set_missed_pings(&self, n_missed: u32) {
        self.missed_pings.store(n_missed, Ordering::Relaxed);
    }

    /// Returns how many pings in a row the server missed, if it was not heard since.
    pub(super) fn n_missed_pings(&self) -> u32 {
        let is_heard =
            self.last_ms.load(Ordering::Relaxed) >= self.pinged_ms.load(Ordering::Relaxed);
        if is_heard { 0 } else { self.missed_pings.load(Ordering::Relaxed) }
    }

    /// Returns how long ago the server was heard or pinged last, in milliseconds.
    pub(super) fn last_check_ms(&self) -> u64 {
        let heard_ms = self.last_ms.load(Ordering::Relaxed);
        self.age_ms().saturating_sub(heard_ms.max(self.pinged_ms.load(Ordering::Relaxed)))
    }

    /// Returns the age of the connection, in whole milliseconds.
    pub(super) fn age(&self) -> Duration {
        Duration::from_millis(self.age_ms())
    }

    /// Returns the age of the connection when the server was heard last.
    pub(super) fn last(&self) -> Duration {
        Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }

    fn age_ms(&self) -> u64 {
        u64::try_from(self.created.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
