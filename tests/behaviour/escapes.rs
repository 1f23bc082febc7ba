//! Programs that try to leave the sandbox of scripts, to exhaust it, or to confuse the service.
//!
//! Each is a file of `tests/escapes`: its first lines say what it attempts and what must happen.
//! `METAMCP_ESCAPES=memory/ cargo test --test behaviour escapes` runs those whose path begins so.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    harness::{DEADLINE, client::Client, daemon::Daemon, fake::Fakes, script::execute_section},
    until,
};

/// The limits of the service: smaller ones are reached sooner.
const LIMITS: &str = "timeout = \"20s\"
    memory_bytes_max = 16777216
    output_bytes_max = 1048576\n";

/// The directory of the programs.
const DIRECTORY: &str = "tests/escapes";

/// The number of programs at least.
const PROGRAMS_MIN: usize = 120;

/// The programs that run at the same time. The service runs eight.
const PARALLEL_MAX: usize = 4;

/// The most bytes of the answer to a program that fails: those of a preview, and some more.
const ERROR_BYTES_MAX: usize = 96 << 10;

/// The largest growth of the service while all programs run, in bytes.
const GROWTH_BYTES_MAX: u64 = 128 << 20;

/// The longest time that a call of another client takes meanwhile.
const LATENCY_MAX: Duration = Duration::from_secs(5);

/// A program of the corpus.
#[derive(Debug)]
struct EscapeProgram {
    name: String,
    family: String,
    code: String,
    expectation: ProgramExpectation,
    arguments: Value,
}

/// The outcome that a program must have.
#[derive(Debug)]
enum ProgramExpectation {
    /// It returns this value.
    Value(Value),
    /// It fails with this code, and these details.
    Error(String, Vec<(String, String)>),
}

impl EscapeProgram {
    /// Reads a program and the directives in its first lines.
    fn read(path: &Path) -> Self {
        let code = fs::read_to_string(path).expect("a program is UTF-8");
        let within = path.strip_prefix(DIRECTORY).expect("it is below").display().to_string();
        let (family, _) = within.split_once('/').expect("a program is in a family");
        let mut head = code.lines().map_while(|line| line.strip_prefix("//")).map(str::trim);
        let opening = head.next().unwrap_or_default();
        assert!(opening.starts_with("Attempt: "), "{within} does not begin with its attempt");
        let (mut expectation, mut arguments) = (None, json!({}));
        for line in head {
            match line.split_once(": ") {
                Some(("expect", expected)) => {
                    let read = ProgramExpectation::read(expected);
                    let read = read.unwrap_or_else(|| panic!("{within}: `{expected}`"));
                    assert!(expectation.replace(read).is_none(), "{within} expects two outcomes");
                }
                Some((name @ ("timeout_ms" | "max_tool_calls"), value)) => {
                    arguments[name] = serde_json::from_str(value).expect("a number");
                }
                _ => {}
            }
        }
        let expectation = expectation.unwrap_or_else(|| panic!("{within} expects nothing"));
        Self { family: family.to_owned(), name: within, code, expectation, arguments }
    }

    /// Runs the program. Returns what is wrong with its outcome, if anything is.
    async fn run(&self, client: &Client) -> Result<Duration, String> {
        let since = Instant::now();
        let mut arguments = self.arguments.clone();
        arguments["code"] = json!(self.code);
        let reply = client.tool("mcp_execute", arguments).await;
        let wrong = |what: &str| {
            let body: String = reply.body.chars().take(600).collect();
            Err(format!("{}: {what}, expected {:?}: {body}", self.name, self.expectation))
        };
        // A long call is answered over a stream.
        let answer = reply.answer();
        let (result, error) = (&answer["result"], &answer["result"]["structuredContent"]["error"]);
        let is_expected = match &self.expectation {
            ProgramExpectation::Value(value) => {
                result["isError"] == false && &result["structuredContent"]["value"] == value
            }
            ProgramExpectation::Error(code, details) => {
                let has = |(name, value): &(String, String)| error["details"][name] == **value;
                result["isError"] == true && error["code"] == *code && details.iter().all(has)
            }
        };
        match is_expected {
            _ if !error.is_null() && reply.body.len() > ERROR_BYTES_MAX => wrong("a huge error"),
            true => Ok(since.elapsed()),
            false => wrong("another outcome"),
        }
    }
}

impl ProgramExpectation {
    fn read(text: &str) -> Option<Self> {
        if let Some(value) = text.strip_prefix("value ") {
            return serde_json::from_str(value).ok().map(Self::Value);
        }
        let mut words = text.strip_prefix("error ")?.split(' ');
        let code = words.next()?.to_owned();
        let detail = |word: &str| {
            let (name, value) = word.strip_prefix("details.")?.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        Some(Self::Error(code, words.map(detail).collect::<Option<_>>()?))
    }
}

/// Returns the configuration of the service.
fn limited() -> String {
    execute_section().to_owned() + LIMITS
}

/// Returns all programs, by family and name.
fn programs() -> Vec<EscapeProgram> {
    let entries = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).expect("the tests run in the package's directory");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
        paths.sort();
        paths
    };
    let families = entries(Path::new(DIRECTORY)).into_iter().filter(|path| path.is_dir());
    let files = families.flat_map(|family| entries(&family));
    files.map(|path| EscapeProgram::read(&path)).collect()
}

/// Returns the processes of sandboxes that the service has.
fn sandboxes(daemon: &Daemon) -> Vec<String> {
    let parent = daemon.pid();
    let entries = fs::read_dir("/proc").expect("there is procfs").flatten();
    let is_sandbox = |path: &PathBuf| {
        let read = |name: &str| fs::read_to_string(path.join(name)).unwrap_or_default();
        let is_child = read("status").lines().any(|line| line == format!("PPid:\t{parent}"));
        is_child && read("stat").contains("(metamcp)")
    };
    entries.map(|entry| entry.path()).filter(is_sandbox).map(|p| p.display().to_string()).collect()
}

/// Returns the resident memory of the service, in bytes.
fn resident_bytes(daemon: &Daemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// Calls a tool of another server again and again. Returns the longest time of a call.
async fn call_until(client: &Client, is_over: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    for n in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let since = Instant::now();
        assert_eq!(client.call("echo", json!({ "value": n })).await, json!({ "value": n }));
        longest = longest.max(since.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    longest
}

#[tokio::test]
async fn every_program_is_contained_and_the_service_serves_all_others() {
    let (fakes, only) = (Fakes::new(), std::env::var("METAMCP_ESCAPES").unwrap_or_default());
    let config = limited() + &fakes.server("fake", &[]) + &fakes.server("calm", &[]);
    let daemon = Daemon::with(config).ready();
    let client = daemon.client("/meta").initialized().await;
    let calm = daemon.client("/servers/calm").initialized().await;
    client.tool("mcp_execute", json!({ "code": "await servers.fake.whoami({})" })).await.answer();
    calm.call("whoami", json!({})).await;
    let before = resident_bytes(&daemon);
    let programs: Vec<_> =
        programs().into_iter().filter(|program| program.name.starts_with(&only)).collect();
    let (mut failures, mut report) = (Vec::new(), String::new());
    for family in programs.chunk_by(|one, other| one.family == other.family) {
        let (since, is_over) = (Instant::now(), AtomicBool::new(false));
        let run = async {
            let runs = family.iter().map(|program| program.run(&client));
            let outcomes: Vec<_> = stream::iter(runs).buffered(PARALLEL_MAX).collect().await;
            is_over.store(true, Ordering::Relaxed);
            outcomes
        };
        let all = async { tokio::join!(run, call_until(&calm, &is_over)) };
        let (outcomes, latency) = tokio::time::timeout(3 * DEADLINE, all).await.expect("in time");
        let name = &family[0].family;
        for (program, outcome) in family.iter().zip(outcomes) {
            match outcome {
                Ok(took) if took > Duration::from_millis(1500) => {
                    report += &format!("\n  {}: {took:?}", program.name);
                }
                Ok(_) => {}
                Err(failure) => failures.push(failure),
            }
        }
        report += &format!("\n{name}: {} in {:?}", family.len(), since.elapsed());
        assert!(latency < LATENCY_MAX, "during {name}, a call took {latency:?}");
        until(async || sandboxes(&daemon).is_empty()).await;
        let called = json!({ "server": "fake", "tool": "echo", "args": { "value": name } });
        assert_eq!(client.call("mcp_call", called).await, json!({ "value": name }));
    }
    eprintln!("{report}");
    assert!(failures.is_empty(), "{} programs: {failures:#?}", failures.len());
    let after = resident_bytes(&daemon);
    assert!(after < before + GROWTH_BYTES_MAX, "the service grew from {before} to {after} bytes");
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
    // A text with half of a character is no text in any programming language but one.
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp_execute","arguments":{"code":"return '\ud800'"}}}"#;
    let answer = client.post(call).await.answer();
    assert!(answer["error"].is_object() || answer["result"]["isError"] == true, "{answer}");
    until(async || sandboxes(&daemon).is_empty()).await;
    assert_no_sandbox_failed(&daemon);
}

#[test]
fn each_program_says_what_it_attempts_and_what_must_happen() {
    let programs = programs();
    assert!(programs.len() >= PROGRAMS_MIN, "{} programs", programs.len());
    for EscapeProgram { name, code, .. } in programs {
        assert!(code.lines().any(|line| line.starts_with("// Contained: ")), "{name}");
    }
}
