//! A client of revision 2026-07-28, with self-contained requests and no session.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::{Method, Response, StatusCode, body::Incoming};
use serde_json::{Value, json};

use super::{
    client::{Client, MCP_HEADERS, Reply},
    stream::EventStream,
};

/// The protocol version.
pub(crate) const VERSION: &str = "2026-07-28";

/// The prefix of the protocol's metadata names.
const PREFIX: &str = "io.modelcontextprotocol/";

/// A client of one path.
#[derive(Clone)]
pub(crate) struct Modern {
    pub(crate) http: Client,
    version: String,
    capabilities: Value,
    info: Value,
    level: Option<&'static str>,
    /// The arguments repeated in headers: the name of the header and their JSON pointer.
    param_headers: Vec<(&'static str, &'static str)>,
}

impl Modern {
    /// Returns a client without capabilities.
    pub(crate) fn new(http: Client) -> Self {
        Self {
            http,
            version: VERSION.to_owned(),
            capabilities: json!({}),
            info: json!({ "name": "test", "version": "1" }),
            level: None,
            param_headers: Vec::new(),
        }
    }

    /// Declares these capabilities from now on.
    pub(crate) fn capabilities(self, capabilities: Value) -> Self {
        Self { capabilities, ..self }
    }

    /// Uses this client name from now on.
    pub(crate) fn named(self, name: &str) -> Self {
        Self { info: json!({ "name": name, "version": "1" }), ..self }
    }

    /// Requests log messages from this level on.
    pub(crate) fn level(self, level: &'static str) -> Self {
        Self { level: Some(level), ..self }
    }

    /// Uses another protocol version.
    pub(crate) fn version(self, version: &str) -> Self {
        Self { version: version.to_owned(), ..self }
    }

    /// Repeats an argument in the header `Mcp-Param-{name}`.
    pub(crate) fn param_header(mut self, name: &'static str, pointer: &'static str) -> Self {
        self.param_headers.push((name, pointer));
        self
    }

    /// Returns a request with all its metadata; the metadata of `params` is kept.
    pub(crate) fn message(&self, id: &Value, method: &str, mut params: Value) -> Value {
        let meta = &mut params["_meta"];
        meta[key("protocolVersion")] = json!(self.version);
        meta[key("clientCapabilities")] = self.capabilities.clone();
        meta[key("clientInfo")] = self.info.clone();
        if let Some(level) = self.level {
            meta[key("logLevel")] = json!(level);
        }
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    /// Returns the headers that a message needs.
    pub(crate) fn headers(&self, message: &Value) -> Vec<(String, String)> {
        let method = message["method"].as_str().unwrap_or_default();
        let params = &message["params"];
        let mut headers = MCP_HEADERS.map(|(name, value)| (name.into(), value.into())).to_vec();
        headers.push(("mcp-protocol-version".into(), self.version.clone()));
        headers.push(("mcp-method".into(), method.to_owned()));
        let name = match method {
            "tools/call" | "prompts/get" => params["name"].as_str(),
            "resources/read" => params["uri"].as_str(),
            "tasks/cancel" | "tasks/get" | "tasks/update" => params["taskId"].as_str(),
            _ => None,
        };
        headers.extend(name.map(|name| ("mcp-name".into(), encoded(name))));
        for (name, pointer) in &self.param_headers {
            let text = match params["arguments"].pointer(pointer) {
                None | Some(Value::Null) => continue,
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
            };
            headers.push((format!("mcp-param-{name}"), encoded(&text)));
        }
        headers
    }

    /// Posts a message with its headers and returns the answer once its head has arrived.
    pub(crate) async fn open(&self, message: &Value) -> Response<Incoming> {
        let headers = self.headers(message);
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.http.open(Method::POST, &headers, message.to_string()).await
    }

    /// Posts a request and returns the whole answer.
    pub(crate) async fn request(&self, id: Value, method: &str, params: Value) -> Reply {
        Reply::read(self.open(&self.message(&id, method, params)).await).await
    }

    /// Posts a request and returns the stream of its answer; a plain answer is one event.
    pub(crate) async fn stream(&self, id: Value, method: &str, params: Value) -> EventStream {
        EventStream::new(self.open(&self.message(&id, method, params)).await)
    }

    /// Requests the description of the server.
    pub(crate) async fn discover(&self) -> Reply {
        self.request(json!("discover"), "server/discover", json!({})).await
    }

    /// Subscribes to `filter`: the first message is the acknowledgement.
    pub(crate) async fn listen(&self, id: Value, filter: Value) -> EventStream {
        self.stream(id, "subscriptions/listen", json!({ "notifications": filter })).await
    }

    /// Calls a tool under id 1, which all clients use, and returns the whole answer.
    pub(crate) async fn tool(&self, name: &str, arguments: Value) -> Reply {
        self.try_tool(name, arguments).await.expect("an answer")
    }

    /// Calls a tool under id 1; `None` if the connection breaks before the end of the answer.
    pub(crate) async fn try_tool(&self, name: &str, arguments: Value) -> Option<Reply> {
        let params = json!({ "name": name, "arguments": arguments });
        let message = self.message(&json!(1), "tools/call", params);
        let headers = self.headers(&message);
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.http.try_send(Method::POST, &headers, message.to_string()).await
    }

    /// Calls a tool under id 1 and returns the stream of its answer.
    pub(crate) async fn tool_stream(&self, name: &str, arguments: Value) -> EventStream {
        let params = json!({ "name": name, "arguments": arguments });
        self.stream(json!(1), "tools/call", params).await
    }

    /// Calls a tool and returns its structured content.
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

    /// Calls a tool and answers its questions until it completes; returns the last answer.
    ///
    /// `answer` receives the key and the request of each question.
    pub(crate) async fn call_with_answers(
        &self,
        name: &str,
        arguments: Value,
        mut answer: impl FnMut(&str, &Value) -> Value,
    ) -> Value {
        let params = json!({ "name": name, "arguments": arguments });
        let mut replied = self.request(json!(1), "tools/call", params.clone()).await.answer();
        let mut n_rounds = 1;
        while replied["result"]["resultType"] == "input_required" {
            n_rounds += 1;
            let retry = retry(&params, &replied["result"], &mut answer);
            replied = self.request(json!(n_rounds), "tools/call", retry).await.answer();
            assert!(n_rounds < 8, "too many rounds of questions: {replied}");
        }
        replied
    }
}

/// Returns the parameters of the repeated request, with the answers to the questions.
pub(crate) fn retry(
    params: &Value,
    asked: &Value,
    mut answer: impl FnMut(&str, &Value) -> Value,
) -> Value {
    let mut params = params.clone();
    let requests = asked["inputRequests"].as_object();
    let answers = requests.into_iter().flatten().map(|(key, request)| {
        let answer = answer(key, request);
        (key.clone(), answer)
    });
    let answers: serde_json::Map<String, Value> = answers.collect();
    if requests.is_some() {
        params["inputResponses"] = Value::Object(answers);
    }
    if let Some(state) = asked.get("requestState") {
        params["requestState"] = state.clone();
    }
    params
}

/// Returns the full name of a protocol metadata member.
pub(crate) fn key(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// Returns the subscription of a message.
pub(crate) fn subscription(message: &Value) -> &Value {
    let body = message.get("params").unwrap_or(&message["result"]);
    &body["_meta"][key("subscriptionId")]
}

/// Returns the HTTP status and the code of the error.
pub(crate) fn refusal(reply: &Reply) -> (StatusCode, Option<i64>) {
    (reply.status, reply.answer()["error"]["code"].as_i64())
}

/// Returns a value encoded for a header.
fn encoded(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && value.trim() == value
        && !(value.starts_with("=?base64?") && value.ends_with("?="));
    if is_plain { value.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(value)) }
}
