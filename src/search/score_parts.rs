//! The parts of a score, for explanations.

use std::fmt;

use serde::Serialize;

use super::{
    SearchIndex, SearchQuery, ToolPosition,
    analyzed_server::TextField,
    document_builder,
    index::{ToolScore, confidence},
    query_terms::{QueryTerms, QueryWord},
    ranking_weights as weights,
    term_evidence::TermWeight,
};

impl SearchIndex {
    /// Returns the parts of a score by words alone, and its upper bound.
    pub(super) fn parts_by_bm25(
        &self,
        query: &SearchQuery<'_>,
        place: ToolPosition,
        number: u32,
    ) -> (Vec<ScorePart>, f64) {
        let request = QueryTerms::by_words(query.text, &self.words.lexicon).once();
        let words =
            request.words.iter().map(|word| (word, self.words.of_tools.term_weight(word, number)));
        let parts =
            words.flat_map(|(word, weight)| self.parts_of(word, weight, place, number, 1.0));
        (parts.collect(), self.words.of_tools.most(&request))
    }

    /// Returns the parts of a score by words, concepts, server and vectors, and its upper bound.
    pub(super) fn parts_by_meaning(
        &self,
        query: &SearchQuery<'_>,
        place: ToolPosition,
        number: u32,
    ) -> (Vec<ScorePart>, f64) {
        let request = QueryTerms::read(query.text, &self.words.lexicon);
        let words: Vec<(&QueryWord, TermWeight)> = request
            .words
            .iter()
            .map(|word| (word, self.words.of_tools.term_weight(word, number)))
            .collect();
        let covered =
            words.iter().map(|(word, weight)| self.words.of_tools.word_weight(word) * weight.cover);
        let covered: f32 = covered.sum();
        let asked = self.query_weight(&request);
        let sum = |weight: TermWeight| f64::from(weight.sum());
        let server = u32::try_from(place.server).unwrap_or(u32::MAX);
        let of_server = |word: &QueryWord| sum(self.words.of_servers.term_weight(word, server));
        let score = ToolScore {
            terms: words.iter().map(|&(_, weight)| sum(weight)).sum(),
            coverage: confidence(covered, asked),
            server: request.words.iter().map(of_server).sum(),
            similarity: self.vectors.similar(query.vector).of(number),
            asked: f64::from(asked),
        };
        let share = score.share();
        let mut parts: Vec<ScorePart> = words
            .into_iter()
            .flat_map(|(word, weight)| self.parts_of(word, weight, place, number, share))
            .collect();
        let whole = [
            ("what the server is about", score.of_server()),
            ("similarity of vectors", score.of_vectors()),
        ];
        parts.extend(whole.map(|(name, score)| ScorePart { name: name.to_owned(), score }));
        parts.retain(|part| part.score > 0.0);
        (parts, self.most(&request))
    }

    /// Returns the parts that a word adds: for itself and for its concept, each split by field.
    fn parts_of(
        &self,
        word: &QueryWord,
        weight: TermWeight,
        place: ToolPosition,
        number: u32,
        share: f64,
    ) -> Vec<ScorePart> {
        let (lesser, both) = (weight.itself.min(weight.concept), weights::BOTH);
        let counted = |one: f32, is_larger| if is_larger { one } else { lesser * both };
        let is_itself = weight.itself >= weight.concept;
        let itself = counted(weight.itself, is_itself);
        let concept = counted(weight.concept, !is_itself);
        let mut parts = Vec::new();
        if let Some(stem) = word.stem.filter(|_| itself > 0.0) {
            let fields = self.fields_with(place, |words| {
                words.iter().filter(|&&word| word == stem).map(|_| 1.0).sum()
            });
            parts.extend(split(&format!("`{}`", word.text), f64::from(itself) * share, &fields));
        }
        let best = self.words.of_tools.best_concept(word, number);
        if let Some(best) = best.filter(|_| concept > 0.0) {
            let fields = self.fields_with(place, |words| {
                let mut amount = 0.0;
                self.words.lexicon.senses(words, false, |sense| {
                    amount += if sense.concept == best { sense.weight } else { 0.0 };
                });
                amount
            });
            let name = &self.words.lexicon.concepts[best as usize];
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
                let weight = self.words.lengths.weight(field, words.len());
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

/// The explanation of a tool's score: parts that add up to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ScoreExplanation {
    /// The sum of the parts.
    pub score: f64,
    /// The parts of the score, the largest first.
    pub parts: Vec<ScorePart>,
}

/// A part of a score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScorePart {
    /// The reason for this part, such as a word and its field.
    pub name: String,
    /// The contribution to the score.
    pub score: f64,
}

impl ScoreExplanation {
    pub(super) fn of(mut parts: Vec<ScorePart>) -> Self {
        parts.sort_by(|a, b| b.score.total_cmp(&a.score));
        Self { score: parts.iter().map(|part| part.score).sum(), parts }
    }
}

impl fmt::Display for ScoreExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.score)?;
        for (place, ScorePart { name, score }) in self.parts.iter().enumerate() {
            write!(f, "{}{name} {score:.3}", if place == 0 { " = " } else { " + " })?;
        }
        Ok(())
    }
}
