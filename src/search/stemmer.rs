//! The stems of words that carry meaning.

use std::{borrow::Cow, collections::HashSet, sync::LazyLock};

use rust_stemmers::Algorithm;

/// English words that do not distinguish tools: function words, and openings of requests.
const STOP_WORDS: &str = "\
    a about above after again against all also am an and any are as at be because been before being \
    below between both but by can cannot could d did do does doing done don during each either else \
    etc even ever few for from further had has have having he her here hers him his how however i if \
    in into is isn it its itself just kind let ll lot m many may me might mine more most much must \
    my myself need needs neither no nor not of off on once one only onto or other others ought our \
    ours out over own per please quite rather re really s same shall she should since so some \
    somebody someone something such t than thank thanks that the their theirs them themselves then \
    there these they thing things this those though through thus to too toward towards under unless \
    until up upon us use used uses using ve very via want wants was we well were what whatever when \
    where whether which while who whom whose why will with within without would yes yet you your \
    yours assist assistance help helps hello hi like look looking trying try wanna gonna able maybe \
    currently given able specific particular various certain";

/// A stemmer for English, the language of nearly all definitions.
pub(super) struct Stemmer(rust_stemmers::Stemmer);

impl Stemmer {
    /// Returns the stem of a lower-case word, or `None` for one that carries no meaning.
    pub(super) fn of<'a>(&self, word: &'a str) -> Option<Cow<'a, str>> {
        static STOPS: LazyLock<HashSet<&str>> =
            LazyLock::new(|| STOP_WORDS.split_whitespace().collect());
        if STOPS.contains(word) {
            return None;
        }
        // A word in another script has no English ending.
        if !word.is_ascii() {
            return Some(Cow::Borrowed(word));
        }
        Some(self.0.stem(word))
    }
}

impl Default for Stemmer {
    fn default() -> Self {
        Self(rust_stemmers::Stemmer::create(Algorithm::English))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_one_stem_and_stop_words_none() {
        let stems = Stemmer::default();
        for (a, b) in [("searching", "searches"), ("queries", "query"), ("files", "file")] {
            assert_eq!(stems.of(a), stems.of(b));
        }
        assert_eq!(stems.of("please"), None);
        assert_eq!(stems.of("größen").as_deref(), Some("größen"));
    }
}
