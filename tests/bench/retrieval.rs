//! The benchmark of tool search: quality and speed.
//!
//! ```console
//! $ cargo bench --bench retrieval                              # the project's set, and the scale
//! $ cargo bench --bench retrieval -- TOOLS.json QUERIES.json   # another set, all strategies
//! $ cargo bench --bench retrieval -- TOOLS.json QUERIES.json --strategy bm25
//! ```
//!
//! A set is two files: tools, each a definition with the name of its `server`, and graded requests
//! with `query` and `relevant`, which maps `server/tool` to a grade. Times and sizes depend on the
//! machine; they are reported, but not asserted.

use std::{
    ffi::OsString,
    fmt, fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Parser as _;
use metamcp::search::{AnalyzedServer, RankingStrategy, SearchIndex, SearchQuery, Thesaurus};
use tokio::time::Instant;

mod generated;
#[path = "../search/score.rs"]
mod score;

/// The number of tools and servers of the scale runs.
const SCALES: [(usize, usize); 2] = [(500, 25), (10_000, 500)];

/// The number of timed searches per strategy.
const SEARCHES: usize = 2000;

/// Measure the quality and speed of tool search
#[derive(Debug, clap::Parser)]
#[command(name = "retrieval")]
struct Args {
    /// Tools: an array of definitions, each with its `server`
    #[arg(requires = "queries")]
    tools: Option<PathBuf>,
    /// Graded requests: an array of objects with `query` and `relevant`
    queries: Option<PathBuf>,
    /// Only this strategy: keyword, bm25 or hybrid
    #[arg(long, value_parser = strategy)]
    strategy: Option<RankingStrategy>,
}

fn main() {
    let is_bench = |argument: &OsString| argument == "--bench";
    // Cargo appends `--bench`.
    let (ours, others): (Vec<_>, Vec<_>) = std::env::args_os().partition(is_bench);
    if ours.is_empty() && others.len() == 1 {
        print_line(format_args!(
            "Run by `cargo bench --bench retrieval`: nothing is measured in a test run."
        ));
        return;
    }
    let args = Args::parse_from(others);
    match (&args.tools, &args.queries) {
        (Some(tools), Some(queries)) => evaluate(tools, queries, args.strategy),
        (_, _) => {
            let own = Path::new("tests/search");
            evaluate(&own.join("tools.json"), &own.join("queries.json"), args.strategy);
            for scale in SCALES {
                measure(scale, args.strategy);
            }
        }
    }
}

fn strategy(text: &str) -> Result<RankingStrategy, serde_json::Error> {
    serde_json::from_value(text.into())
}

/// Returns the requested strategy, or all.
fn strategies(only: Option<RankingStrategy>) -> Vec<RankingStrategy> {
    only.map_or_else(
        || vec![RankingStrategy::Keyword, RankingStrategy::Bm25, RankingStrategy::Hybrid],
        |it| vec![it],
    )
}

fn evaluate(tools: &Path, queries: &Path, only: Option<RankingStrategy>) {
    let set = score::ToolSet::read(tools);
    let requests = score::GradedRequest::read_all(queries);
    print_line(format_args!("{} ({} requests)", queries.display(), requests.len()));
    for strategy in strategies(only) {
        let name = format!("{strategy:?}").to_lowercase();
        print_line(format_args!("  {name:8} {}", set.score(&requests, strategy)));
    }
}

/// Measures an index of many tools: its build time, memory and search speed.
fn measure((n_tools, n_servers): (usize, usize), only: Option<RankingStrategy>) {
    let servers = generated::servers(n_tools, n_servers);
    let bytes: usize = servers.iter().flat_map(|(_, tools)| tools).map(String::len).sum();
    print_line(format_args!(
        "{n_tools} tools of {n_servers} servers, {} of definitions",
        Size(bytes)
    ));
    // A first run fills the allocator, which the index must not be charged for.
    drop(SearchIndex::new(&[], &Thesaurus::embedded()));
    let (reading, thesaurus) = timed(|| Thesaurus::read(Thesaurus::EMBEDDED));
    let before = resident();
    let (analysis, analyzed) = timed(|| {
        let of = |(name, tools): &(String, Vec<String>)| {
            Arc::new(AnalyzedServer::of(name, "", tools.iter().map(String::as_str)))
        };
        servers.iter().map(of).collect::<Vec<_>>()
    });
    let between = resident();
    let (build, index) = timed(|| SearchIndex::new(&analyzed, &thesaurus));
    let after = resident();
    print_line(format_args!("  thesaurus {reading:.1?}"));
    print_line(format_args!(
        "  analysis {analysis:.1?}, which is kept by server: {}",
        Size(between - before)
    ));
    print_line(format_args!("  index {build:.1?}: {} more", Size(after.saturating_sub(between))));
    let requests = score::GradedRequest::read_all(Path::new("tests/search/queries.json"));
    for strategy in strategies(only) {
        let mut times: Vec<Duration> = requests
            .iter()
            .cycle()
            .take(SEARCHES)
            .map(|it| SearchQuery { text: &it.text, strategy, limit: 10, ..SearchQuery::default() })
            .map(|query| timed(|| index.search(&query)).0)
            .collect();
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        let name = format!("{strategy:?}").to_lowercase();
        let (p50, p99) = (at(0.5), at(0.99));
        print_line(format_args!("  {name:8} search p50 {p50:.1?}, p99 {p99:.1?}"));
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let done = work();
    (start.elapsed(), done)
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("Linux provides it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    kib.expect("a number of KiB") * 1024
}

/// A size in bytes, displayed in MiB.
struct Size(usize);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} MiB", self.0 as f64 / f64::from(1 << 20))
    }
}

fn print_line(line: fmt::Arguments<'_>) {
    // Fails only if the reader is gone.
    writeln!(std::io::stdout(), "{line}").ok();
}
