use std::time::Duration;

use serde_json::json;
use tokio::{sync::Notify, time};

use super::*;
use crate::{
    config::{Config, defaults},
    oauth::{LoginId, LoginKind, LoginState, LogoutOutcome},
    reconfigure::{ConfigChange, Reconfigure as _},
};

/// Returns the change to another configuration.
fn change_to(config: &str) -> ConfigChange {
    let new: Arc<Config> = Arc::new(parsed(config));
    ConfigChange { servers: new.servers.clone(), new, ..ConfigChange::default() }
}

/// Another address that browsers return to.
const MOVED: &str = "[auth]\nredirect_url = \"https://host.example/oauth/callback\"\n";

/// Begins a login whose tokens the authorization server holds back. Returns its answer, and what
/// releases them.
async fn held_login(
    service: &Arc<LoginService>,
    fake: &FakeAuthorization,
) -> (PendingLogin, CallbackAnswer, Arc<Notify>) {
    let login = service.begin(&git()).await.expect("begun");
    let answer = CallbackAnswer::parse(&fake.agree(&login.url)).expect("an answer");
    let gate = Arc::new(Notify::new());
    fake.set().gate = Some(Arc::clone(&gate));
    (login, answer, gate)
}

/// Waits until the answer of the login has arrived.
async fn wait_until_exchanging(service: &LoginService) {
    while service.pending().exchanging(&git()).is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_answer_finishes_one_login_once() {
    let fake = FakeAuthorization::new();
    let service = service(PLAIN, &fake, None);
    let login = service.begin(&git()).await.expect("begun");
    assert_eq!(service.statuses()[0].state, LoginState::Pending);
    let answer = CallbackAnswer::parse(&fake.agree(&login.url)).expect("an answer");
    let (finished, waited) = tokio::join!(service.finish(&answer), service.wait(&login.id));
    assert_eq!(finished.expect("finished"), git());
    waited.expect("finished");
    let again = service.finish(&answer).await.expect_err("used");
    assert_eq!(again.code(), "LOGIN_UNKNOWN");
    let forged = CallbackAnswer::parse("state=guess&code=x").expect("an answer");
    assert_eq!(service.finish(&forged).await.expect_err("forged").code(), "LOGIN_UNKNOWN");
    assert_eq!(fake.seen("/token").len(), 1);
    let other = service.wait(&LoginId::from("other")).await;
    assert_eq!(other.expect_err("unknown").code(), "LOGIN_UNKNOWN");
}

#[tokio::test(start_paused = true)]
async fn a_login_that_is_not_finished_ends() {
    let fake = FakeAuthorization::new();
    let service = service(PLAIN, &fake, None);
    let login = service.begin(&git()).await.expect("begun");
    assert_eq!(service.wait(&login.id).await.expect_err("late").code(), "LOGIN_EXPIRED");
    let answer = CallbackAnswer::parse(&fake.agree(&login.url)).expect("an answer");
    assert_eq!(service.finish(&answer).await.expect_err("late").code(), "LOGIN_UNKNOWN");
    assert_eq!(service.statuses()[0].state, LoginState::NotAsked);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_login_is_shared_until_half_of_its_time_is_over() {
    let fake = FakeAuthorization::new();
    let service = service(PLAIN, &fake, None);
    let first = service.join(&git()).await.expect("begun");
    assert_eq!(service.join(&git()).await.expect("joined").url, first.url);
    let waited = service.wait(&first.id);
    let later = async {
        time::sleep(defaults::LOGIN_TIMEOUT / 2 + Duration::from_secs(1)).await;
        let second = service.join(&git()).await.expect("begun");
        assert_ne!(second.url, first.url);
        let answer = CallbackAnswer::parse(&fake.agree(&second.url)).expect("an answer");
        service.finish(&answer).await.expect("finished");
    };
    let (waited, ()) = tokio::join!(waited, later);
    waited.expect("the login in its place is finished");
}

#[tokio::test(start_paused = true)]
async fn a_login_that_is_slower_than_a_logout_is_revoked() {
    let fake = FakeAuthorization::new();
    let service = service(PLAIN, &fake, None);
    let (_, answer, gate) = held_login(&service, &fake).await;
    let finish = service.finish(&answer);
    let logout = async {
        wait_until_exchanging(&service).await;
        let git = git();
        let (out, begun) = tokio::join!(service.logout(&git), service.begin(&git));
        assert_eq!(out.expect("out"), LogoutOutcome::NoTokens);
        let begun = service.wait(&begun.expect("begun").id).await;
        assert_eq!(begun.expect_err("ended by the logout").code(), "LOGIN_REPLACED");
        gate.notify_one();
    };
    let (finished, ()) = tokio::join!(finish, logout);
    assert_eq!(finished.expect_err("too late").code(), "LOGIN_REPLACED");
    assert!(authorizer(&service).bearer().is_none());
    assert_eq!(fake.seen("/revoke").len(), 2);
}

#[tokio::test]
async fn a_server_that_is_declared_anew_does_not_get_the_login_of_the_one_before() {
    let fake = FakeAuthorization::new();
    let service = service(PLAIN, &fake, None);
    let old = service.join(&git()).await.expect("begun");
    service.reconfigure(&change_to(""));
    assert_eq!(service.wait(&old.id).await.expect_err("ended").code(), "LOGIN_REPLACED");
    service.reconfigure(&change_to(PLAIN));
    let answer = CallbackAnswer::parse(&fake.agree(&old.url)).expect("an answer");
    assert_eq!(service.finish(&answer).await.expect_err("ended").code(), "LOGIN_UNKNOWN");
    assert_ne!(service.join(&git()).await.expect("begun").url, old.url);
}

#[tokio::test]
async fn a_reload_during_the_start_of_a_login_starts_it_anew() {
    let fake = FakeAuthorization::new();
    let service = service(PLAIN, &fake, None);
    let git = git();
    let (begun, ()) = tokio::join!(service.join(&git), async {
        tokio::task::yield_now().await;
        service.reconfigure(&change_to(&format!("{MOVED}{PLAIN}")));
    });
    let redirect = &fake_authorization::query(&begun.expect("begun").url)["redirect_uri"];
    assert_eq!(redirect, "https://host.example/oauth/callback");
}

#[tokio::test]
async fn a_new_redirect_address_ends_the_logins_with_the_old_one() {
    let fake = FakeAuthorization::new();
    let service = service(PLAIN, &fake, None);
    let old = service.join(&git()).await.expect("begun");
    service.reconfigure(&change_to(&format!("{MOVED}{PLAIN}")));
    assert_eq!(service.wait(&old.id).await.expect_err("ended").code(), "LOGIN_REPLACED");
    let new = service.join(&git()).await.expect("begun");
    let redirect = &fake_authorization::query(&new.url)["redirect_uri"];
    assert_eq!(redirect, "https://host.example/oauth/callback");
}

#[tokio::test]
async fn a_logout_ends_a_login_that_is_almost_finished() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    let service = service(PLAIN, &fake, Some(state.path()));
    let (_, answer, gate) = held_login(&service, &fake).await;
    let finish = service.finish(&answer);
    let logout = async {
        wait_until_exchanging(&service).await;
        let release = async {
            // The logout has its turn first.
            tokio::task::yield_now().await;
            fake.set().gate = None;
            gate.notify_one();
        };
        let git = git();
        tokio::join!(service.logout(&git), release).0.expect("out")
    };
    let (finished, outcome) = tokio::join!(finish, logout);
    finished.expect("the tokens had arrived");
    assert_eq!(outcome, LogoutOutcome::Revoked);
    assert!(authorizer(&service).bearer().is_none());
    let restarted = super::service(PLAIN, &fake, Some(state.path()));
    assert!(authorizer(&restarted).bearer().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_closes_early_does_not_end_the_login() {
    let fake = FakeAuthorization::new();
    let service = service(PLAIN, &fake, None);
    let (login, answer, gate) = held_login(&service, &fake).await;
    let left = time::timeout(Duration::from_secs(1), service.finish(&answer)).await;
    left.expect_err("the authorization server has not answered");
    gate.notify_one();
    service.wait(&login.id).await.expect("finished");
}

#[tokio::test]
async fn a_refused_login_reports_the_reason() {
    let fake = FakeAuthorization::new();
    let service = service(PLAIN, &fake, None);
    let login = service.begin(&git()).await.expect("begun");
    let state = &fake_authorization::query(&login.url)["state"];
    let answer = format!("state={state}&error=access_denied&error_description=Not%20you");
    let answer = CallbackAnswer::parse(&answer).expect("an answer");
    let error = service.finish(&answer).await.expect_err("refused");
    assert_eq!(error.code(), "LOGIN_REFUSED");
    assert!(error.to_string().ends_with("access_denied: Not you"), "{error}");
    assert_eq!(service.wait(&login.id).await.expect_err("refused").code(), "LOGIN_REFUSED");
    assert!(fake.seen("/token").is_empty());
}

#[tokio::test]
async fn a_logout_revokes_both_tokens_and_forgets_them_in_any_case() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    let service = service(PLAIN, &fake, Some(state.path()));
    assert_eq!(service.logout(&git()).await.expect("out"), LogoutOutcome::NoTokens);
    log_in(&service, &fake).await.expect("logged in");
    assert_eq!(service.logout(&git()).await.expect("out"), LogoutOutcome::Revoked);
    let revoked: Vec<_> =
        fake.seen("/revoke").iter().map(|sent| sent.form["token"].clone()).collect();
    assert_eq!(revoked, ["canary-refresh-1", "canary-access-1"]);
    assert!(authorizer(&service).bearer().is_none());

    log_in(&service, &fake).await.expect("logged in");
    fake.set().is_down = true;
    assert_eq!(service.logout(&git()).await.expect("out"), LogoutOutcome::Forgotten);
    fake.set().is_down = false;
    fake.change_metadata(json!({ "revocation_endpoint": null }));
    log_in(&service, &fake).await.expect("logged in");
    assert_eq!(service.logout(&git()).await.expect("out"), LogoutOutcome::Forgotten);
    assert_eq!(fake.seen("/register").len(), 1, "the registration is kept");
    let restarted = super::service(PLAIN, &fake, Some(state.path()));
    assert!(authorizer(&restarted).bearer().is_none());
}

#[tokio::test]
async fn only_servers_with_a_login_have_tokens() {
    let config = "[servers.auto]\nurl = \"https://a.example.com/mcp\"\n\
        [servers.none]\nurl = \"https://b.example.com/mcp\"\nauth = \"none\"\n\
        [servers.static]\nurl = \"https://c.example.com/mcp\"\nheaders = { Authorization = \"env:PATH\" }\n\
        [servers.stdio]\ncommand = \"true\"\n";
    let service = service(config, &FakeAuthorization::new(), None);
    let has = |name: &str| service.authorizer(&ServerName::new(name).expect("a name")).is_some();
    assert_eq!(
        ["auto", "none", "static", "stdio", "other"].map(has),
        [true, false, false, false, false]
    );
    let statuses = service.statuses();
    let kinds: Vec<_> =
        statuses.iter().map(|status| (status.server.as_str(), status.kind)).collect();
    assert_eq!(
        kinds,
        [("auto", LoginKind::AuthorizationCode), ("static", LoginKind::StaticHeader)]
    );
    let error =
        service.begin(&ServerName::new("none").expect("a name")).await.expect_err("no login");
    assert_eq!(error.code(), "NO_LOGIN");
}

#[tokio::test]
async fn a_reload_keeps_the_tokens_of_a_server_at_the_same_address() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    let service = service(PLAIN, &fake, Some(state.path()));
    log_in(&service, &fake).await.expect("logged in");
    let before = authorizer(&service);
    let has_token = || authorizer(&service).bearer().is_some();
    service.reconfigure(&change_to(&format!("{PLAIN}auth = {{ scopes = [\"a\"] }}\n")));
    assert!(has_token() && Arc::ptr_eq(&before, &authorizer(&service)));
    service.reconfigure(&change_to("[servers.git]\nurl = \"https://other.example.com/mcp\"\n"));
    assert!(!has_token(), "a token never goes to another server");
    service.reconfigure(&change_to(&format!("{PLAIN}auth = {{ client_id = \"own\" }}\n")));
    assert!(!has_token(), "it belongs to another client");
    service.reconfigure(&change_to(PLAIN));
    assert!(has_token(), "it is still stored");
    service.reconfigure(&change_to(""));
    assert!(service.authorizer(&git()).is_none());
}

#[tokio::test]
async fn a_login_that_began_before_a_reload_gives_no_token_to_another_server() {
    let fake = FakeAuthorization::new();
    let service = service(PLAIN, &fake, None);
    let gate = Arc::new(tokio::sync::Notify::new());
    let login = service.begin(&git()).await.expect("begun");
    let answer = CallbackAnswer::parse(&fake.agree(&login.url)).expect("an answer");
    fake.set().gate = Some(Arc::clone(&gate));
    let reloads = async {
        service.reconfigure(&change_to("[servers.git]\nurl = \"https://other.example.com/mcp\"\n"));
        gate.notify_one();
    };
    let (finished, ()) = tokio::join!(service.finish(&answer), reloads);
    assert_eq!(finished.expect_err("replaced").code(), "LOGIN_REPLACED");
    assert!(authorizer(&service).bearer().is_none());
}

#[tokio::test]
async fn a_connection_to_an_old_address_gets_no_token_for_the_new_one() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    let service = service(PLAIN, &fake, Some(state.path()));
    log_in(&service, &fake).await.expect("logged in");
    let of_git = authorizer(&service);
    service.reconfigure(&change_to("[servers.git]\nurl = \"https://other.example.com/mcp\"\n"));
    assert!(of_git.bearer().is_some(), "its last requests need it");
    // A connection keeps it until its last request has ended.
    let of_other = authorizer(&service);
    service.reconfigure(&change_to(PLAIN));
    assert!(authorizer(&service).bearer().is_some(), "it is still stored");
    assert!(of_other.bearer().is_none());
    assert!(of_other.before_request().await.is_none());
}

#[tokio::test]
async fn clients_that_need_a_login_at_the_same_time_get_the_same() {
    let fake = FakeAuthorization::new();
    let service = service(PLAIN, &fake, None);
    let name = git();
    let joined = futures_util::future::join_all((0..32).map(|_| service.join(&name))).await;
    let urls: Vec<String> = joined.into_iter().map(|login| login.expect("begun").url).collect();
    assert!(urls.iter().all(|url| *url == urls[0]));
    assert_eq!(fake.seen("/register").len(), 1);
    let later = service.join(&name).await.expect("it waits");
    assert_eq!(later.url, urls[0]);
}

#[tokio::test]
async fn a_logout_forgets_the_logins_of_earlier_declarations_too() {
    let (fake, state) = (FakeAuthorization::new(), tempfile::tempdir().expect("a directory"));
    let service = service(PLAIN, &fake, Some(state.path()));
    log_in(&service, &fake).await.expect("logged in");
    service.reconfigure(&change_to(&format!("{PLAIN}auth = {{ client_id = \"own\" }}\n")));
    log_in(&service, &fake).await.expect("logged in");
    service.logout(&git()).await.expect("out");
    service.reconfigure(&change_to(PLAIN));
    assert!(authorizer(&service).bearer().is_none(), "it was logged out");
}
