use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use serde_json::json;

use super::{RankingStrategy, *};

mod explained;

/// Returns an index of servers, each with a name, a text about it, and its tools.
fn index(servers: &[(&str, &str, &[&str])]) -> SearchIndex {
    indexed(servers, &Thesaurus::embedded())
}

fn indexed(servers: &[(&str, &str, &[&str])], thesaurus: &Thesaurus) -> SearchIndex {
    let servers: Vec<_> = servers
        .iter()
        .map(|(name, about, tools)| {
            Arc::new(AnalyzedServer::of(name, about, tools.iter().copied()))
        })
        .collect();
    SearchIndex::new(&servers, thesaurus)
}

/// The index that most tests search, made once.
fn sample() -> &'static SearchIndex {
    static SAMPLE: LazyLock<SearchIndex> = LazyLock::new(new_sample);
    &SAMPLE
}

fn new_sample() -> SearchIndex {
    index(&[
        (
            "mailbox",
            "Reads and writes electronic mail",
            &[
                r#"{"name":"send_message","description":"Sends an email","inputSchema":{"properties":{"to":{"description":"Address"}}}}"#,
                r#"{"name":"listFolders","title":"Folders","description":"Lists the folders of the mailbox"}"#,
            ],
        ),
        ("skywatch", "", &[r#"{"name":"forecast","description":"Weather for the coming days"}"#]),
        ("broken", "", &["", "[]", r#"{"name":"forecast"}"#]),
    ])
}

fn query(text: &str) -> SearchQuery<'_> {
    SearchQuery { text, limit: 10, ..SearchQuery::default() }
}

fn place(server: usize, tool: usize) -> ToolPosition {
    ToolPosition { server, tool }
}

fn places(hits: &[SearchHit]) -> Vec<ToolPosition> {
    hits.iter().map(|hit| hit.place).collect()
}

#[test]
fn the_keyword_ranking_scores_ten_five_and_two() {
    let index = sample();
    let keyword = |text| {
        index.search(&SearchQuery {
            text,
            limit: 10,
            strategy: RankingStrategy::Keyword,
            ..query("")
        })
    };

    let hits = keyword("Forecast");
    assert_eq!(places(&hits), [place(1, 0), place(2, 2)]);
    assert_eq!((hits[0].score, hits[0].confidence), (10.0, 10.0 / 12.0));
    let hits = keyword("send email");
    assert_eq!((hits[0].place, hits[0].score), (place(0, 0), 5.0 + 2.0 + 2.0));
    assert!(keyword(" ").is_empty());
}

#[test]
fn a_tool_is_found_by_a_synonym_of_its_words() {
    let index = sample();

    assert_eq!(places(&index.search(&query("Will it rain tomorrow?")))[0], place(1, 0));
    assert_eq!(places(&index.search(&query("Write a letter to my inbox")))[0], place(0, 0));
    let by_words =
        SearchQuery { strategy: RankingStrategy::Bm25, ..query("Will it rain tomorrow?") };
    assert_eq!(index.search(&by_words), []);
}

#[test]
fn a_query_that_describes_a_tool_is_found_with_high_confidence() {
    let index = sample();

    for sentence in ["Please send an email", "weather for the coming days", "list my mail folders"]
    {
        let hits = index.search(&query(sentence));
        assert!(hits[0].confidence >= 0.9, "{sentence}: {hits:?}");
    }
    let nonsense = index.search(&query("send qwertz asdfgh to the zxcvbn"));
    assert!(nonsense[0].confidence < 0.9, "{nonsense:?}");
}

#[test]
fn a_misspelt_word_finds_the_tool_with_the_right_word() {
    assert_eq!(places(&sample().search(&query("wheather forcast")))[0], place(1, 0));
}

#[test]
fn the_words_of_a_server_raise_the_score_of_its_tools() {
    let definition = r#"{"name":"list","description":"Lists items"}"#;
    let index = index(&[
        ("alpha", "About trains", &[definition]),
        ("beta", "About invoices and bills", &[definition]),
    ]);

    assert_eq!(places(&index.search(&query("list the invoices")))[0], place(1, 0));
}

#[test]
fn a_name_weighs_more_than_a_servers_name_and_that_more_than_a_description() {
    let index = index(&[
        ("alpha", "", &[r#"{"name":"one","description":"Zebra"}"#]),
        ("zebra", "", &[r#"{"name":"two","description":"Other"}"#]),
        ("gamma", "", &[r#"{"name":"zebra","description":"Other"}"#]),
    ]);

    let asked = SearchQuery { strategy: RankingStrategy::Bm25, ..query("zebra") };
    assert_eq!(places(&index.search(&asked)), [place(2, 0), place(1, 0), place(0, 0)]);
}

#[test]
fn tools_of_one_server_are_searched_alone_and_equal_ones_keep_their_order() {
    let index = sample();

    let only = SearchQuery { server: Some(2), ..query("forecast") };
    assert_eq!(places(&index.search(&only)), [place(2, 2)]);
    assert_eq!(index.search(&SearchQuery { server: Some(9), ..query("forecast") }), []);
    let twins = sample_of_twins();
    assert_eq!(places(&twins.search(&query("weather"))), [place(0, 0), place(0, 1), place(1, 0)]);
    let first = SearchQuery { limit: 1, ..query("weather") };
    assert_eq!(places(&twins.search(&first)), [place(0, 0)]);
    assert_eq!(twins.search(&SearchQuery { limit: 0, ..query("weather") }), []);
}

fn sample_of_twins() -> SearchIndex {
    let twin = r#"{"name":"weather"}"#;
    index(&[("a", "", &[twin, twin]), ("b", "", &[twin])])
}

#[test]
fn synonyms_of_the_operator_find_tools() {
    let tools: &[&str] = &[r#"{"name":"zorp","description":"Zorps a case"}"#];
    let groups = [["dossier", "zorp"]];

    let ours = indexed(&[("office", "", tools)], &Thesaurus::embedded().with(groups));
    assert_eq!(places(&ours.search(&query("the dossier"))), [place(0, 0)]);
}

#[test]
fn vectors_find_a_tool_that_shares_no_word_with_the_query() {
    let vector = |place: ToolPosition| (place.server == 1).then_some(&[1.0, 0.0][..]);
    let index = new_sample().with_vectors(vector);

    let asked = SearchQuery { vector: Some(&[2.0, 0.1]), ..query("zxcvb") };
    let hits = index.search(&asked);
    assert_eq!(places(&hits), [place(1, 0)]);
    assert!(hits[0].confidence > 0.9);
    let explained = index.explain(&asked, place(1, 0));
    assert_eq!(explained.parts[0].name, "similarity of vectors");
    assert_eq!(explained.score, hits[0].score);
}

#[test]
fn an_explanation_names_words_concepts_and_the_server() {
    let explained = sample().explain(&query("mail a letter"), place(0, 0));

    let names: Vec<&str> = explained.parts.iter().map(|part| &*part.name).collect();
    assert!(names.contains(&"what the server is about"), "{names:?}");
    assert!(names.iter().any(|name| name.starts_with("`mail` as `email` in ")), "{names:?}");
    assert!(explained.to_string().contains(" + "), "{explained}");
    assert_eq!(sample().explain(&query("mail"), place(7, 0)), ScoreExplanation::default());
}

#[test]
fn a_name_with_digits_is_found_in_any_of_its_spellings() {
    let tools: Vec<String> = [
        ("tool_76", "The last but one"),
        ("tool_77", "The last"),
        ("s3_list_buckets", "Lists what is stored"),
        ("describeEC2Instances", "Tells of machines"),
        ("transcode", "Makes H.264 of a film"),
        ("token", "Hands out a token by OAuth2"),
        ("recode", "Makes UTF-8 of a text"),
        ("page_of_404", "What is shown for what is not there"),
        ("encodeBase64", "For what is not text"),
        ("new_2FA_code", "A second factor"),
        ("shape3D", "Turns a solid"),
    ]
    .iter()
    .map(|(name, description)| json!({ "name": name, "description": description }).to_string())
    .collect();
    let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
    let index = index(&[("other", "", &[r#"{"name":"other"}"#]), ("numbers", "", &tools)]);

    for (text, tool) in [
        ("tool_77", 1),
        ("tool 77", 1),
        ("tool77", 1),
        ("77", 1),
        ("the tool with number 77", 1),
        ("s3", 2),
        ("S3 buckets", 2),
        ("ec2", 3),
        ("EC2 machines", 3),
        ("h264", 4),
        ("H.264", 4),
        ("oauth2", 5),
        ("OAuth", 5),
        ("utf8", 6),
        ("utf-8", 6),
        ("404", 7),
        ("base64", 8),
        ("2fa", 9),
        ("2FA code", 9),
        ("3d", 10),
    ] {
        for strategy in [RankingStrategy::Bm25, RankingStrategy::Hybrid] {
            let hits = index.search(&SearchQuery { strategy, ..query(text) });
            assert_eq!(hits.first().map(|hit| hit.place), Some(place(1, tool)), "{text}");
            assert!(hits[0].confidence >= 0.5, "{text}: {hits:?}");
        }
    }
    assert!(index.search(&query("78")).is_empty(), "another number is another thing");
}

#[test]
fn a_tool_that_is_called_by_its_name_comes_first() {
    let issue = r#"{"name":"create_issue","description":"Opens one"}"#;
    let better =
        r#"{"name":"create_issue_create_issue","description":"Create issue, create issue"}"#;
    let index = index(&[
        ("github", "Create issue", &[better, issue, r#"{"name":"CreateIssue"}"#]),
        ("gitlab", "", &[better, issue, r#"{"name":"do_it"}"#, r#"{"name":"🙂"}"#]),
    ])
    .with_vectors(|at| Some(if at.tool == 0 { &[1.0, 0.0] } else { &[0.0, 1.0] }));

    let [github, other, gitlab] = [place(0, 1), place(0, 2), place(1, 1)];
    for (text, expected) in [
        ("create_issue", &[github, gitlab, other][..]),
        (" `Create_Issue`", &[github, gitlab, other]),
        ("createIssue", &[other, github, gitlab]),
        ("Create issue", &[github, other, gitlab]),
        ("gitlab/create_issue", &[gitlab]),
        ("gitlab create_issue", &[gitlab]),
        ("GitLab: create issue", &[gitlab]),
        ("gitlab__create_issue", &[gitlab]),
        ("do_it", &[place(1, 2)]),
        ("gitlab/🙂", &[place(1, 3)]),
    ] {
        for strategy in STRATEGIES {
            for vector in [None, Some(&[1.0, 0.0][..])] {
                let query = SearchQuery { strategy, vector, ..query(text) };
                let hits = index.search(&query);
                if strategy == RankingStrategy::Keyword {
                    // A query of one word that is a tool's name ranks by the score of that word.
                    assert_eq!(hits.first().map(|hit| hit.place), Some(expected[0]), "{text}");
                    continue;
                }
                let (first, rest) = hits.split_at(expected.len());
                let mut found = places(first);
                if text == "Create issue" {
                    found.sort_unstable();
                }
                assert_eq!(found, expected, "{text} by {strategy:?}");
                assert!(first.iter().all(|hit| hit.confidence == 1.0), "{text} by {strategy:?}");
                assert!(rest.iter().all(|hit| hit.score < first[0].score), "{text}");
            }
        }
    }
    for text in ["", "_", "…", "/", "git/labcreate_issue"] {
        assert!(index.search(&query(text)).iter().all(|hit| hit.confidence < 1.0), "{text}");
    }
}

#[test]
fn no_server_outranks_a_tool_that_is_called_with_its_servers_name() {
    let boasts = ["github__create_issue", "github/create_issue", "github create_issue"]
        .map(|name| format!(r#"{{"name":"{name}","description":"GitHub: create issue"}}"#));
    let boasts = boasts.each_ref().map(String::as_str);
    let index = index(&[
        ("github", "", &[r#"{"name":"create_issue"}"#]),
        ("other", "GitHub create issue", &boasts),
    ]);
    for text in ["github__create_issue", "github/create_issue", "GitHub create_issue"] {
        for strategy in [RankingStrategy::Bm25, RankingStrategy::Hybrid] {
            let hits = index.search(&SearchQuery { strategy, ..query(text) });
            assert_eq!(hits.first().map(|hit| hit.place), Some(place(0, 0)), "{text} {strategy:?}");
        }
    }
}

#[test]
fn a_pattern_finds_paths_titles_and_descriptions() {
    let index = sample();
    let grep = |text, limit| index.grep(&SearchPattern::new(text).unwrap(), limit);

    assert_eq!(grep("^mailbox/", 10), [place(0, 0), place(0, 1)]);
    assert_eq!(grep("^Folders$", 10), [place(0, 1)]);
    assert_eq!(grep(r"coming\|sends", 10), [place(0, 0), place(1, 0)]);
    assert_eq!(grep("", 2).len(), 2);
    assert_eq!(grep("nothing has this", 10), []);
}

#[test]
fn large_and_malformed_definitions_are_bounded() {
    let long = format!(r#"{{"name":"long","description":"{}"}}"#, "weather word ".repeat(100_000));
    let deep =
        format!(r#"{{"name":"deep","inputSchema":{}1{}}}"#, "[".repeat(500), "]".repeat(500));
    let index = index(&[("strange", "", &[&long, &deep])]);

    assert_eq!(places(&index.search(&query("weather"))), [place(0, 0)]);
    assert_eq!(places(&index.search(&query(&"weather ".repeat(20_000)))), [place(0, 0)]);
    let empty = SearchIndex::new(&[], &Thesaurus::embedded());
    assert!(empty.n_tools() == 0 && empty.search(&query("weather")).is_empty());
}

const STRATEGIES: [RankingStrategy; 3] =
    [RankingStrategy::Keyword, RankingStrategy::Bm25, RankingStrategy::Hybrid];

/// Generates requests of known words, of any characters, and of both.
fn requests() -> impl proptest::strategy::Strategy<Value = String> {
    let word = prop_oneof![
        "\\PC{0,12}",
        proptest::sample::select(vec![
            "send",
            "email",
            "weather",
            "folders",
            "mailbox",
            "the",
            "look up",
            "inbox",
            "rain",
            "https://a.example/b",
            "/srv/a.pdf",
            "forecasts",
            "天气",
            "wheather",
            "MAIL",
        ])
        .prop_map(str::to_owned),
    ];
    proptest::collection::vec(word, 0..12).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn hits_are_finite_in_order_and_the_same_every_time(text in requests(), limit in 0_usize..9) {
        static AGAIN: LazyLock<SearchIndex> = LazyLock::new(new_sample);
        let index = sample();
        for strategy in STRATEGIES {
            let query = SearchQuery { strategy, limit, ..query(&text) };
            let hits = index.search(&query);
            prop_assert!(hits.len() <= limit);
            for hit in &hits {
                prop_assert!(hit.score.is_finite() && hit.score > 0.0);
                prop_assert!((0.0..=1.0).contains(&hit.confidence));
            }
            for pair in hits.windows(2) {
                let is_tie = pair[0].score == pair[1].score && pair[0].place < pair[1].place;
                prop_assert!(pair[0].score > pair[1].score || is_tie);
            }
            prop_assert_eq!(hits, AGAIN.search(&query));
        }
    }

    #[test]
    fn any_text_is_a_definition(json in "\\PC{0,200}", about in "\\PC{0,50}") {
        let index = indexed(&[("any", &about, &[&json])], &Thesaurus::default());
        prop_assert_eq!(index.n_tools(), 1);
        index.search(&query(&about));
    }
}
