//! A test client on hyper, independent of the code under test.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{HeaderMap, Method, Request, StatusCode, body::Incoming};
use hyper_util::{
    client::legacy::{Client as Http, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};

use super::DEADLINE;

/// A client of one path, with or without a session id.
#[derive(Clone)]
pub(crate) struct Client {
    http: Http<HttpConnector, Full<Bytes>>,
    url: String,
    /// Sent with every request.
    pub(crate) headers: Vec<(String, String)>,
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Client {
    pub(crate) fn new(url: String) -> Self {
        let http = Http::builder(TokioExecutor::new()).build_http();
        Self { http, url, headers: Vec::new() }
    }

    /// Returns a client of another path of the same host, with the same headers.
    pub(crate) fn at(&self, path: &str) -> Self {
        let host_end = self.url.match_indices('/').nth(2).map_or(self.url.len(), |(at, _)| at);
        Self { url: format!("{}{path}", &self.url[..host_end]), ..self.clone() }
    }

    /// Returns the address.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Adds a header to every request from now on.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Performs the handshake and keeps the session id.
    pub(crate) async fn initialized(self) -> Self {
        self.initialized_with(json!({})).await
    }

    /// Performs the handshake with these client capabilities and keeps the session id.
    pub(crate) async fn initialized_with(self, capabilities: Value) -> Self {
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": capabilities,
            "clientInfo": { "name": "test", "version": "1" },
        });
        let reply = self.request(json!(0), "initialize", params).await;
        let session = reply.headers.get("mcp-session-id").expect("a session id").to_str();
        let session = session.expect("visible ASCII").to_owned();
        let client = self.header("mcp-session-id", &session);
        let notified = client.notify("notifications/initialized", json!({})).await;
        assert_eq!(notified.status, StatusCode::ACCEPTED);
        client
    }

    /// Sends raw bytes and returns the answer once its head has arrived.
    pub(crate) async fn open(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> hyper::Response<Incoming> {
        let request = self.build(method, headers, body);
        tokio::time::timeout(DEADLINE, self.http.request(request))
            .await
            .expect("an answer in time")
            .expect("an answer")
    }

    /// Sends raw bytes and returns the whole answer.
    pub(crate) async fn send(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Reply {
        Reply::read(self.open(method, headers, body).await).await
    }

    /// Sends raw bytes and returns the whole answer; `None` if the connection breaks before its end.
    pub(crate) async fn try_send(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Option<Reply> {
        let request = self.build(method, headers, body);
        let sending = tokio::time::timeout(DEADLINE, self.http.request(request));
        let (head, body) = sending.await.expect("an answer in time").ok()?.into_parts();
        let body = tokio::time::timeout(DEADLINE, body.collect()).await.expect("a body in time");
        let body = String::from_utf8(body.ok()?.to_bytes().into()).expect("UTF-8");
        Some(Reply { status: head.status, headers: head.headers, body })
    }

    fn build(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Request<Full<Bytes>> {
        let mut request = Request::builder().method(method).uri(&self.url);
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in own.chain(headers.iter().copied()) {
            request = request.header(name, value);
        }
        request.body(Full::new(body.into())).expect("a request")
    }

    pub(crate) async fn get(&self) -> Reply {
        self.send(Method::GET, &[], "").await
    }

    /// Posts a message and returns the whole answer.
    pub(crate) async fn post(&self, message: impl Into<Bytes>) -> Reply {
        self.send(Method::POST, &MCP_HEADERS, message).await
    }

    /// Posts a message and returns the answer once its head has arrived.
    pub(crate) async fn open_post(&self, message: impl Into<Bytes>) -> hyper::Response<Incoming> {
        self.open(Method::POST, &MCP_HEADERS, message).await
    }

    pub(crate) async fn request(&self, id: Value, method: &str, params: Value) -> Reply {
        self.post(request(&id, method, &params)).await
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) -> Reply {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.post(message.to_string()).await
    }

    /// Answers a request of the server under the server's own `id`.
    pub(crate) async fn respond(&self, id: &Value, result: Value) -> Reply {
        self.post(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()).await
    }

    /// Refuses a request of the server.
    pub(crate) async fn respond_error(&self, id: &Value, code: i64, message: &str) -> Reply {
        let error = json!({ "code": code, "message": message });
        self.post(json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()).await
    }

    /// Calls a tool under id 1, which all clients use, and returns the whole answer.
    pub(crate) async fn tool(&self, name: &str, arguments: Value) -> Reply {
        self.request(json!(1), "tools/call", json!({ "name": name, "arguments": arguments })).await
    }

    /// Calls `hold`, which answers only when released.
    pub(crate) async fn hold(self, key: &'static str) -> Reply {
        self.tool("hold", json!({ "key": key })).await
    }

    /// Calls a tool and returns its structured content.
    #[track_caller]
    pub(crate) fn call(
        &self,
        name: &str,
        arguments: Value,
    ) -> impl Future<Output = Value> + Send + use<> {
        let (client, name) = (self.clone(), name.to_owned());
        async move {
            let reply = client.tool(&name, arguments).await;
            reply.answer()["result"]["structuredContent"].clone()
        }
    }
}

/// The headers that every client sends with a message.
pub(crate) const MCP_HEADERS: [(&str, &str); 2] =
    [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];

/// Returns the text of a request.
pub(crate) fn request(id: &Value, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

impl Reply {
    /// Reads the rest of an answer.
    pub(crate) async fn read(response: hyper::Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        let body = tokio::time::timeout(DEADLINE, body.collect()).await.expect("a body in time");
        let body = body.expect("a whole body").to_bytes();
        let body = String::from_utf8(body.into()).expect("UTF-8");
        Self { status: head.status, headers: head.headers, body }
    }

    /// Returns every message of the answer, from plain JSON or a stream.
    #[track_caller]
    pub(crate) fn messages(&self) -> Vec<Value> {
        let parse = |text: &str| serde_json::from_str(text).expect(text);
        if self.headers["content-type"] != "text/event-stream" {
            return vec![parse(&self.body)];
        }
        self.body.lines().filter_map(|line| line.strip_prefix("data: ")).map(parse).collect()
    }

    /// Returns the last message, which is the answer.
    #[track_caller]
    pub(crate) fn answer(&self) -> Value {
        let Some(answer) = self.messages().pop() else { panic!("no answer: {self:?}") };
        answer
    }
}

/// A request that runs in parallel with the test; aborted on drop.
pub(crate) struct Running<T>(tokio::task::JoinSet<T>);

/// Starts a request in parallel with the test.
pub(crate) fn running<T: Send + 'static>(
    request: impl Future<Output = T> + Send + 'static,
) -> Running<T> {
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(request);
    Running(tasks)
}

impl<T: 'static> Running<T> {
    /// Waits for the end of the request and returns its result.
    pub(crate) async fn end(mut self) -> T {
        let joined = tokio::time::timeout(DEADLINE, self.0.join_next()).await;
        joined.expect("it ends in time").expect("it is one task").expect("it does not panic")
    }
}
