use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use serde_json::json;
use tokio::{sync::Notify, time};

use super::*;
use crate::config::defaults;

const HOUR: Duration = Duration::from_secs(3600);

/// Returns the number of refreshes so far.
fn n_refreshes(fake: &FakeAuthorization) -> usize {
    let sent = fake.seen("/token");
    sent.iter().filter(|sent| sent.form["grant_type"] == "refresh_token").count()
}

async fn logged_in(fake: &Arc<FakeAuthorization>) -> (Arc<LoginService>, Arc<Authorizer>) {
    let service = service(PLAIN, fake, None);
    log_in(&service, fake).await.expect("logged in");
    let authorizer = authorizer(&service);
    (service, authorizer)
}

#[tokio::test(start_paused = true)]
async fn thirty_two_clients_across_an_expiry_cause_one_refresh() {
    let fake = FakeAuthorization::new();
    let (_service, authorizer) = logged_in(&fake).await;
    for n in 1..=3 {
        time::advance(HOUR).await;
        let headers = join_all((0..32).map(|_| authorizer.before_request())).await;
        for header in headers {
            assert_eq!(token(&header.expect("a token")), format!("access-{}", n + 1));
        }
        assert_eq!(n_refreshes(&fake), n);
    }
}

#[tokio::test(start_paused = true)]
async fn thirty_two_refused_requests_cause_one_refresh() {
    let fake = FakeAuthorization::new();
    let (_service, authorizer) = logged_in(&fake).await;
    time::advance(HOUR / 2).await;
    let headers = join_all((0..32).map(|_| refuse(&authorizer))).await;
    for header in headers {
        assert_eq!(token(&header.expect("a token")), "access-2");
    }
    // A late refusal of the old token returns the new one.
    let old = HeaderValue::from_static("Bearer canary-access-1");
    let refused = refusal(StatusCode::UNAUTHORIZED, "Bearer");
    let header = authorizer.after_refusal(&refused, Some(&old)).await.expect("a token");
    assert_eq!((token(&header), n_refreshes(&fake)), ("access-2", 1));
}

#[tokio::test(start_paused = true)]
async fn a_token_is_refreshed_before_it_expires_even_without_requests() {
    let fake = FakeAuthorization::new();
    let (service, authorizer) = logged_in(&fake).await;
    let running = service.run();
    tokio::pin!(running);
    for n in 1..=3 {
        let start = time::Instant::now();
        let renewed = async {
            while token(&authorizer.bearer().expect("a token")) == format!("access-{n}") {
                time::sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::select! {
            () = &mut running => unreachable!("it runs until it is closed"),
            () = renewed => {}
        }
        let part = start.elapsed().as_secs_f64() / HOUR.as_secs_f64();
        assert!((0.64..0.76).contains(&part), "{part}");
        assert_eq!(n_refreshes(&fake), n);
    }
    assert_eq!(token(&authorizer.bearer().expect("a token")), "access-4");
    service.close().await;
    running.await;
}

#[tokio::test(start_paused = true)]
async fn requests_wait_for_an_authorization_server_that_is_down_for_a_while() {
    let fake = FakeAuthorization::new();
    let (_service, authorizer) = logged_in(&fake).await;
    time::advance(HOUR).await;
    fake.set().is_down = true;
    let waiting = refuse(&authorizer);
    let recovers = async {
        time::sleep(Duration::from_secs(10)).await;
        fake.set().is_down = false;
    };
    let (header, ()) = tokio::join!(waiting, recovers);
    assert_eq!(token(&header.expect("no login is needed")), "access-2");
    assert!(authorizer.login_required().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_authorization_server_that_stays_down_requires_no_login() {
    let fake = FakeAuthorization::new();
    let (service, authorizer) = logged_in(&fake).await;
    time::advance(HOUR).await;
    for error in
        [None, Some((503, json!("busy"))), Some((429, json!({}))), Some((200, json!("<html>")))]
    {
        fake.set().is_down = error.is_none();
        fake.set().token_error = error;
        let start = time::Instant::now();
        let failure = refuse(&authorizer).await.expect_err("down");
        assert_eq!(failure.code(), "TOKEN_UNAVAILABLE");
        assert!(start.elapsed() <= defaults::TOKEN_WAIT + Duration::from_secs(1));
        assert!(authorizer.login_required().is_none());
        assert!(service.statuses()[0].error.is_some());
        // The last token stays in use meanwhile.
        assert_eq!(token(&authorizer.bearer().expect("a token")), "access-1");
    }
    fake.set().token_error = None;
    time::advance(Duration::from_secs(60)).await;
    assert_eq!(token(&authorizer.before_request().await.expect("a token")), "access-2");
    assert!(service.statuses()[0].error.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_refused_refresh_token_requires_a_login() {
    let fake = FakeAuthorization::new();
    let (service, authorizer) = logged_in(&fake).await;
    fake.set().valid.clear();
    time::advance(HOUR / 2).await;
    let failure = refuse(&authorizer).await.expect_err("refused");
    assert_eq!(failure.code(), "LOGIN_REQUIRED");
    let shown = format!("{failure} {failure:?} {:?}", service.statuses());
    assert!(shown.contains("invalid_grant") && !shown.contains("canary"), "{shown}");
    refuse(&authorizer).await.expect_err("refused");
    assert_eq!(n_refreshes(&fake), 1, "it is not tried again");
    log_in(&service, &fake).await.expect("logged in");
    assert!(authorizer.login_required().is_none());
    assert_eq!(token(&authorizer.bearer().expect("a token")), "access-2");
}

#[tokio::test(start_paused = true)]
async fn a_token_without_a_refresh_token_is_used_until_the_server_refuses_it() {
    let fake = FakeAuthorization::new();
    fake.set().has_refresh_tokens = false;
    let (_service, authorizer) = logged_in(&fake).await;
    time::advance(2 * HOUR).await;
    assert_eq!(token(&authorizer.before_request().await.expect("a token")), "access-1");
    assert_eq!(refuse(&authorizer).await.expect_err("refused").code(), "LOGIN_REQUIRED");
}

#[tokio::test(start_paused = true)]
async fn an_authorization_server_may_keep_its_refresh_token() {
    let fake = FakeAuthorization::new();
    let (_service, authorizer) = logged_in(&fake).await;
    {
        let mut set = fake.set();
        set.has_refresh_tokens = false;
    }
    time::advance(HOUR).await;
    assert_eq!(token(&authorizer.before_request().await.expect("a token")), "access-2");
    fake.set().valid.push("canary-refresh-1".into());
    time::advance(HOUR).await;
    assert_eq!(token(&authorizer.before_request().await.expect("a token")), "access-3");
    assert_eq!(fake.seen("/token")[2].form["refresh_token"], "canary-refresh-1");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_follows_a_refused_one_is_not_refreshed_at_once() {
    let fake = FakeAuthorization::new();
    let (service, authorizer) = logged_in(&fake).await;
    assert_eq!(token(&refuse(&authorizer).await.expect("refreshed")), "access-2");
    // 401 for one method only: each of its calls would cost a refresh.
    for _ in 0..3 {
        assert_eq!(refuse(&authorizer).await.expect_err("refused").code(), "LOGIN_REQUIRED");
    }
    assert_eq!(n_refreshes(&fake), 1);
    assert!(authorizer.bearer().is_some(), "the other methods keep their token");
    assert!(authorizer.login_required().is_some());
    assert_eq!(service.statuses()[0].state, crate::oauth::LoginState::NeedsLogin);
    time::advance(HOUR / 2).await;
    assert_eq!(token(&refuse(&authorizer).await.expect("refreshed")), "access-3");
    assert_eq!(service.statuses()[0].state, crate::oauth::LoginState::LoggedIn);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_does_not_end_a_refresh() {
    let fake = FakeAuthorization::new();
    let (service, authorizer) = logged_in(&fake).await;
    time::advance(HOUR).await;
    let gate = Arc::new(Notify::new());
    fake.set().gate = Some(Arc::clone(&gate));
    let left = time::timeout(Duration::from_secs(1), authorizer.before_request()).await;
    left.expect_err("the authorization server has not answered");
    fake.set().gate = None;
    gate.notify_one();
    service.close().await;
    assert_eq!(token(&authorizer.bearer().expect("a token")), "access-2");
    assert_eq!(n_refreshes(&fake), 1);
}

#[tokio::test(start_paused = true)]
async fn client_credentials_are_used_on_demand_and_without_a_person() {
    let fake = FakeAuthorization::new();
    fake.change_metadata(json!({ "token_endpoint_auth_methods_supported": ["client_secret_basic"], "authorization_endpoint": null }));
    let auth = "{ grant = \"client_credentials\", client_id = \"own\", client_secret = \"env:PATH\", scopes = [\"a\"] }";
    let service = with_auth(auth, &fake, None);
    let authorizer = authorizer(&service);
    assert!(fake.seen("").is_empty() && authorizer.bearer().is_none());
    let headers = join_all((0..32).map(|_| authorizer.before_request())).await;
    assert!(headers.into_iter().flatten().all(|header| token(&header) == "access-1"));
    let sent = fake.seen("/token")[0].clone();
    assert_eq!(
        (sent.form["grant_type"].as_str(), sent.form["scope"].as_str()),
        ("client_credentials", "a")
    );
    assert_eq!(sent.form["resource"], fake_authorization::SERVER);
    assert!(sent.authorization.is_some());
    time::advance(HOUR).await;
    assert_eq!(token(&authorizer.before_request().await.expect("a token")), "access-2");
    assert!(fake.seen("/token").iter().all(|sent| sent.form["grant_type"] == "client_credentials"));
    // More scopes need no person either.
    let refused =
        refusal(StatusCode::FORBIDDEN, "Bearer error=\"insufficient_scope\", scope=\"b\"");
    let sent = authorizer.bearer();
    let header = authorizer.after_refusal(&refused, sent.as_ref()).await.expect("a token");
    assert_eq!(
        (token(&header), fake.seen("/token")[2].form["scope"].as_str()),
        ("access-3", "a b")
    );
    let again = authorizer.after_refusal(&refused, Some(&header)).await.expect_err("it has them");
    assert_eq!(again.code(), "TOKEN_UNAVAILABLE");
    assert_eq!(service.begin(&git()).await.expect_err("no person").code(), "NO_PERSON");
}

#[tokio::test(start_paused = true)]
async fn wrong_client_credentials_are_tried_again_only_after_a_pause() {
    let fake = FakeAuthorization::new();
    fake.set().token_error = Some((401, json!({ "error": "invalid_client" })));
    let auth =
        "{ grant = \"client_credentials\", client_id = \"own\", client_secret = \"env:PATH\" }";
    let service = with_auth(auth, &fake, None);
    let authorizer = authorizer(&service);
    for _ in 0..5 {
        assert!(authorizer.before_request().await.is_none());
        assert_eq!(refuse(&authorizer).await.expect_err("refused").code(), "TOKEN_UNAVAILABLE");
    }
    assert_eq!(fake.seen("/token").len(), 1);
    fake.set().token_error = None;
    time::advance(Duration::from_secs(61)).await;
    assert_eq!(token(&authorizer.before_request().await.expect("a token")), "access-1");
}
