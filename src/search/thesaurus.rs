//! Words with the same or a similar meaning.
//!
//! The groups are in `thesaurus.txt`, which begins with a description of the format. People wrote
//! and reviewed them; there is no model behind them.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use super::{
    stemmer::Stemmer,
    term_dictionary::TermDictionary,
    tokenizer::{self, TextKind, WordForm},
};

/// The longest phrase, in words that carry meaning.
pub(super) const PHRASE_WORDS_MAX: usize = 4;

/// The maximum number of groups that an operator adds, and of entries in a group.
pub(super) const GROUPS_MAX: (usize, usize) = (1000, 100);

/// Groups of words with the same meaning; each group is a concept.
#[derive(Default)]
pub struct Thesaurus {
    pub(super) concepts: Vec<SynonymGroup>,
    /// The numbered concepts and their words, with which every index begins.
    lexicon: OnceLock<TermDictionary>,
}

/// A group of words with the same meaning.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SynonymGroup {
    /// Its name, which is its first entry.
    pub(super) name: Box<str>,
    pub(super) entries: Vec<ThesaurusEntry>,
}

/// A word or a phrase of a group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ThesaurusEntry {
    /// Its stems, in order.
    pub(super) stems: Vec<Box<str>>,
    /// Its weight in the group, above 0 and up to 1.
    pub(super) weight: f32,
    /// `true` if it is before the `>`: it asks for the concept, but is not found by it.
    pub(super) only_asks: bool,
}

impl Thesaurus {
    /// The text of the built-in thesaurus.
    pub const EMBEDDED: &str = include_str!("thesaurus.txt");

    /// Returns the built-in thesaurus. The first call takes a few milliseconds.
    pub fn embedded() -> Arc<Self> {
        static EMBEDDED: OnceLock<Arc<Thesaurus>> = OnceLock::new();
        let read = || {
            let embedded = Self::read(Self::EMBEDDED);
            embedded.lexicon();
            Arc::new(embedded)
        };
        Arc::clone(EMBEDDED.get_or_init(read))
    }

    /// Reads groups in the format of the file. An entry without meaning is left out.
    pub fn read(text: &str) -> Self {
        let lines = text.lines().map(str::trim);
        let stems = Stemmer::default();
        let concepts = lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .filter_map(|line| SynonymGroup::read(line, &stems))
            .collect();
        Self { concepts, lexicon: OnceLock::new() }
    }

    /// Returns the built-in thesaurus with the operator's `groups`.
    pub fn with_synonyms(groups: &[Vec<String>]) -> Arc<Self> {
        let embedded = Self::embedded();
        if groups.is_empty() {
            return embedded;
        }
        let groups = groups.iter().map(|group| group.iter().map(String::as_str));
        Arc::new(embedded.with(groups))
    }

    /// Returns this thesaurus with the operator's own groups.
    ///
    /// Groups beyond the first thousand are left out, and entries of a group beyond a hundred.
    pub fn with<'a, G>(&self, groups: impl IntoIterator<Item = G>) -> Self
    where
        G: IntoIterator<Item = &'a str>,
    {
        let stems = Stemmer::default();
        let groups = groups.into_iter().take(GROUPS_MAX.0);
        let mut concepts = self.concepts.clone();
        concepts.extend(groups.filter_map(|group| SynonymGroup::of(group, &stems)));
        Self { concepts, lexicon: OnceLock::new() }
    }

    /// Returns the numbered concepts and their words.
    pub(super) fn lexicon(&self) -> &TermDictionary {
        self.lexicon.get_or_init(|| TermDictionary::new(self))
    }
}

impl fmt::Debug for Thesaurus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Thesaurus of {} groups", self.concepts.len())
    }
}

impl SynonymGroup {
    fn read(line: &str, stems: &Stemmer) -> Option<Self> {
        let (query_only, found) = line.split_once('>').unwrap_or(("", line));
        let read = |text: &str, only_asks| -> Vec<ThesaurusEntry> {
            text.split(',')
                .filter_map(|entry| ThesaurusEntry::read(entry, only_asks, stems))
                .collect()
        };
        let mut entries = read(found, false);
        entries.extend(read(query_only, true));
        let name = line.split([',', '~', '>']).next().unwrap_or_default().trim();
        (!entries.is_empty()).then(|| Self { name: name.into(), entries })
    }

    fn of<'a>(group: impl IntoIterator<Item = &'a str>, stems: &Stemmer) -> Option<Self> {
        let group: Vec<&str> = group.into_iter().take(GROUPS_MAX.1).collect();
        let entries: Vec<ThesaurusEntry> =
            group.iter().filter_map(|entry| ThesaurusEntry::of(entry, 1.0, false, stems)).collect();
        // A group of one entry has no effect.
        (entries.len() > 1).then(|| Self { name: (*group[0]).into(), entries })
    }
}

impl ThesaurusEntry {
    fn read(text: &str, only_asks: bool, stems: &Stemmer) -> Option<Self> {
        let (text, weight) = text.split_once('~').unwrap_or((text, "1"));
        let weight = weight.trim().parse().ok().filter(|weight| (0.01..=1.0).contains(weight))?;
        Self::of(text, weight, only_asks, stems)
    }

    fn of(text: &str, weight: f32, only_asks: bool, known: &Stemmer) -> Option<Self> {
        let mut stems: Vec<Box<str>> = Vec::new();
        tokenizer::each(text, TextKind::Prose, |word, form| {
            let stem = known.of(word).filter(|_| form == WordForm::Plain);
            stems.extend(stem.map(Box::from));
        });
        ((1..=PHRASE_WORDS_MAX).contains(&stems.len())).then_some(Self { stems, weight, only_asks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_words_phrases_weights_and_a_direction() {
        let read = Thesaurus::read("# no group\n\ntonight > date, current date~0.5\n");

        let [concept] = &read.concepts[..] else { panic!("one group: {read:?}") };
        assert_eq!(&*concept.name, "tonight");
        let entry = |text: &str, weight, only_asks| ThesaurusEntry {
            stems: text.split(' ').map(Box::from).collect(),
            weight,
            only_asks,
        };
        let expected = [
            entry("date", 1.0, false),
            entry("current date", 0.5, false),
            entry("tonight", 1.0, true),
        ];
        assert_eq!(concept.entries, expected);
    }

    #[test]
    fn an_operator_adds_groups_and_groups_without_meaning_are_left_out() {
        let groups = [vec!["ticket", "case"], vec!["alone"], vec!["the", "of"]];

        assert_eq!(Thesaurus::default().with(groups).concepts.len(), 1);
    }

    #[test]
    fn every_entry_of_the_thesaurus_has_a_meaning_and_stands_once_in_its_group() {
        let stems = Stemmer::default();
        for line in Thesaurus::EMBEDDED.lines() {
            if line.starts_with('#') || line.is_empty() {
                continue;
            }
            let n_written = line.split([',', '>']).count();
            let concept = SynonymGroup::read(line, &stems).expect(line);
            assert_eq!(concept.entries.len(), n_written, "{line}");
            let mut seen: Vec<_> = concept.entries.iter().map(|entry| &entry.stems).collect();
            seen.sort();
            seen.dedup();
            assert!(seen.len() == n_written && n_written > 1, "twice in: {line}");
        }
    }
}
