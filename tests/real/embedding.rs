//! A real embedding model behind the usual endpoint.

use std::{
    io::{BufRead as _, BufReader},
    process::Child,
    sync::Arc,
};

use metamcp::{
    config::{ProxyConfig, search},
    embedding::{Embedder, EmbeddingText},
};

use super::{harness::DEADLINE, *};

/// The process that serves the model; ended on drop.
struct Model(Child, String);

impl Model {
    fn start() -> Self {
        let installed = Installed::find();
        let mut command = installed.client("python-embedding/bin/python", "embedding.py");
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the model starts");
        let mut url = String::new();
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut url).expect("a line");
        Self(child, url.trim().to_owned())
    }

    fn declared(&self) -> search::EmbeddingConfig {
        let url = self.1.parse().expect("a URL");
        search::EmbeddingConfig { url, model: "all-minilm-l6-v2".to_owned(), api_key: None }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it has ended");
    }
}

const TOOLS: [&str; 5] = [
    "filesystem create_directory: Create a new directory or ensure that it exists.",
    "git git_commit: Records changes to the repository.",
    "time convert_time: Convert time between timezones.",
    "mail send_message: Sends an email to one or more recipients.",
    "weather get_forecast: Returns the forecast for a place and a day.",
];

/// The queries for the tools in order, without words of those tools.
const QUERIES: [&str; 5] = [
    "make a folder",
    "save my work in version control",
    "what is 9 o'clock in Tokyo for somebody in Berlin",
    "write to my colleague",
    "will it rain tomorrow",
];

/// Returns the vectors of texts once all are known.
async fn wait_learned(embedder: &Embedder, texts: &[&str]) -> Vec<Arc<[f32]>> {
    let texts: Vec<EmbeddingText> = texts.iter().map(|text| EmbeddingText::new(text)).collect();
    let mut changes = embedder.changes();
    embedder.learn(texts.clone());
    let learning = async {
        loop {
            if let Some(all) = embedder.vectors(&texts).into_iter().collect() {
                return all;
            }
            changes.changed().await.expect("the embedder is there");
        }
    };
    tokio::time::timeout(DEADLINE, learning).await.expect("they are learned in time")
}

fn similarity(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[tokio::test]
async fn texts_with_the_same_meaning_have_similar_vectors_in_a_real_model() {
    let model = Model::start();
    let cache = tempfile::tempdir().expect("a directory");
    let embedder = Embedder::new(&model.declared(), None, Some(cache.path()), &ProxyConfig::None)
        .expect("an embedder");

    // Source: the model's card, which states the similarity of this pair.
    let pair = ["A man is eating food.", "A man is eating a piece of bread."];
    let vectors = wait_learned(&embedder, &pair).await;
    let found = similarity(&vectors[0], &vectors[1]);
    assert!((found - 0.7553).abs() < 1e-3, "the model is the expected one: {found}");

    let all = [pair.as_slice(), &TOOLS, &QUERIES].concat();
    let vectors = wait_learned(&embedder, &all).await;
    let (tools, queries) = vectors[pair.len()..].split_at(TOOLS.len());
    for (place, query) in queries.iter().enumerate() {
        let near = |tool: &usize| similarity(query, &tools[*tool]);
        let nearest = (0..tools.len()).max_by(|a, b| near(a).total_cmp(&near(b)));
        assert_eq!(nearest, Some(place), "{}", QUERIES[place]);
    }

    // A late answer is cached for the next query.
    let asking = async {
        loop {
            if let Some(vector) = embedder.query("build a new folder").await {
                return vector;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let query =
        tokio::time::timeout(DEADLINE, asking).await.expect("the query is answered in time");
    assert!(similarity(&query, &queries[0]) > 0.7);

    // The next service knows the vectors that this one learned.
    let declared = model.declared();
    drop(model);
    let written = async {
        loop {
            let next = Embedder::new(&declared, None, Some(cache.path()), &ProxyConfig::None)
                .expect("an embedder");
            let mut changes = next.changes();
            next.learn(all.iter().map(|text| EmbeddingText::new(text)).collect());
            // The model is gone.
            let texts: Vec<EmbeddingText> =
                all.iter().map(|text| EmbeddingText::new(text)).collect();
            let _read = tokio::time::timeout(Duration::from_secs(1), changes.changed()).await;
            if next.vectors(&texts).iter().all(Option::is_some) {
                return;
            }
        }
    };
    tokio::time::timeout(DEADLINE, written).await.expect("the vectors are written in time");
}
