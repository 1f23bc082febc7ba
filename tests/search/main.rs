//! The regression test of the ranking: minimum scores on this project's golden set.
//!
//! `README.md` in this directory describes the set and the measurements.

use std::path::Path;

use metamcp::search::RankingStrategy;

mod score;

fn scores() -> [score::Scores; 3] {
    let directory = Path::new("tests/search");
    let tools = score::ToolSet::read(&directory.join("tools.json"));
    let requests = score::GradedRequest::read_all(&directory.join("queries.json"));
    assert!(requests.len() > 60 && requests.iter().all(|it| !it.text.is_empty()));
    [RankingStrategy::Keyword, RankingStrategy::Bm25, RankingStrategy::Hybrid]
        .map(|it| tools.score(&requests, it))
}

#[test]
fn hybrid_ranking_scores_above_bm25_and_bm25_above_keyword() {
    let [keyword, bm25, hybrid] = scores();

    for (better, worse) in [(hybrid, bm25), (bm25, keyword)] {
        assert!(better.recall[2] > worse.recall[2], "{better}\n{worse}");
        assert!(better.gain > worse.gain, "{better}\n{worse}");
    }
}

#[test]
fn the_scores_of_the_golden_set_do_not_regress() {
    let [_, bm25, hybrid] = scores();

    assert!(bm25.recall[2] >= 0.25 && bm25.gain >= 0.21, "{bm25}");
    assert!(hybrid.recall[2] >= 0.88 && hybrid.gain >= 0.80, "{hybrid}");
}
