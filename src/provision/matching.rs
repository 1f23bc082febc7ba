//! The score of a match between a request and a text: the share of the words that it covers. Pure.
//!
//! The confidence is the share of covered words, without stop words. A word counts in full if it
//! occurs in any form, and less if only a near synonym occurs. So a whole sentence can reach 1,
//! other candidates do not matter, and the score can be explained in words.

use std::{collections::BTreeMap, fmt};

use crate::{
    config::defaults,
    search::{RankingStrategy, SearchIndex, SearchQuery, bearing},
};

/// The most that a synonym counts: less than the word itself.
const SYNONYM_MAX: f64 = 0.8;

/// The least confidence of the search at which a synonym counts.
const SYNONYM_MIN: f64 = 0.3;

/// A task that a client wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedTask {
    /// The intent and the context as the client wrote them.
    pub(super) text: String,
    /// The words of the intent.
    pub(super) words: Vec<String>,
    /// The words of intent and context, if the context adds any.
    with_context: Option<Vec<String>>,
}

impl RequestedTask {
    /// Reads a request. The context can raise a confidence, never lower it.
    pub fn new(intent: &str, context: Option<&str>) -> Self {
        let n_max = defaults::REQUEST_WORDS_MAX;
        let words = bearing(intent, n_max);
        let text = match context {
            Some(context) => format!("{intent}\n{context}"),
            None => intent.to_owned(),
        };
        let with_context = bearing(&text, n_max);
        let with_context = (with_context.len() > words.len()).then_some(with_context);
        Self { text, words, with_context }
    }

    /// Returns whether no word of the request can be searched for.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.with_context.is_none()
    }

    /// Returns the scores of the matching servers among the `n` in an index, each with its
    /// position: best first, equal ones in the order of the search.
    pub fn among(
        &self,
        index: &SearchIndex,
        n: usize,
        strategy: RankingStrategy,
    ) -> Vec<(usize, MatchScore)> {
        let all = self.with_context.as_ref().unwrap_or(&self.words);
        let counted: Vec<_> =
            all.iter().map(|word| (word, counted(index, word, strategy))).collect();
        let fit = |words: &[String], server: usize| {
            let mut fit = MatchScore { confidence: 0.0, covered: Vec::new(), missing: Vec::new() };
            for (word, count) in counted.iter().filter(|(word, _)| words.contains(word)) {
                match count.get(&server) {
                    Some(count) => {
                        fit.confidence += count;
                        fit.covered.push((*word).clone());
                    }
                    None => fit.missing.push((*word).clone()),
                }
            }
            #[expect(clippy::cast_precision_loss, reason = "a few words")]
            let n_words = words.len().max(1) as f64;
            // Rounded as it is shown, so that comparisons agree with what is shown.
            fit.confidence = (fit.confidence / n_words * 100.0).round().clamp(0.0, 100.0) / 100.0;
            fit
        };
        let ranks = self.ranks(index, strategy);
        let mut fits: Vec<_> = (0..n)
            .map(|server| {
                let own = fit(&self.words, server);
                let with = self.with_context.as_ref().map(|words| fit(words, server));
                let best = with.into_iter().find(|with| with.confidence > own.confidence);
                (server, best.unwrap_or(own))
            })
            .filter(|(_, fit)| fit.confidence > 0.0)
            .collect();
        let rank = |server: usize| ranks.get(&server).copied().unwrap_or(usize::MAX);
        fits.sort_by(|(a, fit), (b, other)| {
            let by_confidence = other.confidence.total_cmp(&fit.confidence);
            by_confidence.then_with(|| rank(*a).cmp(&rank(*b))).then_with(|| a.cmp(b))
        });
        fits
    }

    /// Returns the rank of each server in a search for the whole text.
    fn ranks(&self, index: &SearchIndex, strategy: RankingStrategy) -> BTreeMap<usize, usize> {
        let query = SearchQuery::new(&self.text, strategy, usize::MAX);
        let mut ranks = BTreeMap::new();
        for (rank, hit) in index.search(&query).iter().enumerate() {
            ranks.entry(hit.place.server).or_insert(rank);
        }
        ranks
    }
}

/// Returns the weight of a word for each server that has it or a synonym.
fn counted(index: &SearchIndex, word: &str, strategy: RankingStrategy) -> BTreeMap<usize, f64> {
    let query = |strategy| SearchQuery::new(word, strategy, usize::MAX);
    let mut counted = BTreeMap::new();
    let by_meaning = match strategy {
        RankingStrategy::Hybrid => index.search(&query(RankingStrategy::Hybrid)),
        RankingStrategy::Keyword | RankingStrategy::Bm25 => Vec::new(),
    };
    for hit in by_meaning.into_iter().filter(|hit| hit.confidence >= SYNONYM_MIN) {
        let count = counted.entry(hit.place.server).or_insert(0.0_f64);
        *count = count.max(hit.confidence.min(SYNONYM_MAX));
    }
    let by_word = match strategy {
        RankingStrategy::Keyword => RankingStrategy::Keyword,
        RankingStrategy::Bm25 | RankingStrategy::Hybrid => RankingStrategy::Bm25,
    };
    for hit in index.search(&query(by_word)) {
        counted.insert(hit.place.server, 1.0);
    }
    counted
}

/// The quality of a match.
#[derive(Clone, Debug, PartialEq)]
pub struct MatchScore {
    /// The covered share of the request, from 0 to 1.
    pub confidence: f64,
    /// The covered words.
    pub covered: Vec<String>,
    /// The words that are not covered.
    pub missing: Vec<String>,
}

impl MatchScore {
    /// Returns whether the match is good enough to be shown.
    pub fn is_relevant(&self) -> bool {
        self.confidence >= defaults::MATCH_CONFIDENCE_MIN
    }

    /// Returns whether the match is so good that the search ends here.
    pub fn is_sufficient(&self) -> bool {
        self.confidence >= defaults::MATCH_CONFIDENCE_GOOD
    }
}

impl fmt::Display for MatchScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "covers {}", self.covered.join(", "))?;
        if !self.missing.is_empty() {
            write!(f, "; not {}", self.missing.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::search::{AnalyzedServer, Thesaurus};

    fn index(servers: &[(&str, &str)]) -> SearchIndex {
        let analyzed: Vec<_> = servers
            .iter()
            .map(|(name, description)| {
                let tool = serde_json::json!({ "name": name, "description": description });
                Arc::new(AnalyzedServer::of(name, "", [tool.to_string().as_str()].into_iter()))
            })
            .collect();
        SearchIndex::new(&analyzed, &Thesaurus::embedded())
    }

    fn best(wanted: &RequestedTask) -> (usize, MatchScore) {
        let index = index(&[
            ("github", "issues and pull requests of a repository"),
            ("weather", "the forecast for a city"),
        ]);
        wanted.among(&index, 2, RankingStrategy::Bm25).into_iter().next().expect("a match")
    }

    #[test]
    fn a_whole_sentence_can_match_with_full_confidence() {
        let (server, fit) =
            best(&RequestedTask::new("I need the issues of my repository on GitHub", None));
        assert_eq!(server, 0);
        assert!((fit.confidence - 1.0).abs() < f64::EPSILON, "{fit:?}");
        assert_eq!(fit.to_string(), "covers issues, repository, github");
    }

    #[test]
    fn the_confidence_is_the_share_of_the_covered_words_and_names_them() {
        let (_, fit) = best(&RequestedTask::new("list issues on github for managers", None));
        assert!((fit.confidence - 0.5).abs() < f64::EPSILON, "{fit:?}");
        assert_eq!(fit.to_string(), "covers issues, github; not list, managers");
        assert!(fit.is_sufficient() && fit.is_relevant());
    }

    #[test]
    fn a_context_raises_the_confidence_or_changes_nothing() {
        let alone = best(&RequestedTask::new("forecast, please, for Bohemia", None)).1;
        assert!((alone.confidence - 0.5).abs() < f64::EPSILON, "{alone:?}");
        let helped = best(&RequestedTask::new("forecast for Bohemia", Some("weather of a city"))).1;
        assert!((helped.confidence - 0.75).abs() < f64::EPSILON, "{helped:?}");
        let drowned =
            best(&RequestedTask::new("forecast for Bohemia", Some("quarterly sales slides"))).1;
        assert_eq!(drowned, alone);
    }

    #[test]
    fn a_synonym_counts_less_than_the_word_itself() {
        let index = index(&[("github", "issues and pull requests"), ("mailer", "send email")]);
        let best = |intent: &str, strategy| {
            let found = RequestedTask::new(intent, None).among(&index, 2, strategy);
            found.first().map(|(server, fit)| (*server, fit.confidence))
        };
        assert_eq!(best("an email", RankingStrategy::Hybrid), Some((1, 1.0)));
        assert_eq!(best("a bug", RankingStrategy::Hybrid), Some((0, SYNONYM_MAX)));
        assert_eq!(best("a bug", RankingStrategy::Bm25), None, "only the words");
    }

    #[test]
    fn a_server_that_shares_no_word_with_the_task_does_not_match() {
        let index = index(&[("weather", "the forecast for a city")]);
        let wanted = RequestedTask::new("mow the lawn", None);
        assert_eq!(wanted.among(&index, 1, RankingStrategy::Bm25), []);
        assert!(RequestedTask::new("please help me with it", None).is_empty());
        assert!(RequestedTask::new("", Some("")).is_empty());
    }
}
