//! The calls of the last minutes, by tool and client, and by server.

use std::{
    collections::HashMap,
    hash::BuildHasher as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use tokio::time::Instant;

use super::{
    CallRecord, CallSubject, CallTotals, ClientName,
    call_metrics::OTHER,
    call_subject::{ServerHistory, SubjectNames, cut_item},
    call_window::{CallWindow, HISTORY_SLOT_SECONDS, HISTORY_SLOTS, MINUTE_SLOT_SECONDS},
};
use crate::{config::defaults, server_name::ServerName};

/// The calls of the last minutes.
#[derive(Debug)]
pub struct RecentCalls {
    started: Instant,
    subjects: Mutex<ListedSubjects>,
}

/// The subjects that a search finds.
#[derive(Debug, Default)]
struct ListedSubjects {
    by_names: HashTable<Arc<CallSubject>>,
    histories: HashMap<ServerName, ServerHistory, RandomState>,
    hasher: RandomState,
}

impl Default for RecentCalls {
    fn default() -> Self {
        Self { started: Instant::now(), subjects: Mutex::default() }
    }
}

impl RecentCalls {
    /// Returns the subject of these names, of which the tool or the prompt is cut to a bounded
    /// length. It is a new one if no call had it yet.
    pub(super) fn subject(
        &self,
        server: Option<&ServerName>,
        item: Option<&str>,
        client: &Arc<ClientName>,
    ) -> Arc<CallSubject> {
        let item = item.map(cut_item);
        let names = SubjectNames { server: server.map(ServerName::as_str), item, client };
        let mut subjects = lock(&self.subjects);
        if let Some(found) = subjects.find(names) {
            return Arc::clone(found);
        }
        let history = server.map(|server| subjects.history(server, self.slots(Instant::now()).1));
        let added = Arc::new(CallSubject::new(server, item, client, history));
        if subjects.by_names.len() < defaults::RECENT_SUBJECTS_MAX {
            subjects.add(&added);
        }
        added
    }

    /// Adds a call that ends `now`.
    pub(super) fn add(&self, call: &CallRecord, now: Instant) {
        let (minute_slot, history_slot) = self.slots(now);
        let (subject, has_failed) = (&call.subject, !call.outcome.is_ok());
        if let Some(history) = &subject.history {
            lock(history).add(history_slot, call.duration, has_failed);
        }
        let mut minute = lock(&subject.minute);
        // Asked while the minute is locked: a subject is removed only with an empty one.
        if subject.is_listed() {
            return minute.add(minute_slot, call.duration, has_failed);
        }
        drop(minute);
        let listed = lock(&self.subjects).listed(subject, minute_slot);
        lock(&listed.minute).add(minute_slot, call.duration, has_failed);
    }

    /// Returns the calls of the last minute by tool and client, those with the most calls first.
    pub fn last_minute(&self) -> Vec<(Arc<CallSubject>, CallTotals)> {
        let (slot, _) = self.slots(Instant::now());
        let subjects: Vec<_> = lock(&self.subjects).by_names.iter().cloned().collect();
        let mut totals: Vec<_> = subjects
            .into_iter()
            .map(|subject| {
                let totals = lock(&subject.minute).slots(slot).into_iter().sum();
                (subject, totals)
            })
            .filter(|(_, totals): &(_, CallTotals)| totals.n_calls > 0)
            .collect();
        totals.sort_by(|(one, of_one), (other, of_other)| {
            let by_calls = of_other.n_calls.cmp(&of_one.n_calls);
            by_calls.then_with(|| one.names().cmp(&other.names()))
        });
        totals
    }

    /// Returns the calls to a server in slots of 15 s, oldest first.
    pub fn history(&self, server: &ServerName) -> [CallTotals; HISTORY_SLOTS] {
        let (_, slot) = self.slots(Instant::now());
        let history = lock(&self.subjects).histories.get(server).cloned();
        history.map_or([CallTotals::default(); HISTORY_SLOTS], |history| lock(&history).slots(slot))
    }

    /// Returns the slots of `now`: of the last minute, and of the history of a server.
    fn slots(&self, now: Instant) -> (u64, u64) {
        let seconds = now.saturating_duration_since(self.started).as_secs();
        (seconds / MINUTE_SLOT_SECONDS, seconds / HISTORY_SLOT_SECONDS)
    }
}

impl ListedSubjects {
    fn find(&self, names: SubjectNames<'_>) -> Option<&Arc<CallSubject>> {
        self.by_names.find(self.hasher.hash_one(names), |found| found.names() == names)
    }

    fn add(&mut self, subject: &Arc<CallSubject>) {
        subject.set_listed(true);
        let hash = |subject: &Arc<CallSubject>| self.hasher.hash_one(subject.names());
        self.by_names.insert_unique(hash(subject), Arc::clone(subject), hash);
    }

    /// Returns the subject that calls of `subject` count for: itself, as soon as there is room.
    fn listed(&mut self, subject: &Arc<CallSubject>, slot: u64) -> Arc<CallSubject> {
        if let Some(found) = self.find(subject.names()) {
            return Arc::clone(found);
        }
        if self.by_names.len() >= defaults::RECENT_SUBJECTS_MAX {
            self.by_names.retain(|listed| {
                listed.set_listed(!lock(&listed.minute).is_empty(slot));
                listed.is_listed()
            });
        }
        if self.by_names.len() < defaults::RECENT_SUBJECTS_MAX {
            self.add(subject);
            return Arc::clone(subject);
        }
        // One subject for all that have no room.
        let client = Arc::default();
        let names = SubjectNames { server: None, item: Some(OTHER), client: &client };
        if let Some(found) = self.find(names) {
            return Arc::clone(found);
        }
        let other = Arc::new(CallSubject::new(None, names.item, &client, None));
        self.add(&other);
        other
    }

    /// Returns the history of a server.
    fn history(&mut self, server: &ServerName, slot: u64) -> ServerHistory {
        if let Some(found) = self.histories.get(server) {
            return Arc::clone(found);
        }
        self.histories.retain(|_, history| {
            // A subject still counts its calls there.
            Arc::strong_count(history) > 1 || !lock(history).is_empty(slot)
        });
        let added = ServerHistory::new(Mutex::new(CallWindow::at(slot)));
        self.histories.insert(server.clone(), Arc::clone(&added));
        added
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Held only for statements on plain data.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        let server = ServerName::new("git").unwrap();
        let add = |tool: &str| {
            let subject = recent.subject(Some(&server), Some(tool), &Arc::default());
            recent.add(&CallRecord { subject, ..record("git", tool) }, Instant::now());
        };
        ["log", "log", "status"].into_iter().for_each(add);
        let counts = |recent: &RecentCalls| -> Vec<(String, u64)> {
            let totals = recent.last_minute().into_iter();
            totals
                .map(|(it, n)| (it.item.as_deref().unwrap_or_default().to_owned(), n.n_calls))
                .collect()
        };
        assert_eq!(counts(&recent), [("log".to_owned(), 2), ("status".to_owned(), 1)]);
        time::advance(Duration::from_secs(70)).await;
        assert!(counts(&recent).is_empty());
        let history = recent.history(&server);
        assert_eq!(history.iter().map(|slot| slot.n_calls).sum::<u64>(), 3);
        assert_eq!(history[HISTORY_SLOTS - 5].n_calls, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_subjects_is_bounded() {
        let recent = RecentCalls::default();
        let add = |tool: &str| recent.add(&record("git", tool), Instant::now());
        for number in 0..2 * defaults::RECENT_SUBJECTS_MAX {
            add(&number.to_string());
        }
        assert_eq!(recent.last_minute().len(), defaults::RECENT_SUBJECTS_MAX + 1);
        time::advance(Duration::from_secs(70)).await;
        add("log");
        assert_eq!(recent.last_minute().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_counts_even_if_its_subject_was_forgotten_while_it_ran() {
        let recent = RecentCalls::default();
        let client = Arc::default();
        let subject = recent.subject(None, Some("slow"), &client);
        for number in 0..2 * defaults::RECENT_SUBJECTS_MAX {
            recent.add(&record("git", &number.to_string()), Instant::now());
        }
        time::advance(Duration::from_secs(70)).await;
        recent.add(&CallRecord { subject, ..record("git", "slow") }, Instant::now());
        let [(found, totals)] = &recent.last_minute()[..] else { panic!("one subject") };
        assert_eq!((found.item.as_deref(), totals.n_calls), (Some("slow"), 1));
        assert!(recent.subject(None, Some("slow"), &client).is_listed());
    }
}
