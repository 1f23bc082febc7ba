//! The choice of the texts for the next request to an embedding endpoint. Pure.
//!
//! Texts are sent in batches, bounded in number and in bytes. An endpoint may refuse a batch for
//! one text in it, or for its size. The batch is then halved, down to one text. A text that is
//! refused alone is set aside, so that it does not block the others.

use std::collections::HashSet;

use super::text_hash::{EmbeddingText, TextDigest};
use crate::config::defaults;

/// The wanted texts, and the size of the next batch.
#[derive(Debug)]
pub(super) struct EmbeddingBatch {
    wanted: Vec<EmbeddingText>,
    /// The texts that the endpoint refused alone.
    refused: HashSet<TextDigest>,
    /// The maximum number of texts in the next batch.
    size: usize,
}

impl Default for EmbeddingBatch {
    fn default() -> Self {
        Self {
            wanted: Vec::new(),
            refused: HashSet::new(),
            size: defaults::EMBEDDING_BATCH_TEXTS_MAX,
        }
    }
}

impl EmbeddingBatch {
    pub(super) fn set_texts(&mut self, texts: Vec<EmbeddingText>) {
        self.wanted = texts;
        let wanted: HashSet<TextDigest> = self.wanted.iter().map(EmbeddingText::digest).collect();
        self.refused.retain(|digest| wanted.contains(digest));
    }

    pub(super) fn texts(&self) -> &[EmbeddingText] {
        &self.wanted
    }

    /// Returns the next batch, each text once; it is empty when no text is left to ask for.
    pub(super) fn next(&self, is_known: impl Fn(&TextDigest) -> bool) -> Vec<EmbeddingText> {
        let (mut batch, mut seen, mut n_bytes) = (Vec::new(), HashSet::new(), 0);
        for text in &self.wanted {
            let digest = text.digest();
            let is_empty = text.as_str().is_empty();
            if is_empty || self.refused.contains(&digest) || is_known(&digest) {
                continue;
            }
            n_bytes += text.as_str().len();
            let is_over = n_bytes > defaults::EMBEDDING_BATCH_BYTES_MAX;
            if batch.len() == self.size || (is_over && !batch.is_empty()) {
                break;
            }
            if seen.insert(digest) {
                batch.push(text.clone());
            }
        }
        batch
    }

    /// Records that a batch was answered, so that the next one may be larger.
    pub(super) fn answered(&mut self) {
        self.size = (self.size * 2).min(defaults::EMBEDDING_BATCH_TEXTS_MAX);
    }

    /// Records that `batch` was refused for its content. Returns the text that is set aside.
    pub(super) fn refused(&mut self, batch: &[EmbeddingText]) -> Option<EmbeddingText> {
        match batch {
            [text] => {
                self.refused.insert(text.digest());
                Some(text.clone())
            }
            texts => {
                self.size = (texts.len() / 2).max(1);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn texts(all: &[&str]) -> Vec<EmbeddingText> {
        all.iter().map(|text| EmbeddingText::new(text)).collect()
    }

    fn nothing(_: &TextDigest) -> bool {
        false
    }

    #[test]
    fn each_unknown_text_is_requested_once() {
        let mut plan = EmbeddingBatch::default();
        plan.set_texts(texts(&["a", "b", "", "a", "  ", "c"]));
        let known = EmbeddingText::new("b").digest();
        assert_eq!(plan.next(|digest| *digest == known), texts(&["a", "c"]));
        plan.set_texts(texts(&["b"]));
        assert!(plan.next(|digest| *digest == known).is_empty());
    }

    #[test]
    fn a_refused_batch_is_halved_until_the_refused_text_is_found() {
        let mut plan = EmbeddingBatch::default();
        plan.set_texts(texts(&["bad", "b", "c", "d"]));
        let mut sizes = Vec::new();
        let (mut known, mut aside) = (HashSet::new(), Vec::new());
        loop {
            let batch = plan.next(|digest| known.contains(digest));
            if batch.is_empty() {
                break;
            }
            sizes.push(batch.len());
            if batch.contains(&EmbeddingText::new("bad")) {
                aside.extend(plan.refused(&batch));
            } else {
                known.extend(batch.iter().map(EmbeddingText::digest));
                plan.answered();
            }
        }
        assert_eq!(sizes, [4, 2, 1, 1, 2]);
        assert_eq!(aside, texts(&["bad"]));
        // It stays aside while it is wanted.
        plan.set_texts(texts(&["bad", "e"]));
        assert_eq!(plan.next(nothing), texts(&["e"]));
        plan.set_texts(texts(&["e"]));
        plan.set_texts(texts(&["bad"]));
        assert_eq!(plan.next(nothing), texts(&["bad"]));
    }

    proptest! {
        #[test]
        fn every_batch_is_within_its_bounds_and_all_batches_cover_all_texts(
            lengths in vec(0usize..3000, 0..200),
        ) {
            let wanted: Vec<EmbeddingText> = lengths
                .iter()
                .enumerate()
                .map(|(n, length)| EmbeddingText::new(&format!("{n} {}", "x".repeat(*length))))
                .collect();
            let mut plan = EmbeddingBatch::default();
            plan.set_texts(wanted.clone());
            let mut known = HashSet::new();
            loop {
                let batch = plan.next(|digest| known.contains(digest));
                if batch.is_empty() {
                    break;
                }
                let n_bytes: usize = batch.iter().map(|text| text.as_str().len()).sum();
                prop_assert!(batch.len() <= defaults::EMBEDDING_BATCH_TEXTS_MAX);
                prop_assert!(n_bytes <= defaults::EMBEDDING_BATCH_BYTES_MAX);
                for text in batch {
                    prop_assert!(known.insert(text.digest()));
                }
            }
            prop_assert!(wanted.iter().all(|text| known.contains(&text.digest())));
        }
    }
}
