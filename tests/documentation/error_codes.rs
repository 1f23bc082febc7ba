//! Each code that the program uses is in the table of errors, and each code of the table is used.

use std::{collections::BTreeSet, fs, path::Path};

use metamcp::{fault_class::Fault, manual::ERROR_GROUPS, tool::error::ErrorCode};

/// Words in capitals that are no codes: variables, and fields of the journal.
const OTHER_WORDS: &str = include_str!("other-words.txt");

/// The directories that only print codes. Their other words in capitals are columns and arguments.
const PRINTING: [&str; 3] = ["src/cli", "src/doctor", "src/import"];

/// Adds the code of the Rust files below `path`, without tests and comments, except `left_out`.
fn add_code(path: &Path, left_out: &[&str], text: &mut String) {
    for entry in fs::read_dir(path).expect("the tests run in the package's directory") {
        let path = entry.expect("readable").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if left_out.iter().any(|directory| path == Path::new(directory)) {
            continue;
        }
        if path.is_dir() && !matches!(&*name, "tests" | "manual") {
            add_code(&path, left_out, text);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let file = fs::read_to_string(&path).expect("text");
            let code = file.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
}

/// Returns the texts in quotes that are words in capitals of four letters or more.
fn capitals(code: &str) -> BTreeSet<&str> {
    code.split('"')
        .filter(|word| {
            word.len() >= 4
                && word.starts_with(|c: char| c.is_ascii_uppercase())
                && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        })
        .collect()
}

/// Returns the codes in capitals of the table.
fn tabled() -> BTreeSet<&'static str> {
    let codes = ERROR_GROUPS.iter().flat_map(|group| group.entries).map(|entry| entry.code);
    codes.filter(|code| code.starts_with(|c: char| c.is_ascii_uppercase())).collect()
}

#[test]
fn the_table_of_errors_has_each_code_of_the_program_once() {
    let mut code = String::new();
    add_code(Path::new("src"), &PRINTING, &mut code);
    let others: BTreeSet<&str> = OTHER_WORDS.split_whitespace().collect();
    let (used, tabled) = (capitals(&code), tabled());
    let unlisted: Vec<_> =
        used.difference(&tabled).filter(|word| !others.contains(*word)).collect();
    assert!(
        unlisted.is_empty(),
        "not in src/manual/error_table, nor in tests/documentation/other-words.txt: {unlisted:?}"
    );
    let unused: Vec<_> = tabled.difference(&used).collect();
    assert!(unused.is_empty(), "in the table, and not used: {unused:?}");
    assert!(tabled.len() > 150, "{} codes", tabled.len());
    let mut once = BTreeSet::new();
    for group in ERROR_GROUPS {
        for entry in group.entries {
            assert!(once.insert(entry.code) || group.key == "meta-tools", "twice: {}", entry.code);
        }
    }
}

#[test]
fn the_table_of_errors_has_each_code_of_models_and_each_kind_of_failure() {
    let codes = |key: &str| -> Vec<&str> {
        let group = ERROR_GROUPS.iter().find(|group| group.key == key).expect("a group");
        group.entries.iter().map(|entry| entry.code).collect()
    };
    assert_eq!(codes("kinds of failures"), Fault::ALL.map(Fault::name));
    let models = codes("meta-tools");
    assert_eq!(models.len(), 15, "as many as there are variants of `ErrorCode`");
    for code in models {
        let named = ErrorCode::named(code).unwrap_or_else(|| panic!("no code `{code}`"));
        assert_eq!(named.name(), code);
    }
}
