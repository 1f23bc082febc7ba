//! Logins at servers: by operators, by clients, and what happens to their tokens.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Stdio},
    sync::atomic::Ordering,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    all,
    harness::{
        client::{Client, running},
        daemon::{self, Daemon},
        login_upstream::{LoginUpstream, redirect_of, visit},
        modern::{Modern, retry},
        operator::Operator,
    },
};

const BY_CLIENTS: &str = "[auth]\nby_clients = true\n";

/// Runs a command against the service; returns its exit code, standard output and standard error.
fn run(daemon: &Daemon, arguments: &[&str]) -> (i32, String, String) {
    let socket = daemon.control().display().to_string();
    daemon::run(&[arguments, &["--socket", &socket]].concat())
}

/// A running `metamcp login`, which waits for the browser.
struct RunningLogin {
    command: Child,
    output: BufReader<std::process::ChildStdout>,
    url: String,
}

impl RunningLogin {
    fn start(daemon: &Daemon) -> Self {
        let socket = daemon.control().display().to_string();
        let mut command = daemon::command(&["login", "up", "--socket", &socket])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut output = BufReader::new(command.stdout.take().expect("a pipe"));
        let mut url = String::new();
        while !url.starts_with("http") {
            let mut line = String::new();
            assert!(output.read_line(&mut line).expect("text") > 0, "the command has ended");
            line.trim().clone_into(&mut url);
        }
        Self { command, output, url }
    }

    /// Waits for the end of the command, and returns its exit code and the rest of its output.
    fn end(mut self) -> (i32, String) {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        (self.command.wait().expect("it ends").code().expect("a code"), rest)
    }
}

/// Logs in at server `up`, as an operator with a browser does.
pub(crate) async fn log_in(daemon: &Daemon) {
    let login = RunningLogin::start(daemon);
    let page = visit(&login.url).await;
    assert_eq!(page.status, 200, "{}", page.body);
    let (code, output) = login.end();
    assert!(code == 0 && output.contains("Logged in at server `up`."), "{code}: {output}");
}

/// Asks the service as an operator.
async fn ask(daemon: &Daemon, method: &str, params: Value) -> Value {
    Operator::at(daemon).await.ask(method, params).await
}

async fn echo(client: &Client) -> Value {
    client.tool("echo", json!({})).await.answer()["result"].clone()
}

/// Returns a client that can open an address.
async fn client_with_browser(daemon: &Daemon) -> Client {
    daemon.client("/servers/up").initialized_with(json!({ "elicitation": { "url": {} } })).await
}

#[track_caller]
fn assert_answered(result: &Value) {
    assert_eq!(result["content"][0]["text"], "hello", "{result}");
}

#[tokio::test]
async fn a_call_to_a_server_that_requires_a_login_names_the_command_and_trips_no_breaker() {
    let upstream = LoginUpstream::start();
    let daemon = Daemon::with(upstream.server("")).ready();
    let client = daemon.client("/servers/up");
    for _ in 0..8 {
        let result = echo(&client).await;
        let text = result["content"][0]["text"].as_str().expect("a text");
        assert!(result["isError"] == true && text.contains("`metamcp login up`"), "{result}");
    }
    let (_, status, _) = run(&daemon, &["status"]);
    assert!(status.contains("needs login"), "{status}");
    let (_, servers, _) = run(&daemon, &["servers", "--json"]);
    let servers: Value = serde_json::from_str(&servers).expect("JSON");
    assert_eq!(servers[0]["status"], "needs login");
    assert_eq!(servers[0]["breaker"]["state"], "normal", "{servers}");
    assert_eq!(upstream.state.n_registered.load(Ordering::Relaxed), 0, "only a login registers");
    let log = daemon.log();
    let n_warnings = |text: &str| log.matches(text).count();
    assert_eq!((n_warnings("connection to server"), n_warnings("refuses its credentials")), (1, 1));

    log_in(&daemon).await;
    assert_answered(&echo(&client).await);
    let (_, status, _) = run(&daemon, &["status"]);
    assert!(!status.contains("login"), "{status}");
}

#[tokio::test]
async fn one_login_serves_every_client_and_no_output_shows_a_token() {
    let upstream = LoginUpstream::start();
    let daemon = Daemon::with(upstream.server("")).ready();
    let clients = [daemon.client("/servers/up"), daemon.client("/servers/up")];

    log_in(&daemon).await;

    for client in &clients {
        assert_answered(&echo(client).await);
    }
    let (code, auth, _) = run(&daemon, &["auth"]);
    assert!(code == 0 && auth.contains("oauth") && auth.contains("present"), "{auth}");
    let (_, as_json, _) = run(&daemon, &["auth", "up", "--json"]);
    let (_, status, _) = run(&daemon, &["status", "--json"]);
    for output in [daemon.log(), auth, as_json, status] {
        upstream.assert_secret(&output);
    }
    assert_eq!(upstream.n_grants("authorization_code"), 1);
}

#[tokio::test]
async fn a_pasted_address_ends_a_login_whose_browser_is_elsewhere() {
    let upstream = LoginUpstream::start();
    let daemon = Daemon::with(upstream.server("")).ready();
    let begun = ask(&daemon, "auth/login", json!({ "server": "up" })).await;
    let address = redirect_of(begun["result"]["url"].as_str().expect("an address")).await;

    let answer = ask(&daemon, "auth/finish", json!({ "answer": address })).await;

    assert_eq!(answer["result"]["server"], "up", "{answer}");
    assert_answered(&echo(&daemon.client("/servers/up")).await);
    let again = ask(&daemon, "auth/finish", json!({ "answer": address })).await;
    assert!(again["error"]["data"]["suggestion"].is_string(), "an answer is valid once: {again}");
}

#[tokio::test]
async fn the_page_after_a_login_needs_no_client_token_and_refuses_an_unknown_state() {
    let upstream = LoginUpstream::start();
    let token = "0123456789abcdef0123456789abcdef";
    let config = format!("[listen]\ntoken = \"env:TOKEN\"\n{}", upstream.server(""));
    let daemon = Daemon::with(config).env("TOKEN", token).ready();

    let page = daemon.client("/oauth/callback?code=a&state=guessed").get().await;
    assert_eq!(page.status, 400, "{}", page.body);
    assert!(page.headers["content-type"].to_str().expect("text").starts_with("text/html"));
    let posted = daemon.client("/oauth/callback?code=a&state=guessed").post("{}").await;
    assert_eq!(posted.status, 401);

    log_in(&daemon).await;
    assert!(!daemon.log().contains("browser came"), "any page could fill the log");
    let client = daemon.client("/servers/up").header("authorization", &format!("Bearer {token}"));
    assert_answered(&echo(&client).await);
}

#[tokio::test]
async fn an_expired_token_is_refreshed_once_for_all_calls() {
    let upstream = LoginUpstream::start();
    let daemon = Daemon::with(upstream.server("")).ready();
    log_in(&daemon).await;
    let client = daemon.client("/servers/up");
    upstream.expire();
    for result in all((0..32).map(|_| echo(&client))).await {
        assert_answered(&result);
    }
    assert_eq!(upstream.n_grants("refresh_token"), 1);
    assert_eq!(upstream.n_grants("authorization_code"), 1);
}

#[tokio::test]
async fn a_refreshed_token_survives_a_kill_of_the_service() {
    let upstream = LoginUpstream::start();
    let mut daemon = Daemon::with(upstream.server("")).keep_sockets().ready();
    log_in(&daemon).await;
    upstream.expire();
    assert_answered(&echo(&daemon.client("/servers/up")).await);

    daemon.signal(Signal::KILL);
    daemon.wait_exit();
    daemon.restart();

    assert_answered(&echo(&daemon.client("/servers/up")).await);
    assert_eq!(upstream.n_grants("authorization_code"), 1);
}

#[tokio::test]
async fn a_refused_refresh_token_leads_to_a_login_and_an_outage_does_not() {
    let upstream = LoginUpstream::start();
    let daemon = Daemon::with(upstream.server("")).ready();
    log_in(&daemon).await;
    let client = daemon.client("/servers/up");

    upstream.state.is_down.store(true, Ordering::Relaxed);
    assert_answered(&echo(&client).await);
    upstream.expire();
    let waiting = running({
        let client = client.clone();
        async move { echo(&client).await }
    });
    daemon.wait_log("no new token for server `up`");
    upstream.state.is_down.store(false, Ordering::Relaxed);
    assert_answered(&waiting.end().await);

    upstream.expire();
    upstream.revoke_refresh_tokens();
    let result = echo(&client).await;
    assert!(result["content"][0]["text"].as_str().expect("a text").contains("metamcp login up"));
    log_in(&daemon).await;
    assert_answered(&echo(&client).await);
    assert_eq!(upstream.state.n_registered.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_logout_revokes_the_tokens_and_forgets_them() {
    let upstream = LoginUpstream::start();
    let daemon = Daemon::with(upstream.server("")).ready();
    log_in(&daemon).await;
    assert_answered(&echo(&daemon.client("/servers/up")).await);

    let (code, output, _) = run(&daemon, &["logout", "up"]);

    assert!(code == 0 && output.contains("its tokens are revoked"), "{output}");
    assert!(upstream.state.n_revoked.load(Ordering::Relaxed) > 0);
    assert_eq!(echo(&daemon.client("/servers/up")).await["isError"], true);
    let (_, output, _) = run(&daemon, &["logout", "up"]);
    assert!(output.contains("There was no login"), "{output}");
}

#[tokio::test]
async fn an_error_page_that_repeats_the_token_reaches_no_client() {
    let upstream = LoginUpstream::start();
    let daemon = Daemon::with(upstream.server("")).ready();
    log_in(&daemon).await;
    let client = daemon.client("/servers/up");
    assert_answered(&echo(&client).await);

    let answer = client.tool("repeat", json!({})).await.answer();

    assert_eq!(answer["error"]["data"]["code"], "UPSTREAM_STATUS", "{answer}");
    assert!(answer.to_string().contains("Bearer [secret]"), "{answer}");
    for output in [answer.to_string(), daemon.log()] {
        upstream.assert_secret(&output);
    }
}

#[tokio::test]
async fn a_static_authorization_never_starts_a_login() {
    let upstream = LoginUpstream::start();
    let table = upstream.server("headers = { Authorization = \"Bearer wrong\" }");
    let daemon = Daemon::with(table).ready();
    let answer = daemon.client("/servers/up").tool("echo", json!({})).await.answer();
    assert_eq!(answer["error"]["data"]["code"], "UPSTREAM_STATUS", "{answer}");
    let (code, _, error) = run(&daemon, &["login", "up"]);
    assert!(code == 1 && error.contains("up"), "{error}");
}

#[tokio::test]
async fn a_legacy_client_that_can_open_an_address_logs_in_during_its_call() {
    let upstream = LoginUpstream::start();
    let daemon = Daemon::with(format!("{BY_CLIENTS}{}", upstream.server(""))).ready();
    let client = client_with_browser(&daemon).await;

    let mut call = client.tool_stream("echo", json!({})).await;
    let question = call.message().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    assert_eq!(question["params"]["mode"], "url");
    client.respond(&question["id"], json!({ "action": "accept" })).await;
    let page = visit(question["params"]["url"].as_str().expect("an address")).await;
    assert_eq!(page.status, 200, "{}", page.body);

    let notice = call.message().await;
    assert_eq!(notice["method"], "notifications/elicitation/complete");
    assert_eq!(notice["params"]["elicitationId"], question["params"]["elicitationId"]);
    assert_answered(&call.message().await["result"]);
}

#[tokio::test]
async fn a_call_whose_client_never_answers_goes_on_after_the_login_of_another_person() {
    let upstream = LoginUpstream::start();
    let daemon = Daemon::with(format!("{BY_CLIENTS}{}", upstream.server(""))).ready();
    let client = client_with_browser(&daemon).await;
    let mut call = client.tool_stream("echo", json!({})).await;
    let question = call.message().await;

    // An operator gets the same address.
    let login = RunningLogin::start(&daemon);
    assert_eq!(question["params"]["url"], login.url.as_str());
    assert_eq!(visit(&login.url).await.status, 200);
    let (code, output) = login.end();
    assert_eq!(code, 0, "{output}");
    let notice = call.message().await;
    assert_eq!(notice["method"], "notifications/elicitation/complete");
    assert_answered(&call.message().await["result"]);
}

#[tokio::test]
async fn a_modern_client_that_can_open_an_address_logs_in_between_two_requests() {
    let upstream = LoginUpstream::start();
    let daemon = Daemon::with(format!("{BY_CLIENTS}{}", upstream.server(""))).ready();
    let client = Modern::new(daemon.client("/servers/up"))
        .capabilities(json!({ "elicitation": { "url": {} } }));
    let params = json!({ "name": "echo", "arguments": {} });

    let asked = client.request(json!(1), "tools/call", params.clone()).await.answer();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let requests = asked["result"]["inputRequests"].as_object().expect("questions");
    let question = &requests.values().next().expect("one")["params"];
    let page = visit(question["url"].as_str().expect("an address")).await;
    assert_eq!(page.status, 200, "{}", page.body);
    let again = retry(&params, &asked["result"], |_, _| json!({ "action": "accept" }));
    let answer = client.request(json!(2), "tools/call", again).await.answer();

    assert!(answer["error"].is_null(), "{answer}");
    assert_answered(&answer["result"]);
}

#[tokio::test]
async fn a_client_that_declines_or_cannot_open_an_address_gets_the_command() {
    let upstream = LoginUpstream::start();
    let daemon = Daemon::with(format!("{BY_CLIENTS}{}", upstream.server(""))).ready();
    let plain = daemon.client("/servers/up").initialized().await;
    assert_eq!(echo(&plain).await["isError"], true);

    let client = client_with_browser(&daemon).await;
    let mut call = client.tool_stream("echo", json!({})).await;
    let question = call.message().await;
    client.respond(&question["id"], json!({ "action": "decline" })).await;
    let answer = call.message().await;
    assert!(answer["result"]["isError"] == true, "{answer}");
}

#[tokio::test]
async fn a_client_that_was_asked_to_log_in_does_not_hold_up_others_at_a_breaker() {
    let upstream = LoginUpstream::start();
    let breaker = "[breaker]\nfailure_threshold = 1\ncooldown = \"2s\"\n";
    let daemon = Daemon::with(format!("{BY_CLIENTS}{breaker}{}", upstream.server(""))).ready();
    upstream.state.is_broken.store(true, Ordering::Relaxed);
    let plain = daemon.client("/servers/up");
    plain.tool("echo", json!({})).await.answer();
    daemon.wait_log("breaker tripped");
    upstream.state.is_broken.store(false, Ordering::Relaxed);

    let client = client_with_browser(&daemon).await;
    // Refused until the cooldown is over.
    let _waiting = loop {
        let mut call = client.tool_stream("echo", json!({})).await;
        if call.message().await["method"] == "elicitation/create" {
            break call;
        }
    };

    let answer = plain.tool("echo", json!({})).await.answer().to_string();
    assert!(answer.contains("metamcp login up"), "{answer}");
}

#[tokio::test]
async fn a_script_waits_for_a_login_and_then_goes_on() {
    let upstream = LoginUpstream::start();
    let daemon = Daemon::with(format!("{BY_CLIENTS}{}", upstream.server(""))).ready();
    log_in(&daemon).await;
    assert_answered(&echo(&daemon.client("/servers/up")).await);
    upstream.revoke_refresh_tokens();
    upstream.expire();

    let capabilities = json!({ "elicitation": { "url": {} } });
    let modern = Modern::new(daemon.client("/meta")).capabilities(capabilities);
    let code = "return servers.up.echo({})";
    let params = json!({ "name": "mcp_execute", "arguments": { "code": code } });
    let asked = modern.request(json!(1), "tools/call", params.clone()).await.answer();
    let asked = asked["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = asked["inputRequests"].as_object().and_then(|all| all.values().next());
    let url = question.and_then(|it| it["params"]["url"].as_str()).expect("an address").to_owned();
    let accept = |_: &str, _: &Value| json!({ "action": "accept" });
    let waiting = running({
        let again = retry(&params, &asked, accept);
        async move { modern.request(json!(2), "tools/call", again).await.answer() }
    });
    assert_eq!(visit(&url).await.status, 200);

    let ended = waiting.end().await;
    assert_eq!(ended["result"]["structuredContent"]["value"], "hello", "{ended}");
}
