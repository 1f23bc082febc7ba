//! The scores of a search ranking: graded requests over a set of tools.

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};

use metamcp::search::{AnalyzedServer, RankingStrategy, SearchIndex, SearchQuery, Thesaurus};
use serde_json::Value;

/// The number of results that count.
const DEPTH: usize = 10;

/// The tools of several servers.
pub(crate) struct ToolSet {
    /// The servers with the definitions of their tools, in the order of the file.
    servers: Vec<(String, Vec<String>)>,
    /// `server/tool` by position.
    paths: Vec<Vec<String>>,
}

/// A request with the tools that answer it.
pub(crate) struct GradedRequest {
    pub(crate) text: String,
    /// The grade of each relevant tool, by `server/tool`.
    relevant: BTreeMap<String, f64>,
}

/// The scores, averaged over requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scores {
    /// The recall: the share of the relevant tools among the first 1, 3, 5 and 10.
    pub(crate) recall: [f64; 4],
    /// The reciprocal of the rank of the first relevant tool.
    pub(crate) reciprocal_rank: f64,
    /// The discounted gain of the first ten, relative to the best possible one.
    pub(crate) gain: f64,
}

impl ToolSet {
    /// Reads tools from an array of definitions, each with the name of its `server`.
    pub(crate) fn read(path: &Path) -> Self {
        let mut this = Self { servers: Vec::new(), paths: Vec::new() };
        for tool in array(path) {
            let text = |key: &str| tool[key].as_str().expect("a tool has it").to_owned();
            let (server, name) = (text("server"), text("name"));
            let known = this.servers.iter().position(|(known, _)| *known == server);
            let at = known.unwrap_or_else(|| {
                this.servers.push((server.clone(), Vec::new()));
                this.paths.push(Vec::new());
                this.paths.len() - 1
            });
            this.servers[at].1.push(tool.to_string());
            this.paths[at].push(format!("{server}/{name}"));
        }
        this
    }

    /// Builds an index of the tools.
    pub(crate) fn index(&self) -> SearchIndex {
        let analyzed = |(server, tools): &(String, Vec<String>)| {
            Arc::new(AnalyzedServer::of(server, "", tools.iter().map(String::as_str)))
        };
        let servers: Vec<_> = self.servers.iter().map(analyzed).collect();
        SearchIndex::new(&servers, &Thesaurus::embedded())
    }

    /// Searches for each request and compares the results with its relevant tools.
    pub(crate) fn score(&self, requests: &[GradedRequest], strategy: RankingStrategy) -> Scores {
        let index = self.index();
        let mut sum = Scores::default();
        for request in requests {
            let query = SearchQuery {
                text: &request.text,
                strategy,
                limit: DEPTH,
                ..SearchQuery::default()
            };
            let hits = index.search(&query);
            let found: Vec<f64> = hits
                .iter()
                .map(|hit| &self.paths[hit.place.server][hit.place.tool])
                .map(|path| request.relevant.get(path).copied().unwrap_or_default())
                .collect();
            sum.add(&found, &request.relevant);
        }
        sum.average(requests.len())
    }
}

impl GradedRequest {
    /// Reads requests from an array of objects with `query` and `relevant`.
    pub(crate) fn read_all(path: &Path) -> Vec<Self> {
        let grade = |(path, grade): (&String, &Value)| {
            (path.clone(), grade.as_f64().expect("a grade is a number"))
        };
        let request = |request: &Value| Self {
            text: request["query"].as_str().expect("a request has words").to_owned(),
            relevant: request["relevant"].as_object().into_iter().flatten().map(grade).collect(),
        };
        array(path).iter().map(request).collect()
    }
}

impl Scores {
    /// Adds the scores of one request, from the grades of its results.
    fn add(&mut self, found: &[f64], relevant: &BTreeMap<String, f64>) {
        let count = |n: usize| found.iter().take(n).filter(|&&grade| grade > 0.0).count();
        for (sum, n) in self.recall.iter_mut().zip([1, 3, 5, 10]) {
            *sum += count(n) as f64 / relevant.len() as f64;
        }
        let first = found.iter().position(|&grade| grade > 0.0);
        self.reciprocal_rank += first.map_or(0.0, |place| 1.0 / (place + 1) as f64);
        let mut ideal: Vec<f64> = relevant.values().copied().collect();
        ideal.sort_by(|a, b| b.total_cmp(a));
        self.gain += discounted(found) / discounted(&ideal);
    }

    /// Returns the averages of sums over `n` requests.
    fn average(self, n: usize) -> Self {
        let n = n as f64;
        Self {
            recall: self.recall.map(|sum| sum / n),
            reciprocal_rank: self.reciprocal_rank / n,
            gain: self.gain / n,
        }
    }
}

impl fmt::Display for Scores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [at_1, at_3, at_5, at_10] = self.recall;
        write!(
            f,
            "R@1 {at_1:.3}  R@3 {at_3:.3}  R@5 {at_5:.3}  R@10 {at_10:.3}  MRR {:.3}  nDCG@10 {:.3}",
            self.reciprocal_rank, self.gain
        )
    }
}

fn discounted(grades: &[f64]) -> f64 {
    let gains = grades.iter().take(DEPTH).enumerate();
    gains.map(|(place, grade)| grade / ((place + 2) as f64).log2()).sum()
}

fn array(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}
