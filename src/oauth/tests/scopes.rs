use serde_json::json;

use super::{fake_authorization::query, *};

const BASIC: &str = "Bearer scope=\"mcp:basic\"";
const WRITE: &str = "Bearer scope=\"mcp:write\", error=\"insufficient_scope\"";

/// Returns the scopes that a login requests.
async fn scopes(service: &Arc<LoginService>, fake: &FakeAuthorization) -> Option<String> {
    let login = log_in(service, fake).await.expect("logged in");
    query(&login.url).get("scope").cloned()
}

/// Refuses the current token for want of scopes.
async fn lacks(service: &LoginService, challenge: &str) -> AuthorizationFailure {
    let (authorizer, refusal) = (authorizer(service), refusal(StatusCode::FORBIDDEN, challenge));
    assert!(refusal.is_about_tokens());
    let sent = authorizer.bearer();
    authorizer.after_refusal(&refusal, sent.as_ref()).await.expect_err("a login is needed")
}

/// auth/scope-from-www-authenticate, -from-scopes-supported and -omitted-when-undefined.
#[tokio::test]
async fn the_scopes_come_from_the_challenge_or_the_metadata() {
    let fake = FakeAuthorization::new();
    assert_eq!(scopes(&service(PLAIN, &fake, None), &fake).await, None);
    fake.change_resource(json!({ "scopes_supported": ["mcp:read", "mcp:write"] }));
    let found = scopes(&service(PLAIN, &fake, None), &fake).await;
    assert_eq!(found.as_deref(), Some("mcp:read mcp:write"));
    fake.set().challenge = Some(BASIC.into());
    let found = scopes(&service(PLAIN, &fake, None), &fake).await;
    assert_eq!(found.as_deref(), Some("mcp:basic"));
    let service = with_auth("{ scopes = [\"own\"] }", &fake, None);
    assert_eq!(scopes(&service, &fake).await.as_deref(), Some("own"));
}

#[tokio::test]
async fn the_last_refusal_of_the_server_decides_without_another_request() {
    let fake = FakeAuthorization::new();
    let service = service(PLAIN, &fake, None);
    let refusal = refusal(StatusCode::UNAUTHORIZED, "Bearer scope=\"from:refusal\"");
    authorizer(&service).after_refusal(&refusal, None).await.expect_err("no token");
    assert_eq!(scopes(&service, &fake).await.as_deref(), Some("from:refusal"));
    assert!(fake.seen("/mcp").iter().all(|seen| seen.method == hyper::Method::GET));
}

/// auth/offline-access-scope and auth/offline-access-not-supported.
#[tokio::test]
async fn offline_access_is_requested_where_the_authorization_server_lists_it() {
    let fake = FakeAuthorization::new();
    fake.change_resource(json!({ "scopes_supported": ["mcp:basic"] }));
    fake.change_metadata(json!({ "scopes_supported": ["mcp:basic", "mcp:read"] }));
    let found = scopes(&service(PLAIN, &fake, None), &fake).await;
    assert_eq!(found.as_deref(), Some("mcp:basic"));
    fake.change_metadata(json!({ "scopes_supported": ["mcp:basic", "offline_access"] }));
    let login = log_in(&service(PLAIN, &fake, None), &fake).await.expect("logged in");
    let asked = query(&login.url);
    assert_eq!(
        (asked["scope"].as_str(), asked["prompt"].as_str()),
        ("mcp:basic offline_access", "consent")
    );
}

/// auth/scope-step-up.
#[tokio::test]
async fn a_login_for_more_scopes_keeps_the_previous_ones() {
    let fake = FakeAuthorization::new();
    fake.set().challenge = Some(BASIC.into());
    let service = service(PLAIN, &fake, None);
    assert_eq!(scopes(&service, &fake).await.as_deref(), Some("mcp:basic"));
    let failure = lacks(&service, WRITE).await;
    assert_eq!(failure.code(), "LOGIN_REQUIRED");
    assert!(failure.to_string().contains("`mcp:write`"), "{failure}");
    assert!(fake.seen("/token").len() == 1, "a refresh yields no further scopes");
    assert_eq!(scopes(&service, &fake).await.as_deref(), Some("mcp:basic mcp:write"));
    assert_eq!(
        scopes(&service, &fake).await.as_deref(),
        Some("mcp:basic mcp:write"),
        "not lost later"
    );
}

/// auth/scope-retry-limit.
#[tokio::test]
async fn a_server_that_refuses_every_token_gets_two_logins() {
    let fake = FakeAuthorization::new();
    fake.set().challenge = Some("Bearer scope=\"mcp:write\"".into());
    let service = service(PLAIN, &fake, None);
    for _ in 0..2 {
        log_in(&service, &fake).await.expect("logged in");
        lacks(&service, WRITE).await;
    }
    let error = service.begin(&git()).await.expect_err("too often");
    assert_eq!(error.code(), "SCOPES_REFUSED");
    // Other scopes, or a logout, start afresh.
    lacks(&service, "Bearer scope=\"mcp:more\", error=\"insufficient_scope\"").await;
    service.begin(&git()).await.expect("begun");
    lacks(&service, WRITE).await;
    service.begin(&git()).await.expect_err("too often");
    service.logout(&git()).await.expect("logged out");
    service.begin(&git()).await.expect("begun");
}

#[test]
fn only_refusals_about_tokens_lead_to_another_token() {
    let forbidden = |challenge| refusal(StatusCode::FORBIDDEN, challenge).is_about_tokens();
    assert!(forbidden(WRITE));
    assert!(!forbidden("Bearer") && !forbidden("Basic error=\"insufficient_scope\""));
    assert!(refusal(StatusCode::UNAUTHORIZED, "").is_about_tokens());
    assert!(!refusal(StatusCode::NOT_FOUND, WRITE).is_about_tokens());
}
