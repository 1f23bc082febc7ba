//! The parts of a score, for those who ask why.

use super::{
    Index, Part, Place, Query,
    analyzed::Field,
    document,
    evidence::{Evidence, Worth},
    index::{Score, confidence},
    request::{Request, Word},
};

impl Index {
    /// Returns the parts of a score by words alone, and what they cannot be more than.
    pub(super) fn parts_by_bm25(
        &self,
        query: &Query<'_>,
        place: Place,
        number: u32,
    ) -> (Vec<Part>, f64) {
        let request =
            Request::by_words(query.text, &self.words.lexicon, &self.words.weights).once();
        let words =
            request.words.iter().map(|word| (word, self.worth(&self.words.of_tools, word, number)));
        let parts = words.flat_map(|(word, worth)| self.parts_of(word, worth, place, number, 1.0));
        (parts.collect(), self.words.of_tools.most(&request, &self.words.weights))
    }

    /// Returns the parts of a score by words, concepts, server and vectors, and what they cannot
    /// be more than.
    pub(super) fn parts_by_meaning(
        &self,
        query: &Query<'_>,
        place: Place,
        number: u32,
    ) -> (Vec<Part>, f64) {
        let request = Request::read(query.text, &self.words.lexicon, &self.words.weights);
        let words: Vec<(&Word, Worth)> = request
            .words
            .iter()
            .map(|word| (word, self.worth(&self.words.of_tools, word, number)))
            .collect();
        let covered = words.iter().map(|(word, worth)| {
            self.words.of_tools.asked(word, &self.words.weights) * worth.cover
        });
        let covered: f32 = covered.sum();
        let asked = self.asked(&request);
        let sum = |worth: Worth| f64::from(worth.sum(&self.words.weights));
        let server = u32::try_from(place.server).unwrap_or(u32::MAX);
        let of_server = |word: &Word| sum(self.worth(&self.words.of_servers, word, server));
        let score = Score {
            worth: words.iter().map(|&(_, worth)| sum(worth)).sum(),
            coverage: confidence(covered, asked),
            server: request.words.iter().map(of_server).sum(),
            similarity: self.vectors.similar(query.vector).of(number),
            asked: f64::from(asked),
        };
        let share = score.share(&self.words.weights);
        let mut parts: Vec<Part> = words
            .into_iter()
            .flat_map(|(word, worth)| self.parts_of(word, worth, place, number, share))
            .collect();
        let whole = [
            ("what the server is about", score.of_server(&self.words.weights)),
            ("similarity of vectors", score.of_vectors(&self.words.weights)),
        ];
        parts.extend(whole.map(|(name, score)| Part { name: name.to_owned(), score }));
        parts.retain(|part| part.score > 0.0);
        (parts, self.most(&request))
    }

    fn worth(&self, evidence: &Evidence, word: &Word, document: u32) -> Worth {
        evidence.worth(word, document, &self.words.weights)
    }

    /// Returns the parts that a word adds: one for itself and one for its concept, each in every
    /// field that has it.
    fn parts_of(
        &self,
        word: &Word,
        worth: Worth,
        place: Place,
        number: u32,
        share: f64,
    ) -> Vec<Part> {
        let (lesser, both) = (worth.itself.min(worth.concept), self.words.weights.both);
        let counted = |one: f32, is_larger| if is_larger { one } else { lesser * both };
        let is_itself = worth.itself >= worth.concept;
        let itself = counted(worth.itself, is_itself);
        let concept = counted(worth.concept, !is_itself);
        let mut parts = Vec::new();
        if let Some(stem) = word.stem.filter(|_| itself > 0.0) {
            let fields = self.fields_with(place, |words| {
                words.iter().filter(|&&word| word == stem).map(|_| 1.0).sum()
            });
            parts.extend(split(&format!("`{}`", word.text), f64::from(itself) * share, &fields));
        }
        let best = self.words.of_tools.best_concept(word, number, &self.words.weights);
        if let Some(best) = best.filter(|_| concept > 0.0) {
            let fields = self.fields_with(place, |words| {
                let mut amount = 0.0;
                self.words.lexicon.senses(words, false, |sense| {
                    amount += if sense.concept == best { sense.weight } else { 0.0 };
                });
                amount
            });
            let name = &self.words.lexicon.concepts()[best as usize];
            let name = format!("`{}` as `{name}`", word.text);
            parts.extend(split(&name, f64::from(concept) * share, &fields));
        }
        parts
    }

    /// Returns how much of something each field of a tool adds.
    fn fields_with(&self, place: Place, amount: impl Fn(&[u32]) -> f32) -> Vec<(Field, f64)> {
        let server = self.analyzed(place);
        let numbers = self.words.lexicon.known_numbers_of(&server.vocabulary);
        let name = document::numbered(&server.name, &numbers);
        document::fields(&server.tools[place.tool], &numbers, &name)
            .map(|(field, words)| {
                let weight = self.words.lengths.weight(field, words.len(), &self.words.weights);
                (field, f64::from(weight * amount(&words)))
            })
            .filter(|&(_, amount)| amount > 0.0)
            .collect()
    }
}

/// Splits a score among the fields that it comes from.
fn split(name: &str, score: f64, fields: &[(Field, f64)]) -> Vec<Part> {
    let all: f64 = fields.iter().map(|(_, amount)| amount).sum();
    let part = |&(field, amount): &(Field, f64)| Part {
        name: format!("{name} in {field}"),
        score: score * amount / all,
    };
    fields.iter().map(part).collect()
}
