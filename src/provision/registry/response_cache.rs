//! The cached answers of a registry, by query word. Pure: the caller passes the time since a fixed
//! start.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::registry_page::RegistryEntry;
use crate::config::defaults;

/// The cached answers of a registry.
#[derive(Debug, Default)]
pub(super) struct RegistryCache {
    answers: BTreeMap<String, (Duration, Arc<Vec<RegistryEntry>>)>,
    /// The time until which the registry is not asked.
    paused_until: Duration,
}

/// The cached answer for a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CachedQuery {
    /// A recent answer.
    Fresh(Arc<Vec<RegistryEntry>>),
    /// An old answer.
    Stale(Arc<Vec<RegistryEntry>>),
    /// No answer.
    Unknown,
}

impl RegistryCache {
    /// Returns the cached answer for `word`; it is fresh for `ttl`.
    pub(super) fn answer(&self, word: &str, ttl: Duration, now: Duration) -> CachedQuery {
        match self.answers.get(word) {
            Some((read, entries)) if now < read.saturating_add(ttl) => {
                CachedQuery::Fresh(Arc::clone(entries))
            }
            Some((_, entries)) => CachedQuery::Stale(Arc::clone(entries)),
            None => CachedQuery::Unknown,
        }
    }

    /// Stores an answer. If the cache is full, drops the oldest one.
    pub(super) fn learn(&mut self, word: &str, entries: Arc<Vec<RegistryEntry>>, now: Duration) {
        self.paused_until = Duration::ZERO;
        self.answers.insert(word.to_owned(), (now, entries));
        if self.answers.len() > defaults::REGISTRY_WORDS_KEPT {
            let oldest = self.answers.iter().min_by_key(|(_, (read, _))| *read);
            if let Some(oldest) = oldest.map(|(word, _)| word.clone()) {
                self.answers.remove(&oldest);
            }
        }
    }

    /// Records a failure and pauses queries for a while. Returns whether the last query had not
    /// failed.
    pub(super) fn fail(&mut self, now: Duration) -> bool {
        let is_first = self.paused_until == Duration::ZERO;
        self.paused_until = now + defaults::REGISTRY_PAUSE;
        is_first
    }

    /// Returns whether the registry may be asked.
    pub(super) fn may_ask(&self, now: Duration) -> bool {
        now >= self.paused_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_registry_answer_is_fresh_for_its_ttl_and_stale_after_it() {
        let mut known = RegistryCache::default();
        let entries: Arc<Vec<RegistryEntry>> = Arc::default();
        assert_eq!(known.answer("a", HOUR, HOUR), CachedQuery::Unknown);
        known.learn("a", Arc::clone(&entries), HOUR);
        let last = 2 * HOUR - Duration::from_millis(1);
        assert_eq!(known.answer("a", HOUR, last), CachedQuery::Fresh(Arc::clone(&entries)));
        assert_eq!(known.answer("a", HOUR, 2 * HOUR), CachedQuery::Stale(entries));
    }

    #[test]
    fn a_full_registry_cache_drops_the_oldest_answer() {
        let mut known = RegistryCache::default();
        for n in 0..=defaults::REGISTRY_WORDS_KEPT {
            let at = Duration::from_secs(u64::try_from(n).expect("few"));
            known.learn(&n.to_string(), Arc::default(), at);
        }
        assert_eq!(known.answer("0", HOUR, HOUR), CachedQuery::Unknown);
        assert_ne!(known.answer("1", HOUR, HOUR), CachedQuery::Unknown);
    }

    #[test]
    fn a_registry_that_fails_is_not_asked_for_a_while_and_reports_one_failure() {
        let mut known = RegistryCache::default();
        assert!(known.may_ask(HOUR) && known.fail(HOUR));
        assert!(!known.may_ask(HOUR));
        let later = HOUR + defaults::REGISTRY_PAUSE;
        assert!(known.may_ask(later) && !known.fail(later), "it is known");
        known.learn("a", Arc::default(), 2 * HOUR);
        assert!(known.may_ask(2 * HOUR) && known.fail(2 * HOUR), "it was there meanwhile");
    }
}
