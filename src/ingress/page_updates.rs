//! The updates of one open page: its changed sections, once in [`defaults::PAGE_INTERVAL`].
//!
//! The browser pulls: nothing is read before it has taken the last update, and only the sections as
//! it has them are kept.

use bytes::Bytes;
use serde_json::json;
use tokio::time::{self, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::{
    config::defaults,
    fair_share::EvictablePermit,
    protocol::{ByteChunks, sse},
    status_page::{self, LIVE_SECTIONS, PageData, html::Html},
};

/// The updates of one open page, with the function that reads the data.
pub(super) struct PageUpdates<R, A> {
    read: R,
    permit: EvictablePermit,
    stop: CancellationToken,
    /// Returns whether the reader may still read.
    is_allowed: A,
    ticks: time::Interval,
    /// The sections as the browser has them.
    shown: [Html; LIVE_SECTIONS.len()],
    has_ended: bool,
}

impl<R, F, A> PageUpdates<R, A>
where
    R: Fn() -> F,
    F: Future<Output = PageData>,
    A: Fn() -> bool,
{
    /// Returns the updates of a page that shows nothing yet.
    pub(super) fn new(
        read: R,
        permit: EvictablePermit,
        stop: CancellationToken,
        is_allowed: A,
    ) -> Self {
        let mut ticks = time::interval(defaults::PAGE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { read, permit, stop, is_allowed, ticks, shown: Default::default(), has_ended: false }
    }

    /// Returns the changed sections as events, or a comment that keeps the stream open; `None` ends
    /// the stream. Not cancel safe: an update may be lost.
    pub(super) async fn next(&mut self) -> Option<ByteChunks> {
        if self.has_ended {
            return None;
        }
        tokio::select! {
            biased;
            () = self.stop.cancelled() => return None,
            () = self.permit.evicted() => {
                return Some(self.end("Too many pages are open. Reload this one to follow it."));
            }
            _ = self.ticks.tick() => {}
        }
        if !(self.is_allowed)() {
            return Some(self.end("The token has changed. Reload this page."));
        }
        self.permit.touch();
        let data = (self.read)().await;
        let changed = self.changed_sections(&data);
        Some(if changed.is_empty() { sse::KEEP_ALIVE.into() } else { Bytes::from(changed).into() })
    }

    /// Returns the events for the sections that differ from those shown, and records them.
    fn changed_sections(&mut self, data: &PageData) -> String {
        let mut events = String::new();
        for (section, shown) in LIVE_SECTIONS.into_iter().zip(&mut self.shown) {
            let now = status_page::section(section, data);
            if now != *shown {
                let update = json!({ "id": section.id(), "html": now.as_str() });
                events.push_str(&format!("event: section\ndata: {update}\n\n"));
                *shown = now;
            }
        }
        events
    }

    /// Returns the last event, after which the browser does not connect again.
    fn end(&mut self, reason: &str) -> ByteChunks {
        self.has_ended = true;
        Bytes::from(format!("event: end\ndata: {}\n\n", json!(reason))).into()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::Cell,
        future::{Ready, ready},
        sync::Arc,
        time::Duration,
    };

    use tokio::time::Instant;

    use super::*;
    use crate::{
        capacity_holder::Holder,
        fair_share::{Evictables, EvictionBounds},
    };

    fn pages() -> Arc<Evictables> {
        Evictables::new(EvictionBounds { max: defaults::PAGES_MAX, reserve: 0 })
    }

    fn data(version: &str) -> PageData {
        PageData { status: json!({ "version": version, "servers": [] }), ..PageData::default() }
    }

    fn updates<R: Fn() -> Ready<PageData>>(
        pages: &Arc<Evictables>,
        read: R,
    ) -> PageUpdates<R, fn() -> bool> {
        let permit = pages.admit(Holder::SERVICE).expect("room");
        PageUpdates::new(read, permit, CancellationToken::new(), || true)
    }

    async fn text(
        updates: &mut PageUpdates<impl Fn() -> Ready<PageData>, impl Fn() -> bool>,
    ) -> String {
        let event = updates.next().await.expect("the stream is open").join();
        String::from_utf8(event.to_vec()).expect("UTF-8")
    }

    #[tokio::test(start_paused = true)]
    async fn an_open_page_gets_only_the_sections_that_have_changed() {
        let version = Cell::new("1");
        let mut updates = updates(&pages(), || ready(data(version.get())));
        let first = text(&mut updates).await;
        assert_eq!(first.matches("event: section\n").count(), LIVE_SECTIONS.len());
        assert_eq!(text(&mut updates).await.as_bytes(), &*sse::KEEP_ALIVE);
        version.set("2");
        let second = text(&mut updates).await;
        assert!(second.starts_with("event: section\ndata: {"), "{second}");
        assert_eq!(second.lines().filter(|line| line.starts_with("data: ")).count(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_updates_grow_nothing() {
        let n_reads = Cell::new(0);
        let mut updates = updates(&pages(), || {
            n_reads.set(n_reads.get() + 1);
            ready(data(&format!("{:04}", n_reads.get())))
        });
        let (began, first) = (Instant::now(), text(&mut updates).await.len());
        let size = |shown: &[Html]| shown.iter().map(Html::len).sum::<usize>();
        let kept = size(&updates.shown);
        for _ in 1..1000 {
            assert!(text(&mut updates).await.len() < first);
            assert_eq!(size(&updates.shown), kept);
        }
        assert_eq!(began.elapsed(), 999 * defaults::PAGE_INTERVAL);
        assert_eq!(n_reads.get(), 1000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_that_takes_no_update_costs_no_read() {
        let n_reads = Cell::new(0);
        let mut updates = updates(&pages(), || {
            n_reads.set(n_reads.get() + 1);
            ready(data("1"))
        });
        text(&mut updates).await;
        time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(n_reads.get(), 1);
        text(&mut updates).await;
        text(&mut updates).await;
        assert_eq!(n_reads.get(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn one_page_too_many_ends_the_updates_of_another_one() {
        let pages = pages();
        let mut first = updates(&pages, || ready(data("1")));
        text(&mut first).await;
        let others: Vec<_> =
            (0..defaults::PAGES_MAX).map(|_| pages.admit(Holder::SERVICE)).collect();
        assert!(others.iter().all(Option::is_some));
        assert!(text(&mut first).await.starts_with("event: end\ndata: \"Too many pages"));
        assert!(first.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn another_token_ends_the_updates() {
        let (pages, is_allowed) = (pages(), Cell::new(true));
        let permit = pages.admit(Holder::SERVICE).expect("room");
        let stop = CancellationToken::new();
        let mut updates = PageUpdates::new(|| ready(data("1")), permit, stop, || is_allowed.get());
        text(&mut updates).await;
        is_allowed.set(false);
        assert!(text(&mut updates).await.starts_with("event: end\ndata: \"The token has changed"));
        assert!(updates.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn hostile_text_adds_no_line_to_an_event() {
        let hostile = "x\n\nevent: section\ndata: {}\r\r\u{2028}</script>";
        let mut updates = updates(&pages(), || ready(data(hostile)));
        let events = text(&mut updates).await;
        for line in events.split(['\n', '\r']).filter(|line| !line.is_empty()) {
            let is_known = line == "event: section" || line.starts_with("data: {\"html\":");
            assert!(is_known || line.starts_with("data: {\"id\":"), "{line}");
        }
        assert_eq!(events.matches("event: section\ndata").count(), LIVE_SECTIONS.len());
    }
}
