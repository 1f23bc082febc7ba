//! A client of either era, for tests that cover both.

use hyper::StatusCode;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use super::{
    client::Client,
    modern::{Modern, retry, subscription},
    stream::EventStream,
};

/// The two eras of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// A client with the full set of features.
#[derive(Clone)]
pub(crate) enum EraClient {
    /// A client with a session.
    Legacy(Client),
    Modern(Box<Modern>),
}

/// The stream for messages that belong to no request.
pub(crate) struct Listener {
    stream: EventStream,
    /// The subscription id that each message carries.
    subscription: Value,
}

/// The id of the listening request; all clients use the same one.
const LISTEN: &str = "listen:0";

impl EraClient {
    /// Connects a client of this era.
    pub(crate) async fn connect(era: Era, http: Client, name: &str) -> Self {
        let capabilities = json!({ "elicitation": {}, "roots": {}, "sampling": {} });
        match era {
            Era::Legacy => Self::Legacy(http.initialized_with(capabilities).await),
            Era::Modern => {
                Self::Modern(Box::new(Modern::new(http).named(name).capabilities(capabilities)))
            }
        }
    }

    /// Sends a request and returns all messages, the answer last.
    pub(crate) async fn messages(&self, id: Value, method: &str, params: Value) -> Vec<Value> {
        let reply = match self {
            Self::Legacy(client) => client.request(id, method, params).await,
            Self::Modern(client) => client.request(id, method, params).await,
        };
        reply.messages()
    }

    /// Sends a request and returns the answer.
    pub(crate) async fn request(&self, id: Value, method: &str, params: Value) -> Value {
        self.messages(id, method, params).await.pop().expect("an answer")
    }

    /// Calls a tool under an id and returns its structured content.
    pub(crate) fn call(
        &self,
        id: u64,
        name: &'static str,
        arguments: Value,
    ) -> impl Future<Output = Value> + Send + use<> {
        let client = self.clone();
        async move {
            let params = json!({ "name": name, "arguments": arguments });
            let answer = client.request(json!(id), "tools/call", params).await;
            assert_eq!(answer["id"], id, "{answer}");
            let content = &answer["result"]["structuredContent"];
            assert!(content.is_object(), "{name} returns structured content: {answer}");
            content.clone()
        }
    }

    /// Calls a tool that sends the client one request, and answers it once all clients at `gate`
    /// have received theirs. Returns the request and the structured content.
    pub(crate) async fn call_with_answer(
        &self,
        arguments: Value,
        answer: Value,
        gate: &Barrier,
    ) -> (Value, Value) {
        let params = json!({ "name": "ask", "arguments": arguments });
        let (asked, last) = match self {
            Self::Legacy(client) => {
                let mut stream = client.stream(json!(1), "tools/call", params).await;
                let asked = stream.message().await;
                assert!(asked.get("method").is_some(), "a request of the server: {asked}");
                gate.wait().await;
                client.respond(&asked["id"], answer).await;
                (asked, stream.message().await)
            }
            Self::Modern(client) => {
                let first = client.request(json!(1), "tools/call", params.clone()).await.answer();
                let asked = first["result"]["inputRequests"].clone();
                let asked = asked.as_object().and_then(|asked| asked.values().next().cloned());
                let asked = asked.unwrap_or_else(|| panic!("a request of the server: {first}"));
                gate.wait().await;
                let again = retry(&params, &first["result"], |_, _| answer.clone());
                (asked, client.request(json!(2), "tools/call", again).await.answer())
            }
        };
        (asked, last["result"]["structuredContent"].clone())
    }

    /// Cancels the request with this id. In the modern era, this sends nothing: the end of the
    /// request is the cancellation.
    pub(crate) async fn cancel(&self, id: u64) {
        if let Self::Legacy(client) = self {
            let accepted = client.notify("notifications/cancelled", json!({ "requestId": id }));
            assert_eq!(accepted.await.status, StatusCode::ACCEPTED);
        }
    }

    /// Listens for changes of the tool list and of these resources.
    pub(crate) async fn listen(&self, uris: &[&str]) -> Listener {
        match self {
            Self::Legacy(client) => {
                let stream = client.listen().await;
                assert_eq!(stream.status, StatusCode::OK);
                for uri in uris {
                    let params = json!({ "uri": uri });
                    let answer = self.request(json!("s"), "resources/subscribe", params).await;
                    assert!(
                        answer["result"].is_object(),
                        "the client is subscribed to {uri}: {answer}"
                    );
                }
                Listener { stream, subscription: Value::Null }
            }
            Self::Modern(client) => {
                let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": uris });
                let stream = client.listen(json!(LISTEN), filter).await;
                let mut listener = Listener { stream, subscription: json!(LISTEN) };
                let acknowledged = listener.notice().await;
                assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
                let agreed = &acknowledged["params"]["notifications"];
                assert_eq!(agreed["toolsListChanged"], true);
                let watched = agreed["resourceSubscriptions"].as_array().map_or(0, Vec::len);
                assert_eq!(watched, uris.len(), "the client is subscribed to all: {agreed}");
                listener
            }
        }
    }

    /// Requests log messages from this level on.
    pub(crate) async fn with_level(self, level: &'static str) -> Self {
        match self {
            Self::Legacy(_) => {
                let params = json!({ "level": level });
                let answer = self.request(json!("l"), "logging/setLevel", params).await;
                assert!(answer["result"].is_object(), "the level is set: {answer}");
                self
            }
            Self::Modern(client) => Self::Modern(Box::new(client.level(level))),
        }
    }
}

impl Listener {
    /// Waits for the next message, which must belong to this stream.
    pub(crate) async fn notice(&mut self) -> Value {
        let notice = self.stream.message().await;
        assert_eq!(subscription(&notice), &self.subscription, "{notice}");
        notice
    }
}
