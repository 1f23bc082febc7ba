//! The parts of a score, for explanations.

use super::{
    ScorePart, SearchIndex, SearchQuery, ToolPosition,
    analyzed_server::TextField,
    document_builder,
    index::{ToolScore, confidence},
    query_terms::{QueryTerms, QueryWord},
    term_evidence::{TermEvidence, TermWeight},
};

impl SearchIndex {
    /// Returns the parts of a score by words alone, and its upper bound.
    pub(super) fn parts_by_bm25(
        &self,
        query: &SearchQuery<'_>,
        place: ToolPosition,
        number: u32,
    ) -> (Vec<ScorePart>, f64) {
        let request =
            QueryTerms::by_words(query.text, &self.words.lexicon, &self.words.weights).once();
        let words =
            request.words.iter().map(|word| (word, self.worth(&self.words.of_tools, word, number)));
        let parts = words.flat_map(|(word, worth)| self.parts_of(word, worth, place, number, 1.0));
        (parts.collect(), self.words.of_tools.most(&request, &self.words.weights))
    }

    /// Returns the parts of a score by words, concepts, server and vectors, and its upper bound.
    pub(super) fn parts_by_meaning(
        &self,
        query: &SearchQuery<'_>,
        place: ToolPosition,
        number: u32,
    ) -> (Vec<ScorePart>, f64) {
        let request = QueryTerms::read(query.text, &self.words.lexicon, &self.words.weights);
        let words: Vec<(&QueryWord, TermWeight)> = request
            .words
            .iter()
            .map(|word| (word, self.worth(&self.words.of_tools, word, number)))
            .collect();
        let covered = words.iter().map(|(word, worth)| {
            self.words.of_tools.word_weight(word, &self.words.weights) * worth.cover
        });
        let covered: f32 = covered.sum();
        let asked = self.query_weight(&request);
        let sum = |worth: TermWeight| f64::from(worth.sum(&self.words.weights));
        let server = u32::try_from(place.server).unwrap_or(u32::MAX);
        let of_server = |word: &QueryWord| sum(self.worth(&self.words.of_servers, word, server));
        let score = ToolScore {
            worth: words.iter().map(|&(_, worth)| sum(worth)).sum(),
            coverage: confidence(covered, asked),
            server: request.words.iter().map(of_server).sum(),
            similarity: self.vectors.similar(query.vector).of(number),
            asked: f64::from(asked),
        };
        let share = score.share(&self.words.weights);
        let mut parts: Vec<ScorePart> = words
            .into_iter()
            .flat_map(|(word, worth)| self.parts_of(word, worth, place, number, share))
            .collect();
        let whole = [
            ("what the server is about", score.of_server(&self.words.weights)),
            ("similarity of vectors", score.of_vectors(&self.words.weights)),
        ];
        parts.extend(whole.map(|(name, score)| ScorePart { name: name.to_owned(), score }));
        parts.retain(|part| part.score > 0.0);
        (parts, self.most(&request))
    }

    fn worth(&self, evidence: &TermEvidence, word: &QueryWord, document: u32) -> TermWeight {
        evidence.term_weight(word, document, &self.words.weights)
    }

    /// Returns the parts that a word adds: for itself and for its concept, each split by field.
    fn parts_of(
        &self,
        word: &QueryWord,
        worth: TermWeight,
        place: ToolPosition,
        number: u32,
        share: f64,
    ) -> Vec<ScorePart> {
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

    /// Returns the contribution of each field of a tool.
    fn fields_with(
        &self,
        place: ToolPosition,
        amount: impl Fn(&[u32]) -> f32,
    ) -> Vec<(TextField, f64)> {
        let server = self.analyzed(place);
        let numbers = self.words.lexicon.known_numbers_of(&server.vocabulary);
        let name = document_builder::numbered(&server.name, &numbers);
        document_builder::fields(&server.tools[place.tool], &numbers, &name)
            .map(|(field, words)| {
                let weight = self.words.lengths.weight(field, words.len(), &self.words.weights);
                (field, f64::from(weight * amount(&words)))
            })
            .filter(|&(_, amount)| amount > 0.0)
            .collect()
    }
}

/// Splits a score among the fields that it comes from.
fn split(name: &str, score: f64, fields: &[(TextField, f64)]) -> Vec<ScorePart> {
    let all: f64 = fields.iter().map(|(_, amount)| amount).sum();
    let part = |&(field, amount): &(TextField, f64)| ScorePart {
        name: format!("{name} in {field}"),
        score: score * amount / all,
    };
    fields.iter().map(part).collect()
}
