//! An immutable index of all tools of all servers.

use std::{fmt, sync::Arc};

use super::{
    AnalyzedServer, RankingStrategy, ScoreExplanation, ScorePart, SearchHit, SearchPattern,
    SearchQuery, Thesaurus, ToolPosition,
    analyzed_server::AnalyzedTool,
    document_builder::{DocumentBuilder, FieldLengths},
    keyword_ranking,
    name_index::{NameIndex, NamedTools},
    query_terms::QueryTerms,
    ranking_weights as weights,
    term_dictionary::TermDictionary,
    term_evidence::{DocumentEvidence, TermEvidence},
    tool_vectors::ToolVectors,
};

/// An immutable index of all tools of all servers.
pub struct SearchIndex {
    pub(super) words: Arc<WordIndex>,
    pub(super) vectors: ToolVectors,
}

/// The part of the index that is searched by words.
pub(super) struct WordIndex {
    servers: Box<[Arc<AnalyzedServer>]>,
    /// The number of the first tool of each server, and at the end the number of all tools.
    firsts: Box<[u32]>,
    /// The server of each tool.
    owners: Box<[u32]>,
    names: NameIndex,
    pub(super) lexicon: TermDictionary,
    pub(super) lengths: FieldLengths,
    pub(super) of_tools: TermEvidence,
    pub(super) of_servers: TermEvidence,
}

impl SearchIndex {
    /// Builds an index of analysed servers.
    pub fn new(servers: &[Arc<AnalyzedServer>], thesaurus: &Thesaurus) -> Self {
        let mut lexicon = thesaurus.lexicon().clone();
        let numbers: Vec<Vec<u32>> =
            servers.iter().map(|server| lexicon.numbers_of(&server.vocabulary)).collect();
        let lengths = FieldLengths::of(servers.iter().map(|server| &**server));
        let mut builder = DocumentBuilder::new(&lexicon, &lengths);
        let (mut firsts, mut owners) = (vec![0], Vec::new());
        for ((server, numbers), owner) in servers.iter().zip(&numbers).zip(0..) {
            builder.server(server, numbers);
            firsts.push(builder.n_tools);
            owners.resize(builder.n_tools as usize, owner);
        }
        let n_tools = builder.n_tools as usize;
        let (of_tools, of_servers) = (builder.of_tools, builder.of_servers);
        let words = WordIndex {
            of_tools: TermEvidence::new(&of_tools, &lexicon, n_tools),
            of_servers: TermEvidence::new(&of_servers, &lexicon, servers.len()),
            servers: servers.into(),
            firsts: firsts.into(),
            owners: owners.into(),
            names: NameIndex::of((0..).zip(servers.iter().flat_map(|server| &server.tools))),
            lexicon,
            lengths,
        };
        Self { words: Arc::new(words), vectors: ToolVectors::default() }
    }

    /// Returns an index of the same tools with dense vectors, from the model used for queries.
    ///
    /// A tool is found by its words alone if its vector is missing, empty, or not as long as the
    /// first vector.
    #[must_use]
    pub fn with_vectors<'a>(&self, of: impl Fn(ToolPosition) -> Option<&'a [f32]>) -> Self {
        let vectors = ToolVectors::of((0..self.n_tools()).map(|number| of(self.place(number))));
        Self { words: Arc::clone(&self.words), vectors }
    }

    /// Returns the best tools for a query, best first; of equal ones the first in the index.
    pub fn search(&self, query: &SearchQuery<'_>) -> Vec<SearchHit> {
        match query.strategy {
            RankingStrategy::Keyword => self.by_keyword(query),
            RankingStrategy::Bm25 => self.by_bm25(query),
            RankingStrategy::Hybrid => self.by_meaning(query),
        }
    }

    /// Returns the parts that add up to the score of a tool.
    ///
    /// A tool that does not exist, or does not match, has no parts.
    pub fn explain(&self, query: &SearchQuery<'_>, place: ToolPosition) -> ScoreExplanation {
        let Some((number, tool)) = self.tool(place) else { return ScoreExplanation::default() };
        let mut named = self.named(query);
        let (mut parts, most) = match query.strategy {
            RankingStrategy::Keyword => {
                let words = keyword_ranking::KeywordQuery::of(query.text);
                named = self.unseen_by(&words, named);
                (words.parts(tool), words.most())
            }
            RankingStrategy::Bm25 => self.parts_by_bm25(query, place, number),
            RankingStrategy::Hybrid => self.parts_by_meaning(query, place, number),
        };
        if let Some(called) = named.of(number) {
            let name = called.as_str().to_owned();
            parts.push(ScorePart { name, score: called.weight() * most });
        }
        ScoreExplanation::of(parts)
    }

    /// Returns the tools with a match in their path, title or description.
    pub fn grep(&self, pattern: &SearchPattern, limit: usize) -> Vec<ToolPosition> {
        let is_found = |tool: &AnalyzedTool| {
            let texts = [tool.path(), tool.title(), tool.description()];
            texts.into_iter().any(|text| pattern.is_in(text))
        };
        let found = self.tools(None).filter(|(_, tool)| is_found(tool));
        found.map(|(number, _)| self.place(number)).take(limit).collect()
    }

    fn by_keyword(&self, query: &SearchQuery<'_>) -> Vec<SearchHit> {
        let words = keyword_ranking::KeywordQuery::of(query.text);
        let mut ranking =
            Ranking::new(query, self.unseen_by(&words, self.named(query)), words.most());
        for (number, tool) in self.tools(query.server) {
            ranking.put(number, words.score(tool));
        }
        self.hits(ranking, |_, score| words.confidence(score))
    }

    fn by_bm25(&self, query: &SearchQuery<'_>) -> Vec<SearchHit> {
        let request = QueryTerms::by_words(query.text, &self.words.lexicon).once();
        let found = self.words.of_tools.find(&request);
        let most = self.words.of_tools.most(&request);
        let mut ranking = Ranking::new(query, self.named(query), most);
        for number in self.candidates(query, &found, &ranking.named) {
            ranking.put(number, f64::from(found.score.at(number)));
        }
        let asked = self.query_weight(&request);
        self.hits(ranking, |number, _| confidence(found.covered.at(number), asked))
    }

    fn by_meaning(&self, query: &SearchQuery<'_>) -> Vec<SearchHit> {
        let request = QueryTerms::read(query.text, &self.words.lexicon);
        let found = self.words.of_tools.find(&request);
        let servers = self.words.of_servers.find(&request);
        let asked = self.query_weight(&request);
        let similar = self.vectors.similar(query.vector);
        let score = |number: u32| {
            let score = ToolScore {
                terms: f64::from(found.score.at(number)),
                coverage: confidence(found.covered.at(number), asked),
                server: f64::from(servers.score.at(self.server_of(number))),
                similarity: similar.of(number),
                asked: f64::from(asked),
            };
            score.sum()
        };
        let mut ranking = Ranking::new(query, self.named(query), self.most(&request));
        let candidates = match similar.is_empty() {
            true => self.candidates(query, &found, &ranking.named),
            false => self.tools(query.server).map(|(number, _)| number).collect(),
        };
        for number in candidates {
            ranking.put(number, score(number));
        }
        self.hits(ranking, |number, _| {
            confidence(found.covered.at(number), asked).max(similar.of(number))
        })
    }

    /// Returns the tools that match a word, or that the query names.
    fn candidates(
        &self,
        query: &SearchQuery<'_>,
        found: &DocumentEvidence,
        named: &NamedTools,
    ) -> Vec<u32> {
        let called = named.numbers().filter(|&number| found.score.at(number) == 0.0);
        let all = found.score.places().iter().copied().chain(called);
        all.filter(|&number| self.is_of(query, number)).collect()
    }

    fn named(&self, query: &SearchQuery<'_>) -> NamedTools {
        self.words.names.called(query.text, |number| self.numbered(number))
    }

    /// Returns `named`, unless the plain ranking puts these tools first by itself.
    fn unseen_by(&self, words: &keyword_ranking::KeywordQuery, named: NamedTools) -> NamedTools {
        let is_seen = named.numbers().any(|number| words.is_name_of(self.numbered(number)));
        if is_seen { NamedTools::default() } else { named }
    }

    /// Returns an upper bound of the score by words, concepts, server and vectors.
    pub(super) fn most(&self, request: &QueryTerms) -> f64 {
        let most = ToolScore {
            terms: self.words.of_tools.most(request),
            coverage: 1.0,
            server: self.words.of_servers.most(request),
            similarity: 1.0,
            asked: f64::from(self.query_weight(request)),
        };
        most.sum()
    }

    /// Returns the total weight of the words of a request.
    pub(super) fn query_weight(&self, request: &QueryTerms) -> f32 {
        request.words.iter().map(|word| self.words.of_tools.word_weight(word)).sum()
    }

    fn hits(&self, ranking: Ranking, confidence: impl Fn(u32, f64) -> f64) -> Vec<SearchHit> {
        let Ranking { best, named, .. } = ranking;
        let hit = |(number, score)| SearchHit {
            place: self.place(number),
            score,
            // A tool that is named is certainly meant.
            confidence: named.of(number).map_or_else(|| confidence(number, score), |_| 1.0),
        };
        best.in_order().map(hit).collect()
    }

    pub(super) fn n_tools(&self) -> u32 {
        self.words.firsts.last().copied().unwrap_or_default()
    }

    fn numbered(&self, number: u32) -> &AnalyzedTool {
        let place = self.place(number);
        &self.words.servers[place.server].tools[place.tool]
    }

    fn server_of(&self, number: u32) -> u32 {
        self.words.owners[number as usize]
    }

    fn place(&self, number: u32) -> ToolPosition {
        let server = self.server_of(number) as usize;
        ToolPosition { server, tool: (number - self.words.firsts[server]) as usize }
    }

    fn is_of(&self, query: &SearchQuery<'_>, number: u32) -> bool {
        query.server.is_none_or(|server| server == self.server_of(number) as usize)
    }

    /// Returns all tools, or those of one server, with their numbers.
    fn tools(&self, server: Option<usize>) -> impl Iterator<Item = (u32, &AnalyzedTool)> {
        let tools = (0..).zip(self.words.servers.iter().flat_map(|server| &server.tools));
        let of = |server: usize| {
            Some(*self.words.firsts.get(server)?..*self.words.firsts.get(server + 1)?)
        };
        let range = match server {
            None => 0..self.n_tools(),
            Some(server) => of(server).unwrap_or_default(),
        };
        tools.skip(range.start as usize).take(range.len())
    }

    pub(super) fn analyzed(&self, place: ToolPosition) -> &AnalyzedServer {
        &self.words.servers[place.server]
    }

    fn tool(&self, place: ToolPosition) -> Option<(u32, &AnalyzedTool)> {
        let tool = self.words.servers.get(place.server)?.tools.get(place.tool)?;
        Some((self.words.firsts[place.server] + u32::try_from(place.tool).ok()?, tool))
    }
}

/// The best tools for a query; those that it names come before all others.
struct Ranking {
    best: TopTools,
    named: NamedTools,
    /// An upper bound of the score without the name.
    most: f64,
}

impl Ranking {
    fn new(query: &SearchQuery<'_>, named: NamedTools, most: f64) -> Self {
        Self { best: TopTools::new(query.limit), named, most }
    }

    /// Inserts a tool; `score` is its score without the name.
    fn put(&mut self, number: u32, score: f64) {
        let called = self.named.of(number);
        self.best.insert(number, score + called.map_or(0.0, |called| called.weight() * self.most));
    }
}

/// The components of a tool's score.
pub(super) struct ToolScore {
    /// The score of its words and concepts.
    pub(super) terms: f64,
    /// The part of the request that they cover, between 0 and 1.
    pub(super) coverage: f64,
    /// The score of its server's words and concepts.
    pub(super) server: f64,
    /// The similarity of its vector, between 0 and 1.
    pub(super) similarity: f64,
    /// The total weight of the request's words.
    pub(super) asked: f64,
}

impl ToolScore {
    /// Returns the factor for `terms`, which is smaller if little of the request is covered.
    pub(super) fn share(&self) -> f64 {
        let depends = f64::from(weights::COVERAGE);
        1.0 - depends + depends * self.coverage
    }

    /// Returns the contribution of the server; 0 for a tool that matches no word itself.
    pub(super) fn of_server(&self) -> f64 {
        if self.terms > 0.0 { f64::from(weights::SERVER) * self.server } else { 0.0 }
    }

    pub(super) fn of_vectors(&self) -> f64 {
        // Without known words, the vectors alone decide.
        f64::from(weights::VECTOR) * self.similarity * self.asked.max(1.0)
    }

    fn sum(&self) -> f64 {
        self.terms * self.share() + self.of_server() + self.of_vectors()
    }
}

/// Returns the covered part of the request, between 0 and 1.
pub(super) fn confidence(covered: f32, asked: f32) -> f64 {
    if asked > 0.0 { f64::from(covered / asked).clamp(0.0, 1.0) } else { 0.0 }
}

impl fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index of {} tools of {} servers", self.n_tools(), self.words.servers.len())
    }
}

/// The best tools so far, by number and score.
pub(super) struct TopTools {
    limit: usize,
    found: Vec<(u32, f64)>,
}

impl TopTools {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, found: Vec::new() }
    }

    /// Inserts a tool, unless its score is 0.
    pub(super) fn insert(&mut self, number: u32, score: f64) {
        if score > 0.0 && self.limit > 0 {
            self.found.push((number, score));
        }
    }

    /// Returns the best tools, best first; of equal ones the one with the lower number.
    pub(super) fn in_order(mut self) -> impl Iterator<Item = (u32, f64)> {
        let order = |a: &(u32, f64), b: &(u32, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if self.found.len() > self.limit {
            self.found.select_nth_unstable_by(self.limit, order);
            self.found.truncate(self.limit);
        }
        self.found.sort_unstable_by(order);
        self.found.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_tools_come_in_order_and_of_equal_tools_the_first() {
        let mut best = TopTools::new(3);
        for (number, score) in [(4, 1.0), (3, 2.0), (0, 0.0), (2, 1.0), (1, 2.0), (5, 3.0)] {
            best.insert(number, score);
        }

        assert_eq!(best.in_order().collect::<Vec<_>>(), [(5, 3.0), (1, 2.0), (3, 2.0)]);
    }
}
