//! The conversion of tools and servers to documents: the amount of each word and concept.

use super::{
    AnalyzedServer,
    analyzed_server::{AnalyzedTool, TextField},
    postings::{DocumentTerms, SearchTerm},
    ranking_weights as weights,
    sparse_scores::SparseScores,
    term_dictionary::TermDictionary,
};

/// The weight of a word of a server's name, relative to a word of its title or instructions.
const SERVER_NAME: f32 = 3.0;

/// The saturation of repeated words of a server: a constant, and an addition for each tool.
const SERVER_SATURATION: (f32, f32) = (1.0, 0.1);

/// A converter of servers to features, one after the other.
pub(super) struct DocumentBuilder<'a> {
    lexicon: &'a TermDictionary,
    lengths: &'a FieldLengths,
    /// The amounts of the current tool; `server` has those of the current server.
    tool: Amounts,
    server: Amounts,
    /// The concepts of the current field.
    field: SparseScores,
    pub(super) n_tools: u32,
    n_servers: u32,
    pub(super) of_tools: DocumentTerms,
    pub(super) of_servers: DocumentTerms,
}

/// The amounts of stems and concepts.
struct Amounts {
    stems: SparseScores,
    concepts: SparseScores,
}

impl Amounts {
    fn new(lexicon: &TermDictionary) -> Self {
        Self {
            stems: SparseScores::new(lexicon.stems.len()),
            concepts: SparseScores::new(lexicon.concepts.len()),
        }
    }

    /// Moves the amounts to `to` as features of a document, reduced by the saturation.
    fn drain(
        &mut self,
        document: u32,
        saturation: f32,
        to: &mut DocumentTerms,
        mut also: impl FnMut(Kind, u32, f32),
    ) {
        let mut drain = |from: &mut SparseScores, to: &mut Vec<SearchTerm>, kind| {
            from.drain(|feature, found| {
                let amount = found / (found + saturation);
                to.push(SearchTerm { feature, document, amount });
                also(kind, feature, amount);
            });
        };
        drain(&mut self.stems, &mut to.stems, Kind::Stem);
        drain(&mut self.concepts, &mut to.concepts, Kind::Concept);
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Stem,
    Concept,
}

impl<'a> DocumentBuilder<'a> {
    pub(super) fn new(lexicon: &'a TermDictionary, lengths: &'a FieldLengths) -> Self {
        Self {
            lexicon,
            lengths,
            tool: Amounts::new(lexicon),
            server: Amounts::new(lexicon),
            field: SparseScores::new(lexicon.concepts.len()),
            n_tools: 0,
            n_servers: 0,
            of_tools: DocumentTerms::default(),
            of_servers: DocumentTerms::default(),
        }
    }

    /// Reads a server; `numbers` are the numbers of its stems in the lexicon.
    pub(super) fn server(&mut self, server: &AnalyzedServer, numbers: &[u32]) {
        let name = numbered(&server.name, numbers);
        for (words, weight) in [(&name, SERVER_NAME), (&numbered(&server.about, numbers), 1.0)] {
            for &word in words {
                self.server.stems.add(word, weight);
            }
            let concepts = &mut self.server.concepts;
            self.lexicon.senses(words, false, |sense| {
                concepts.add(sense.concept, weight * sense.weight);
            });
        }
        for tool in &server.tools {
            for (field, words) in fields(tool, numbers, &name) {
                self.field(field, &words);
            }
            let server = &mut self.server;
            let also = |kind, feature, amount| match kind {
                Kind::Stem => server.stems.add(feature, amount),
                Kind::Concept => server.concepts.add(feature, amount),
            };
            self.tool.drain(self.n_tools, weights::SATURATION, &mut self.of_tools, also);
            self.n_tools += 1;
        }
        let (once, per_tool) = SERVER_SATURATION;
        #[expect(clippy::cast_precision_loss, reason = "a count of tools")]
        let saturation = once + per_tool * server.tools.len() as f32;
        self.server.drain(self.n_servers, saturation, &mut self.of_servers, |_, _, _| {});
        self.n_servers += 1;
    }

    fn field(&mut self, field: TextField, words: &[u32]) {
        let weight = self.lengths.weight(field, words.len());
        for &word in words {
            self.tool.stems.add(word, weight);
        }
        self.lexicon
            .senses(words, false, |sense| self.field.add(sense.concept, weight * sense.weight));
        let concepts = &mut self.tool.concepts;
        self.field.drain(|concept, amount| concepts.add(concept, amount));
    }
}

/// Returns the fields of a tool and its server's name, with words as numbers of the lexicon.
pub(super) fn fields(
    tool: &AnalyzedTool,
    numbers: &[u32],
    server_name: &[u32],
) -> impl Iterator<Item = (TextField, Vec<u32>)> {
    tool.fields()
        .map(|(field, words)| (field, numbered(words, numbers)))
        .chain([(TextField::Server, server_name.to_vec())])
}

pub(super) fn numbered(words: &[u32], numbers: &[u32]) -> Vec<u32> {
    words.iter().map(|&word| numbers[word as usize]).collect()
}

/// The average length of each field, in words.
pub(super) struct FieldLengths([f32; TextField::COUNT]);

impl FieldLengths {
    #[expect(clippy::cast_precision_loss, reason = "counts of words")]
    pub(super) fn of<'a>(servers: impl Iterator<Item = &'a AnalyzedServer>) -> Self {
        let mut sums = [0_usize; TextField::COUNT];
        let mut n_tools = 0;
        for server in servers {
            n_tools += server.tools.len();
            for (field, words) in server.tools.iter().flat_map(AnalyzedTool::fields) {
                sums[field as usize] += words.len();
            }
            sums[TextField::Server as usize] += server.name.len() * server.tools.len();
        }
        Self(sums.map(|sum| (sum as f32 / n_tools.max(1) as f32).max(1.0)))
    }

    /// Returns the weight of a word in a field of `n_words` words.
    #[expect(clippy::cast_precision_loss, reason = "counts of words")]
    pub(super) fn weight(&self, field: TextField, n_words: usize) -> f32 {
        let at = field as usize;
        let share = weights::LENGTHS[at];
        weights::FIELDS[at] / (1.0 - share + share * n_words as f32 / self.0[at])
    }
}
