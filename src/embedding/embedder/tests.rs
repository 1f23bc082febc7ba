//! Tests that known vectors are available at once, and that no endpoint blocks a search.

use std::{
    collections::HashSet,
    future::{pending, ready},
    io,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use serde_json::{Value, json};
use tokio::time;

use super::*;
use crate::{
    config::SecretReference,
    error_report::chain,
    http_client::test_site::{RecordedRequest, TestSite, page},
};

const KEY: &str = "sk-0123456789";

/// Longer than any of these tests takes.
const LONG: Duration = Duration::from_secs(60);

/// Returns timeouts without noticeable pauses, which no answer exceeds.
fn timeouts() -> EmbeddingTimeouts {
    let pause = Duration::from_millis(1);
    EmbeddingTimeouts { timeout: LONG, query_timeout: LONG, pause: (pause, pause), cooldown: LONG }
}

fn declared(site: &TestSite, model: &str) -> search::EmbeddingConfig {
    search::EmbeddingConfig {
        url: site.url("/v1/embeddings"),
        model: model.to_owned(),
        api_key: None,
    }
}

fn embedder(site: &TestSite) -> Arc<Embedder> {
    Embedder::with(&declared(site, "m"), None, None, &ProxyConfig::None, timeouts())
        .expect("an embedder")
}

fn texts(all: impl IntoIterator<Item = impl ToString>) -> Vec<EmbeddingText> {
    all.into_iter().map(|text| EmbeddingText::new(&text.to_string())).collect()
}

/// Returns the texts of a request.
fn input(asked: &RecordedRequest) -> Vec<String> {
    serde_json::from_value(asked.json()["input"].clone()).expect("a list of texts")
}

/// Answers with a vector of `dimension` numbers for each text: its length, then ones.
fn answer_of(asked: &RecordedRequest, dimension: usize) -> Response<Full<Bytes>> {
    let vector = |text: &String| {
        let mut vector = vec![1; dimension];
        vector[0] = text.len();
        vector
    };
    let data: Vec<Value> = input(asked)
        .iter()
        .enumerate()
        .map(|(index, text)| json!({ "index": index, "embedding": vector(text) }))
        .collect();
    page(200, json!({ "data": data }).to_string())
}

/// Opens an endpoint that works.
async fn good() -> TestSite {
    TestSite::open(|asked| ready(answer_of(&asked, 2))).await
}

/// Waits until the embedder knows all of `texts`.
async fn learned(embedder: &Embedder, texts: &[EmbeddingText]) {
    let mut changes = embedder.changes();
    let all = async {
        while embedder.vectors(texts).iter().any(Option::is_none) {
            changes.changed().await.expect("the embedder is there");
        }
    };
    time::timeout(LONG, all).await.expect("it learns");
}

/// Waits until the embedder has no more work.
async fn idle(embedder: &Embedder) {
    let idle = async {
        while embedder.shared.state().is_learning {
            tokio::task::yield_now().await;
        }
    };
    time::timeout(LONG, idle).await.expect("it comes to an end");
}

/// The log output of this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no test panics with it").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn begin(level: tracing::Level) -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no test panics with it").clone()).expect("text")
    }
}

#[tokio::test]
async fn texts_are_embedded_in_batches_and_each_once() {
    let site = good().await;
    let embedder = embedder(&site);
    let wanted = texts(0..70);
    assert!(embedder.vectors(&wanted).iter().all(Option::is_none));

    embedder.learn(wanted.clone());
    learned(&embedder, &wanted).await;
    idle(&embedder).await;
    embedder.learn([wanted.clone(), texts(["new"])].concat());
    learned(&embedder, &texts(["new"])).await;

    let asked = site.recorded();
    let sizes: Vec<usize> = asked.iter().map(|asked| input(asked).len()).collect();
    assert_eq!(sizes, [32, 32, 6, 1]);
    let distinct: HashSet<String> = asked.iter().flat_map(input).collect();
    assert_eq!(distinct.len(), 71);
    assert_eq!(asked[0].json()["model"], "m");
    assert_eq!(asked[0].line, "POST /v1/embeddings");
    for vector in embedder.vectors(&wanted).into_iter().flatten() {
        let length: f32 = vector.iter().map(|x| x * x).sum();
        assert!((length - 1.0).abs() < 1e-6);
    }
}

#[tokio::test]
async fn a_learned_vector_is_cached_on_disk_for_the_same_endpoint_and_model() {
    let site = good().await;
    let cache = tempfile::tempdir().expect("a directory");
    let with = |model: &str| {
        Embedder::with(
            &declared(&site, model),
            None,
            Some(cache.path()),
            &ProxyConfig::None,
            timeouts(),
        )
        .expect("one")
    };
    let wanted = texts(["a", "bb", "ccc"]);
    let first = with("m");
    first.learn(wanted.clone());
    learned(&first, &wanted).await;
    idle(&first).await;

    let second = with("m");
    second.learn(wanted.clone());
    learned(&second, &wanted).await;
    idle(&second).await;
    assert_eq!(site.recorded().len(), 1, "nothing is asked again");
    for (a, b) in first.vectors(&wanted).iter().zip(second.vectors(&wanted)) {
        assert_eq!(*a, b);
    }

    let other = with("other");
    other.learn(wanted.clone());
    learned(&other, &wanted).await;
    assert_eq!(site.recorded().len(), 2);
}

#[tokio::test]
async fn a_model_with_another_dimension_replaces_the_cached_vectors() {
    let dimension = Arc::new(AtomicUsize::new(2));
    let now = Arc::clone(&dimension);
    let site =
        TestSite::open(move |asked| ready(answer_of(&asked, now.load(Ordering::Relaxed)))).await;
    let cache = tempfile::tempdir().expect("a directory");
    let start = || {
        Embedder::with(
            &declared(&site, "m"),
            None,
            Some(cache.path()),
            &ProxyConfig::None,
            timeouts(),
        )
        .expect("one")
    };
    let first = start();
    first.learn(texts(["a"]));
    learned(&first, &texts(["a"])).await;
    idle(&first).await;

    dimension.store(3, Ordering::Relaxed);
    let second = start();
    second.learn(texts(["a", "b"]));
    learned(&second, &texts(["a", "b"])).await;
    for vector in second.vectors(&texts(["a", "b"])).into_iter().flatten() {
        assert_eq!(vector.len(), 3);
    }
}

#[tokio::test]
async fn an_answer_with_a_changed_dimension_is_rejected() {
    let site = TestSite::open(|asked| {
        let dimension = if input(&asked).contains(&"odd".to_owned()) { 3 } else { 2 };
        ready(answer_of(&asked, dimension))
    })
    .await;
    let embedder = embedder(&site);
    embedder.learn(texts(["a"]));
    learned(&embedder, &texts(["a"])).await;

    assert_eq!(embedder.query("odd").await, None);
    let error = embedder.shared.ask(&texts(["odd"])).await.expect_err("another dimension");
    assert_eq!(
        chain(&error),
        "the answer of the embedding endpoint is unusable: its vectors have 3 numbers, and earlier ones 2"
    );
    assert_eq!(error.code(), "EMBEDDING_UNUSABLE");
    assert!(embedder.vectors(&texts(["a"]))[0].is_some(), "known vectors are kept");
}

#[tokio::test]
async fn an_outage_is_logged_once_and_so_is_its_end() {
    let (log, _guard) = Log::begin(tracing::Level::INFO);
    let n_asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&n_asked);
    let site = TestSite::open(move |asked| {
        let is_down = counted.fetch_add(1, Ordering::Relaxed) < 5;
        ready(if is_down { page(500, "out of memory") } else { answer_of(&asked, 2) })
    })
    .await;
    let embedder = embedder(&site);
    embedder.learn(texts(["a"]));
    learned(&embedder, &texts(["a"])).await;

    let text = log.text();
    assert_eq!(n_asked.load(Ordering::Relaxed), 6);
    assert_eq!(text.matches("WARN").count(), 1, "{text}");
    assert_eq!(text.matches("search without embeddings").count(), 1, "{text}");
    assert!(text.contains("500 Internal Server Error: out of memory"), "{text}");
    assert!(text.contains("code=\"HTTP_STATUS\"") && text.contains("See its log."), "{text}");
    assert_eq!(text.matches("search with embeddings again").count(), 1, "{text}");
}

#[tokio::test]
async fn a_refused_text_does_not_block_the_others() {
    let site = TestSite::open(|asked| {
        let is_bad = input(&asked).contains(&"bad".to_owned());
        ready(if is_bad { page(400, "too many tokens") } else { answer_of(&asked, 2) })
    })
    .await;
    let embedder = embedder(&site);
    let wanted = texts(["a", "b", "bad", "c", "d"]);
    embedder.learn(wanted.clone());
    idle(&embedder).await;
    let known: Vec<bool> = embedder.vectors(&wanted).iter().map(Option::is_some).collect();
    assert_eq!(known, [true, true, false, true, true]);
    let n_asked = site.recorded().len();
    embedder.learn(wanted);
    idle(&embedder).await;
    assert_eq!(site.recorded().len(), n_asked, "it is not asked for again");
}

#[tokio::test]
async fn garbage_is_not_taken_for_vectors() {
    let huge = format!("{{\"data\":[{}", " ".repeat(defaults::EMBEDDING_ANSWER_BYTES_MAX));
    for (body, code) in [
        (String::new(), "NOT_JSON"),
        ("<html>".to_owned(), "NOT_JSON"),
        ("{\"data\":{}}".to_owned(), "NOT_JSON"),
        ("{\"data\":[{\"embedding\":\"AAAA\"}]}".to_owned(), "NOT_JSON"),
        ("{\"data\":[]}".to_owned(), "EMBEDDING_UNUSABLE"),
        ("{\"data\":[{\"embedding\":[0,0]}]}".to_owned(), "EMBEDDING_UNUSABLE"),
        (huge, "TOO_LARGE"),
    ] {
        let site = TestSite::open(move |_| ready(page(200, body.clone()))).await;
        let embedder = embedder(&site);
        let error = embedder.shared.ask(&texts(["a"])).await.expect_err(code);
        assert_eq!(error.code(), code, "{error:?}");
        assert!(chain(&error).len() < 1000 && !error.hint().is_empty());
        assert_eq!(embedder.query("a").await, None);
    }
}

#[tokio::test]
async fn a_query_is_sent_once_and_a_known_text_never() {
    let site = good().await;
    let embedder = embedder(&site);
    let first = embedder.query("find a file").await.expect("a vector");
    assert_eq!(embedder.query(" find a file\n").await, Some(first));
    assert_eq!(embedder.query("  ").await, None);
    embedder.learn(texts(["a"]));
    learned(&embedder, &texts(["a"])).await;
    assert_eq!(embedder.query("a").await, embedder.vectors(&texts(["a"]))[0]);
    assert_eq!(site.recorded().len(), 2);
}

#[tokio::test]
async fn a_search_does_without_a_late_vector_and_the_next_search_has_it() {
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let site = TestSite::open(move |asked| {
        let gate = Arc::clone(&opened);
        async move {
            let _open = gate.acquire().await.expect("never closed");
            answer_of(&asked, 2)
        }
    })
    .await;
    let timeouts = EmbeddingTimeouts { query_timeout: Duration::from_millis(10), ..timeouts() };
    let embedder = Embedder::with(&declared(&site, "m"), None, None, &ProxyConfig::None, timeouts)
        .expect("one");
    assert_eq!(embedder.query("a").await, None);

    let mut answered = std::pin::pin!(embedder.shared.answers.notified());
    answered.as_mut().enable();
    gate.add_permits(1);
    time::timeout(LONG, answered).await.expect("it is waited for all the same");
    assert!(embedder.query("a").await.is_some());
    assert_eq!(site.recorded().len(), 1);
}

#[tokio::test]
async fn an_endpoint_that_is_always_late_is_not_asked_and_is_logged_once() {
    let (log, _guard) = Log::begin(tracing::Level::INFO);
    let site = TestSite::open(|_| pending()).await;
    let timeouts = EmbeddingTimeouts { query_timeout: Duration::from_millis(1), ..timeouts() };
    let embedder = Embedder::with(&declared(&site, "m"), None, None, &ProxyConfig::None, timeouts)
        .expect("one");
    for query in ["a", "b", "c"] {
        assert_eq!(embedder.query(query).await, None);
    }
    let now = embedder.shared.epoch.elapsed();
    assert!(
        embedder
            .shared
            .state()
            .breaker
            .admit(crate::capacity_holder::Holder::SERVICE, now)
            .is_err()
    );
    assert_eq!(embedder.query("d").await, None);
    let text = log.text();
    assert_eq!(text.matches("WARN").count(), 1, "{text}");
    assert!(text.contains("code=\"TOO_SLOW\""), "{text}");
}

#[tokio::test]
async fn an_endpoint_that_fails_is_not_asked_until_the_breaker_probes_it() {
    let (is_down, n_asked) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let (down, counted) = (Arc::clone(&is_down), Arc::clone(&n_asked));
    let site = TestSite::open(move |asked| {
        counted.fetch_add(1, Ordering::Relaxed);
        let is_down = down.load(Ordering::Relaxed);
        ready(if is_down { page(503, "") } else { answer_of(&asked, 2) })
    })
    .await;
    let cooling = Embedder::with(&declared(&site, "m"), None, None, &ProxyConfig::None, timeouts())
        .expect("one");
    for query in ["a", "b", "c", "d", "e"] {
        assert_eq!(cooling.query(query).await, None);
    }
    assert_eq!(n_asked.load(Ordering::Relaxed), 3, "no further request is sent");

    let timeouts = EmbeddingTimeouts { cooldown: Duration::ZERO, ..timeouts() };
    let cooled = Embedder::with(&declared(&site, "m"), None, None, &ProxyConfig::None, timeouts)
        .expect("one");
    for query in ["a", "b", "c"] {
        assert_eq!(cooled.query(query).await, None);
    }
    is_down.store(false, Ordering::Relaxed);
    assert!(cooled.query("a").await.is_some());
}

#[tokio::test]
async fn the_key_is_in_the_header_and_in_no_log() {
    let (log, _guard) = Log::begin(tracing::Level::TRACE);
    let site = TestSite::open(|asked| {
        ready(page(401, format!("wrong key: {}", asked.header("authorization"))))
    })
    .await;
    let credentials = tempfile::tempdir().expect("a directory");
    std::fs::write(credentials.path().join("key"), format!("{KEY}\n")).expect("written");
    let declared = search::EmbeddingConfig {
        api_key: Some(SecretReference::credential("key")),
        ..declared(&site, "m")
    };
    let embedder =
        Embedder::with(&declared, Some(credentials.path()), None, &ProxyConfig::None, timeouts())
            .expect("one");
    assert_eq!(embedder.query("a").await, None);
    let error = embedder.shared.ask(&texts(["a"])).await.expect_err("refused");

    assert_eq!(site.recorded()[0].header("authorization"), format!("Bearer {KEY}"));
    let output = format!("{} {embedder:?} {error:?} {declared:?}", log.text());
    assert!(output.contains("search without embeddings"), "{output}");
    assert!(output.contains("wrong key: Bearer [secret]"), "{output}");
    assert!(!output.contains(KEY), "{output}");
}

#[tokio::test]
async fn without_a_key_no_header_is_sent_and_a_missing_key_is_an_error() {
    let site = good().await;
    assert!(embedder(&site).query("a").await.is_some());
    assert!(!site.recorded()[0].headers.contains_key("authorization"));

    let key = Some(SecretReference::credential("key"));
    let declared = search::EmbeddingConfig { api_key: key, ..declared(&site, "m") };
    let error = Embedder::new(&declared, None, None, &ProxyConfig::None).expect_err("no key");
    assert_eq!(
        chain(&error),
        "the key `search.embedding.api_key` cannot be found: `credential:key` needs $CREDENTIALS_DIRECTORY, which is not set"
    );
    assert_eq!(error.code(), "SECRET_MISSING");
}

#[tokio::test]
async fn a_dropped_embedder_aborts_its_requests() {
    let site = TestSite::open(|_| pending()).await;
    let embedder = embedder(&site);
    let shared = Arc::downgrade(&embedder.shared);
    embedder.learn(texts(["a"]));
    assert!(embedder.tasks.n_running() > 0);
    drop(embedder);
    let gone = async {
        while shared.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    time::timeout(LONG, gone).await.expect("nothing holds it");
}

#[test]
fn an_outage_begins_and_ends_once() {
    let mut health = EndpointHealth::default();
    assert!(!health.note_answer(EndpointAnswer::InTime));
    assert!(health.note_failure(EndpointHealth::Failing));
    assert!(!health.note_failure(EndpointHealth::Failing));
    assert!(!health.note_failure(EndpointHealth::Slow));
    assert!(health.note_answer(EndpointAnswer::AnyTime));
    assert!(!health.note_answer(EndpointAnswer::InTime));
}

#[test]
fn a_slow_endpoint_recovers_only_with_an_answer_in_time() {
    let mut health = EndpointHealth::default();
    assert!(health.note_failure(EndpointHealth::Slow));
    assert!(!health.note_answer(EndpointAnswer::AnyTime));
    assert!(health.note_answer(EndpointAnswer::InTime));
}
