//! `metamcp call`: arguments, results and exit codes.

use std::{fs, process::Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Rig, golden};
use crate::harness::daemon::{self, exit_in_time};

#[test]
fn call_prints_results_and_reports_the_outcome_in_its_exit_code() {
    let rig = Rig::start();
    let result = |content: Value| json!({ "result": content.to_string() }).to_string();
    let blocks = result(json!({ "content": [
        { "type": "text", "text": "first\nsecond" },
        { "type": "image", "mimeType": "image/png", "data": "AAAA" },
        { "type": "audio", "mimeType": "audio/wav", "data": "AAAAAAAA" },
        { "type": "resource_link", "uri": "file:///a", "name": "a" },
        { "type": "resource", "resource": { "uri": "file:///b", "text": "b" } },
    ]}));
    let structured = result(json!({ "content": [], "structuredContent": { "b": 1, "a": [] } }));
    golden(
        "call",
        &rig.transcript(&[
            &["call", "fake/echo", "{\"value\":{\"a\":1.50}}"],
            &["call", "fake/echo", "{\"value\":{\"a\":1.50}}", "--json"],
            &["call", "fake/raw", &blocks],
            &["call", "fake/raw", &structured],
            &["call", "fake/tool_error"],
            &["call", "--json", "fake/tool_error"],
            &["call", "fake/rpc_error", "{\"code\":-32000,\"message\":\"no\"}"],
            &["call", "fake/rows", "--table", "parts", "--n=1", "--fields", "rows[].name"],
            &["call", "fake/hold", "--key", "k", "--timeout", "50ms"],
        ]),
    );
}

#[test]
fn call_reports_invalid_arguments_before_it_calls_the_tool() {
    let rig = Rig::start();
    golden(
        "call_wrong",
        &rig.transcript(&[
            &["call", "fake/rows", "{}"],
            &["call", "fake/rows", "{\"table\":\"zebra\",\"n\":\"x\"}"],
            &["call", "--dry-run", "fake/rows", "{\"table\":\"zebra\"}"],
            &["call", "fake/rows", "--table", "parts", "--dry-run"],
            &["call", "fake/count", "--key", "a", "--dry-run", "--json"],
            &["call", "fake/rows", "--tabel", "parts"],
            &["call", "fake/rows", "--table", "zebra"],
            &["call", "fake/rows", "{\"table\":"],
            &["call", "fake/rows", "[]"],
            &["call", "fake/rows", "@/no/such/file"],
            &["call", "fake/row"],
            &["call", "fkae/rows"],
            &["call", "rows"],
            &["call", "broken/rows"],
            &["call", "fake/rows", "--table", "parts", "--async", "--fields", "a"],
        ]),
    );
    assert_eq!(rig.run(&["call"]).0, 64);
    assert_eq!(rig.run(&["call", "--timeout", "soon", "fake/rows"]).0, 64);
}

#[test]
fn call_help_describes_the_arguments_of_the_tool() {
    let rig = Rig::start();
    golden(
        "call_help",
        &rig.transcript(&[&["call", "fake/rows", "--help"], &["call", "fake/whoami", "-h"]]),
    );
}

#[test]
fn call_takes_arguments_as_json_or_by_key() {
    let rig = Rig::start();
    let file = rig.fakes.path("arguments.json");
    fs::write(&file, "{\n  \"value\": [1,\n 2]\n}\n").expect("written");
    let (path, at) = (file.display().to_string(), format!("@{}", file.display()));
    let echoed = |input: &str, arguments: &[&str]| {
        let (code, stdout, stderr) =
            rig.run_with(input, &[&["call", "--json"], arguments].concat());
        assert_eq!(code, 0, "{arguments:?}: {stderr}");
        let result: Value = serde_json::from_str(&stdout).expect(&stdout);
        result["structuredContent"]["value"].clone()
    };
    for arguments in [&[&at[..]][..], &["--file", &path]] {
        assert_eq!(echoed("", &[&["fake/echo"], arguments].concat()), json!([1, 2]));
    }
    assert_eq!(echoed("", &["--file", &path, "fake__echo"]), json!([1, 2]));
    assert_eq!(echoed("{\"value\":\"ä\"}", &["fake/echo", "-"]), json!("ä"));
    assert_eq!(echoed("", &["fake/echo", "--value", "5"]), json!(5));
    assert_eq!(echoed("", &["fake/echo", "--value", "five"]), json!("five"));
    assert_eq!(echoed("", &["fake/echo", "--value={\"a\":[]}"]), json!({ "a": [] }));
}

#[test]
fn ctrl_c_cancels_the_call_at_the_server() {
    let rig = Rig::start();
    let socket = rig.daemon.control().display().to_string();
    let arguments = ["call", "--socket", &socket, "fake/hold", "{\"key\":\"k\"}"];
    let mut call = daemon::command(&arguments).stderr(Stdio::null()).spawn().expect("it starts");
    assert_eq!(rig.run(&["call", "fake/held", "{\"at_least\":1}"]).0, 0);

    daemon::signal(call.id(), Signal::INT);

    let status = exit_in_time(&mut call).expect("it ends");
    assert_eq!(status.code(), Some(130));
    let (code, seen, _) = rig.run(&["call", "fake/seen", "{\"cancelled\":1}"]);
    assert_eq!(code, 0, "{seen}");
}

#[test]
fn killing_the_command_cancels_the_call_at_the_server() {
    let rig = Rig::start();
    let socket = rig.daemon.control().display().to_string();
    let arguments = ["call", "--socket", &socket, "fake/hold", "{\"key\":\"k\"}"];
    let mut call = daemon::command(&arguments).stderr(Stdio::null()).spawn().expect("it starts");
    assert_eq!(rig.run(&["call", "fake/held", "{\"at_least\":1}"]).0, 0);

    daemon::signal(call.id(), Signal::KILL);
    exit_in_time(&mut call).expect("it ends");

    assert_eq!(rig.run(&["call", "fake/seen", "{\"cancelled\":1}"]).0, 0);
}
