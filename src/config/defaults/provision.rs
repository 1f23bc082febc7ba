//! Bounds of servers that are added on request, and of registries that suggest some.

use std::time::Duration;

/// The confidence, from 0 to 1, in a match, below which metamcp starts no server.
pub const PROVISION_CONFIDENCE_MIN: f64 = 0.6;

/// The largest number of servers that may be provisioned. Each is searched.
pub const PROVISIONABLE_MAX: usize = 1024;

/// The largest number of keywords of a provisionable server. More would match anything.
pub const KEYWORDS_MAX: usize = 32;

/// The longest namespace or keyword, in bytes: a package's name, or a phrase.
pub const NAMESPACE_BYTES_MAX: usize = 128;

/// The longest description of a server that may be provisioned, in bytes: a paragraph.
pub const DESCRIPTION_BYTES_MAX: usize = 1 << 10;

/// The largest number of trusted namespaces.
pub const TRUSTED_MAX: usize = 256;

/// The time that an answer of the registry stays valid.
pub const REGISTRY_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// The words of a request for a server that are searched for: a sentence or two.
pub const REQUEST_WORDS_MAX: usize = 24;

/// The part of a request that a mentioned match covers at least, from 0 to 1: one word of four.
pub const MATCH_CONFIDENCE_MIN: f64 = 0.25;

/// The part that a match covers at least to make a search elsewhere unnecessary.
pub const MATCH_CONFIDENCE_GOOD: f64 = 0.5;

/// The largest number of suggested tools, and of suggested servers: as many as a person compares.
pub const MATCHES_MAX: usize = 5;

/// The largest number of tools from a search for which the covered part of a request is computed.
/// It is ten times the suggested ones.
pub const SHORTLIST_MAX: usize = 50;

/// The largest number of tools of a started server that the answer lists.
pub const STARTED_TOOLS_MAX: usize = 20;

/// The longest description in a suggestion, in bytes: a sentence or two.
pub const SUGGESTION_TEXT_BYTES_MAX: usize = 300;

/// The words of a request that a registry is asked for, one by one: it searches names for a word.
pub const REGISTRY_WORDS_MAX: usize = 4;

/// The number of servers to request per page of a registry. Source: its API allows 100.
pub const REGISTRY_PAGE_ITEMS: usize = 100;

/// The largest number of pages that are read of a registry's answer. A caller that finds nothing
/// among 300 servers uses other words.
pub const REGISTRY_PAGES_MAX: usize = 3;

/// The largest page of a registry, in bytes. An entry has some kilobytes.
pub const REGISTRY_PAGE_BYTES_MAX: usize = 2 << 20;

/// The time that a registry may take for a page. A caller waits for it.
pub const REGISTRY_TIMEOUT: Duration = Duration::from_secs(5);

/// The time that a registry is left alone after it failed.
pub const REGISTRY_PAUSE: Duration = Duration::from_secs(60);

/// The largest number of words with kept answers of a registry: at most 300 servers each.
pub const REGISTRY_WORDS_KEPT: usize = 128;
