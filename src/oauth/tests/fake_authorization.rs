//! An authorization server and a protected server in the same process.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard},
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hyper::{Method, Request, Response, Uri};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    http_client::{Origin, WebError},
    oauth::OAuthHttp,
};

/// The URL of the protected server.
pub(super) const SERVER: &str = "https://mcp.example.com/mcp";

/// The usual authorization server.
pub(super) const ISSUER: &str = "https://auth.example.com";

/// The usual place of the metadata of the protected server.
pub(super) const RESOURCE_METADATA: &str =
    "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";

pub(super) type Form = BTreeMap<String, String>;

/// A request that the fake received.
#[derive(Clone, Debug)]
pub(super) struct SeenRequest {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) authorization: Option<String>,
    pub(super) form: Form,
    pub(super) json: Value,
}

/// The behaviour of the fake.
pub(super) struct FakeBehaviour {
    pub(super) documents: HashMap<String, Value>,
    /// The `WWW-Authenticate` header of the protected server.
    pub(super) challenge: Option<String>,
    /// Members of the answers to registrations.
    pub(super) registration: Value,
    /// The answers to the next registrations.
    pub(super) registration_refusals: Vec<Value>,
    /// Members of the answers to token requests.
    pub(super) tokens: Value,
    pub(super) has_refresh_tokens: bool,
    /// The refresh tokens that the authorization server accepts.
    pub(super) valid: Vec<String>,
    /// The error for the next token requests.
    pub(super) token_error: Option<(u16, Value)>,
    pub(super) is_down: bool,
    /// Token requests wait for a permit.
    pub(super) gate: Option<Arc<Notify>>,
    /// The value of `iss` in callbacks.
    pub(super) iss: Option<String>,
    pub(super) requests: Vec<SeenRequest>,
    n_issued: usize,
    n_registered: usize,
}

/// An authorization server and a protected server.
pub(super) struct FakeAuthorization(Mutex<FakeBehaviour>);

/// Returns the metadata of an authorization server, with the members of `more`.
pub(super) fn metadata(issuer: &str, more: Value) -> Value {
    let mut found = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"),
        "revocation_endpoint": format!("{issuer}/revoke"),
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
    });
    merge(&mut found, more);
    found
}

/// Adds members to an object, and removes those that are null.
pub(super) fn merge(object: &mut Value, more: Value) {
    let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) else { return };
    for (name, value) in more {
        match value {
            Value::Null => drop(object.remove(&name)),
            value => drop(object.insert(name, value)),
        }
    }
}

impl FakeAuthorization {
    /// Returns a protected server with metadata at the usual places.
    pub(super) fn new() -> Arc<Self> {
        let resource = json!({ "resource": SERVER, "authorization_servers": [ISSUER] });
        Arc::new(Self(Mutex::new(FakeBehaviour {
            documents: HashMap::from([
                (RESOURCE_METADATA.to_owned(), resource),
                (
                    format!("{ISSUER}/.well-known/oauth-authorization-server"),
                    metadata(ISSUER, json!({})),
                ),
            ]),
            challenge: Some(format!("Bearer resource_metadata=\"{RESOURCE_METADATA}\"")),
            registration: json!({}),
            registration_refusals: Vec::new(),
            tokens: json!({ "expires_in": 3600 }),
            has_refresh_tokens: true,
            valid: Vec::new(),
            token_error: None,
            is_down: false,
            gate: None,
            iss: None,
            requests: Vec::new(),
            n_issued: 0,
            n_registered: 0,
        })))
    }

    pub(super) fn set(&self) -> MutexGuard<'_, FakeBehaviour> {
        self.0.lock().expect("not poisoned")
    }

    /// Changes the metadata of the usual authorization server.
    pub(super) fn change_metadata(&self, more: Value) {
        let url = format!("{ISSUER}/.well-known/oauth-authorization-server");
        merge(self.set().documents.get_mut(&url).expect("there"), more);
    }

    /// Changes the metadata of the protected server.
    pub(super) fn change_resource(&self, more: Value) {
        merge(self.set().documents.get_mut(RESOURCE_METADATA).expect("there"), more);
    }

    /// Returns the requests to URLs that end in `end`.
    pub(super) fn seen(&self, end: &str) -> Vec<SeenRequest> {
        let behaviour = self.set();
        behaviour.requests.iter().filter(|seen| seen.url.ends_with(end)).cloned().collect()
    }

    /// Agrees as a person would, and returns the query of the callback.
    pub(super) fn agree(&self, url: &str) -> String {
        let form = query(url);
        let mut answer = form_urlencoded::Serializer::new(String::new());
        answer.append_pair("code", "canary-code").append_pair("state", &form["state"]);
        if let Some(iss) = &self.set().iss {
            answer.append_pair("iss", iss);
        }
        answer.finish()
    }

    fn answer(&self, request: &Request<Bytes>) -> (u16, Value) {
        let url = request.uri().to_string();
        let text = String::from_utf8_lossy(request.body()).into_owned();
        let mut behaviour = self.set();
        let form: Form = form_urlencoded::parse(text.as_bytes()).into_owned().collect();
        let authorization = request.headers().get("authorization");
        behaviour.requests.push(SeenRequest {
            method: request.method().clone(),
            url: url.clone(),
            authorization: authorization.map(|value| value.to_str().expect("text").to_owned()),
            form: form.clone(),
            json: serde_json::from_str(&text).unwrap_or_default(),
        });
        if request.method() == Method::GET {
            let found = behaviour.documents.get(&url).cloned();
            return found.map_or((404, json!("not found")), |found| (200, found));
        }
        match url.rsplit('/').next() {
            Some("register") => behaviour.register(),
            Some("token") => behaviour.issue(&form),
            Some("revoke") => (200, json!({})),
            _ => (401, json!({ "error": "invalid_token" })),
        }
    }
}

impl FakeBehaviour {
    fn register(&mut self) -> (u16, Value) {
        if !self.registration_refusals.is_empty() {
            return (400, self.registration_refusals.remove(0));
        }
        self.n_registered += 1;
        let mut answer = json!({ "client_id": format!("client-{}", self.n_registered) });
        merge(&mut answer, self.registration.clone());
        (201, answer)
    }

    fn issue(&mut self, form: &Form) -> (u16, Value) {
        if let Some(error) = self.token_error.clone() {
            return error;
        }
        if form["grant_type"] == "refresh_token" {
            let token = &form["refresh_token"];
            if !self.valid.contains(token) {
                let description = format!("{token} is unknown");
                return (
                    400,
                    json!({ "error": "invalid_grant", "error_description": description }),
                );
            }
            self.valid.clear();
        }
        self.n_issued += 1;
        let mut answer = json!({
            "access_token": format!("canary-access-{}", self.n_issued),
            "token_type": "Bearer",
        });
        merge(&mut answer, self.tokens.clone());
        if self.has_refresh_tokens {
            let token = format!("canary-refresh-{}", self.n_issued);
            answer["refresh_token"] = json!(token);
            self.valid.push(token);
        }
        (200, answer)
    }
}

impl OAuthHttp for FakeAuthorization {
    fn fetch(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, WebError>> {
        Box::pin(async move {
            let is_token = request.uri().path().ends_with("/token");
            let gate = self.set().gate.clone().filter(|_| is_token);
            if let Some(gate) = gate {
                gate.notified().await;
            }
            if self.set().is_down {
                let origin = Origin::of(request.uri()).expect("an absolute URL");
                return Err(WebError::Timeout { origin, after: std::time::Duration::ZERO });
            }
            let (status, body) = self.answer(&request);
            let mut answer = Response::builder().status(status);
            if status == 401
                && let Some(challenge) = &self.set().challenge
            {
                answer = answer.header("www-authenticate", challenge);
            }
            Ok(answer.body(Bytes::from(body.to_string())).expect("an answer"))
        })
    }
}

/// Returns the parameters of a URL.
pub(super) fn query(url: &str) -> Form {
    let url: Uri = url.parse().expect("a URL");
    form_urlencoded::parse(url.query().unwrap_or_default().as_bytes()).into_owned().collect()
}
