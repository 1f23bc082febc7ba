//! A cache of large results, from which clients read on.
//!
//! Each result is kept under a random key that cannot be guessed, for its tool. The number, the
//! total size and the age of results are bounded. The oldest result is evicted first.
//!
//! Pure: the caller makes the key and passes the time, counted from a start of its choice.

use std::{collections::HashMap, collections::VecDeque, time::Duration};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};

use super::{
    cursor::CursorError,
    definitions::MetaTool,
    preview::{META_KEY, read_on, size},
    result_document::{DocumentOffset, ResultDocument},
};
use crate::{
    memory_budget::MemoryReservation,
    tool::{ToolId, text_block},
};

/// The length of a key, in bytes: that of a random UUID.
pub const TOKEN_BYTES: usize = 16;

/// The key of a result: random bytes.
pub type ResultToken = [u8; TOKEN_BYTES];

/// The limits of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultCacheLimits {
    /// The maximum size of all results, in bytes.
    pub bytes_max: usize,
    /// The maximum number of results.
    pub count_max: usize,
    /// The time for which a result is kept.
    pub age_max: Duration,
}

/// A cache of results.
#[derive(Debug)]
pub struct ResultCache {
    limits: ResultCacheLimits,
    results: HashMap<ResultToken, CachedResult>,
    /// The keys, the oldest first.
    order: VecDeque<ResultToken>,
    bytes: usize,
}

#[derive(Debug)]
struct CachedResult {
    id: ToolId,
    document: ResultDocument,
    until: Duration,
    /// The reserved memory of the document.
    _memory: MemoryReservation,
}

impl ResultCache {
    /// Returns an empty cache.
    pub fn new(limits: ResultCacheLimits) -> Self {
        Self { limits, results: HashMap::new(), order: VecDeque::new(), bytes: 0 }
    }

    /// Keeps the result of a call of `id`, with the memory reserved for it. Returns the cursor for
    /// reading on at `offset`, or `None` if the result is larger than the limit.
    pub fn keep(
        &mut self,
        token: ResultToken,
        id: &ToolId,
        (document, memory): (ResultDocument, MemoryReservation),
        offset: DocumentOffset,
        now: Duration,
    ) -> Option<String> {
        if document.bytes() > self.limits.bytes_max || self.limits.count_max == 0 {
            return None;
        }
        self.forget(now);
        self.remove(&token);
        self.bytes += document.bytes();
        let until = now.saturating_add(self.limits.age_max);
        let cached = CachedResult { id: id.clone(), document, until, _memory: memory };
        self.results.insert(token, cached);
        self.order.push_back(token);
        while self.bytes > self.limits.bytes_max || self.results.len() > self.limits.count_max {
            let Some(oldest) = self.order.front().copied() else { break };
            self.remove(&oldest);
        }
        Some(cursor(&token, offset))
    }

    /// Returns the page of `cursor` as a result of `op`, JSON text, with up to `bytes_max` bytes.
    ///
    /// # Errors
    ///
    /// [`CursorError`] if it is invalid, of another tool, or of a result that is no longer kept.
    pub fn page(
        &mut self,
        id: &ToolId,
        op: MetaTool,
        cursor_text: &str,
        bytes_max: usize,
        now: Duration,
    ) -> Result<String, CursorError> {
        let (token, offset) = read(cursor_text).ok_or(CursorError::Broken)?;
        self.forget(now);
        let cached = self.results.get(&token).ok_or(CursorError::Expired)?;
        if cached.id != *id {
            return Err(CursorError::Foreign);
        }
        let mut page = cached.document.page(offset, bytes_max).ok_or(CursorError::Broken)?;
        let next = page.next.map(|next| cursor(&token, next));
        let next_step = next
            .as_deref()
            .map_or(" It is the last page.".to_owned(), |next| read_on(id, op, next));
        let (shown, bytes) = (page.shown_bytes, cached.document.bytes());
        let note = format!("This page has {shown} of {bytes} bytes of the result.{next_step}");
        page.blocks.push(text_block(&note));
        let (size, blocks) = (size(bytes, shown, next.as_deref()), page.blocks.join(","));
        let structured = match op {
            _ if op.promises_value() => format!(r#","structuredContent":{{"preview":{size}}}"#),
            _ => String::new(),
        };
        Ok(format!(r#"{{"content":[{blocks}]{structured},"_meta":{{"{META_KEY}":{size}}}}}"#))
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        *self = Self::new(self.limits);
    }

    /// Returns the size of all kept results, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Drops expired results.
    pub fn forget(&mut self, now: Duration) {
        while let Some(oldest) = self.order.front().copied()
            && self.results.get(&oldest).is_none_or(|cached| cached.until <= now)
        {
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, token: &ResultToken) {
        if let Some(cached) = self.results.remove(token) {
            self.bytes -= cached.document.bytes();
        }
        self.order.retain(|other| other != token);
    }
}

fn cursor(token: &ResultToken, offset: DocumentOffset) -> String {
    let mut bytes = token.to_vec();
    bytes.extend(u32::try_from(offset).unwrap_or(u32::MAX).to_be_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn read(cursor: &str) -> Option<(ResultToken, DocumentOffset)> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (token, offset) = bytes.split_at_checked(TOKEN_BYTES)?;
    let offset = u32::from_be_bytes(offset.try_into().ok()?);
    Some((token.try_into().ok()?, usize::try_from(offset).ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: ResultCacheLimits =
        ResultCacheLimits { bytes_max: 1000, count_max: 3, age_max: Duration::from_secs(60) };

    fn id() -> ToolId {
        ToolId::new("git", "log")
    }

    fn document(text: &str) -> ResultDocument {
        let mut document = ResultDocument::default();
        document.add_text(text);
        document
    }

    fn keep(results: &mut ResultCache, n: u8, text: &str, seconds: u64) -> Option<String> {
        let document = (document(text), MemoryReservation::default());
        results.keep([n; TOKEN_BYTES], &id(), document, 0, Duration::from_secs(seconds))
    }

    fn page(results: &mut ResultCache, cursor: &str, seconds: u64) -> Result<String, CursorError> {
        results.page(&id(), MetaTool::Call, cursor, 20, Duration::from_secs(seconds))
    }

    #[test]
    fn a_page_names_the_next_one_or_says_that_it_is_the_last() {
        let mut results = ResultCache::new(LIMITS);
        let cursor = keep(&mut results, 7, "one line of it\nand another one\n", 0).expect("kept");
        insta::assert_snapshot!(page(&mut results, &cursor, 1).expect("a page"), @r#"{"content":[{"text":"one line of it\n","type":"text"},{"text":"This page has 15 of 31 bytes of the result. To read on without another call of the tool, call mcp_call with {\"server\": \"git\", \"tool\": \"log\", \"cursor\": \"BwcHBwcHBwcHBwcHBwcHBwAAAA8\"}.","type":"text"}],"_meta":{"metamcp/result":{"bytes":31,"nextCursor":"BwcHBwcHBwcHBwcHBwcHBwAAAA8","shownBytes":15}}}"#);
        let next = super::cursor(&[7; TOKEN_BYTES], 15);
        insta::assert_snapshot!(page(&mut results, &next, 1).expect("a page"), @r#"{"content":[{"text":"and another one\n","type":"text"},{"text":"This page has 16 of 31 bytes of the result. It is the last page.","type":"text"}],"_meta":{"metamcp/result":{"bytes":31,"shownBytes":16}}}"#);
        let run =
            results.page(&id(), MetaTool::RunTool, &next, 20, Duration::ZERO).expect("a page");
        assert!(run.contains(r#""structuredContent":{"preview":{"bytes":31,"shownBytes":16}}"#));
    }

    #[test]
    fn a_result_cursor_is_valid_for_its_tool_until_it_expires() {
        let mut results = ResultCache::new(LIMITS);
        let cursor = keep(&mut results, 1, "ä", 0).expect("kept");
        let other = ToolId::new("git", "show");
        let of_other = results.page(&other, MetaTool::Call, &cursor, 20, Duration::ZERO);
        assert_eq!(of_other, Err(CursorError::Foreign));
        let unknown = super::cursor(&[2; TOKEN_BYTES], 0);
        assert_eq!(page(&mut results, &unknown, 0), Err(CursorError::Expired));
        for odd in ["", "x", &cursor[1..], &super::cursor(&[1; TOKEN_BYTES], 1), "AAAA"] {
            assert!(page(&mut results, odd, 0).is_err(), "{odd}");
        }
        assert!(page(&mut results, &cursor, 59).is_ok());
        assert_eq!(page(&mut results, &cursor, 60), Err(CursorError::Expired));
        assert_eq!(results.bytes(), 0);
    }

    #[test]
    fn the_oldest_result_is_evicted_and_a_result_larger_than_the_cache_is_not_kept() {
        let mut results = ResultCache::new(LIMITS);
        let first = keep(&mut results, 1, &"x".repeat(600), 0).expect("kept");
        assert_eq!(keep(&mut results, 2, &"x".repeat(1001), 0), None);
        assert!(page(&mut results, &first, 1).is_ok());
        let second = keep(&mut results, 3, &"x".repeat(600), 1).expect("kept");
        assert_eq!(page(&mut results, &first, 1), Err(CursorError::Expired));
        for n in 4..7 {
            keep(&mut results, n, "x", 1).expect("kept");
        }
        assert_eq!(page(&mut results, &second, 1), Err(CursorError::Expired));
        assert_eq!(results.bytes(), 3);
    }

    proptest! {
        #[test]
        fn the_limits_of_the_result_cache_always_hold(
            all in prop::collection::vec((0..6u8, 0..600usize, 0..40u64), 0..40)
        ) {
            let mut results = ResultCache::new(LIMITS);
            let mut now = 0;
            for (n, length, later) in all {
                now += later;
                let cursor = keep(&mut results, n, &"x".repeat(length), now).expect("it fits");
                let bytes: usize = results.results.values().map(|cached| cached.document.bytes()).sum();
                prop_assert_eq!(results.bytes(), bytes);
                prop_assert!(bytes <= LIMITS.bytes_max && results.results.len() <= LIMITS.count_max);
                prop_assert_eq!(results.order.len(), results.results.len());
                prop_assert_eq!(page(&mut results, &cursor, now).is_ok(), length > 0);
            }
        }

        #[test]
        fn any_other_text_is_refused_as_a_result_cursor(text in ".{0,40}") {
            prop_assert!(page(&mut ResultCache::new(LIMITS), &text, 0).is_err());
        }
    }
}
