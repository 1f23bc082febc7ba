//! The words of the code: type names say what they are, each once, and comments are plain English.
//! `src/lib.rs` has the terminology.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Names that several modules may give to a type of their own.
const SHARED_NAMES: [&str; 3] = ["Args", "Config", "Error"];

/// Words that say nothing as a type's whole name.
const EMPTY_NAMES: [&str; 40] = [
    "Answer", "Asked", "Came", "Data", "Entry", "Event", "Found", "Given", "Item", "Kind", "Known",
    "Manner", "Name", "Next", "Part", "Parts", "Place", "Plan", "Record", "Request", "Said",
    "Shown", "Source", "State", "Step", "Sort", "Table", "Taken", "Then", "Thing", "Told", "Type",
    "Value", "Wanted", "Way", "What", "Where", "Word", "Worth", "Wrong",
];

/// Words that no doc comment begins with: the first line is a noun phrase or a verb.
const FORBIDDEN_OPENINGS: [&str; 12] = [
    "What",
    "Who",
    "Whose",
    "Whom",
    "Which",
    "How",
    "Of",
    "For what",
    "That",
    "Where",
    "Whether",
    "Tells whether",
];

/// Words that no comment contains: they hide the actor.
const FORBIDDEN_WORDS: [&str; 4] = ["nobody", "somebody", "whoever", "whomever"];

/// Phrases that no message, comment or page contains: translated from another language, or unclear.
const FORBIDDEN_PHRASES: [&str; 11] = [
    "mend these",
    "mend the",
    "it is a comment",
    "is no json",
    "is no object",
    "is no option",
    "is no plain",
    "that can be passed",
    "a time that can be",
    "last words",
    "of whom",
];

/// Headings that say nothing about their column.
const EMPTY_HEADINGS: [&str; 4] = ["IS", "BY", "WHAT", "OF"];

/// Words that no test name begins with: a test name is a sentence about an actor.
const FORBIDDEN_TEST_OPENINGS: [&str; 12] = [
    "it", "what", "whatever", "who", "whoever", "whose", "which", "how", "of", "that", "where",
    "whether",
];

/// The list of stop words, which are data.
const STOP_WORDS: &str = "src/search/stemmer.rs";

/// Adds the Rust files below `path`.
fn add_files(path: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(path).expect("the tests run in the package's directory") {
        let path = entry.expect("readable").path();
        if path.is_dir() && !path.ends_with("target") {
            add_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the text of each Rust file below `directories`, by path.
fn texts(directories: &[&str]) -> BTreeMap<PathBuf, String> {
    let mut files = Vec::new();
    for directory in directories {
        add_files(Path::new(directory), &mut files);
    }
    files.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("text"))).collect()
}

/// Returns the name of the type that a line declares for other modules.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = rest.strip_prefix('(').map_or(Some(rest), |rest| Some(rest.split_once(')')?.1))?;
    let mut words = rest.split_whitespace();
    let is_type = matches!(words.next()?, "struct" | "enum" | "trait" | "type" | "union");
    let name = words.next().filter(|_| is_type)?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

#[test]
fn public_types_have_names_that_are_unique_and_say_what_they_are() {
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in texts(&["src"]) {
        for name in text.lines().filter_map(public_type) {
            types.entry(name.to_owned()).or_default().push(path.display().to_string());
        }
    }
    assert!(types.len() > 500, "{} types found", types.len());
    types.retain(|name, _| !SHARED_NAMES.contains(&name.as_str()));
    let twice: Vec<_> = types.iter().filter(|(_, paths)| paths.len() > 1).collect();
    assert!(twice.is_empty(), "types of one name: {twice:#?}");
    let empty: Vec<_> =
        types.iter().filter(|(name, _)| EMPTY_NAMES.contains(&name.as_str())).collect();
    assert!(empty.is_empty(), "names that say nothing alone: {empty:#?}");
}

/// Returns the comments of a file, each with the number of its line and whether it begins a block
/// of documentation.
fn comments(text: &str) -> Vec<(usize, bool, &str)> {
    let mut found = Vec::new();
    let mut was_doc = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        if let Some(comment) = doc.or_else(|| line.strip_prefix("//")) {
            found.push((index + 1, doc.is_some() && !was_doc, comment.trim()));
        }
        was_doc = doc.is_some();
    }
    found
}

/// Returns `true` if `text` has `word` as a word of its own.
fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|found| found.eq_ignore_ascii_case(word))
}

/// Returns what is wrong with a comment, if anything is.
fn fault(comment: &str, is_opening: bool) -> Option<String> {
    let opens_with = |word: &&&str| {
        comment.strip_prefix(**word).is_some_and(|rest| rest.starts_with([' ', ',']))
    };
    if let Some(word) = FORBIDDEN_OPENINGS.iter().filter(|_| is_opening).find(opens_with) {
        return Some(format!("begins with `{word}`"));
    }
    if let Some(word) = FORBIDDEN_WORDS.iter().find(|word| has_word(comment, word)) {
        return Some(format!("says `{word}`"));
    }
    let mut words = comment.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    while let Some(word) = words.next() {
        let cites = word.eq_ignore_ascii_case("seed") || word.eq_ignore_ascii_case("ruling");
        if cites && words.clone().next().is_some_and(is_number) {
            return Some("cites what is not in the repository".to_owned());
        }
    }
    None
}

#[test]
fn comments_open_plainly_and_cite_only_what_a_reader_can_open() {
    let mut wrong = Vec::new();
    for (path, text) in texts(&["src", "tests"]) {
        for (line, is_opening, comment) in comments(&text) {
            if let Some(fault) = fault(comment, is_opening) {
                wrong.push(format!("{}:{line}: {fault}: {comment}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} comments: {wrong:#?}", wrong.len());
}

#[test]
fn messages_name_the_actor() {
    let mut wrong = Vec::new();
    for (path, text) in texts(&["src"]) {
        for (index, line) in text.lines().enumerate().filter(|_| path != Path::new(STOP_WORDS)) {
            if let Some(word) = FORBIDDEN_WORDS.iter().find(|word| has_word(line, word)) {
                wrong.push(format!("{}:{}: says `{word}`", path.display(), index + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Adds the files of the documentation below `path`.
fn add_pages(path: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(path).expect("the tests run in the package's directory") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            add_pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

#[test]
fn messages_and_pages_are_plain_english() {
    let mut files = vec![PathBuf::from("README.md"), PathBuf::from("src/meta/metatools.json")];
    add_pages(Path::new("docs"), &mut files);
    add_files(Path::new("src"), &mut files);
    let mut wrong = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("text");
        for (index, line) in text.lines().enumerate() {
            if let Some(fault) = unclear(line) {
                wrong.push(format!("{}:{}: {fault}", path.display(), index + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns the phrase or the heading of a line that a reader cannot understand, if any.
fn unclear(line: &str) -> Option<String> {
    let lower = line.to_lowercase();
    let is_said = |phrase: &&&str| {
        let at = lower.find(**phrase);
        // `recommend these` is a different word.
        at.is_some_and(|at| !lower[..at].ends_with(char::is_alphanumeric))
    };
    let phrase = FORBIDDEN_PHRASES.iter().find(is_said).map(|found| format!("says `{found}`"));
    let is_heading = |heading: &&&str| line.contains(&format!("\"{heading}\""));
    let heading = EMPTY_HEADINGS.iter().find(is_heading);
    phrase.or_else(|| heading.map(|found| format!("has the heading `{found}`")))
}

/// Returns the names of the functions that a file marks as tests.
fn test_names(text: &str) -> impl Iterator<Item = &str> {
    let marks = ["#[test]", "#[tokio::test"];
    marks.into_iter().flat_map(|mark| text.split(mark).skip(1)).filter_map(|rest| {
        let (_, function) = rest.split_once("fn ")?;
        function.split(|c: char| !c.is_alphanumeric() && c != '_').next()
    })
}

#[test]
fn names_of_tests_are_sentences_about_an_actor() {
    let (mut n_tests, mut wrong) = (0, Vec::new());
    for (path, text) in texts(&["src", "tests"]) {
        for name in test_names(&text) {
            n_tests += 1;
            let opening = name.split('_').next().unwrap_or_default();
            if FORBIDDEN_TEST_OPENINGS.contains(&opening)
                || name.split('_').any(|word| FORBIDDEN_WORDS.contains(&word))
            {
                wrong.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(n_tests > 1000, "{n_tests} tests found");
    assert!(wrong.is_empty(), "{} names: {wrong:#?}", wrong.len());
}

#[test]
fn a_comment_that_breaks_a_rule_is_found() {
    for (comment, is_opening) in [
        ("What a server says.", true),
        ("Tells whether it is open.", true),
        ("Waits until somebody comes.", false),
        ("Source: seed 004.", false),
        ("As ruling 7 has it.", false),
    ] {
        assert!(fault(comment, is_opening).is_some(), "{comment}");
    }
    for (comment, is_opening) in [
        ("Whatever the server says.", true),
        ("What a server says.", false),
        ("The seed of the generator, 7 by default.", true),
    ] {
        assert_eq!(fault(comment, is_opening), None, "{comment}");
    }
    for line in ["Mend these, then call again", "`x` is no JSON object", "[\"NAME\", \"IS\"]"] {
        assert!(unclear(line).is_some(), "{line}");
    }
    assert_eq!(unclear("We recommend these."), None);
    assert_eq!(public_type("    pub(super) struct TermWeight<'a> {"), Some("TermWeight"));
    assert_eq!(public_type("pub fn type_of() {"), None);
    let tests = "#[test]\nfn a() {}\n#[tokio::test(start_paused = true)]\nasync fn b_c() {}";
    assert!(["a", "b_c"].iter().all(|name| test_names(tests).any(|found| found == *name)));
}

/// Returns the calls of logging macros in a source text, each up to its end.
fn log_calls(text: &str) -> impl Iterator<Item = &str> {
    text.split("tracing::").skip(1).filter_map(|rest| {
        let level = ["error!(", "warn!(", "info!(", "debug!(", "trace!("];
        level.iter().any(|level| rest.starts_with(level)).then_some(())?;
        // The text of a line is its last literal, before the end of the call.
        Some(&rest[..rest.find(");").or_else(|| rest.find("),"))?])
    })
}

#[test]
fn the_text_of_a_log_line_about_a_server_names_the_server() {
    let mut files = Vec::new();
    add_files(Path::new("src"), &mut files);
    let (mut n_calls, mut wrong) = (0, Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).expect("readable");
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for call in log_calls(text).filter(|call| call.contains("mcp_server")) {
            n_calls += 1;
            let names = ["server `{", "server `{}`", "at `{server}`", "\"{server}: {"];
            if !names.iter().any(|name| call.contains(name)) {
                wrong.push(format!("{}: {call}", file.display()));
            }
        }
    }
    assert!(n_calls > 50, "the calls are found: {n_calls}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
