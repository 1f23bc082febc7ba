//! An event stream, read one event at a time.

use http_body_util::BodyExt as _;
use hyper::{HeaderMap, Method, Response, StatusCode, body::Incoming};
use serde_json::{Value, json};

use super::{
    DEADLINE,
    client::{Client, MCP_HEADERS, request},
};

/// An event or a comment in its original form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    /// The field `event`.
    pub(crate) kind: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) retry: Option<u64>,
    /// A comment before the event, or alone.
    pub(crate) comment: Option<String>,
}

/// The end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The stream was complete.
    Whole,
    /// The connection was cut.
    Cut,
}

/// A stream that is read during the test.
#[derive(Debug)]
pub(crate) struct EventStream {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    /// The answer is one JSON message instead of a stream; it is read as one event.
    is_plain: bool,
    buffer: Vec<u8>,
    end: Option<End>,
    /// The id of the last event that had one.
    pub(crate) last_event_id: Option<String>,
}

impl Client {
    /// Opens the GET stream.
    pub(crate) async fn listen(&self) -> EventStream {
        self.listen_with(&[]).await
    }

    /// Opens a GET stream after an event.
    pub(crate) async fn resume(&self, last_event_id: &str) -> EventStream {
        self.listen_with(&[("last-event-id", last_event_id)]).await
    }

    async fn listen_with(&self, headers: &[(&str, &str)]) -> EventStream {
        let headers = [&[("accept", "text/event-stream")], headers].concat();
        EventStream::new(self.open(Method::GET, &headers, "").await)
    }

    /// Posts a request and returns the stream of its answer.
    pub(crate) async fn stream(&self, id: Value, method: &str, params: Value) -> EventStream {
        let message = request(&id, method, &params);
        EventStream::new(self.open(Method::POST, &MCP_HEADERS, message).await)
    }

    /// Calls a tool under id 1 and returns the stream of its answer.
    pub(crate) async fn tool_stream(&self, name: &str, arguments: Value) -> EventStream {
        let params = json!({ "name": name, "arguments": arguments });
        self.stream(json!(1), "tools/call", params).await
    }
}

impl EventStream {
    /// Returns the stream of an answer whose head has arrived.
    pub(crate) fn new(response: Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        let content_type = head.headers.get("content-type");
        let is_plain = content_type.is_some_and(|value| value == "application/json");
        Self {
            status: head.status,
            headers: head.headers,
            body,
            is_plain,
            buffer: Vec::new(),
            end: None,
            last_event_id: None,
        }
    }

    /// Waits for the next event or comment; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            let event_end = self.buffer.windows(2).position(|pair| pair == b"\n\n");
            if let Some(at) = event_end.filter(|_| !self.is_plain) {
                let block: Vec<u8> = self.buffer.drain(..at + 2).collect();
                let event = Event::read(&String::from_utf8_lossy(&block));
                self.last_event_id = event.id.clone().or(self.last_event_id.take());
                return Some(event);
            }
            if self.end.is_some() {
                let plain = std::mem::take(&mut self.buffer);
                let data = String::from_utf8_lossy(&plain).into_owned();
                let is_message = self.is_plain && !data.is_empty();
                return is_message.then(|| Event { data: Some(data), ..Event::default() });
            }
            let frame = tokio::time::timeout(DEADLINE, self.body.frame()).await;
            match frame.expect("a frame in time") {
                Some(Ok(frame)) => self.buffer.extend(frame.into_data().unwrap_or_default()),
                Some(Err(_)) => self.end = Some(End::Cut),
                None => self.end = Some(End::Whole),
            }
        }
    }

    /// Waits for the next message; skips comments and events without data.
    pub(crate) async fn message(&mut self) -> Value {
        let data = self.next_data().await;
        serde_json::from_str(&data).expect(&data)
    }

    /// Waits for the next message and returns its text.
    pub(crate) async fn next_data(&mut self) -> String {
        let reading = async {
            loop {
                let event = self.next().await.expect("a message before the end");
                if let Some(data) = event.data.filter(|data| !data.is_empty()) {
                    return data;
                }
            }
        };
        // The timeout covers all events, so that keep-alives alone do not extend it.
        tokio::time::timeout(DEADLINE, reading).await.expect("a message in time")
    }

    /// Reads to the end and returns the remaining events and the kind of end.
    pub(crate) async fn rest(&mut self) -> (Vec<Event>, End) {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        (events, self.end.expect("it has ended"))
    }
}

impl Event {
    fn read(block: &str) -> Self {
        let mut event = Self::default();
        for line in block.lines().filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
            match name {
                "" => event.comment = Some(value),
                "id" => event.id = Some(value),
                "event" => event.kind = Some(value),
                "retry" => event.retry = value.parse().ok(),
                "data" => {
                    event.data = Some(match event.data.take() {
                        Some(before) => format!("{before}\n{value}"),
                        None => value,
                    });
                }
                _ => {}
            }
        }
        event
    }
}
