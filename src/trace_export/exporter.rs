//! The task that sends the spans of calls to a collector.

use std::{sync::Arc, time::Duration};

use hyper::Uri;
use serde_json::Value;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::span_batch::span_batch;
use crate::{
    call_record::CallRecorder,
    config::{ProxyConfig, defaults},
    error_report::chain,
    http_client::{JsonClient, WebError, WebLimits},
    telemetry::ring::RingQuery,
};

/// The path of spans at a collector. Source: OpenTelemetry, "OTLP/HTTP".
const PATH: &str = "/v1/traces";

/// The limits of one request.
const LIMITS: WebLimits = WebLimits { timeout: Duration::from_secs(10), body_bytes_max: 64 * 1024 };

/// The exporter of spans to one collector.
#[derive(Debug)]
pub struct TraceExporter {
    recorder: Arc<CallRecorder>,
    client: JsonClient,
    /// The number of the last record that was read.
    read: u64,
    /// The number of calls whose spans were lost, until a warning says so.
    n_lost: u64,
    /// The time of the last warning.
    warned: Option<Instant>,
}

impl TraceExporter {
    /// Returns the exporter of all calls from now on to the collector at `address`.
    ///
    /// # Errors
    ///
    /// [`WebError`] if the address cannot be used.
    pub fn new(
        recorder: Arc<CallRecorder>,
        address: &Uri,
        proxy: &ProxyConfig,
    ) -> Result<Self, WebError> {
        let client = JsonClient::new(traces_url(address), None, LIMITS, proxy)?;
        recorder.export_spans();
        let read = recorder.ring().n_written();
        Ok(Self { recorder, client, read, n_lost: 0, warned: None })
    }

    /// Sends spans until `stop`, and then the last ones. If dropped, the last ones are lost.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = self.recorder.ring().wait_after(self.read) => {}
                () = stop.cancelled() => break,
            }
            tokio::select! {
                () = time::sleep(defaults::SPAN_EXPORT_PERIOD) => {}
                () = stop.cancelled() => break,
            }
            self.send().await;
        }
        self.send().await;
    }

    /// Sends the spans of the calls since the last time. Those of a failed request are lost.
    async fn send(&mut self) {
        let page = self.recorder.ring().read(
            RingQuery { since_ms: None, after: Some(self.read), entries_max: usize::MAX },
            |_| true,
        );
        self.read = page.next;
        self.n_lost += page.n_lost;
        let mut reason = "it was slower than the calls".to_owned();
        let mut n_left = page.entries.len();
        for calls in page.entries.chunks(defaults::SPAN_BATCH_CALLS) {
            if let Some(batch) = span_batch(calls.iter())
                && let Err(error) = self.client.post::<Value>(&batch).await
            {
                // The next ones would wait as long.
                self.n_lost += n_left as u64;
                reason = chain(&error);
                break;
            }
            n_left -= calls.len();
        }
        self.warn(&reason);
    }

    fn warn(&mut self, reason: &str) {
        let is_early = |warned: Instant| warned.elapsed() < defaults::CALL_WARNING_PERIOD;
        if self.n_lost == 0 || self.warned.is_some_and(is_early) {
            return;
        }
        self.warned = Some(Instant::now());
        let n_lost = std::mem::take(&mut self.n_lost);
        tracing::warn!(
            reason,
            n_lost,
            "the collector did not get the spans of {n_lost} calls: {reason}"
        );
    }
}

/// Returns the address of the spans at a collector.
fn traces_url(address: &Uri) -> Uri {
    let text = address.to_string();
    let text = text.trim_end_matches('/');
    let text = if text.ends_with(PATH) { text.to_owned() } else { format!("{text}{PATH}") };
    // Cannot fail: a path was added to a valid address.
    text.parse().unwrap_or_else(|_| address.clone())
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::{
        call_record::Caller,
        capacity_holder::{Account, AccountMember, Holder},
        protocol::Message,
    };

    #[test]
    fn the_path_of_spans_is_added_once() {
        for (address, expected) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            ("https://h/otlp/v1/traces", "https://h/otlp/v1/traces"),
        ] {
            assert_eq!(traces_url(&address.parse().unwrap()).to_string(), expected);
        }
    }

    #[tokio::test]
    async fn a_bounded_number_of_spans_waits_for_a_collector_that_hangs() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: Uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let recorder = Arc::<CallRecorder>::default();
        let proxy = ProxyConfig::default();
        let mut exporter = TraceExporter::new(Arc::clone(&recorder), &address, &proxy).unwrap();
        let request = Message::request("tools/call", Some("{}"));
        let holder = Holder { account: Account::User(0), member: AccountMember::Session(1) };
        let call = || drop(recorder.observe(|| Caller::operator(holder), &request, None));

        call();
        let hanging = async {
            let _unanswered = listener.accept().await.unwrap();
            (0..3 * defaults::CALL_RING_RECORDS).for_each(|_| call());
        };
        tokio::join!(exporter.send(), hanging);

        let waiting =
            RingQuery { since_ms: None, after: Some(exporter.read), entries_max: usize::MAX };
        let waiting = recorder.ring().read(waiting, |_| true);
        assert!(waiting.entries.len() <= defaults::CALL_RING_RECORDS);
        assert!(waiting.n_lost >= 2 * defaults::CALL_RING_RECORDS as u64);
    }
}
