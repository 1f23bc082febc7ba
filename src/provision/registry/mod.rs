//! The client of a registry of MCP servers, which only suggests servers.
//!
//! The registry searches for one word in the names of servers. So each word is one query, and all
//! results are compared with the whole request. Answers are cached for a time. A registry that
//! fails is not asked for a while; stale answers are better than none.

use std::{
    collections::HashSet,
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::Semaphore, time::Instant};

use crate::{
    config::{self, ProxyConfig, defaults},
    error_report::chain,
    http_client::{JsonClient, WebError, WebLimits},
};

mod registry_page;
mod response_cache;

pub(super) use registry_page::RegistryEntry;
use registry_page::RegistryPage;
#[doc(hidden)]
pub use registry_page::read_page;
use response_cache::{CachedQuery, RegistryCache};

/// A registry of MCP servers.
#[derive(Debug)]
pub(super) struct RegistryClient {
    declared: config::RegistryConfig,
    client: Result<JsonClient, Arc<WebError>>,
    proxy: ProxyConfig,
    since: Instant,
    known: Mutex<RegistryCache>,
    /// The permits for concurrent queries, shared by all requests.
    reads: Semaphore,
}

/// The results of a registry for some words.
#[derive(Debug, Default)]
pub(super) struct RegistryResults {
    pub(super) entries: Vec<RegistryEntry>,
    /// The reason why the entries are missing or stale.
    pub(super) failure: Option<String>,
}

/// The reason why a registry gave no usable answer.
#[derive(Debug, thiserror::Error)]
enum RegistryError {
    #[error(transparent)]
    Web(#[from] Arc<WebError>),
    #[error("its answer is not a list of servers")]
    NoList,
    #[error("it failed a moment ago")]
    Paused,
}

impl RegistryError {
    fn code(&self) -> &'static str {
        match self {
            Self::Web(error) => error.code(),
            Self::NoList => "REGISTRY_UNUSABLE",
            Self::Paused => "REGISTRY_LEFT_ALONE",
        }
    }

    fn hint(&self) -> &'static str {
        match self {
            Self::Web(error) => error.hint(),
            Self::NoList => "Check `provision.registry.url`: something else may answer there.",
            Self::Paused => "Try again in a moment: metamcp then asks the registry again.",
        }
    }
}

impl RegistryClient {
    /// Returns a client of the declared registry, which is asked through `proxy`. Sends nothing yet.
    pub(super) fn new(declared: &config::RegistryConfig, proxy: &ProxyConfig) -> Self {
        let bounds = WebLimits {
            timeout: defaults::REGISTRY_TIMEOUT,
            body_bytes_max: defaults::REGISTRY_PAGE_BYTES_MAX,
        };
        let client = JsonClient::new(declared.url.clone(), None, bounds, proxy);
        let client = client.map_err(Arc::new);
        let (since, known) = (Instant::now(), Mutex::default());
        let reads = Semaphore::new(defaults::REGISTRY_WORDS_MAX);
        let (declared, proxy) = (declared.clone(), proxy.clone());
        Self { declared, client, proxy, since, known, reads }
    }

    /// Returns whether this registry is declared so, and asked through `proxy`.
    pub(super) fn is_declared_as(
        &self,
        declared: &config::RegistryConfig,
        proxy: &ProxyConfig,
    ) -> bool {
        (&self.declared, &self.proxy) == (declared, proxy)
    }

    /// Returns the entries that the registry has for some of `words`, each once. Cancel safe:
    /// unanswered words are asked again.
    pub(super) async fn find(&self, words: &[String]) -> RegistryResults {
        let asked = words.iter().take(defaults::REGISTRY_WORDS_MAX).map(|word| self.about(word));
        let (mut found, mut seen) = (RegistryResults::default(), HashSet::new());
        for (entries, failure) in futures_util::future::join_all(asked).await {
            for entry in entries.iter() {
                if seen.insert(entry.name.clone()) {
                    found.entries.push(entry.clone());
                }
            }
            found.failure = found.failure.or(failure);
        }
        found
    }

    /// Returns the entries for a word, and the reason if there are none or they are stale.
    async fn about(&self, word: &str) -> (Arc<Vec<RegistryEntry>>, Option<String>) {
        if let CachedQuery::Fresh(entries) = self.answer(word) {
            return (entries, None);
        }
        // Limits the concurrent queries of all requests. The semaphore is never closed.
        let _turn = self.reads.acquire().await;
        let stale = match self.answer(word) {
            // The holder of the last permit asked for the same word.
            CachedQuery::Fresh(entries) => return (entries, None),
            CachedQuery::Stale(entries) => Some(entries),
            CachedQuery::Unknown => None,
        };
        match self.read(word).await {
            Ok(entries) => {
                let entries = Arc::new(entries);
                self.known().learn(word, Arc::clone(&entries), self.since.elapsed());
                (entries, None)
            }
            Err(error) => {
                // The rest of the URL may be secret.
                let host = self.declared.url.host().unwrap_or_default();
                let reason = chain(&error);
                let is_asked = !matches!(error, RegistryError::Paused);
                if is_asked && self.known().fail(self.since.elapsed()) {
                    let (code, hint, is_stale) = (error.code(), error.hint(), stale.is_some());
                    tracing::warn!(
                        registry = host,
                        code,
                        reason,
                        hint,
                        is_stale,
                        "registry `{host}` gave no usable answer: {reason}"
                    );
                }
                (stale.unwrap_or_default(), Some(reason))
            }
        }
    }

    /// Reads the pages for a word, at most [`defaults::REGISTRY_PAGES_MAX`].
    async fn read(&self, word: &str) -> Result<Vec<RegistryEntry>, RegistryError> {
        let client = self.client.as_ref().map_err(Arc::clone)?;
        if !self.known().may_ask(self.since.elapsed()) {
            return Err(RegistryError::Paused);
        }
        let (mut entries, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..defaults::REGISTRY_PAGES_MAX {
            let target = self.target(word, cursor.as_deref());
            let answer = client.get::<serde_json::Value>(Some(&target)).await;
            let answer = answer.map_err(Arc::new)?;
            let page = RegistryPage::read(&answer).ok_or(RegistryError::NoList)?;
            entries.extend(page.entries);
            match page.next {
                // A registry that repeats the cursor would repeat the page.
                Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
                _ => break,
            }
        }
        Ok(entries)
    }

    fn target(&self, word: &str, cursor: Option<&str>) -> String {
        let base = self.declared.url.path().trim_end_matches('/');
        let (limit, word) = (defaults::REGISTRY_PAGE_ITEMS, encoded(word));
        let mut target = format!("{base}/v0/servers?search={word}&version=latest&limit={limit}");
        if let Some(cursor) = cursor {
            target.push_str("&cursor=");
            target.push_str(&encoded(cursor));
        }
        target
    }

    fn answer(&self, word: &str) -> CachedQuery {
        self.known().answer(word, self.declared.ttl, self.since.elapsed())
    }

    fn known(&self) -> MutexGuard<'_, RegistryCache> {
        // Held for statements on plain data.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a text in percent-encoding for a query. Source: RFC 3986, section 2.3.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _written = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
