//! Tests of the queries to a registry and of its answers, with a registry inside the test.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use http_body_util::Full;
use hyper::{Response, Uri};
use serde_json::{Value, json};

use super::*;
use crate::http_client::test_site::{RecordedRequest, TestSite, page};

fn registry(url: Uri, ttl: Duration) -> RegistryClient {
    RegistryClient::new(&config::RegistryConfig { url, ttl }, &ProxyConfig::None)
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

/// Starts a registry that answers each request by its number.
async fn open(
    answer: impl Fn(usize, &RecordedRequest) -> (u16, Value) + Send + Sync + 'static,
) -> TestSite {
    let n_asked = AtomicUsize::new(0);
    TestSite::open(move |asked: RecordedRequest| {
        let (status, body) = answer(n_asked.fetch_add(1, Ordering::Relaxed), &asked);
        let answer: Response<Full<_>> = page(status, body.to_string());
        async move { answer }
    })
    .await
}

fn list(names: &[&str], next: Option<&str>) -> Value {
    let servers: Vec<_> = names.iter().map(|name| json!({ "server": { "name": name } })).collect();
    let count = servers.len();
    json!({ "servers": servers, "metadata": { "nextCursor": next, "count": count } })
}

fn names(found: &RegistryResults) -> Vec<&str> {
    found.entries.iter().map(|entry| entry.name.as_str()).collect()
}

#[test]
fn any_word_stays_one_value_of_the_registry_query() {
    assert_eq!(encoded("weather-2"), "weather-2");
    assert_eq!(encoded("a&limit=9#/ä\r\n"), "a%26limit%3D9%23%2F%C3%A4%0D%0A");
}

#[tokio::test]
async fn each_word_is_read_page_by_page_and_then_cached() {
    let site = open(|_, asked| {
        let is_first = !asked.line.contains("cursor=");
        match (asked.line.contains("search=git"), is_first) {
            (true, true) => (200, list(&["a/git", "a/hub"], Some("a/hub:1"))),
            (true, false) => (200, list(&["b/git"], None)),
            (false, _) => (200, list(&["a/hub", "c/hub"], None)),
        }
    })
    .await;
    let registry = registry(site.url("/base/"), defaults::REGISTRY_TTL);

    let found = registry.find(&words(&["git", "hub"])).await;

    assert_eq!(names(&found), ["a/git", "a/hub", "b/git", "c/hub"]);
    assert_eq!(found.failure, None);
    let mut lines: Vec<_> = site.recorded().into_iter().map(|asked| asked.line).collect();
    lines.sort();
    let query = |rest: &str| format!("GET /base/v0/servers?search={rest}");
    assert_eq!(
        lines,
        [
            query("git&version=latest&limit=100"),
            query("git&version=latest&limit=100&cursor=a%2Fhub%3A1"),
            query("hub&version=latest&limit=100"),
        ]
    );
    assert_eq!(names(&registry.find(&words(&["hub", "git"])).await).len(), 4);
    assert_eq!(site.recorded().len(), 3, "it is known");
}

#[tokio::test]
async fn the_number_of_words_and_pages_read_from_a_registry_is_bounded() {
    let site = open(|n, _| (200, list(&[&format!("a/{n}")], Some(&format!("next-{n}"))))).await;
    let registry = registry(site.url("/"), defaults::REGISTRY_TTL);
    registry.find(&words(&["a", "b", "c", "d", "e", "f"])).await;
    let most = defaults::REGISTRY_WORDS_MAX * defaults::REGISTRY_PAGES_MAX;
    assert_eq!(site.recorded().len(), most);

    let echo = open(|_, _| (200, list(&["a/b"], Some("again")))).await;
    let registry = self::registry(echo.url("/"), defaults::REGISTRY_TTL);
    assert_eq!(names(&registry.find(&words(&["a"])).await), ["a/b"]);
    assert_eq!(echo.recorded().len(), 2, "the same cursor again is the end");
}

#[tokio::test]
async fn a_registry_failure_has_a_reason_and_pauses_the_queries() {
    for (status, body, reason) in [
        (503, json!("in maintenance"), "503"),
        (200, json!({ "detail": "moved" }), "its answer is not a list of servers"),
        (302, json!(""), "302"),
    ] {
        let site = open(move |_, _| (status, body.clone())).await;
        let registry = registry(site.url("/"), defaults::REGISTRY_TTL);
        let found = registry.find(&words(&["git"])).await;
        assert!(found.entries.is_empty());
        let failure = found.failure.expect("it failed");
        assert!(failure.contains(reason), "{failure}");
        let failure = registry.find(&words(&["git"])).await.failure.expect("it is left alone");
        assert_eq!((failure.as_str(), site.recorded().len()), ("it failed a moment ago", 1));
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_not_read_to_its_end() {
    let site =
        TestSite::open(|_| async { page(200, vec![b' '; defaults::REGISTRY_PAGE_BYTES_MAX + 1]) })
            .await;
    let registry = registry(site.url("/"), defaults::REGISTRY_TTL);
    let failure = registry.find(&words(&["git"])).await.failure.expect("too large");
    assert!(failure.contains("2097152 bytes"), "{failure}");
}

#[tokio::test]
async fn a_stale_registry_answer_is_used_if_the_registry_fails() {
    let site = open(|n, _| match n {
        0 => (200, list(&["a/git"], None)),
        _ => (500, json!("")),
    })
    .await;
    // Stale as soon as it is stored.
    let registry = registry(site.url("/"), Duration::ZERO);
    assert_eq!(registry.find(&words(&["git"])).await.failure, None);
    for _ in 0..2 {
        let found = registry.find(&words(&["git"])).await;
        assert_eq!(names(&found), ["a/git"]);
        assert!(found.failure.is_some(), "it is said that it is old");
    }
    assert_eq!(site.recorded().len(), 2);
}
