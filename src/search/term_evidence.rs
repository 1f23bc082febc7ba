//! The evidence for each document: words and concepts of the request that it contains.

use super::{
    postings::{DocumentTerms, PostingLists},
    query_terms::{QueryTerms, QueryWord},
    ranking_weights as weights,
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
    pub(super) score: SparseScores,
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
    pub(super) fn sum(self) -> f32 {
        self.itself.max(self.concept) + weights::BOTH * self.itself.min(self.concept)
    }
}

impl TermEvidence {
    pub(super) fn new(
        features: &DocumentTerms,
        lexicon: &TermDictionary,
        n_documents: usize,
    ) -> Self {
        Self {
            stems: PostingLists::of(&features.stems, lexicon.stems.len(), n_documents),
            concepts: PostingLists::of(&features.concepts, lexicon.concepts.len(), n_documents),
        }
    }

    /// Returns the weight of a word in a request: its rarity, or that of its rarest concept.
    pub(super) fn word_weight(&self, word: &QueryWord) -> f32 {
        let known = word.stem.filter(|&stem| !self.stems.with(stem).is_empty());
        let concepts = word
            .senses
            .iter()
            .map(|&(concept, weight)| self.rarity_of_concept(concept) * weight * weights::CONCEPT);
        let known = concepts.chain(known.map(|stem| self.rarity(stem))).fold(0.0, f32::max);
        match (known > 0.0, word.is_value) {
            (true, _) => known * word.weight,
            // No tool is about a value.
            (false, true) => 0.0,
            (false, false) => self.stems.rarity_of(0).powf(weights::RARITY) * weights::UNKNOWN,
        }
    }

    /// Returns an upper bound of a document's score; it is above 0.
    pub(super) fn most(&self, request: &QueryTerms) -> f64 {
        let rarest = [&self.stems, &self.concepts]
            .map(|postings| postings.rarity_of(0).powf(weights::RARITY))
            .into_iter()
            .fold(1.0, f32::max);
        let n_words = request.words.iter().map(|word| word.weight).sum::<f32>().max(1.0);
        f64::from(n_words * rarest * (1.0 + weights::BOTH))
    }

    pub(super) fn find(&self, request: &QueryTerms) -> DocumentEvidence {
        let n_documents = self.stems.n_documents;
        let [mut score, mut covered] = [(), ()].map(|()| SparseScores::new(n_documents));
        let [mut concept, mut cover] = [(), ()].map(|()| SparseScores::new(n_documents));
        for word in &request.words {
            let asked = self.word_weight(word);
            for &(sense, share) in &word.senses {
                let rarity = self.rarity_of_concept(sense);
                for &(document, amount) in self.concepts.with(sense) {
                    concept.set_max(document, of_concept(rarity, share, amount, word));
                    cover.set_max(document, covers(share * amount));
                }
            }
            let stem = word.stem.map(|stem| (self.stems.with(stem), self.rarity(stem)));
            for &(document, amount) in stem.map_or(&[][..], |(list, _)| list) {
                let rarity = stem.map_or(0.0, |(_, rarity)| rarity);
                let found = TermWeight {
                    itself: of_word(rarity, amount, word),
                    concept: concept.at(document),
                    cover: covers(amount).max(cover.at(document)),
                };
                score.add(document, found.sum());
                covered.add(document, asked * found.cover);
                // Counted here, so not counted again below.
                concept.clear(document);
                cover.clear(document);
            }
            concept.drain(|document, found| score.add(document, found));
            cover.drain(|document, found| covered.add(document, asked * found));
        }
        DocumentEvidence { score, covered }
    }

    /// Returns the score of a word in one document, as [`Self::find`] adds it up.
    pub(super) fn term_weight(&self, word: &QueryWord, document: u32) -> TermWeight {
        let mut found = TermWeight::default();
        for &(sense, share) in &word.senses {
            let amount = self.concepts.amount(sense, document);
            let rarity = self.rarity_of_concept(sense);
            found.concept = found.concept.max(of_concept(rarity, share, amount, word));
            found.cover = found.cover.max(covers(share * amount));
        }
        if let Some(stem) = word.stem {
            let amount = self.stems.amount(stem, document);
            found.itself = of_word(self.rarity(stem), amount, word);
            found.cover = found.cover.max(covers(amount));
        }
        found
    }

    /// Returns the concept of a word with the highest score in a document.
    pub(super) fn best_concept(&self, word: &QueryWord, document: u32) -> Option<u32> {
        let score = |&(sense, share): &(u32, f32)| {
            let rarity = self.rarity_of_concept(sense);
            of_concept(rarity, share, self.concepts.amount(sense, document), word)
        };
        let best = word.senses.iter().max_by(|a, b| score(a).total_cmp(&score(b)))?;
        (score(best) > 0.0).then_some(best.0)
    }

    fn rarity(&self, stem: u32) -> f32 {
        self.stems.rarity(stem).powf(weights::RARITY)
    }

    fn rarity_of_concept(&self, concept: u32) -> f32 {
        self.concepts.rarity(concept).powf(weights::RARITY)
    }
}

fn of_word(rarity: f32, amount: f32, word: &QueryWord) -> f32 {
    rarity * amount * word.weight
}

fn of_concept(rarity: f32, share: f32, amount: f32, word: &QueryWord) -> f32 {
    rarity * share * amount * word.weight * weights::CONCEPT
}

/// Returns the coverage of a word by this amount, between 0 and 1.
fn covers(amount: f32) -> f32 {
    (amount / weights::COVERED_AT).min(1.0)
}
