use serde_json::json;

use super::{fake_authorization::ISSUER, *};

/// Returns the code of the failed login, if it fails, and the number of token requests.
async fn outcome(is_announced: Option<bool>, iss: Option<&str>) -> (Option<&'static str>, usize) {
    let fake = FakeAuthorization::new();
    fake.change_metadata(json!({ "authorization_response_iss_parameter_supported": is_announced }));
    fake.set().iss = iss.map(str::to_owned);
    let outcome = log_in(&service(PLAIN, &fake, None), &fake).await;
    (outcome.err().map(|error| error.code()), fake.seen("/token").len())
}

/// auth/iss-supported and auth/iss-not-advertised.
#[tokio::test]
async fn an_answer_of_the_right_issuer_is_accepted() {
    assert_eq!(outcome(Some(true), Some(ISSUER)).await, (None, 1));
    assert_eq!(outcome(None, None).await, (None, 1));
    assert_eq!(outcome(None, Some(ISSUER)).await, (None, 1));
}

/// auth/iss-supported-missing, -wrong-issuer, -unexpected and -normalized.
#[tokio::test]
async fn the_code_of_another_issuer_is_never_sent() {
    let evil = "https://evil.example.com";
    assert_eq!(outcome(Some(true), None).await, (Some("ISSUER_MISSING"), 0));
    assert_eq!(outcome(Some(true), Some(evil)).await, (Some("ISSUER_WRONG"), 0));
    assert_eq!(outcome(None, Some(evil)).await, (Some("ISSUER_WRONG"), 0));
    assert_eq!(outcome(Some(true), Some(&format!("{ISSUER}/"))).await, (Some("ISSUER_WRONG"), 0));
}
