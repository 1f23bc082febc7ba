//! The analysed words of one server and its tools, ready to be put into an index.
//!
//! They are kept while the server offers the same, so that a change of one server does not analyse
//! the others again. This module knows nothing of weights, meaning or other servers.

use std::{collections::HashMap, fmt};

use serde::Serialize;

use super::{
    bigram_filter::BigramFilter,
    definition_text::DefinitionText,
    stemmer::Stemmer,
    tokenizer::{self, TextKind},
};

/// The maximum number of words kept of one tool: ten times those of a long definition.
pub(super) const WORDS_MAX: usize = 2000;

/// The place of a word in a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TextField {
    /// The tool's name.
    Name,
    /// Its title.
    Title,
    /// Its description.
    Description,
    /// The names of its parameters, and their enumerated values.
    Parameters,
    /// The descriptions of its parameters.
    Remarks,
    /// The name of its server.
    Server,
}

impl TextField {
    /// The fields of a definition, in the order of [`AnalyzedTool`].
    pub(super) const OF_TOOL: [Self; 5] =
        [Self::Name, Self::Title, Self::Description, Self::Parameters, Self::Remarks];

    /// The number of fields.
    pub(super) const COUNT: usize = Self::OF_TOOL.len() + 1;

    fn kind(self) -> TextKind {
        match self {
            Self::Name | Self::Parameters | Self::Server => TextKind::Name,
            Self::Title | Self::Description | Self::Remarks => TextKind::Prose,
        }
    }
}

impl fmt::Display for TextField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The words of one server and its tools.
pub struct AnalyzedServer {
    /// The stems, in order of appearance. Words are indexes into this table.
    pub(super) vocabulary: StemTable,
    /// The words of the server's name.
    pub(super) name: Box<[u32]>,
    /// The words of its title and instructions.
    pub(super) about: Box<[u32]>,
    /// The tools, as the server orders them.
    pub(super) tools: Box<[AnalyzedTool]>,
}

/// The words and the text of one tool.
pub(super) struct AnalyzedTool {
    /// Lower case: `server/tool`, the title and the description.
    text: Box<str>,
    /// The byte pairs of its name, title and description.
    pub(super) pairs: BigramFilter,
    /// The offsets in `text` of the start and the end of the tool's name, and of the title's end.
    borders: [u32; 3],
    /// The words, field by field.
    words: Box<[u32]>,
    /// The end of each field in `words`.
    ends: [u32; TextField::OF_TOOL.len()],
}

impl AnalyzedServer {
    /// Analyses a server: its name, its own description, and the definitions of its tools.
    ///
    /// `about` is its title and its instructions, `tools` are JSON. An invalid definition keeps its
    /// position, and is found only by its server.
    pub fn of<'a>(server: &str, about: &str, tools: impl Iterator<Item = &'a str>) -> Self {
        let mut analyzer = Analyzer::default();
        let name = analyzer.words(server, TextKind::Name, WORDS_MAX);
        let about = analyzer.words(about, TextKind::Prose, WORDS_MAX);
        let tools = tools.map(|json| analyzer.tool(server, &DefinitionText::read(json))).collect();
        Self { vocabulary: analyzer.vocabulary.done(), name, about, tools }
    }
}

impl AnalyzedTool {
    /// Returns `server/tool`, in lower case.
    pub(super) fn path(&self) -> &str {
        &self.text[..self.borders[1] as usize]
    }

    pub(super) fn server(&self) -> &str {
        // One byte separates the server from the tool's name.
        &self.text[..self.borders[0] as usize - 1]
    }

    pub(super) fn name(&self) -> &str {
        &self.text[self.borders[0] as usize..self.borders[1] as usize]
    }

    pub(super) fn title(&self) -> &str {
        &self.text[self.borders[1] as usize..self.borders[2] as usize]
    }

    pub(super) fn description(&self) -> &str {
        &self.text[self.borders[2] as usize..]
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = (TextField, &[u32])> {
        let starts = [0].into_iter().chain(self.ends);
        let spans = starts.zip(self.ends);
        TextField::OF_TOOL
            .into_iter()
            .zip(spans)
            .map(|(field, (start, end))| (field, &self.words[start as usize..end as usize]))
    }
}

/// Stems, each once, contiguous in memory.
#[derive(Default)]
pub(super) struct StemTable {
    text: Box<str>,
    ends: Box<[u32]>,
}

impl StemTable {
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.text[start as usize..end as usize])
    }
}

/// A converter of text to indexes in a growing vocabulary.
#[derive(Default)]
struct Analyzer {
    stems: Stemmer,
    vocabulary: StemTableBuilder,
    /// The words seen so far, with the indexes of their stems: most words of a server repeat.
    seen: HashMap<Box<str>, Option<u32>>,
}

#[derive(Default)]
struct StemTableBuilder {
    places: HashMap<Box<str>, u32>,
    text: String,
    ends: Vec<u32>,
}

impl StemTableBuilder {
    fn place(&mut self, stem: &str) -> u32 {
        if let Some(&place) = self.places.get(stem) {
            return place;
        }
        let place = count(self.ends.len());
        self.text.push_str(stem);
        self.ends.push(count(self.text.len()));
        self.places.insert(stem.into(), place);
        place
    }

    fn done(self) -> StemTable {
        StemTable { text: self.text.into(), ends: self.ends.into() }
    }
}

impl Analyzer {
    fn words(&mut self, text: &str, kind: TextKind, n_max: usize) -> Box<[u32]> {
        let mut found = Vec::new();
        tokenizer::each(text, kind, |word, _| {
            if found.len() == n_max {
                return;
            }
            let place = self.seen.get(word).copied().unwrap_or_else(|| {
                let place = self.stems.of(word).map(|stem| self.vocabulary.place(&stem));
                self.seen.insert(word.into(), place);
                place
            });
            found.extend(place);
        });
        found.into()
    }

    fn tool(&mut self, server: &str, definition: &DefinitionText<'_>) -> AnalyzedTool {
        let mut all = Vec::new();
        let ends = TextField::OF_TOOL.map(|field| {
            let text = match field {
                TextField::Name => &*definition.name,
                TextField::Title => &definition.title,
                TextField::Description => &definition.description,
                TextField::Parameters => &definition.parameters,
                TextField::Remarks => &definition.remarks,
                TextField::Server => "",
            };
            all.extend(self.words(text, field.kind(), WORDS_MAX - all.len()));
            count(all.len())
        });
        let cut = |text| tokenizer::beginning(text, tokenizer::TEXT_BYTES_MAX).to_lowercase();
        let mut text = cut(server);
        text.push('/');
        let borders = [&*definition.name, &definition.title].map(|part| {
            let start = count(text.len());
            text.push_str(&cut(part));
            [start, count(text.len())]
        });
        let borders = [borders[0][0], borders[0][1], borders[1][1]];
        text.push_str(&cut(&definition.description));
        let pairs = BigramFilter::of(&text[borders[0] as usize..]);
        AnalyzedTool { text: text.into(), pairs, borders, words: all.into(), ends }
    }
}

/// Returns a length as it is stored. All lengths are far below the limit.
fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl fmt::Debug for AnalyzedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tools.iter().map(AnalyzedTool::path)).finish()
    }
}
