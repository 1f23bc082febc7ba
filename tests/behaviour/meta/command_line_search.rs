//! `metamcp search` and `metamcp grep`.

use serde_json::Value;

use crate::harness::{
    daemon::{self, Daemon},
    fake::Fakes,
};

const BROKEN: &str = "[servers.broken]\ncommand = \"/no/such/program\"\n";

fn run(daemon: &Daemon, arguments: &[&str]) -> (i32, String, String) {
    let socket = daemon.control().display().to_string();
    daemon::run(&[arguments, &["--socket", &socket]].concat())
}

fn json(daemon: &Daemon, arguments: &[&str]) -> Value {
    let (code, stdout, stderr) = run(daemon, &[arguments, &["--json"]].concat());
    assert_eq!(code, 0, "{stderr}");
    serde_json::from_str(&stdout).expect(&stdout)
}

fn names(found: &Value) -> Vec<String> {
    let tools = found["tools"].as_array().expect("tools").iter();
    tools.map(|tool| format!("{}/{}", tool["server"], tool["tool"]).replace('"', "")).collect()
}

#[test]
fn search_finds_tools_by_their_purpose() {
    let fakes = Fakes::new();
    let config = fakes.server("one", &["--rich"]) + &fakes.server("two", &[]) + BROKEN;
    let daemon = Daemon::with(config).ready();

    let (code, stdout, stderr) = run(&daemon, &["search", "rows", "of", "the inventory"]);
    assert_eq!(code, 0, "{stderr}");
    let first = stdout.lines().next().expect("a tool");
    assert!(first.contains("one/rows") && first.contains("Reads rows of a table"), "{stdout}");
    assert!(stderr.contains("not searched: broken: "), "{stderr}");

    let found = json(&daemon, &["search", "count an execution", "--limit", "2"]);
    assert_eq!(found["tools"].as_array().map(Vec::len), Some(2));
    assert_eq!(found["hasMore"], true);
    assert_eq!(found["unavailable"][0]["server"], "broken");
    let of_two = json(&daemon, &["search", "count an execution", "--server", "two"]);
    assert!(names(&of_two).iter().all(|name| name.starts_with("two/")), "{of_two}");
    assert_eq!(names(&of_two)[0], "two/count");
    let (code, stdout, _) = run(&daemon, &["search", "zebra xylophone"]);
    assert_eq!((code, stdout.as_str()), (0, "No tool matches.\n"));
}

#[test]
fn each_strategy_ranks_in_its_own_way_and_the_parts_of_a_score_add_up_to_it() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &["--rich"])).ready();
    let mut scores = Vec::new();
    for strategy in ["keyword", "bm25", "hybrid"] {
        let question = ["search", "rows of a table", "--explain", "--strategy", strategy];
        let found = json(&daemon, &question);
        assert_eq!(names(&found)[0], "one/rows", "{strategy}");
        for tool in found["tools"].as_array().expect("tools") {
            let score = tool["score"].as_f64().expect("a score");
            let parts = tool["explanation"]["parts"].as_array().expect("parts");
            let sum: f64 = parts.iter().map(|part| part["score"].as_f64().expect("a score")).sum();
            assert!((score - sum).abs() < 1e-6 && !parts.is_empty(), "{strategy}: {tool}");
        }
        scores.push(found["tools"][0]["score"].to_string());
        let (_, stdout, _) = run(&daemon, &question);
        assert!(stdout.lines().nth(1).is_some_and(|line| line.starts_with("  ")), "{stdout}");
    }
    scores.dedup();
    assert_eq!(scores.len(), 3, "{scores:?}");
    let (_, plain, _) = run(&daemon, &["search", "rows of a table"]);
    assert!(
        plain.lines().all(|line| line.contains("one/")),
        "no explanations without --explain: {plain}"
    );
}

#[test]
fn grep_finds_tools_by_pattern() {
    let fakes = Fakes::new();
    let config = fakes.server("one", &["--rich"]) + &fakes.server("two", &[]);
    let daemon = Daemon::with(config).ready();

    let names = |found: &Value| {
        let items = found.as_array().expect("a list").iter();
        let name = |item: &Value| format!("{}/{}", item["server"], item["tool"]["name"]);
        items.map(|item| name(item).replace('"', "")).collect::<Vec<_>>()
    };
    let found = json(&daemon, &["grep", "^ONE/(rows|echo)$"]);
    assert_eq!(names(&found), ["one/echo", "one/rows"]);
    // In the basic grammar of `grep`.
    assert_eq!(json(&daemon, &["grep", r"^one/\(rows\|echo\)$"]), found);
    assert_eq!(names(&json(&daemon, &["grep", "of the inventory"])), ["one/rows"]);
    let (code, stdout, _) = run(&daemon, &["grep", "byte for byte"]);
    assert_eq!(code, 0);
    assert_eq!(
        stdout,
        "one/echo  Returns `value`, byte for byte.\ntwo/echo  Returns `value`, byte for byte.\n"
    );
    let (_, stdout, stderr) = run(&daemon, &["grep", "o", "--limit", "1"]);
    assert_eq!(stdout.lines().count(), 1);
    assert!(stderr.contains("There are more tools: "), "{stderr}");
}

#[test]
fn each_mistake_is_shown_and_has_its_exit_code() {
    let fakes = Fakes::new();
    let daemon = Daemon::with(fakes.server("one", &[])).ready();

    let (code, stdout, stderr) = run(&daemon, &["grep", "row(s"]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    let lines: Vec<&str> = stderr.lines().collect();
    let at = lines.iter().position(|line| line.trim() == "row(s").expect("the pattern is shown");
    let column = |line: &str, mark| line.find(mark).expect("a mark");
    assert_eq!(column(lines[at + 1], '^'), column(lines[at], '('), "{stderr}");
    assert!(stderr.contains("hint: "), "{stderr}");

    let (code, _, stderr) = run(&daemon, &["search", "x", "--server", "oen"]);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("oen") && stderr.contains("`one`"), "{stderr}");
    for arguments in [
        &["search"][..],
        &["grep"],
        &["search", "x", "--strategy", "best"],
        &["search", "x", "--limit", "0"],
        &["grep", "x", "--limit", "101"],
    ] {
        assert_eq!(run(&daemon, arguments).0, 64, "{arguments:?}");
    }
    for command in ["search", "grep"] {
        let (code, _, stderr) = daemon::run(&[command, "x", "--socket", "/no/such/socket"]);
        assert_eq!(code, 69);
        assert!(stderr.contains("no service answers"), "{stderr}");
    }
}
