//! What a registry has answered, by the word that it was asked for. Pure: the caller knows the time,
//! as how long ago it began to count.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::registry_page::RegistryEntry;
use crate::config::defaults;

/// What a registry has answered.
#[derive(Debug, Default)]
pub(super) struct RegistryCache {
    answers: BTreeMap<String, (Duration, Arc<Vec<RegistryEntry>>)>,
    /// Until when it is left alone.
    left_alone_until: Duration,
}

/// What is known of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CachedQuery {
    /// It was answered, not long ago.
    Fresh(Arc<Vec<RegistryEntry>>),
    /// It was answered long ago.
    Stale(Arc<Vec<RegistryEntry>>),
    /// It was not asked for.
    Unknown,
}

impl RegistryCache {
    /// Returns what is known of `word`, where an answer is good for `ttl`.
    pub(super) fn answer(&self, word: &str, ttl: Duration, now: Duration) -> CachedQuery {
        match self.answers.get(word) {
            Some((read, entries)) if now < read.saturating_add(ttl) => {
                CachedQuery::Fresh(Arc::clone(entries))
            }
            Some((_, entries)) => CachedQuery::Stale(Arc::clone(entries)),
            None => CachedQuery::Unknown,
        }
    }

    /// Takes an answer, for which the oldest one is given up where there are too many.
    pub(super) fn learn(&mut self, word: &str, entries: Arc<Vec<RegistryEntry>>, now: Duration) {
        self.left_alone_until = Duration::ZERO;
        self.answers.insert(word.to_owned(), (now, entries));
        if self.answers.len() > defaults::REGISTRY_WORDS_KEPT {
            let oldest = self.answers.iter().min_by_key(|(_, (read, _))| *read);
            if let Some(oldest) = oldest.map(|(word, _)| word.clone()) {
                self.answers.remove(&oldest);
            }
        }
    }

    /// Notes that the registry has failed, and leaves it alone for a while. Tells whether it was not
    /// known to fail.
    pub(super) fn fail(&mut self, now: Duration) -> bool {
        let is_news = self.left_alone_until == Duration::ZERO;
        self.left_alone_until = now + defaults::REGISTRY_PAUSE;
        is_news
    }

    /// Tells whether the registry can be asked.
    pub(super) fn may_ask(&self, now: Duration) -> bool {
        now >= self.left_alone_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn an_answer_is_fresh_for_its_time_and_then_better_than_none() {
        let mut known = RegistryCache::default();
        let entries: Arc<Vec<RegistryEntry>> = Arc::default();
        assert_eq!(known.answer("a", HOUR, HOUR), CachedQuery::Unknown);
        known.learn("a", Arc::clone(&entries), HOUR);
        let last = 2 * HOUR - Duration::from_millis(1);
        assert_eq!(known.answer("a", HOUR, last), CachedQuery::Fresh(Arc::clone(&entries)));
        assert_eq!(known.answer("a", HOUR, 2 * HOUR), CachedQuery::Stale(entries));
    }

    #[test]
    fn the_oldest_answer_makes_room() {
        let mut known = RegistryCache::default();
        for n in 0..=defaults::REGISTRY_WORDS_KEPT {
            let at = Duration::from_secs(u64::try_from(n).expect("few"));
            known.learn(&n.to_string(), Arc::default(), at);
        }
        assert_eq!(known.answer("0", HOUR, HOUR), CachedQuery::Unknown);
        assert_ne!(known.answer("1", HOUR, HOUR), CachedQuery::Unknown);
    }

    #[test]
    fn a_registry_that_fails_is_left_alone_for_a_while_and_that_is_said_once() {
        let mut known = RegistryCache::default();
        assert!(known.may_ask(HOUR) && known.fail(HOUR));
        assert!(!known.may_ask(HOUR));
        let later = HOUR + defaults::REGISTRY_PAUSE;
        assert!(known.may_ask(later) && !known.fail(later), "it is known");
        known.learn("a", Arc::default(), 2 * HOUR);
        assert!(known.may_ask(2 * HOUR) && known.fail(2 * HOUR), "it was there meanwhile");
    }
}
