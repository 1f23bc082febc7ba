//! Servers that are added on request, and registries that suggest some.

use std::time::Duration;

/// How likely it must be that a server is the one that was meant, from 0 to 1, for it to be started
/// unseen. Ours: seed 000 has 0.9 on a scale on which a sentence never gets there.
pub const PROVISION_CONFIDENCE_MIN: f64 = 0.6;

/// How many servers can be declared that may be provisioned. Ours: each is searched.
pub const PROVISIONABLE_MAX: usize = 1024;

/// How many keywords such a server may have. Ours: more would match anything.
pub const KEYWORDS_MAX: usize = 32;

/// The longest namespace or keyword, in bytes. Ours: a package's name, or a phrase.
pub const NAMESPACE_BYTES_MAX: usize = 128;

/// The longest description of a server that may be provisioned, in bytes. Ours: a paragraph.
pub const DESCRIPTION_BYTES_MAX: usize = 1 << 10;

/// How many namespaces can be trusted. Ours.
pub const TRUSTED_MAX: usize = 256;

/// How long an answer of the registry is good. Source: seed 000, 24 h.
pub const REGISTRY_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// How many words of a request for a server are looked for. Ours: a sentence or two.
pub const WANTED_WORDS_MAX: usize = 24;

/// How much of a request must be covered for a match to be mentioned, from 0 to 1. Ours: one word
/// of four.
pub const MATCH_CONFIDENCE_MIN: f64 = 0.25;

/// How much must be covered for a match to be worth no look elsewhere. Source: seed 000, 0.5.
pub const MATCH_CONFIDENCE_GOOD: f64 = 0.5;

/// How many tools, and how many servers, are suggested for a request. Ours: as many as one compares.
pub const MATCHES_MAX: usize = 5;

/// How many tools a search finds of which it is then told how much of a request they cover. Ours: ten
/// times those that are suggested.
pub const SHORTLIST_MAX: usize = 50;

/// How many tools of a server that was started are told at once. Ours: the others are found by a
/// search.
pub const STARTED_TOOLS_MAX: usize = 20;

/// How much of a description stands in a suggestion, in bytes. Ours: a sentence or two.
pub const SUGGESTION_TEXT_BYTES_MAX: usize = 300;

/// How many words of a request a registry is asked for, each by itself: it looks for a word in names.
/// Ours.
pub const REGISTRY_WORDS_MAX: usize = 4;

/// How many servers a page of a registry is to have. Source: its API allows 100.
pub const REGISTRY_PAGE_ITEMS: usize = 100;

/// How many pages of an answer of a registry are read. Ours: who finds nothing among 300 says it in
/// other words.
pub const REGISTRY_PAGES_MAX: usize = 3;

/// The largest page of a registry, in bytes. Ours: an entry has some kilobytes.
pub const REGISTRY_PAGE_BYTES_MAX: usize = 2 << 20;

/// How long a registry may take for a page. Ours: somebody waits.
pub const REGISTRY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a registry is left alone that has failed. Ours.
pub const REGISTRY_PAUSE: Duration = Duration::from_secs(60);

/// For how many words the answers of a registry are kept. Ours: 300 servers each at the most.
pub const REGISTRY_WORDS_KEPT: usize = 128;
