//! The plain ranking: by the words of the query in names and descriptions.

use memchr::memmem::Finder;

use super::{ScorePart, analyzed_server::AnalyzedTool, bigram_filter::QueryPairs};

/// The score of a word of the query that is the name, is in the name, or is in the description.
const SCORES: [f64; 3] = [10.0, 5.0, 2.0];

/// The maximum score of one word, to which the confidence is relative.
const SCORE_MAX: f64 = 12.0;

/// The maximum number of words of a query.
const WORDS_MAX: usize = 64;

/// The words of a query, as this ranking splits them.
pub(super) struct KeywordQuery(Vec<Word>);

struct Word {
    text: String,
    pairs: QueryPairs,
    finder: Finder<'static>,
}

impl KeywordQuery {
    /// Splits a query at white space.
    pub(super) fn of(text: &str) -> Self {
        let text =
            super::tokenizer::beginning(text, super::tokenizer::TEXT_BYTES_MAX).to_lowercase();
        let words = text.split_whitespace().take(WORDS_MAX);
        let word = |word: &str| Word {
            text: word.to_owned(),
            pairs: QueryPairs::of(word),
            finder: Finder::new(word).into_owned(),
        };
        Self(words.map(word).collect())
    }

    /// Calls `found` with each word in `tool`, the place of the match, and its score.
    pub(super) fn each_in(&self, tool: &AnalyzedTool, mut found: impl FnMut(&str, &str, f64)) {
        let [is_name, in_name, in_description] = SCORES;
        for Word { text: word, finder, .. } in
            self.0.iter().filter(|word| tool.pairs.may_have(&word.pairs))
        {
            let has = |text: &str| finder.find(text.as_bytes()).is_some();
            if tool.name() == word {
                found(word, "is the name", is_name);
            } else if has(tool.name()) {
                found(word, "in name", in_name);
            }
            if has(tool.description()) {
                found(word, "in description", in_description);
            }
        }
    }

    pub(super) fn score(&self, tool: &AnalyzedTool) -> f64 {
        let mut score = 0.0;
        self.each_in(tool, |_, _, added| score += added);
        score
    }

    pub(super) fn parts(&self, tool: &AnalyzedTool) -> Vec<ScorePart> {
        let mut parts = Vec::new();
        self.each_in(tool, |word, found, score| {
            parts.push(ScorePart { name: format!("`{word}` {found}"), score });
        });
        parts
    }

    /// Returns whether the query is one word, and that is the name of `tool`.
    ///
    /// Such a tool comes first by the score of the word.
    pub(super) fn is_name_of(&self, tool: &AnalyzedTool) -> bool {
        matches!(&self.0[..], [word] if word.text == tool.name())
    }

    /// Returns an upper bound of the score.
    pub(super) fn most(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a few words")]
        let n_words = self.0.len() as f64;
        n_words * SCORE_MAX
    }

    /// Returns the confidence for a score, between 0 and 1.
    pub(super) fn confidence(&self, score: f64) -> f64 {
        let most = self.most();
        if most > 0.0 { (score / most).min(1.0) } else { 0.0 }
    }
}
