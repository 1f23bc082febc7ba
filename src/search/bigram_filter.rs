//! A filter of neighbouring bytes, which rules out most texts without reading them.

/// The number of bits: one for each pair of the last five bits of two bytes, which distinguish
/// letters.
const BITS: usize = 1 << 10;

/// The pairs of neighbouring bytes in a text, with possible false positives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BigramFilter([u64; BITS / 64]);

impl BigramFilter {
    pub(super) fn of(text: &str) -> Self {
        let mut bits = [0; BITS / 64];
        for pair in text.as_bytes().windows(2) {
            let bit = usize::from(pair[0] & 31) << 5 | usize::from(pair[1] & 31);
            bits[bit / 64] |= 1 << (bit % 64);
        }
        Self(bits)
    }

    /// Returns whether a text with these pairs may contain the word.
    pub(super) fn may_have(&self, word: &QueryPairs) -> bool {
        word.0.iter().all(|&(at, needed)| needed & !self.0[at] == 0)
    }
}

/// The pairs of a word: the few non-empty parts of its filter, with their indexes.
pub(super) struct QueryPairs(Vec<(usize, u64)>);

impl QueryPairs {
    pub(super) fn of(word: &str) -> Self {
        let parts = BigramFilter::of(word).0.into_iter().enumerate();
        Self(parts.filter(|&(_, part)| part != 0).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bigram_filter_rules_out_a_text_without_a_pair_of_the_word() {
        assert!(!BigramFilter::of("lists all folders").may_have(&QueryPairs::of("mail")));
    }

    proptest! {
        #[test]
        fn the_bigram_filter_never_rules_out_a_text_with_the_word(a in "\\PC{0,9}", word in "\\PC{0,9}", b in "\\PC{0,9}") {
            let text = format!("{a}{word}{b}");
            prop_assert!(BigramFilter::of(&text).may_have(&QueryPairs::of(&word)));
        }
    }
}
