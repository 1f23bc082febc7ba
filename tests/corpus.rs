//! The regression test of the parsers: manual inputs and past findings of the fuzzer.

use std::{fs, panic, path::Path};

#[path = "fuzz/targets/mod.rs"]
mod targets;

#[test]
fn each_corpus_file_passes_the_invariants_of_its_parser() {
    let corpus = Path::new("tests/fuzz/corpus");
    for (name, target) in targets::ALL {
        let files =
            fs::read_dir(corpus.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut n_files = 0;
        for file in files {
            let path = file.expect("readable").path();
            let data = fs::read(&path).expect("readable");
            let outcome = panic::catch_unwind(|| target(&data));
            assert!(outcome.is_ok(), "{}", path.display());
            n_files += 1;
        }
        assert!(n_files > 0, "{name} has a corpus");
    }
}

#[test]
fn each_corpus_has_a_target() {
    for directory in fs::read_dir("tests/fuzz/corpus").expect("it is there") {
        let name = directory.expect("readable").file_name();
        assert!(targets::ALL.iter().any(|(known, _)| name == *known), "{}", name.display());
    }
}
