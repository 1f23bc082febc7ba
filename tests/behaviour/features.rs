//! `tests/FEATURES.md` has an entry for each behaviour, with the tests that show it or a reason.

use std::{collections::BTreeMap, fs};

/// The series of IDs, each with its highest number so far. A series only grows.
const SERIES: [(&str, usize); 13] = [
    ("CLIENT", 11),
    ("META", 61),
    ("CB", 24),
    ("MUX", 74),
    ("TOOLS", 49),
    ("MODERN", 16),
    ("PIN", 27),
    ("C", 32),
    ("SAFE", 22),
    ("ADD", 1),
    ("DOCS", 1),
    ("PACK", 5),
    ("OBS", 34),
];

/// The words that begin a reason. The text after them says why no test shows the behaviour.
const REASONS: [&str; 3] = ["not built: ", "differs: ", "not ours: "];

/// Directories whose functions no test run calls.
const WITHOUT_TESTS: [&str; 3] = ["tests/bench/", "tests/fuzz/", "tests/harness/"];

/// An entry of `tests/FEATURES.md`.
struct FeatureEntry {
    id: String,
    behaviour: String,
    /// Each is `` `file`: test `` or a reason.
    proofs: Vec<String>,
}

/// Reads the page: `- BEHAVIOUR (ID)`, below it `  - FILE: TEST; TEST` or `  - REASON`.
fn entries() -> Vec<FeatureEntry> {
    let page = fs::read_to_string("tests/FEATURES.md").expect("readable");
    let mut entries: Vec<FeatureEntry> = Vec::new();
    for line in page.lines() {
        if let Some(line) = line.strip_prefix("- ") {
            let (behaviour, id) = line.rsplit_once(" (").unwrap_or_else(|| panic!("an ID: {line}"));
            let id = id.trim_end_matches(')').to_owned();
            entries.push(FeatureEntry { id, behaviour: behaviour.to_owned(), proofs: Vec::new() });
        } else if let Some(proof) = line.strip_prefix("  - ") {
            let proofs = &mut entries.last_mut().expect("below a behaviour").proofs;
            match proof.split_once("`: ") {
                Some((file, tests)) => {
                    proofs.extend(tests.split("; ").map(|test| format!("{file}`: {test}")));
                }
                None => proofs.push(proof.to_owned()),
            }
        }
    }
    entries
}

#[test]
fn every_behaviour_has_one_entry() {
    let mut numbers: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for entry in entries() {
        let (series, number) = entry.id.split_once('-').unwrap_or_else(|| panic!("{}", entry.id));
        let number = number.parse().unwrap_or_else(|_| panic!("{}", entry.id));
        assert!(!entry.behaviour.is_empty(), "{} has a description", entry.id);
        numbers.entry(series.to_owned()).or_default().push(number);
    }
    for (series, reached) in SERIES {
        let mut found = numbers.remove(series).unwrap_or_default();
        found.sort_unstable();
        let all: Vec<usize> = (1..=found.len().max(reached)).collect();
        assert_eq!(found, all, "{series} has each number once");
    }
    assert!(numbers.is_empty(), "a series that is not listed here: {numbers:?}");
}

#[test]
fn every_behaviour_has_tests_or_a_reason() {
    let mut wrong = Vec::new();
    for entry in entries() {
        if entry.proofs.is_empty() {
            wrong.push(format!("{}: neither a test nor a reason", entry.id));
        }
        for proof in &entry.proofs {
            if let Err(reason) = examine(proof) {
                wrong.push(format!("{}: {proof}: {reason}", entry.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Checks that a proof is a reason or names a test.
fn examine(proof: &str) -> Result<(), &'static str> {
    if let Some(words) = REASONS.iter().find_map(|reason| proof.strip_prefix(reason)) {
        return if words.trim().is_empty() { Err("the reason is empty") } else { Ok(()) };
    }
    let Some((file, name)) = proof.split_once(": ") else {
        return Err("neither a file with a test nor a reason");
    };
    let file = file.trim_matches('`');
    if WITHOUT_TESTS.iter().any(|directory| file.starts_with(directory)) {
        return Err("no test run calls what is in this directory");
    }
    let Ok(text) = fs::read_to_string(file) else { return Err("the file is missing") };
    let is_test = if file.ends_with(".rs") {
        is_test_function(&text, name) || is_test_of_a_macro(&text, name)
    } else {
        is_check(&text, name)
    };
    if is_test { Ok(()) } else { Err("the file has no such test") }
}

/// Returns the name of the function that begins on a line.
fn function(line: &str) -> Option<&str> {
    let line = line.trim();
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")?.split_once('(').map(|(name, _)| name)
}

/// Returns whether the function on line `at` has the attribute of a test and is not ignored.
fn is_marked(lines: &[&str], at: usize) -> bool {
    let before = lines[..at].iter().rev().map(|line| line.trim());
    let attributes: Vec<&str> = before
        .take_while(|line| !line.is_empty() && !line.ends_with(['{', '}', ';']))
        .filter(|line| line.starts_with("#["))
        .collect();
    attributes.iter().any(|line| *line == "#[test]" || line.starts_with("#[tokio::test"))
        && !attributes.iter().any(|line| line.starts_with("#[ignore"))
}

/// Returns whether `name` is a function that a test run calls.
fn is_test_function(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    (0..lines.len()).any(|at| function(lines[at]) == Some(name) && is_marked(&lines, at))
}

/// Returns whether a macro of the file makes tests out of functions, `name` among them.
fn is_test_of_a_macro(text: &str, name: &str) -> bool {
    let is_defined = text.lines().any(|line| function(line) == Some(name));
    let Some((_, made)) = text.split_once("macro_rules!") else { return false };
    let lines: Vec<&str> = made.lines().collect();
    let makes_tests = (0..lines.len()).any(|at| {
        function(lines[at]).is_some_and(|name| name.starts_with('$')) && is_marked(&lines, at)
    });
    let mut words = made.split(|c: char| !c.is_alphanumeric() && c != '_');
    is_defined && makes_tests && words.any(|word| word == name)
}

/// Returns whether a script has a check whose sentence begins with `name`.
fn is_check(text: &str, name: &str) -> bool {
    let sentence = format!("\"{name}");
    text.lines().any(|line| !line.trim_start().starts_with('#') && line.contains(&sentence))
}

#[test]
fn only_test_functions_count_as_proof() {
    let text = "
        fn helper() {}

        #[test]
        fn plain() {}

        /// A document.
        #[tokio::test(start_paused = true)]
        #[expect(
            clippy::too_many_lines,
        )]
        async fn attributed() {}
        fn follows() {}

        #[test]
        #[ignore = \"slow\"]
        fn ignored() {}

        // #[test]
        // fn disabled() {}

        proptest! {
            #[test]
            fn property(number: u8) {}
        }
    ";
    let names =
        ["plain", "attributed", "property", "helper", "follows", "ignored", "disabled", "none"];
    let tests: Vec<&str> = names.into_iter().filter(|name| is_test_function(text, name)).collect();
    assert_eq!(tests, ["plain", "attributed", "property"]);

    let text = "
        async fn cell(of: Cell) {}
        async fn other(of: Cell) {}
        macro_rules! table {
            ($($name:ident)*) => {$(
                #[tokio::test]
                async fn $name() {}
            )*};
        }
        table! { cell }
    ";
    assert!(is_test_of_a_macro(text, "cell") && !is_test_of_a_macro(text, "other"));
    assert!(!is_test_of_a_macro(&text.replace("#[tokio::test]", ""), "cell"));

    assert!(is_check("matches \"it starts\" x y", "it starts"));
    assert!(!is_check("# matches \"it starts\" x y", "it starts"));

    assert!(examine("not built: https is not spoken yet").is_ok());
    for proof in ["not built: ", "later", "`tests/bench/soak.rs`: is_passed", "`none.rs`: a"] {
        assert!(examine(proof).is_err(), "{proof}");
    }
}
