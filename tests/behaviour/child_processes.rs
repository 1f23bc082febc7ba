//! Child processes: metamcp reads and bounds their output, isolates them from each other, and ends
//! them with the service.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    all,
    harness::{
        client::running,
        daemon::Daemon,
        fake::{self, Fakes, Upstream, is_alive},
        operator::Operator,
        unit::SocketUnit,
    },
    until,
};

#[tokio::test]
async fn every_call_gets_an_answer_with_its_own_id_when_the_child_dies() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    let held: Vec<_> = (0..5).map(|_| running(client.clone().hold("k"))).collect();
    client.call("held", json!({ "at_least": 5 })).await;

    let last = client.tool("exit", json!({ "code": 3 })).await.answer();

    assert_eq!(last["error"]["data"]["code"], "SERVER_EXITED");
    assert!(last["error"]["message"].to_string().contains("exited with code 3"), "{last}");
    for reply in held {
        let answer = reply.end().await.answer();
        assert_eq!(
            (&answer["id"], &answer["error"]["data"]["code"]),
            (&json!(1), &json!("SERVER_EXITED"))
        );
    }
    // The next call starts the server again.
    assert_eq!(client.call("echo", json!({ "value": 1 })).await["value"], 1);
    assert_eq!(fakes.pids("fake").len(), 2);
}

#[tokio::test]
async fn a_truncated_answer_of_a_child_fails_its_call() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");

    let answer = client.tool("crash_at", json!({ "byte": 17 })).await.answer();

    assert_eq!(answer["error"]["data"]["code"], "SERVER_EXITED");
    assert_eq!(client.call("echo", json!({ "value": 1 })).await["value"], 1);
}

#[tokio::test]
async fn the_exit_of_one_server_does_not_affect_another_server() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[]) + &fakes.server("two", &[])).ready();
    let client = daemon.client("/");
    let held = running(daemon.client("/servers/two").hold("k"));
    daemon.client("/servers/two").call("held", json!({ "at_least": 1 })).await;

    client.tool("one__exit", json!({ "code": 1 })).await;

    client.call("two__release", json!({ "key": "k" })).await;
    assert!(held.end().await.answer()["result"].is_object());
    assert_eq!(fakes.pids("two").len(), 1);
}

#[tokio::test]
async fn lines_on_standard_output_that_are_no_messages_are_skipped_and_counted() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &["--noise-at-start", "3"])).ready();
    let client = daemon.client("/servers/fake");

    assert!(client.tool("noise", json!({ "lines": 50 })).await.answer()["result"].is_object());

    let status = daemon.client("/status").get().await.answer();
    assert_eq!(status["servers"][0]["noise_lines"], 53);
}

#[tokio::test]
async fn an_answer_with_invalid_utf_8_is_delivered_with_replacement_characters() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    // The fake writes the byte FF for this character.
    let result = json!({ "content": [{ "type": "text", "text": "caf\u{10ffff}" }] }).to_string();

    let answer = client.tool("raw", json!({ "result": result })).await.answer();

    assert_eq!(answer["result"]["content"][0]["text"], "caf\u{fffd}");
}

#[tokio::test]
async fn a_child_that_floods_standard_error_before_its_first_answer_works() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &["--stderr-at-start", "1048576"])).ready();
    let client = daemon.client("/servers/fake");
    assert_eq!(client.call("echo", json!({ "value": 1 })).await["value"], 1);
}

#[tokio::test]
async fn an_answer_that_is_too_large_fails_only_its_own_call() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    let held = running(client.clone().hold("k"));
    client.call("held", json!({ "at_least": 1 })).await;

    let answer = client.tool("bytes", json!({ "n": 17 << 20 })).await.answer();

    assert_eq!(answer["error"]["data"]["code"], "ANSWER_TOO_LARGE", "{answer}");
    client.call("release", json!({ "key": "k" })).await;
    assert!(held.end().await.answer()["result"].is_object());
    assert_eq!(fakes.pids("fake").len(), 1);
}

#[tokio::test]
async fn large_messages_pass_in_both_directions() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[])).ready();
    let client = daemon.client("/servers/fake");
    let value = "ä".repeat(1 << 20);
    let echoes = all((0..4).map(|_| client.call("echo", json!({ "value": value })))).await;
    assert!(echoes.iter().all(|echo| echo["value"] == value.as_str()));
}

#[tokio::test]
async fn a_child_gets_its_declared_environment_and_none_of_the_service() {
    let fakes = Fakes::new();
    let credentials = tempfile::tempdir().expect("a directory");
    fs::write(credentials.path().join("token"), "s3cret").expect("written");
    let config = fakes.server("fake", &[])
        + "env = { TOKEN = \"credential:token\", MODE = \"fast\", OTHER = \"env:SERVICE_ONLY\" }\n";
    let daemon = Daemon::with(config)
        .env("CREDENTIALS_DIRECTORY", credentials.path())
        .env("SERVICE_ONLY", "given")
        .ready();
    let client = daemon.client("/servers/fake");

    let names = client.call("environ", json!({})).await["names"].clone();
    let names: Vec<&str> =
        names.as_array().expect("names").iter().filter_map(Value::as_str).collect();
    for hidden in
        ["NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_FDNAMES", "CREDENTIALS_DIRECTORY", "SERVICE_ONLY"]
    {
        assert!(!names.contains(&hidden), "{hidden} leaked: {names:?}");
    }
    for (name, value) in [("TOKEN", "s3cret"), ("MODE", "fast"), ("OTHER", "given")] {
        assert_eq!(client.call("env", json!({ "name": name })).await["value"], value);
    }
}

#[tokio::test]
async fn standard_error_is_logged_under_the_name_of_its_server_without_secrets() {
    let fakes = Fakes::new();
    let credentials = tempfile::tempdir().expect("a directory");
    fs::write(credentials.path().join("token"), "hunter2").expect("written");
    let config = fakes.server("talkative", &[]) + "env = { TOKEN = \"credential:token\" }\n";
    let daemon = Daemon::with(config).env("CREDENTIALS_DIRECTORY", credentials.path()).ready();
    let client = daemon.client("/servers/talkative");

    client.tool("stderr", json!({ "lines": 1, "text": "my token is hunter2" })).await;

    daemon.wait_log("my token is [secret]");
    let log = daemon.log();
    let line = log.lines().find(|line| line.contains("my token is")).expect("the line");
    assert!(line.contains("mcp_server=talkative") && line.contains("mcp_stream=stderr"), "{line}");
    assert!(!log.contains("hunter2"));
}

#[tokio::test]
async fn a_missing_credential_is_reported_by_name_with_the_remedy() {
    let fakes = Fakes::new();
    let config = fakes.server("fake", &[]) + "env = { TOKEN = \"credential:token\" }\n";
    let daemon = Daemon::with(config).ready();

    let answer = daemon.client("/servers/fake").tool("echo", json!({ "value": 1 })).await.answer();

    assert_eq!(answer["error"]["data"]["code"], "SECRET_MISSING");
    assert!(answer["error"]["message"].to_string().contains("credential:token"), "{answer}");
    assert!(
        answer["error"]["data"]["suggestion"].to_string().contains("LoadCredential"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_server_that_exits_at_once_is_reported_with_the_end_of_its_standard_error() {
    let fakes = Fakes::new();
    let config = "[servers.broken]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"echo no licence >&2; echo Node.js >&2; exit 7\"]\n";
    let daemon = Daemon::with(config.to_owned() + &fakes.server("good", &[])).ready();

    let answer = daemon.client("/servers/broken").tool("x", json!({})).await.answer();

    let message = answer["error"]["message"].as_str().expect("a message");
    assert!(
        message.ends_with("exited with code 7 (last output: `no licence | Node.js`)"),
        "{message}"
    );
    assert_eq!(answer["error"]["data"]["context"]["stderr"], json!(["no licence", "Node.js"]));
    assert_eq!(
        daemon.client("/servers/good").call("echo", json!({ "value": 1 })).await["value"],
        1
    );
}

#[tokio::test]
async fn a_cause_that_a_server_writes_to_its_standard_output_is_reported_as_such() {
    let config = "[servers.broken]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"echo starting; echo no licence; exit 7\"]\n";
    let daemon = Daemon::with(config).ready();

    let answer = daemon.client("/servers/broken").tool("x", json!({})).await.answer();

    let message = answer["error"]["message"].as_str().expect("a message");
    let expected = "exited with code 7 (last output: `stdout: no licence`)";
    assert!(message.ends_with(expected), "{message}");
}

#[tokio::test]
async fn a_server_that_closes_its_output_but_runs_on_is_reported_as_hung_up() {
    let config = "[servers.odd]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"echo going to the background >&2; exec sleep 600 >&-\"]\n";
    let daemon = Daemon::with(config).ready();

    let answer = daemon.client("/servers/odd").tool("x", json!({})).await.answer();

    let error = &answer["error"];
    let message = error["message"].as_str().expect("a message");
    let expected = "the server's process closed its standard output and was ended (last output: `going to the background`)";
    assert!(message.ends_with(expected), "{message}");
    assert_eq!(error["data"]["code"], "SERVER_HUNG_UP");
    assert_eq!(error["data"]["context"]["stderr"], json!(["going to the background"]));
    let log = daemon.log();
    assert!(log.contains("server `odd` closed its standard output, so metamcp ended it"), "{log}");
    assert!(!log.contains("ended by itself"), "{log}");
}

#[tokio::test]
async fn clients_see_the_startup_standard_error_of_a_crashed_server_and_operators_see_all() {
    let start = "echo 'no API_KEY is set, but hunter2' >&2; exec \"$0\" stdio";
    let config = format!(
        "[servers.fake]\ncommand = \"/bin/sh\"\nargs = [\"-c\", {start:?}, {:?}]\nenv = {{ TOKEN = \"hunter2\" }}\n",
        fake::program()
    );
    let daemon = Daemon::with(config).ready();
    let [other, caller] = [daemon.client("/servers/fake"), daemon.client("/servers/fake")];
    other.call("stderr", json!({ "lines": 2, "text": "a line of a client" })).await;

    let reply = caller.tool("exit", json!({ "code": 1 })).await;

    let error = &reply.answer()["error"];
    let line = "no API_KEY is set, but [secret]";
    let expected = format!("exited with code 1 (first output: `{line}`)");
    assert!(error["message"].to_string().contains(&expected), "{error}");
    assert_eq!(error["data"]["context"]["stderr"], json!([line]));
    assert!(!reply.body.contains("a line of a client"), "{}", reply.body);
    daemon.wait_log("a line of a client");
    // Operators see all lines, also after the child has exited.
    let mut operator = Operator::at(&daemon).await;
    let client_line = "a line of a client";
    for is_up in [false, true] {
        if is_up {
            caller.call("stderr", json!({ "lines": 1, "text": "hunter2 again" })).await;
        }
        let expected = match is_up {
            false => vec![line, client_line, client_line],
            true => vec![line, client_line, client_line, line, "[secret] again"],
        };
        until(async || {
            let servers = operator.ask("servers/list", json!({})).await;
            servers["result"][0]["stderr"] == json!(expected)
        })
        .await;
    }
    let status = caller.at("/status").get().await.body;
    assert!(!status.contains(client_line) && !status.contains("again"), "{status}");
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_reported_by_name_with_the_remedy() {
    let daemon = Daemon::with("[servers.odd]\ncommand = \"npx -y some-server\"\n").ready();

    let error = daemon.client("/servers/odd").tool("x", json!({})).await.answer()["error"].clone();

    assert_eq!(error["data"]["code"], "SERVER_NOT_STARTED");
    assert!(error["message"].to_string().contains("cannot start `npx -y some-server`"), "{error}");
    assert!(error["data"]["suggestion"].to_string().contains("`args = "), "{error}");
}

#[tokio::test]
async fn an_eager_child_that_does_not_answer_pings_is_replaced() {
    let fakes = Fakes::new();
    let health =
        "start = \"eager\"\nhealth = { interval = \"20ms\", timeout = \"20ms\", failures = 2 }\n";
    let daemon = Daemon::with(fakes.server("fake", &[]) + health).ready();
    let client = daemon.client("/servers/fake");
    client.call("pings", json!({ "mode": "never" })).await;

    until(async || fakes.pids("fake").len() == 2).await;

    daemon.wait_log("does not answer pings: metamcp reconnects to it");
    until(async || client.call("echo", json!({ "value": 1 })).await["value"] == 1).await;
    let status = crate::server_status(&daemon, "fake").await;
    assert!(status["last_check_ms"].is_u64() && status["missed_pings"].is_u64(), "{status}");
    assert_eq!(status["last_error"], "the server does not answer pings");
}

#[tokio::test]
async fn an_eager_server_that_exits_is_restarted_without_a_request() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("fake", &[]) + "start = \"eager\"\n").ready();
    until(async || daemon.client("/readyz").get().await.status == 200).await;

    daemon.client("/servers/fake").tool("exit", json!({ "code": 1 })).await;

    until(async || fakes.pids("fake").len() == 2).await;
    until(async || daemon.client("/readyz").get().await.status == 200).await;
}

#[tokio::test]
async fn no_child_process_is_left_after_a_stop() {
    let fakes = Fakes::new();
    let config = fakes.server("polite", &[])
        + &fakes.server("deaf", &["--ignore-term", "--no-eof-exit"])
        + &fakes.server("parent", &[]);
    let mut daemon = Daemon::with(config).ready();
    let client = daemon.client("/");
    let servers = ["polite", "deaf", "parent"];
    all(servers.map(|server| client.call(&format!("{server}__whoami"), json!({})))).await;
    let orphan = client.call("parent__grandchild", json!({ "inherit": true })).await["pid"].clone();
    let orphan = orphan.as_u64().expect("a pid");
    assert!(is_alive(orphan));

    assert!(daemon.stop().success());

    for server in servers {
        assert!(fakes.pids(server).into_iter().all(|pid| !is_alive(pid)), "{server} is left");
    }
    assert!(!is_alive(orphan));
    let terms = fakes.n_events("deaf", "sigterm");
    // The kernel merges pending signals of the same kind.
    assert!((1..=4).contains(&terms), "{terms} SIGTERM before SIGKILL");
    assert!(fakes.events("polite").iter().all(|event| event["event"] != "sigterm"));
}

#[tokio::test]
async fn a_child_finishes_its_cleanup_after_the_end_of_its_input() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("cleaned-up");
    let script = "\"$0\" stdio; sleep 0.2; echo done > \"$1\"";
    let config = format!(
        "[servers.fake]\ncommand = \"/bin/sh\"\nargs = [\"-c\", {script:?}, {:?}, {file:?}]\n",
        fake::program()
    );
    let mut daemon = Daemon::with(config).ready();
    daemon.client("/servers/fake").call("echo", json!({ "value": 1 })).await;

    daemon.signal(Signal::TERM);
    assert!(daemon.wait_exit().success());

    assert_eq!(fs::read_to_string(&file).expect("it was written"), "done\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_changes_nothing_and_a_third_soon_after_kills_every_server() {
    for n_signals in [2, 3] {
        let fakes = Fakes::new();
        let stubborn = fakes.server("stubborn", &["--ignore-term", "--no-eof-exit"]);
        let config = format!("[service]\nshutdown_timeout = \"1h\"\n{stubborn}");
        let mut daemon = Daemon::with(config).ready();
        let client = daemon.client("/servers/stubborn");
        let held = running(client.clone().hold("k"));
        client.call("held", json!({ "at_least": 1 })).await;
        let left = client.call("grandchild", json!({ "detach": true })).await["pid"].as_u64();
        let mut pids = fakes.pids("stubborn");
        pids.extend(left);

        daemon.signal(Signal::TERM);
        daemon.wait_notice("STOPPING=1", |notice| notice.contains("STOPPING=1"));
        daemon.signal(Signal::TERM);
        daemon.wait_log("asked to stop again");
        assert!(pids.iter().all(|pid| is_alive(*pid)), "no process has ended");
        if n_signals == 2 {
            drop(held);
        } else {
            // On a slow machine, the signals may be more than two seconds apart.
            while !daemon.log().contains("asked to stop three times") {
                daemon.signal(Signal::TERM);
                tokio::task::yield_now().await;
            }
        }

        assert!(daemon.wait_exit().success());
        assert!(pids.into_iter().all(|pid| !is_alive(pid)), "no process is left");
    }
}

#[tokio::test]
async fn a_server_that_fails_its_handshake_repeatedly_never_has_two_processes() {
    let fakes = Fakes::new();
    let deaf = ["--protocol", "2099-01-01", "--ignore-term", "--no-eof-exit"];
    let daemon = Daemon::with(fakes.server("odd", &deaf)).ready();
    let client = daemon.client("/servers/odd");

    for n_tries in 1..=2 {
        let answer = client.tool("echo", json!({ "value": 1 })).await.answer();
        assert_eq!(answer["error"]["data"]["code"], "HANDSHAKE_UNUSABLE", "{answer}");
        let pids = fakes.pids("odd");
        assert_eq!(pids.len(), n_tries);
        assert!(pids.into_iter().all(|pid| !is_alive(pid)), "the previous process has ended");
    }
}

#[tokio::test]
async fn a_child_runs_in_its_declared_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = format!(
        "[servers.fake]\ncommand = {:?}\nargs = [\"stdio\", \"--log\", \"here.log\"]\ncwd = {:?}\n",
        fake::program(),
        directory.path()
    );
    let daemon = Daemon::with(config).ready();

    daemon.client("/servers/fake").call("echo", json!({ "value": 1 })).await;

    assert!(directory.path().join("here.log").exists());
}

#[tokio::test]
async fn a_last_line_without_a_line_break_is_read_as_a_message() {
    let script = r#"
        read line
        printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}'
        read line
        read line
        printf '%s' '{"jsonrpc":"2.0","id":2,"result":{"last":"words"}}'
    "#;
    let config = format!(
        "[servers.short]\nera = \"legacy\"\ncommand = \"/bin/sh\"\nargs = [\"-c\", '''{script}''']\n"
    );
    let daemon = Daemon::with(config).ready();
    let answer = daemon.client("/servers/short").tool("x", json!({})).await.answer();
    assert_eq!(answer["result"]["last"], "words", "{answer}");
}

#[tokio::test]
async fn a_refused_handshake_is_reported_without_its_secret() {
    let script = r#"read line; printf '%s\n' "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"bad token $TOKEN\"}}"; read line"#;
    let config = format!(
        "[servers.odd]\nera = \"legacy\"\ncommand = \"/bin/sh\"\nargs = [\"-c\", '''{script}''']\nenv = {{ TOKEN = \"env:ODD_TOKEN\" }}\n"
    );
    let daemon = Daemon::with(config).env("ODD_TOKEN", "hunter2").ready();

    let reply = daemon.client("/servers/odd").tool("x", json!({})).await;

    assert!(reply.body.contains("bad token [secret]"), "{}", reply.body);
    let status = daemon.client("/status").get().await;
    daemon.wait_log("bad token [secret]");
    assert!(!format!("{}{}{}", reply.body, status.body, daemon.log()).contains("hunter2"));
}

#[tokio::test]
async fn a_server_that_hangs_delays_the_merged_list_only_once() {
    let fakes = Fakes::new();
    let gate = fakes.path("never").display().to_string();
    let timeout = "[service]\nrequest_timeout = \"1s\"\n";
    let servers = fakes.server("good", &[]) + &fakes.server("stuck", &["--start-gate", &gate]);
    let daemon = Daemon::with(format!("{timeout}{servers}")).ready();
    let client = daemon.client("/");
    let list = async || client.request(json!(1), "tools/list", json!({})).await.body;

    assert!(list().await.contains("good__echo"));
    // The deadline would pass if each list waited for the server that hangs.
    let many = async {
        for _ in 0..100 {
            let listed = list().await;
            assert!(listed.contains("good__echo") && !listed.contains("stuck__"));
        }
    };

    tokio::time::timeout(crate::harness::DEADLINE, many)
        .await
        .expect("no list waits for the server that hangs");
    assert_eq!(fakes.pids("stuck").len(), 1);
}

#[tokio::test]
async fn a_server_that_exceeds_its_start_timeout_fails_its_calls() {
    let fakes = Fakes::new();
    let gate = fakes.path("gate").display().to_string();
    let options = ["--start-gate", &gate];
    let unit = SocketUnit::start(&fakes, "unit", &options, 8);
    let upstream = Upstream::start(&options);
    let brief = "start_timeout = \"20ms\"";
    let config = fakes.server("child", &options)
        + brief
        + "\n"
        + &unit.server("unit", brief)
        + &upstream.server("upstream", brief);
    let daemon = Daemon::with(config).ready();

    for server in ["child", "unit", "upstream"] {
        let client = daemon.client(&format!("/servers/{server}"));
        let answer = client.tool("echo", json!({})).await.answer();
        let message = answer["error"]["message"].to_string();
        assert!(message.contains("no answer within 20 ms"), "{server}: {message}");
        let hint = answer["error"]["data"]["suggestion"].to_string();
        assert!(hint.contains("`start_timeout`"), "{server}: {hint}");
    }
}
