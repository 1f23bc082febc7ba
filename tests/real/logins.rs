//! Logins at a real authorization server: one for the whole host, whatever happens to its tokens.

use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    POLL,
    harness::{
        DEADLINE,
        client::Client,
        daemon::{Daemon, run},
        load::Load,
        modern::Modern,
    },
    login_rig::{LoginRig, SERVER},
    tls_front::TlsPort,
};

/// The life of access tokens that expire often, in seconds. A refresh happens at 75 % of it.
const SHORT: u32 = 4;

/// The life of access tokens that no test outlasts, in seconds.
const LONG: u32 = 3600;

const N_CLIENTS: usize = 32;

/// The number of restarts of each kind.
const N_RESTARTS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn one_login_with_a_browser_serves_every_client() {
    let rig = LoginRig::start(LONG);
    let metamcp = rig.metamcp(&rig.server());
    assert_names_the_login(&echo(&client(&metamcp), "early").await);

    rig.log_in(&metamcp);

    let calls = steady_calls(&metamcp);
    calls.wait_for_answers(2).await;
    calls.end().await;
    let requests = rig.token_requests();
    let [request] = requests.as_slice() else { panic!("one request for a token: {requests:?}") };
    assert_eq!((request.grant.as_str(), request.status), ("authorization_code", 200));
    assert!(request.resource.as_ref().is_some_and(|it| it.ends_with("/mcp")), "{request:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_finished_by_a_browser_that_cannot_reach_the_service() {
    let rig = LoginRig::start(LONG);
    let metamcp = rig.metamcp(&rig.server());

    rig.log_in_by_paste(&metamcp);

    assert_eq!(text_of(&echo(&client(&metamcp), "pasted").await), "pasted");
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_two_clients_share_one_refresh_for_each_of_three_expiries() {
    let rig = LoginRig::start(SHORT);
    let metamcp = rig.metamcp(&rig.server());
    rig.log_in(&metamcp);
    let started = Instant::now();

    let calls = steady_calls(&metamcp);
    wait_until("three refreshes", || rig.n_grants("refresh_token") >= 3);
    calls.wait_for_answers(1).await;
    calls.end().await;

    let requests = rig.token_requests();
    // The authorization server rotates refresh tokens, so that it refuses a second use.
    assert!(requests.iter().all(|request| request.status == 200), "{requests:?}");
    let n_lives = started.elapsed().as_secs_f64() / f64::from(SHORT);
    let n_refreshes = f64::from(u32::try_from(rig.n_grants("refresh_token")).expect("few"));
    assert!(n_refreshes <= n_lives * 2.0 + 1.0, "{n_refreshes} in {n_lives} lives of a token");
    assert_eq!(rig.n_grants("authorization_code"), 1, "{requests:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_login_asks_for_one_login_and_then_serves_again() {
    let rig = LoginRig::start(SHORT);
    let metamcp = rig.metamcp(&rig.server());
    rig.log_in(&metamcp);

    rig.revoke_all();
    wait_for_refusal(&metamcp).await;
    // The refresh token is known to be dead: no call tries it again.
    let n_requests = rig.token_requests().len();
    for _ in 0..N_CLIENTS {
        let refused = echo(&client(&metamcp), "refused").await;
        assert_names_the_login(&refused);
    }
    assert_eq!(rig.token_requests().len(), n_requests);

    rig.log_in(&metamcp);
    assert_eq!(text_of(&echo(&client(&metamcp), "again").await), "again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_a_refresh_costs_at_most_one_login() {
    let rig = LoginRig::start(SHORT);
    let metamcp = rig.metamcp(&rig.server());
    rig.log_in(&metamcp);

    // The new refresh token is lost, and the authorization server takes a second use of the old one
    // as theft: only a login helps.
    rig.lose_next_token();
    wait_for_refusal(&metamcp).await;
    rig.log_in(&metamcp);

    let calls = steady_calls(&metamcp);
    let n_refreshes = rig.n_grants("refresh_token");
    wait_until("another refresh", || rig.n_grants("refresh_token") > n_refreshes);
    calls.wait_for_answers(1).await;
    calls.end().await;
    assert_eq!(rig.n_grants("authorization_code"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_survive_an_authorization_server_that_is_down_for_a_while() {
    let mut rig = LoginRig::start(SHORT);
    let metamcp = rig.metamcp(&rig.server());
    rig.log_in(&metamcp);
    let calls = steady_calls(&metamcp);
    calls.wait_for_answers(1).await;

    rig.stop_authorization_server();
    let is_refused = |[_, status, path]: &[String; 3]| status == "502" && path == "/token";
    let n_refused =
        || rig.answered_at(TlsPort::Authorization).iter().filter(|row| is_refused(row)).count();
    wait_until("two attempts at a refresh", || n_refused() >= 2);
    rig.start_authorization_server();

    calls.wait_for_answers(2).await;
    calls.end().await;
    assert_eq!(rig.n_grants("authorization_code"), 1, "{:?}", rig.token_requests());
}

#[tokio::test(flavor = "multi_thread")]
async fn restarts_and_kills_around_refreshes_need_no_login_and_lose_no_call() {
    let rig = LoginRig::start(SHORT);
    let mut metamcp = rig.metamcp(&rig.server());
    rig.log_in(&metamcp);
    let calls = steady_calls(&metamcp);

    for signal in [Signal::KILL, Signal::TERM].repeat(N_RESTARTS) {
        let known = rig.accepted_tokens();
        // As soon as a new token is used, its refresh token must be safe.
        wait_until("a new token is used", || !rig.accepted_tokens().is_subset(&known));
        metamcp.signal(signal);
        metamcp.wait_exit();
        metamcp.restart();
        metamcp.wait_ready();
    }
    calls.wait_for_answers(2).await;
    calls.end().await;

    let requests = rig.token_requests();
    assert_eq!(rig.n_grants("authorization_code"), 1, "{requests:?}");
    assert!(requests.iter().all(|request| request.status == 200), "{requests:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_stops_during_a_refresh_keeps_the_new_token() {
    let rig = LoginRig::start(SHORT);
    let mut metamcp = rig.metamcp(&rig.server());
    rig.log_in(&metamcp);
    assert_eq!(text_of(&echo(&client(&metamcp), "before").await), "before");

    rig.hold_next_token();
    let n_refreshes = rig.n_grants("refresh_token");
    wait_until("a refresh", || rig.n_grants("refresh_token") > n_refreshes);
    metamcp.signal(Signal::TERM);
    rig.release_token();
    metamcp.wait_exit();
    metamcp.restart();
    metamcp.wait_ready();

    assert_eq!(text_of(&echo(&client(&metamcp), "after").await), "after");
    assert_eq!(rig.n_grants("authorization_code"), 1, "{:?}", rig.token_requests());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_logs_in_by_itself_with_client_credentials() {
    let rig = LoginRig::start(SHORT);
    let metamcp = rig.metamcp(&rig.machine_server_at(TlsPort::Http2));

    let calls = steady_calls(&metamcp);
    wait_until("three tokens", || rig.n_grants("client_credentials") >= 3);
    calls.wait_for_answers(1).await;
    calls.end().await;

    let requests = rig.token_requests();
    let is_expected = |grant: &str, status| grant == "client_credentials" && status == 200;
    assert!(requests.iter().all(|it| is_expected(&it.grant, it.status)), "{requests:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_needs_a_further_scope_succeeds_after_another_login() {
    let rig = LoginRig::start(LONG);
    let metamcp = rig.metamcp(&rig.server());
    rig.log_in(&metamcp);
    let refused = client(&metamcp).tool("administer", json!({ "text": "first" })).await.answer();
    assert_names_the_login(&refused);
    assert_eq!(text_of(&echo(&client(&metamcp), "meanwhile").await), "meanwhile");

    rig.log_in(&metamcp);

    let administered = client(&metamcp).tool("administer", json!({ "text": "second" })).await;
    assert_eq!(text_of(&administered.answer()), "second");
    assert_eq!(text_of(&echo(&client(&metamcp), "still").await), "still", "no scope is lost");
    assert_eq!(rig.n_executed("first"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logout_revokes_the_refresh_token_and_forgets_the_login() {
    let rig = LoginRig::start(LONG);
    let metamcp = rig.metamcp(&rig.server());
    rig.log_in(&metamcp);
    assert_eq!(rig.n_live_refresh_tokens(), 1);

    let socket = metamcp.control().display().to_string();
    let (code, output, errors) = run(&["logout", SERVER, "--socket", &socket]);

    assert_eq!(code, 0, "{output}{errors}");
    assert_eq!(rig.n_live_refresh_tokens(), 0);
    let refused = echo(&client(&metamcp), "late").await;
    assert_names_the_login(&refused);
}

/// Returns a client of the resource server. It has no session, so that it survives restarts.
pub(crate) fn client(metamcp: &Daemon) -> Modern {
    Modern::new(Client::new(metamcp.url(&format!("/servers/{SERVER}"))))
}

/// Calls `echo`, again if the connection breaks, and returns the answer.
pub(crate) async fn echo(client: &Modern, text: &str) -> Value {
    let deadline = Instant::now() + DEADLINE;
    while Instant::now() < deadline {
        if let Some(reply) = client.try_tool("echo", json!({ "text": text })).await {
            return reply.answer();
        }
        tokio::task::yield_now().await;
    }
    panic!("no answer for {text}");
}

/// Returns the text of a result; a message without one is returned as it is.
pub(crate) fn text_of(answer: &Value) -> String {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.map_or_else(|| answer.to_string(), str::to_owned)
}

/// Starts clients that call `echo` again and again, each with a text of its own, and check the answer.
fn steady_calls(metamcp: &Daemon) -> Load<()> {
    let client = client(metamcp);
    Load::start(N_CLIENTS, move |number, n_before| {
        let client = client.clone();
        async move {
            let text = format!("client {number}, call {n_before}");
            assert_eq!(text_of(&echo(&client, &text).await), text);
        }
    })
}

/// Returns whether an answer asks for a login, and names the command for it.
fn names_the_login(answer: &Value) -> bool {
    answer.to_string().contains("requires a login")
        && answer.to_string().contains(&format!("`metamcp login {SERVER}`"))
}

#[track_caller]
fn assert_names_the_login(answer: &Value) {
    assert!(names_the_login(answer), "{answer}");
}

/// Waits until a call is refused because it needs a login.
async fn wait_for_refusal(metamcp: &Daemon) {
    let client = client(metamcp);
    let deadline = Instant::now() + DEADLINE;
    loop {
        let answer = echo(&client, "waiting").await;
        if names_the_login(&answer) {
            return;
        }
        assert_eq!(text_of(&answer), "waiting", "only a login is missing");
        assert!(Instant::now() < deadline, "no call is refused\n{}", metamcp.log());
    }
}

/// Waits until a condition holds.
#[track_caller]
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not in time");
        thread::sleep(POLL);
    }
}
