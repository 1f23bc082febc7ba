//! The correction of misspelt words.

use super::term_dictionary::TermDictionary;

/// The minimum length of words with one wrong letter, and with two. Shorter words are too similar
/// to each other.
const LETTERS_MIN: [usize; 2] = [5, 8];

/// Returns the known stem that is nearest to an unknown word, and its number.
///
/// Only letters after the first may be wrong. Of equally near stems, the first by name counts.
pub(super) fn correct<'a>(word: &str, lexicon: &'a TermDictionary) -> Option<(&'a str, u32)> {
    let own = SpellingShape::of(word);
    let n_letters = word.chars().count();
    let n_wrong = LETTERS_MIN.iter().filter(|&&least| n_letters >= least).count();
    // Another number is another thing, and not a misspelling.
    if n_wrong == 0 || !word.is_ascii() || own.has_digits() {
        return None;
    }
    // A stem lacks the ending of a word, so it is compared with the whole word, and with its
    // beginning.
    let distance = |stem: &str| {
        let whole = strsim::osa_distance(word, stem);
        let beginning = word.get(..stem.len()).filter(|_| word.len() <= stem.len() + 3);
        beginning.map_or(whole, |beginning| whole.min(strsim::osa_distance(beginning, stem)))
    };
    let is_near = |stem: &SpellingShape| {
        let (length, own_length) = (usize::from(stem.length), usize::from(own.length));
        stem.first == own.first
            && !stem.has_digits()
            && length + 3 >= own_length
            && length <= own_length + n_wrong
            && length >= LETTERS_MIN[0] - 1
            // Each letter of the stem that the word lacks is a mistake.
            && (stem.letters & !own.letters).count_ones() as usize <= n_wrong
    };
    lexicon
        .stems_of(is_near)
        .map(|(stem, number)| (distance(stem), stem, number))
        .filter(|&(distance, ..)| distance <= n_wrong)
        .min()
        .map(|(_, stem, number)| (stem, number))
}

/// The features compared before the distance, which takes far longer to compute.
#[derive(Clone)]
pub(super) struct SpellingShape {
    first: u8,
    /// The number of bytes; words are far below the limit.
    length: u8,
    /// A bit for each letter that occurs, and one for any digit.
    letters: u32,
}

/// The bit for digits, which no letter has.
const DIGITS: u32 = 1 << 31;

impl SpellingShape {
    pub(super) fn of(word: &str) -> Self {
        Self {
            first: word.as_bytes().first().copied().unwrap_or_default(),
            length: u8::try_from(word.len()).unwrap_or(u8::MAX),
            letters: word.bytes().fold(0, |letters, byte| {
                letters | if byte.is_ascii_digit() { DIGITS } else { 1 << (byte & 31) }
            }),
        }
    }

    fn has_digits(&self) -> bool {
        self.letters & DIGITS != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Thesaurus;

    #[test]
    fn a_misspelt_word_is_read_as_the_nearest_one() {
        let thesaurus = Thesaurus::read("translate, document\nweather, forecast\nfile, find");
        let lexicon = TermDictionary::new(&thesaurus);
        let correct = |word| correct(word, &lexicon).map(|(stem, _)| stem);

        assert_eq!(correct("documnt"), Some("document"));
        assert_eq!(correct("tranlate"), Some("translat"));
        assert_eq!(correct("wheather"), Some("weather"));
        assert_eq!(correct("fiel"), None);
        assert_eq!(correct("elephant"), None);
        assert_eq!(correct("weather2"), None);
    }
}
