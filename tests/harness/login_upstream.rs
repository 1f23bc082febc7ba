//! An upstream that requires a login, with its own authorization server at the same address.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};

use super::{
    client::{Client, Reply},
    scripted_upstream::{ReceivedRequest, ResponseWriter, ScriptedUpstream},
};

/// The state of the authorization server.
#[derive(Default)]
pub(crate) struct AuthorizationState {
    /// The numbers of the valid access and refresh tokens.
    access: Mutex<Vec<u64>>,
    refresh: Mutex<Vec<u64>>,
    n_issued: AtomicU64,
    /// The lifetime of an access token in seconds, or 0 for none.
    pub(crate) lifetime: AtomicU64,
    /// The number of token requests by grant.
    grants: Mutex<BTreeMap<String, usize>>,
    pub(crate) n_registered: AtomicUsize,
    pub(crate) n_revoked: AtomicUsize,
    /// The token endpoint answers 503.
    pub(crate) is_down: AtomicBool,
    /// The protected server answers 500.
    pub(crate) is_broken: AtomicBool,
    /// The secrets that no output may show.
    secrets: Mutex<Vec<String>>,
}

/// A running upstream that requires a login; stopped on drop.
pub(crate) struct LoginUpstream {
    pub(crate) http: ScriptedUpstream,
    pub(crate) state: Arc<AuthorizationState>,
}

impl LoginUpstream {
    /// Starts an upstream with the tool `echo`, which requires a login for everything.
    pub(crate) fn start() -> Self {
        let state = Arc::<AuthorizationState>::default();
        let shared = Arc::clone(&state);
        let http = ScriptedUpstream::start(move |request, response| {
            shared.answer(request, response);
            true
        });
        Self { http, state }
    }

    /// Returns the configuration table of a server that is this upstream.
    pub(crate) fn server(&self, more: &str) -> String {
        self.http.server(more)
    }

    /// Returns the number of token requests with this grant.
    pub(crate) fn n_grants(&self, grant: &str) -> usize {
        self.state.grants.lock().expect("not poisoned").get(grant).copied().unwrap_or_default()
    }

    /// Makes all access tokens invalid, as if they had expired.
    pub(crate) fn expire(&self) {
        self.state.access.lock().expect("not poisoned").clear();
    }

    /// Makes all refresh tokens invalid.
    pub(crate) fn revoke_refresh_tokens(&self) {
        self.state.refresh.lock().expect("not poisoned").clear();
    }

    /// Asserts that a text shows no token, code, verifier or secret.
    #[track_caller]
    pub(crate) fn assert_secret(&self, text: &str) {
        for secret in self.state.secrets.lock().expect("not poisoned").iter() {
            assert!(!text.contains(secret.as_str()), "`{secret}` is in:\n{text}");
        }
    }
}

/// Visits an address as a browser does: it follows redirects, and returns the last page.
pub(crate) async fn visit(url: &str) -> Reply {
    let mut url = url.to_owned();
    loop {
        let page = Client::new(url).get().await;
        match page.headers.get("location") {
            Some(location) if page.status.is_redirection() => {
                url = location.to_str().expect("text").to_owned();
            }
            _ => return page,
        }
    }
}

/// Returns the address that a visit of `url` ends at, without visiting that.
pub(crate) async fn redirect_of(url: &str) -> String {
    let page = Client::new(url.to_owned()).get().await;
    page.headers["location"].to_str().expect("text").to_owned()
}

impl AuthorizationState {
    fn answer(&self, request: &ReceivedRequest, response: &mut ResponseWriter) {
        let origin = format!("http://{}", request.header("host"));
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let json = |value: Value| value.to_string();
        match path {
            "/.well-known/oauth-protected-resource/mcp" => response.json(&json(json!({
                "resource": format!("{origin}/mcp"),
                "authorization_servers": [origin],
                "scopes_supported": ["tools"],
            }))),
            "/.well-known/oauth-authorization-server" => response.json(&json(json!({
                "issuer": origin,
                "authorization_endpoint": format!("{origin}/authorize"),
                "token_endpoint": format!("{origin}/token"),
                "registration_endpoint": format!("{origin}/register"),
                "revocation_endpoint": format!("{origin}/revoke"),
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "authorization_response_iss_parameter_supported": true,
            }))),
            "/register" => {
                let n = self.n_registered.fetch_add(1, Ordering::Relaxed) + 1;
                let redirects = request.message["redirect_uris"].clone();
                let client = json!({
                    "client_id": format!("client-{n}"), "redirect_uris": redirects,
                    "token_endpoint_auth_method": "none",
                });
                response.page(201, "application/json", &client.to_string());
            }
            "/authorize" => self.authorize(&origin, query, response),
            "/token" => self.token(&parameters(&request.body), response),
            "/revoke" => {
                self.n_revoked.fetch_add(1, Ordering::Relaxed);
                response.page(200, "text/plain", "");
            }
            "/mcp" => self.mcp(&origin, request, response),
            _ => response.page(404, "text/html", "<p>nothing here</p>"),
        }
    }

    /// Sends the browser back at once, with a code.
    fn authorize(&self, origin: &str, query: &str, response: &mut ResponseWriter) {
        let asked = parameters(query);
        for (name, value) in [("response_type", "code"), ("code_challenge_method", "S256")] {
            assert_eq!(asked[name], value, "{query}");
        }
        assert!(!asked["code_challenge"].is_empty() && !asked["resource"].is_empty(), "{query}");
        let code = self.new_secret("code").1;
        let answer: String = form_urlencoded::Serializer::new(String::new())
            .append_pair("code", &code)
            .append_pair("state", &asked["state"])
            .append_pair("iss", origin)
            .finish();
        response.raw(format!(
            "HTTP/1.1 302 X\r\nlocation: {}?{answer}\r\ncontent-length: 0\r\n\r\n",
            asked["redirect_uri"]
        ));
    }

    fn token(&self, asked: &BTreeMap<String, String>, response: &mut ResponseWriter) {
        if self.is_down.load(Ordering::Relaxed) {
            return response.page(503, "text/plain", "down");
        }
        let grant = asked["grant_type"].clone();
        *self.grants.lock().expect("not poisoned").entry(grant.clone()).or_default() += 1;
        let refused = |response: &mut ResponseWriter| {
            response.page(400, "application/json", r#"{"error":"invalid_grant"}"#);
        };
        match grant.as_str() {
            "authorization_code" => {
                let is_whole = asked["code"].starts_with("code-")
                    && asked["code_verifier"].len() >= 43
                    && asked.contains_key("redirect_uri");
                self.secrets.lock().expect("not poisoned").push(asked["code_verifier"].clone());
                if !is_whole {
                    return refused(response);
                }
            }
            "refresh_token" => {
                let mut valid = self.refresh.lock().expect("not poisoned");
                let number = number_of(&asked["refresh_token"]);
                // A refresh token is rotated: it is valid once.
                match valid.iter().position(|known| Some(*known) == number) {
                    Some(at) => drop(valid.remove(at)),
                    None => return refused(response),
                }
            }
            _ => return refused(response),
        }
        let (access_number, access) = self.new_secret("access");
        let (refresh_number, refresh) = self.new_secret("refresh");
        self.access.lock().expect("not poisoned").push(access_number);
        self.refresh.lock().expect("not poisoned").push(refresh_number);
        let mut tokens = json!({
            "access_token": access, "token_type": "Bearer", "refresh_token": refresh,
            "scope": "tools",
        });
        match self.lifetime.load(Ordering::Relaxed) {
            0 => {}
            seconds => tokens["expires_in"] = json!(seconds),
        }
        response.json(&tokens.to_string());
    }

    fn mcp(&self, origin: &str, request: &ReceivedRequest, response: &mut ResponseWriter) {
        if self.is_broken.load(Ordering::Relaxed) {
            return response.page(500, "text/plain", "broken");
        }
        let token = request.header("authorization").strip_prefix("Bearer ").and_then(number_of);
        let is_valid =
            token.is_some_and(|token| self.access.lock().expect("not poisoned").contains(&token));
        if !is_valid {
            let metadata = format!("{origin}/.well-known/oauth-protected-resource/mcp");
            response.raw(format!(
                "HTTP/1.1 401 X\r\nwww-authenticate: Bearer resource_metadata=\"{metadata}\", scope=\"tools\"\r\ncontent-length: 0\r\n\r\n"
            ));
            return;
        }
        match request.method() {
            "initialize" => response.json(&request.result(&json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "private", "version": "1" },
            }))),
            "tools/list" => response.json(&request.result(
                &json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] }),
            )),
            "tools/call" if request.message["params"]["name"] == "repeat" => {
                response.page(500, "text/plain", request.header("authorization"));
            }
            "tools/call" => response.json(
                &request.result(&json!({ "content": [{ "type": "text", "text": "hello" }] })),
            ),
            "DELETE" => response.page(200, "text/plain", ""),
            "GET" => response.page(405, "text/plain", ""),
            method if method.starts_with("notifications/") => {
                response.page(202, "text/plain", "");
            }
            _ => response.json(&request.result(&json!({}))),
        }
    }

    /// Returns a new secret and its number.
    fn new_secret(&self, kind: &str) -> (u64, String) {
        let number = self.n_issued.fetch_add(1, Ordering::Relaxed) + 1;
        let secret = format!("{kind}-canary{number:08}");
        self.secrets.lock().expect("not poisoned").push(secret.clone());
        (number, secret)
    }
}

/// Returns the number of a secret.
fn number_of(secret: &str) -> Option<u64> {
    secret.split_once("-canary")?.1.parse().ok()
}

/// Returns the parameters of a query or a form.
fn parameters(text: &str) -> BTreeMap<String, String> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}
