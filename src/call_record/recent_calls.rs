//! The calls of the last minutes, by tool and client, and by server.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use foldhash::quality::RandomState;
use tokio::time::Instant;

use super::{CallRecord, CallTotals, ClientName, call_window::CallWindow};
use crate::{config::defaults, server_name::ServerName};

/// The length of a slot of the last minute.
const MINUTE_SLOT_SECONDS: u64 = 10;
/// The number of slots of the last minute.
const MINUTE_SLOTS: usize = 6;
/// The length of a slot of the history of a server.
const HISTORY_SLOT_SECONDS: u64 = 15;
/// The number of slots of that history: ten minutes.
pub const HISTORY_SLOTS: usize = 40;

/// The calls of the last minutes.
#[derive(Debug)]
pub struct RecentCalls {
    started: Instant,
    windows: Mutex<CallWindows>,
}

#[derive(Debug, Default)]
struct CallWindows {
    minute: HashMap<CallSubject, CallWindow<MINUTE_SLOTS>, RandomState>,
    history: HashMap<ServerName, CallWindow<HISTORY_SLOTS>, RandomState>,
}

/// The tool that was called, and the client that called it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallSubject {
    /// The server; `None` for a tool of metamcp.
    pub server: Option<ServerName>,
    /// The tool or the prompt.
    pub item: Option<Arc<str>>,
    /// The client.
    pub client: Arc<ClientName>,
}

impl Default for RecentCalls {
    fn default() -> Self {
        Self { started: Instant::now(), windows: Mutex::default() }
    }
}

impl RecentCalls {
    /// Adds a call that ends `now`.
    pub(super) fn add(&self, call: &CallRecord, now: Instant) {
        let minute_slot = self.slot(now, MINUTE_SLOT_SECONDS);
        let history_slot = self.slot(now, HISTORY_SLOT_SECONDS);
        let has_failed = !call.outcome.is_ok();
        let mut subject = CallSubject {
            server: call.server.clone(),
            item: call.item.clone(),
            client: Arc::clone(&call.caller.name),
        };
        let mut windows = self.windows();
        let CallWindows { minute, history } = &mut *windows;
        if minute.len() >= defaults::RECENT_SUBJECTS_MAX && !minute.contains_key(&subject) {
            minute.retain(|_, window| !window.is_empty(minute_slot));
            if minute.len() >= defaults::RECENT_SUBJECTS_MAX {
                // One entry for everything that has no room.
                (subject.item, subject.client) = (Some("other".into()), Arc::default());
                subject.server = None;
            }
        }
        let window = minute.entry(subject).or_insert_with(|| CallWindow::at(minute_slot));
        window.add(minute_slot, call.duration, has_failed);
        if let Some(server) = &call.server {
            if !history.contains_key(server) {
                history.retain(|_, window| !window.is_empty(history_slot));
                history.insert(server.clone(), CallWindow::at(history_slot));
            }
            if let Some(window) = history.get_mut(server) {
                window.add(history_slot, call.duration, has_failed);
            }
        }
    }

    /// Returns the calls of the last minute by tool and client, those with the most calls first.
    pub fn last_minute(&self) -> Vec<(CallSubject, CallTotals)> {
        let slot = self.slot(Instant::now(), MINUTE_SLOT_SECONDS);
        let windows = self.windows();
        let mut totals: Vec<_> = windows
            .minute
            .iter()
            .map(|(subject, window)| (subject.clone(), window.slots(slot).into_iter().sum()))
            .filter(|(_, totals): &(_, CallTotals)| totals.n_calls > 0)
            .collect();
        drop(windows);
        totals.sort_by(|(one, of_one), (other, of_other)| {
            of_other.n_calls.cmp(&of_one.n_calls).then_with(|| one.cmp(other))
        });
        totals
    }

    /// Returns the calls to a server in slots of 15 s, oldest first.
    pub fn history(&self, server: &ServerName) -> [CallTotals; HISTORY_SLOTS] {
        let slot = self.slot(Instant::now(), HISTORY_SLOT_SECONDS);
        let windows = self.windows();
        let window = windows.history.get(server);
        window.map_or([CallTotals::default(); HISTORY_SLOTS], |window| window.slots(slot))
    }

    fn slot(&self, now: Instant, slot_seconds: u64) -> u64 {
        now.saturating_duration_since(self.started).as_secs() / slot_seconds
    }

    fn windows(&self) -> MutexGuard<'_, CallWindows> {
        // Held only for statements on plain data.
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time;

    use super::*;
    use crate::call_record::record::tests::record;

    #[tokio::test(start_paused = true)]
    async fn the_last_minute_is_kept_by_tool_and_client() {
        let recent = RecentCalls::default();
        recent.add(&record("git", "log"), Instant::now());
        recent.add(&record("git", "log"), Instant::now());
        recent.add(&record("git", "status"), Instant::now());
        let counts = |recent: &RecentCalls| -> Vec<(String, u64)> {
            let totals = recent.last_minute().into_iter();
            totals.map(|(it, n)| (it.item.unwrap_or_default().to_string(), n.n_calls)).collect()
        };
        assert_eq!(counts(&recent), [("log".to_owned(), 2), ("status".to_owned(), 1)]);
        time::advance(Duration::from_secs(70)).await;
        assert!(counts(&recent).is_empty());
        let server = ServerName::new("git").unwrap();
        let history = recent.history(&server);
        assert_eq!(history.iter().map(|slot| slot.n_calls).sum::<u64>(), 3);
        assert_eq!(history[HISTORY_SLOTS - 5].n_calls, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_subjects_is_bounded() {
        let recent = RecentCalls::default();
        for number in 0..2 * defaults::RECENT_SUBJECTS_MAX {
            recent.add(&record("git", &number.to_string()), Instant::now());
        }
        assert_eq!(recent.last_minute().len(), defaults::RECENT_SUBJECTS_MAX + 1);
        time::advance(Duration::from_secs(70)).await;
        recent.add(&record("git", "log"), Instant::now());
        assert_eq!(recent.last_minute().len(), 1);
    }
}
