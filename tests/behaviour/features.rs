//! `tests/FEATURES.md` names a test for each behaviour; every one of them exists.

use std::fs;

#[test]
fn every_test_that_is_named_for_a_behaviour_exists() {
    let table = fs::read_to_string("tests/FEATURES.md").expect("readable");
    let mut n_rows = 0;
    let mut missing = Vec::new();
    for row in table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ID")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [id, behaviour, tests] = cells[..] else { panic!("three cells: {row}") };
        assert!(!behaviour.is_empty(), "{id} has words");
        n_rows += 1;
        // `file`: test; several are separated by a line break.
        for test in tests.split("<br>") {
            let (file, name) =
                test.split_once(": ").unwrap_or_else(|| panic!("file and test: {row}"));
            let file = file.trim().trim_matches('`');
            let text = fs::read_to_string(file).unwrap_or_default();
            // A Rust test is a function, a check of a shell script a sentence.
            let is_there = if file.ends_with(".rs") {
                text.contains(&format!("fn {}(", name.trim()))
            } else {
                text.contains(&format!("\"{}", name.trim()))
            };
            if !is_there {
                missing.push(format!("{id}: {test}"));
            }
        }
    }
    assert!(n_rows > 40, "the table is read");
    assert!(missing.is_empty(), "{missing:#?}");
}
