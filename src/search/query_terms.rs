//! A query as words with their senses.

use super::{
    ranking_weights as weights, spelling_correction,
    stemmer::Stemmer,
    term_dictionary::TermDictionary,
    tokenizer::{self, TextKind, WordForm},
};

/// The maximum number of words of a query. A task in a few sentences has fewer.
pub(super) const WORDS_MAX: usize = 64;

/// A query as words with their senses.
pub(super) struct QueryTerms {
    pub(super) words: Vec<QueryWord>,
}

pub(super) struct QueryWord {
    /// The word as it was written, or its correction.
    pub(super) text: Box<str>,
    /// Its stem, if any tool or the thesaurus knows it.
    pub(super) stem: Option<u32>,
    /// `true` if it may be a value for the tool: a number, or the name of a person or a place,
    /// which is upper case in the middle of a sentence.
    pub(super) is_value: bool,
    pub(super) weight: f32,
    /// The concepts that it stands for, with their weights.
    pub(super) senses: Vec<(u32, f32)>,
}

impl QueryTerms {
    /// Reads a query by words and concepts.
    pub(super) fn read(text: &str, lexicon: &TermDictionary) -> Self {
        let mut this = Self::by_words(text, lexicon);
        for word in this.words.iter_mut().filter(|word| word.stem.is_none() && !word.is_value) {
            if let Some((stem, number)) = spelling_correction::correct(&word.text, lexicon) {
                (word.text, word.stem) = (stem.into(), Some(number));
                word.weight = weights::CORRECTED;
            }
        }
        let numbers: Vec<u32> =
            this.words.iter().map(|word| word.stem.unwrap_or(u32::MAX)).collect();
        lexicon.senses(&numbers, true, |sense| {
            let share = if sense.n_words == 1 { 1.0 } else { weights::PHRASE };
            for word in &mut this.words[sense.at..sense.at + sense.n_words] {
                word.stands_for(sense.concept, sense.weight * share);
            }
        });
        this.once()
    }

    /// Reads a query by words alone.
    pub(super) fn by_words(text: &str, lexicon: &TermDictionary) -> Self {
        let stems = Stemmer::default();
        let mut found: Vec<QueryWord> = Vec::new();
        let mut is_start = true;
        for piece in tokenizer::beginning(text, tokenizer::TEXT_BYTES_MAX).split_whitespace() {
            let is_name = !is_start && piece.trim_matches(is_mark).starts_with(char::is_uppercase);
            is_start = piece.ends_with(['.', '!', '?', ':', ';']);
            for (part, weight) in meanings(piece).into_iter().zip([1.0, weights::FORMAT]) {
                tokenizer::each(part, TextKind::Prose, |word, form| {
                    let Some(stem) = stems.of(word).filter(|_| found.len() < WORDS_MAX) else {
                        return;
                    };
                    let stem = lexicon.find(&stem);
                    let (is_beside, is_number) =
                        (form == WordForm::Beside, tokenizer::is_number(word));
                    // These count only if a tool has them: a number is mostly a value, and a
                    // variant of a word was not written.
                    if stem.is_none() && (is_beside || is_number) {
                        return;
                    }
                    let weight = match (is_number, is_beside) {
                        (true, _) => weight * weights::NUMBER,
                        (false, true) => weight * weights::BESIDE,
                        (false, false) => weight,
                    };
                    let is_value = is_name || is_number || is_beside;
                    let text = word.into();
                    found.push(QueryWord { text, stem, is_value, weight, senses: Vec::new() });
                });
            }
        }
        Self { words: found }
    }

    /// Returns the query without repeated words.
    pub(super) fn once(mut self) -> Self {
        let mut seen = Vec::new();
        self.words.retain(|word| {
            let is_new = word.stem.is_none_or(|stem| !seen.contains(&stem));
            seen.extend(word.stem);
            is_new
        });
        self
    }
}

impl QueryWord {
    fn stands_for(&mut self, concept: u32, weight: f32) {
        match self.senses.iter_mut().find(|(known, _)| *known == concept) {
            Some((_, known)) => *known = known.max(weight),
            None => self.senses.push((concept, weight)),
        }
    }
}

/// Returns the parts of a piece of a query that describe the tool.
///
/// For an address: `url` and the site. For a path: `file` and the extension. The rest of both is a
/// value. Any other piece stays as it is, also the name of a file.
fn meanings(piece: &str) -> [&str; 2] {
    let trimmed = piece.trim_matches(is_mark);
    if let Some((_, rest)) = trimmed.split_once("://") {
        let host = rest.split('/').next().unwrap_or_default();
        return ["url", host.rsplit('.').nth(1).unwrap_or_default()];
    }
    let extension = trimmed.rsplit_once('.').map(|(_, extension)| extension).unwrap_or_default();
    let is_extension = (2..=5).contains(&extension.len())
        && extension.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_rooted = trimmed.starts_with(['/', '~']);
    match (is_rooted || trimmed.contains('/'), is_extension) {
        (true, true) => ["file", extension],
        (true, false) if is_rooted => ["file", ""],
        // `and/or`, `GET/POST`: alternative words.
        (_, _) => [piece, ""],
    }
}

/// Returns whether a character at the edge of a word is punctuation.
fn is_mark(found: char) -> bool {
    !found.is_alphanumeric() && !matches!(found, '/' | '~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_or_a_path_in_a_query_is_reduced_to_its_kind() {
        for (piece, expected) in [
            ("https://www.example.com/a/b?c", ["url", "example"]),
            ("/srv/reports/final_draft.pptx.", ["file", "pptx"]),
            ("(~/notes)", ["file", ""]),
            ("notes/todo.txt", ["file", "txt"]),
            ("read/write", ["read/write", ""]),
            ("Hello,", ["Hello,", ""]),
        ] {
            assert_eq!(meanings(piece), expected);
        }
    }
}
