//! Programs that try to leave the sandbox of scripts, to exhaust it, or to confuse the service.
//!
//! Each is a file of `tests/escapes`: its first lines say what it attempts and what must happen.
//! `METAMCP_ESCAPES=memory/ cargo test --test behaviour escapes` runs those whose path begins so.

use std::path::Path;

use futures_util::{StreamExt as _, stream};
use serde_json::json;

use crate::harness::{
    daemon::Daemon,
    escape_program::{
        ESCAPE_LIMITS, EscapeProgram, PARALLEL_MAX, ServiceUnderTest, all_sandboxes_end,
    },
    fake::Fakes,
    script::execute_section,
};

/// The directory of the programs.
const DIRECTORY: &str = "tests/escapes";

/// The number of programs at least.
const PROGRAMS_MIN: usize = 120;

/// Returns the configuration of the service.
fn limited() -> String {
    execute_section().to_owned() + ESCAPE_LIMITS
}

#[tokio::test]
async fn every_program_is_contained_and_the_service_serves_all_others() {
    let (fakes, only) = (Fakes::new(), std::env::var("METAMCP_ESCAPES").unwrap_or_default());
    let config = limited() + &fakes.server("fake", &[]) + &fakes.server("calm", &[]);
    let daemon = Daemon::with(config).ready();
    let service = ServiceUnderTest { client: daemon.client("/"), pid: daemon.pid() };
    let mut programs = EscapeProgram::all(Path::new(DIRECTORY));
    programs.retain(|program| program.name.starts_with(&only));
    let (report, failures) = service.run(&programs).await;
    eprintln!("{report}");
    assert!(failures.is_empty(), "{} failures: {failures:#?}", failures.len());
    assert_no_sandbox_failed(&daemon);
}

/// Checks that no sandbox has ended without an answer, after which it is started again.
#[track_caller]
fn assert_no_sandbox_failed(daemon: &Daemon) {
    let log = daemon.log();
    assert!(!log.contains("the sandbox of a script"), "{log}");
}

/// The largest code of a script, in bytes.
const CODE_BYTES_MAX: usize = 50 << 10;

/// Returns `opening` as often as it fits into a script with its `closing`, with `middle` between.
fn nested(opening: &str, middle: &str, closing: &str) -> String {
    let room = CODE_BYTES_MAX - middle.len() - "return ".len();
    let n_levels = room / (opening.len() + closing.len());
    format!("{}{middle}{}", opening.repeat(n_levels), closing.repeat(n_levels))
}

/// Returns the largest scripts of their kinds.
fn large_codes() -> Vec<String> {
    let expressions = [
        ("[", "1", "]"),
        ("(", "1", ")"),
        ("{a:", "1", "}"),
        ("`${", "1", "}`"),
        ("x=>", "1", ""),
        ("async x=>await ", "1", ""),
        ("(function(){return ", "1", "})()"),
        ("class{static x=", "1", "}"),
        ("class extends ", "Object", "{}"),
        ("new ", "Object", ""),
        ("!", "1", ""),
        ("- ", "1", ""),
        ("typeof ", "1", ""),
        ("await ", "1", ""),
        ("void ", "1", ""),
        ("1?", "1", ":1"),
        ("1?1:", "1", ""),
        ("1+", "1", ""),
        ("2**", "1", ""),
        ("1,", "1", ""),
        ("1??", "1", ""),
        ("a=", "1", ""),
        ("[...", "[]", "]"),
        ("({...", "{}", "})"),
        ("Object.", "x", ""),
        ("Object?.", "x", ""),
        ("", "Object", "()"),
        ("", "Object", "[0]"),
        ("", "Object", "``"),
        ("/(?:", "a", ")/"),
        ("", "/a", "(?=a)/"),
        ("'", "x", "'"),
        ("1", "", ""),
        ("1", "n", ""),
        ("\\u{61}", "", ""),
        ("(x=", "1", ")=>1"),
        ("#", "x", ""),
        ("import(", "1", ")"),
    ];
    let statements = [
        ("{", ";", "}"),
        ("if(1)", ";", ""),
        ("if(0);else ", ";", ""),
        ("for(;0;)", ";", ""),
        ("while(0)", ";", ""),
        ("do ", ";", "while(0)"),
        ("try{", "", "}finally{}"),
        ("switch(1){default:", "", "}"),
        ("function f(){", "", "}"),
        ("async function*f(){", "", "}"),
        ("class A{static{", "", "}}"),
        (";", "", ""),
        ("\n", "return 1", ""),
        ("//", "", "\n"),
        ("/*", "", "*/"),
        ("\u{2028}", "", ""),
        ("\u{feff}", "", ""),
        ("var a;", "", ""),
        ("0;", "", ""),
        ("debugger;", "", ""),
        ("}", "", ""),
        (")", "", ""),
        ("]", "", ""),
        ("`", "", ""),
        ("\\", "", ""),
        ("\u{0}", "", ""),
        ("\u{10ffff}", "", ""),
    ];
    let numbered = |text: fn(usize) -> String| -> String {
        let mut all = String::new();
        for part in (0..).map(text) {
            if all.len() + part.len() > CODE_BYTES_MAX {
                break;
            }
            all += &part;
        }
        all
    };
    let expression =
        |(opening, middle, closing)| format!("return {}", nested(opening, middle, closing));
    let expressions = expressions.into_iter().map(expression);
    let statements =
        statements.into_iter().map(|(opening, middle, closing)| nested(opening, middle, closing));
    let others = [
        numbered(|n| format!("let a{n}={n};")),
        numbered(|n| format!("a{n}:")),
        numbered(|n| format!("var b{n}=()=>b{n};")),
        numbered(|n| format!("class C{n}{{#c{n}}}")),
        format!("/{}/", numbered(|n| format!("(?<n{n}>a)")).split_at(CODE_BYTES_MAX / 2).0),
        format!("\u{feff}return '{}'", "\u{e9}".repeat(20_000)),
        format!("return {{{}}}", "a:1,".repeat(12_000)),
        format!("f({}1)", "1,".repeat(25_000)),
        format!("{}0", " ".repeat(CODE_BYTES_MAX - 1)),
        "\0".to_owned(),
        "return 1;\0 return 2".to_owned(),
    ];
    expressions.chain(statements).chain(others).collect()
}

#[tokio::test]
async fn the_largest_code_of_each_kind_runs_or_fails_with_its_error() {
    let daemon = Daemon::with(limited()).ready();
    let client = &daemon.client("/meta").initialized().await;
    let codes = large_codes();
    assert!(codes.iter().all(|code| code.len() <= CODE_BYTES_MAX), "the code fits");
    let runs = codes.iter().map(async |code| {
        let answer = client.tool("mcp_execute", json!({ "code": code })).await.answer();
        let result = &answer["result"];
        let error = result["structuredContent"]["error"]["code"].as_str().unwrap_or_default();
        let is_blank = code.trim().is_empty() && answer["error"]["code"] == -32602;
        let is_typed = is_blank || ["script_failed", "limit_exceeded"].contains(&error);
        let head: String = code.chars().take(40).collect();
        assert!(result["isError"] == false || is_typed, "{head}: {answer}");
    });
    stream::iter(runs).buffered(PARALLEL_MAX).collect::<Vec<()>>().await;
    let code = format!("0{}", " ".repeat(CODE_BYTES_MAX));
    let answer = client.tool("mcp_execute", json!({ "code": code })).await.answer();
    let error = &answer["result"]["structuredContent"]["error"];
    assert_eq!(
        (&error["code"], &error["details"]["limit"]),
        (&json!("limit_exceeded"), &json!("code"))
    );
    // A text with half of a character is not a text in any programming language but one.
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp_execute","arguments":{"code":"return '\ud800'"}}}"#;
    let answer = client.post(call).await.answer();
    assert!(answer["error"].is_object() || answer["result"]["isError"] == true, "{answer}");
    all_sandboxes_end(daemon.pid()).await;
    assert_no_sandbox_failed(&daemon);
}

#[test]
fn each_program_says_what_it_attempts_and_what_must_happen() {
    let programs = EscapeProgram::all(Path::new(DIRECTORY));
    assert!(programs.len() >= PROGRAMS_MIN, "{} programs", programs.len());
    for EscapeProgram { name, code, .. } in programs {
        assert!(code.lines().any(|line| line.starts_with("// Contained: ")), "{name}");
    }
}
