//! No secret is printed, whatever is printed.

use serde_json::json;

use super::*;

#[tokio::test(start_paused = true)]
async fn nothing_that_is_printed_holds_a_secret() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    fake.set().registration = json!({ "client_secret": "canary-secret" });
    let service = service(PLAIN, &fake, Some(state.path()));
    let login = service.begin(&git()).await.expect("begun");
    let answer = CallbackAnswer::parse(&fake.agree(&login.url)).expect("an answer");
    let state_of_login = fake_authorization::query(&login.url)["state"].clone();
    let mut shown = format!("{service:?} {login:?} {answer:?} {:?}", service.statuses());
    service.finish(&answer).await.expect("logged in");
    let verifier = fake.seen("/token")[0].form["code_verifier"].clone();
    let authorizer = authorizer(&service);
    shown += &format!("{authorizer:?} {:?} {:?}", authorizer.bearer(), service.statuses());
    shown += &format!("{:?}", authorizer.keeper().record());
    shown += &format!("{:?}", authorizer.keeper().record().expect("a record").renewal());

    // An authorization server that repeats what it was sent.
    for (status, body) in [
        (
            400,
            json!({ "error": "invalid_request", "error_description": "no canary-refresh-1 with canary-secret" }),
        ),
        (400, json!({ "error": "canary-refresh-1" })),
        (500, json!("canary-refresh-1 canary-secret")),
        (200, json!("canary-access-9")),
        (
            200,
            json!({ "access_token": "canary-access-9", "expires_in": [], "token_type": "canary-secret" }),
        ),
        (200, json!({ "access_token": ["canary-access-9"] })),
    ] {
        fake.set().token_error = Some((status, body));
        tokio::time::advance(std::time::Duration::from_secs(1800)).await;
        let failure = refuse(&authorizer).await.expect_err("refused");
        shown += &format!("{failure} {failure:?} {:?}", service.statuses());
        let login = service.begin(&git()).await.expect("begun");
        let answer = CallbackAnswer::parse(&fake.agree(&login.url)).expect("an answer");
        let repeats = "no canary-code with canary-secret";
        let body = json!({ "error": "canary-code", "error_description": repeats });
        fake.set().token_error = Some((400, body));
        let error = service.finish(&answer).await.expect_err("refused");
        shown += &format!("{error} {error:?} {}", crate::error_report::chain(&error));
        shown += error.hint();
    }
    for secret in ["canary", state_of_login.as_str(), verifier.as_str()] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_repeats_its_token_does_not_reveal_it() {
    let fake = FakeAuthorization::new();
    let service = service(PLAIN, &fake, None);
    log_in(&service, &fake).await.expect("logged in");
    let authorizer = authorizer(&service);
    let refused = refusal(
        StatusCode::FORBIDDEN,
        "Bearer error=\"insufficient_scope\", scope=\"canary-access-1\"",
    );
    let sent = authorizer.bearer();
    let failure = authorizer.after_refusal(&refused, sent.as_ref()).await.expect_err("refused");
    let shown = format!("{failure} {:?}", service.statuses());
    assert!(!shown.contains("canary"), "{shown}");

    tokio::time::advance(std::time::Duration::from_secs(3600)).await;
    authorizer.before_request().await.expect("a token");
    let page = "<p>Bearer canary-access-1 canary-access-2";
    assert_eq!(authorizer.redact(page), "<p>Bearer [secret] [secret]");
}
