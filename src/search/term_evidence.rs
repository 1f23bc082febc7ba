//! The evidence for each document: words and concepts of the request that it contains.

use super::{
    postings::{DocumentTerms, PostingLists},
    query_terms::{QueryTerms, QueryWord},
    ranking_weights::RankingWeights,
    sparse_scores::SparseScores,
    term_dictionary::TermDictionary,
};

/// The words and the concepts of documents, which are tools or servers.
pub(super) struct TermEvidence {
    stems: PostingLists,
    concepts: PostingLists,
}

/// The evidence for each document.
pub(super) struct DocumentEvidence {
    /// The score of all words.
    pub(super) worth: SparseScores,
    /// The total weight of the covered words.
    pub(super) covered: SparseScores,
}

/// The score of one word in a document, by itself and by its concept, and its coverage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TermWeight {
    pub(super) itself: f32,
    pub(super) concept: f32,
    /// The coverage, between 0 and 1.
    pub(super) cover: f32,
}

impl TermWeight {
    /// Returns the total: the larger score, and a part of the other.
    pub(super) fn sum(self, weights: &RankingWeights) -> f32 {
        self.itself.max(self.concept) + weights.both * self.itself.min(self.concept)
    }
}

impl TermEvidence {
    pub(super) fn new(
        features: &DocumentTerms,
        lexicon: &TermDictionary,
        n_documents: usize,
    ) -> Self {
        Self {
            stems: PostingLists::of(&features.stems, lexicon.n_stems(), n_documents),
            concepts: PostingLists::of(&features.concepts, lexicon.concepts().len(), n_documents),
        }
    }

    /// Returns whether any document has a stem.
    pub(super) fn knows(&self, stem: u32) -> bool {
        !self.stems.with(stem).is_empty()
    }

    /// Returns the weight of a word in a request: its rarity, or that of its rarest concept.
    pub(super) fn word_weight(&self, word: &QueryWord, weights: &RankingWeights) -> f32 {
        let itself =
            word.stem.filter(|&stem| self.knows(stem)).map(|stem| self.rarity(stem, weights));
        let concepts = word.senses.iter().map(|&(concept, weight)| {
            self.rarity_of_concept(concept, weights) * weight * weights.concept
        });
        let known = concepts.chain(itself).fold(0.0, f32::max);
        match (known > 0.0, word.is_value) {
            (true, _) => known * word.weight,
            // No tool is about a value.
            (false, true) => 0.0,
            (false, false) => self.stems.rarity_of(0).powf(weights.rarity) * weights.unknown,
        }
    }

    /// Returns an upper bound of a document's score; it is above 0.
    pub(super) fn most(&self, request: &QueryTerms, weights: &RankingWeights) -> f64 {
        let rarest = [&self.stems, &self.concepts]
            .map(|postings| postings.rarity_of(0).powf(weights.rarity))
            .into_iter()
            .fold(1.0, f32::max);
        let n_words = request.words.iter().map(|word| word.weight).sum::<f32>().max(1.0);
        f64::from(n_words * rarest * (1.0 + weights.both))
    }

    /// Returns the evidence for each document.
    pub(super) fn find(&self, request: &QueryTerms, weights: &RankingWeights) -> DocumentEvidence {
        let n_documents = self.stems.n_documents();
        let [mut worth, mut covered] = [(), ()].map(|()| SparseScores::new(n_documents));
        let [mut concept, mut cover] = [(), ()].map(|()| SparseScores::new(n_documents));
        for word in &request.words {
            let asked = self.word_weight(word, weights);
            for &(sense, share) in &word.senses {
                let rarity = self.rarity_of_concept(sense, weights);
                for &(document, amount) in self.concepts.with(sense) {
                    concept.set_max(document, of_concept(rarity, share, amount, word, weights));
                    cover.set_max(document, covers(share * amount, weights));
                }
            }
            let stem = word.stem.map(|stem| (self.stems.with(stem), self.rarity(stem, weights)));
            for &(document, amount) in stem.map_or(&[][..], |(list, _)| list) {
                let rarity = stem.map_or(0.0, |(_, rarity)| rarity);
                let found = TermWeight {
                    itself: of_word(rarity, amount, word),
                    concept: concept.at(document),
                    cover: covers(amount, weights).max(cover.at(document)),
                };
                worth.add(document, found.sum(weights));
                covered.add(document, asked * found.cover);
                // Counted here, so not counted again below.
                concept.clear(document);
                cover.clear(document);
            }
            concept.drain(|document, found| worth.add(document, found));
            cover.drain(|document, found| covered.add(document, asked * found));
        }
        DocumentEvidence { worth, covered }
    }

    /// Returns the score of a word in one document, as [`Self::find`] adds it up.
    pub(super) fn term_weight(
        &self,
        word: &QueryWord,
        document: u32,
        weights: &RankingWeights,
    ) -> TermWeight {
        let mut found = TermWeight::default();
        for &(sense, share) in &word.senses {
            let amount = self.concepts.amount(sense, document);
            let rarity = self.rarity_of_concept(sense, weights);
            found.concept = found.concept.max(of_concept(rarity, share, amount, word, weights));
            found.cover = found.cover.max(covers(share * amount, weights));
        }
        if let Some(stem) = word.stem {
            let amount = self.stems.amount(stem, document);
            found.itself = of_word(self.rarity(stem, weights), amount, word);
            found.cover = found.cover.max(covers(amount, weights));
        }
        found
    }

    /// Returns the concept of a word with the highest score in a document.
    pub(super) fn best_concept(
        &self,
        word: &QueryWord,
        document: u32,
        weights: &RankingWeights,
    ) -> Option<u32> {
        let worth = |&(sense, share): &(u32, f32)| {
            let rarity = self.rarity_of_concept(sense, weights);
            of_concept(rarity, share, self.concepts.amount(sense, document), word, weights)
        };
        let best = word.senses.iter().max_by(|a, b| worth(a).total_cmp(&worth(b)))?;
        (worth(best) > 0.0).then_some(best.0)
    }

    fn rarity(&self, stem: u32, weights: &RankingWeights) -> f32 {
        self.stems.rarity(stem).powf(weights.rarity)
    }

    fn rarity_of_concept(&self, concept: u32, weights: &RankingWeights) -> f32 {
        self.concepts.rarity(concept).powf(weights.rarity)
    }
}

fn of_word(rarity: f32, amount: f32, word: &QueryWord) -> f32 {
    rarity * amount * word.weight
}

fn of_concept(
    rarity: f32,
    share: f32,
    amount: f32,
    word: &QueryWord,
    weights: &RankingWeights,
) -> f32 {
    rarity * share * amount * word.weight * weights.concept
}

/// Returns the coverage of a word by this amount, between 0 and 1.
fn covers(amount: f32, weights: &RankingWeights) -> f32 {
    (amount / weights.covered_at).min(1.0)
}
