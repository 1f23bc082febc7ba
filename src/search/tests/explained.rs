//! Tests that the parts of every score add up to it: for any catalog, query and strategy, with and
//! without vectors.

use proptest::{collection::vec, option, sample::select, strategy::Strategy};
use serde_json::Value;

use super::*;

/// Generates words for names, descriptions and queries: with one or several concepts, phrases, stop
/// words, digits, other scripts, and any characters.
fn word() -> impl Strategy<Value = String> {
    let known = select(vec![
        "send",
        "email",
        "weather",
        "forecast",
        "rain",
        "table",
        "book",
        "create_issue",
        "issue",
        "createIssue",
        "pull request",
        "get rid of",
        "the",
        "look up",
        "s3",
        "listS3Buckets",
        "77",
        "tool_77",
        "UTF-8",
        "utf8",
        "OAuth2",
        "404",
        "天气",
        "查询12306车票",
        "GitHub",
        "github",
        "wheather",
        "documnt",
        "a",
        "/",
        "_",
        "https://a.example/b",
        "/srv/a.pdf",
        "1e308",
    ]);
    prop_oneof![6 => known.prop_map(str::to_owned), 1 => "\\PC{0,12}"]
}

fn text(n_max: usize) -> impl Strategy<Value = String> {
    vec(word(), 0..n_max).prop_map(|words| words.join(" "))
}

fn tool() -> impl Strategy<Value = String> {
    let texts = (word(), option::of(text(3)), option::of(text(30)));
    let parameters = vec((word(), text(8), vec(word(), 0..3)), 0..4);
    let definition = (texts, parameters).prop_map(|((name, title, description), parameters)| {
        let property = |(name, about, values): (String, String, Vec<String>)| {
            (name, json!({ "description": about, "enum": values }))
        };
        let properties: serde_json::Map<_, _> = parameters.into_iter().map(property).collect();
        json!({
            "name": name, "title": title, "description": description,
            "inputSchema": { "properties": properties },
        })
        .to_string()
    });
    prop_oneof![9 => definition, 1 => select(vec!["", "[]", "{}"]).prop_map(str::to_owned)]
}

fn servers() -> impl Strategy<Value = Vec<(String, String, Vec<String>)>> {
    vec((word(), text(10), vec(tool(), 0..6)), 0..5)
}

/// Generates a query: mostly several words, sometimes the name of a tool of the first server.
fn asked() -> impl Strategy<Value = (String, bool)> {
    (text(10), proptest::bool::weighted(0.2))
}

fn vector() -> impl Strategy<Value = Vec<f32>> {
    prop_oneof![8 => vec(-1.0_f32..1.0, 3), 1 => vec(-1.0_f32..1.0, 0..5)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_parts_of_a_score_add_up_to_it(
        servers in servers(),
        (text, is_name) in asked(),
        vectors in option::of(vec(option::of(vector()), 30)),
        vector in option::of(vector()),
        server in option::weighted(0.2, 0_usize..5),
        limit in 0_usize..40,
    ) {
        let analyzed: Vec<_> = servers
            .iter()
            .map(|(name, about, tools)| {
                Arc::new(AnalyzedServer::of(name, about, tools.iter().map(String::as_str)))
            })
            .collect();
        let mut index = SearchIndex::new(&analyzed, &Thesaurus::embedded());
        if let Some(vectors) = &vectors {
            index = index.with_vectors(|at| vectors[at.server * 6 + at.tool].as_deref());
        }
        let first = servers.first().and_then(|(server, _, tools)| {
            let tool: Value = serde_json::from_str(tools.first()?).ok()?;
            Some(format!("{server} {}", tool.get("name")?.as_str()?))
        });
        let text = first.filter(|_| is_name).unwrap_or(text);
        for strategy in STRATEGIES {
            let vector = vector.as_deref();
            let query = SearchQuery { strategy, vector, server, limit, ..query(&text) };
            let hits = index.search(&query);
            prop_assert!(hits.len() <= limit);
            for hit in &hits {
                let explained = index.explain(&query, hit.place);
                let sum: f64 = explained.parts.iter().map(|part| part.score).sum();
                let nearly = 1e-4 * hit.score.max(1e-3);
                prop_assert!((sum - explained.score).abs() <= nearly);
                prop_assert!((sum - hit.score).abs() <= nearly, "{explained} is {}", hit.score);
                prop_assert!(explained.parts.iter().all(|part| part.score > 0.0), "{explained}");
                prop_assert!((0.0..=1.0).contains(&hit.confidence), "{hit:?}");
            }
            // A tool that was not found has no score.
            if hits.len() < limit && server.is_none() {
                for (at, (_, _, tools)) in servers.iter().enumerate() {
                    let missed = (0..tools.len())
                        .map(|tool| place(at, tool))
                        .filter(|place| hits.iter().all(|hit| hit.place != *place));
                    for place in missed {
                        let explained = index.explain(&query, place);
                        prop_assert!(explained.parts.is_empty(), "{place:?}: {explained}");
                    }
                }
            }
        }
    }
}
