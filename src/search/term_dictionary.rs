//! The numbers of stems and concepts, and the words that stand for each concept.

use std::{collections::HashMap, sync::Arc};

use super::{
    Thesaurus, analyzed_server::StemTable, ranking_weights as weights,
    spelling_correction::SpellingShape,
};

/// Stems and concepts by number. Clones share the concepts of the thesaurus.
#[derive(Clone)]
pub(super) struct TermDictionary {
    numbers: HashMap<Arc<str>, u32>,
    /// The stems by number.
    pub(super) stems: Vec<Arc<str>>,
    /// The shapes of the stems, by number, which rule out most stems in spelling correction.
    shapes: Vec<SpellingShape>,
    /// The names of the concepts, by number.
    pub(super) concepts: Arc<[Box<str>]>,
    /// The phrases of all concepts, by their first stem.
    phrases: Arc<HashMap<u32, Vec<Phrase>>>,
}

/// A word or a phrase that stands for a concept.
struct Phrase {
    /// The stems after the first.
    rest: Box<[u32]>,
    concept: u32,
    weight: f32,
    only_asks: bool,
}

/// A match of words with a concept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WordSense {
    pub(super) concept: u32,
    pub(super) weight: f32,
    /// The index of the first word, and the number of words.
    pub(super) at: usize,
    pub(super) n_words: usize,
}

impl TermDictionary {
    /// Numbers the concepts of a thesaurus and the stems that stand for them.
    pub(super) fn new(thesaurus: &Thesaurus) -> Self {
        let mut senses: HashMap<&[Box<str>], usize> = HashMap::new();
        for entry in thesaurus.concepts.iter().flat_map(|concept| &concept.entries) {
            *senses.entry(&entry.stems).or_default() += 1;
        }
        let concepts = thesaurus.concepts.iter().map(|concept| concept.name.clone()).collect();
        let mut this = Self {
            numbers: HashMap::new(),
            stems: Vec::new(),
            shapes: Vec::new(),
            concepts,
            phrases: Arc::default(),
        };
        let mut phrases = HashMap::<u32, Vec<Phrase>>::new();
        for (concept, number) in thesaurus.concepts.iter().zip(0..) {
            for entry in &concept.entries {
                let stems: Vec<u32> = entry.stems.iter().map(|stem| this.number(stem)).collect();
                let [first, rest @ ..] = &stems[..] else { continue };
                #[expect(clippy::cast_precision_loss, reason = "a few senses")]
                let n_senses = senses[&*entry.stems] as f32;
                phrases.entry(*first).or_default().push(Phrase {
                    rest: rest.into(),
                    concept: number,
                    weight: entry.weight / n_senses.powf(weights::AMBIGUITY),
                    only_asks: entry.only_asks,
                });
            }
        }
        this.phrases = Arc::new(phrases);
        this
    }

    /// Returns the number of a stem; a new stem gets a new number.
    pub(super) fn number(&mut self, stem: &str) -> u32 {
        if let Some(&number) = self.numbers.get(stem) {
            return number;
        }
        let number = u32::try_from(self.stems.len()).unwrap_or(u32::MAX);
        let stem: Arc<str> = stem.into();
        self.shapes.push(SpellingShape::of(&stem));
        self.stems.push(Arc::clone(&stem));
        self.numbers.insert(stem, number);
        number
    }

    /// Returns the numbers of all stems of a server; new stems get new numbers.
    pub(super) fn numbers_of(&mut self, vocabulary: &StemTable) -> Vec<u32> {
        vocabulary.iter().map(|stem| self.number(stem)).collect()
    }

    /// Returns the numbers of all stems of a server that is in the index.
    pub(super) fn known_numbers_of(&self, vocabulary: &StemTable) -> Vec<u32> {
        vocabulary.iter().map(|stem| self.find(stem).unwrap_or(u32::MAX)).collect()
    }

    pub(super) fn find(&self, stem: &str) -> Option<u32> {
        self.numbers.get(stem).copied()
    }

    /// Returns the stems with a wanted shape, and their numbers.
    pub(super) fn stems_of(
        &self,
        is_wanted: impl Fn(&SpellingShape) -> bool,
    ) -> impl Iterator<Item = (&str, u32)> {
        let wanted = (0..).zip(&self.shapes).filter(move |(_, shape)| is_wanted(shape));
        wanted.map(|(number, _)| (&*self.stems[number as usize], number))
    }

    /// Calls `found` with every sense of `words`; `is_asking` tells a query from a definition.
    pub(super) fn senses(&self, words: &[u32], is_asking: bool, mut found: impl FnMut(WordSense)) {
        for (at, first) in words.iter().enumerate() {
            for phrase in self.phrases.get(first).into_iter().flatten() {
                if words[at + 1..].starts_with(&phrase.rest) && (is_asking || !phrase.only_asks) {
                    let &Phrase { concept, weight, ref rest, .. } = phrase;
                    found(WordSense { concept, weight, at, n_words: rest.len() + 1 });
                }
            }
        }
    }
}
