//! The layering test: a module uses only those above it in the list of `src/lib.rs`.

use std::{collections::BTreeSet, fs, path::Path};

#[path = "layering/circles.rs"]
mod circles;

use circles::Sources;

/// The modules in the order of the table in `src/lib.rs`.
fn modules() -> Vec<String> {
    let lib = fs::read_to_string("src/lib.rs").expect("the tests run in the package's directory");
    lib.lines()
        .filter_map(|line| line.strip_prefix("//! | [`")?.split_once('`'))
        .map(|(module, _)| module.to_owned())
        .collect()
}

/// Adds the files of a module, with their text before any test.
fn files(path: &Path, found: &mut Vec<(String, String)>) {
    if path.is_dir() && !path.ends_with("tests") {
        for entry in fs::read_dir(path).expect("readable") {
            files(&entry.expect("readable").path(), found);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs")
        && !path.ends_with("tests.rs")
    {
        let text = fs::read_to_string(path).expect("readable");
        // A file of tests is often declared above the code.
        let text = text.replace("#[cfg(test)]\nmod tests;\n", "");
        let text = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
        found.push((path.display().to_string(), text));
    }
}

/// The modules that a text names in code, as `crate::module` or in a `use crate::{…}` list.
fn used(text: &str, modules: &[String]) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut used = BTreeSet::new();
    for part in code.split("crate::").skip(1) {
        // Either one path, or a list in braces whose entries start at depth one.
        let mut depth = 0;
        let mut word = String::new();
        let mut is_start = true;
        for found in part.chars() {
            match found {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if found.is_alphanumeric() || found == '_' {
                if is_start {
                    word.push(found);
                }
                continue;
            }
            if modules.contains(&word) {
                used.insert(word.clone());
            }
            word.clear();
            is_start = (found == '{' && depth == 1)
                || (depth == 1 && matches!(found, ',' | ' ' | '\n') && (is_start || found == ','));
            if depth <= 0 {
                break;
            }
        }
    }
    used
}

#[test]
fn a_module_uses_only_those_above_it() {
    let modules = modules();
    assert!(modules.len() > 15, "the table in src/lib.rs is read: {modules:?}");
    let mut violations = Vec::new();
    for (rank, module) in modules.iter().enumerate() {
        let (directory, file) = (format!("src/{module}"), format!("src/{module}.rs"));
        let mut found = Vec::new();
        for path in [directory, file].iter().map(Path::new).filter(|path| path.exists()) {
            files(path, &mut found);
        }
        assert!(!found.is_empty(), "`{module}` of the table in src/lib.rs exists");
        for (path, text) in found {
            for other in used(&text, &modules) {
                let other_rank = modules.iter().position(|known| *known == other);
                if other_rank > Some(rank) {
                    violations.push(format!("{path} uses {other}"));
                }
            }
        }
    }
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn the_table_has_every_module() {
    let lib = fs::read_to_string("src/lib.rs").expect("readable");
    let declared: BTreeSet<String> = lib
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .map(str::to_owned)
        .collect();
    assert_eq!(declared, modules().into_iter().collect());
}

#[test]
fn a_planted_violation_is_found() {
    let modules: Vec<String> = ["name", "pool", "daemon"].map(str::to_owned).into();
    let text = "use crate::{\n    name::ServerName,\n    daemon::{Daemon, pool},\n};\n// crate::pool in a comment";
    let expected: BTreeSet<String> = ["name", "daemon"].map(str::to_owned).into();
    assert_eq!(used(text, &modules), expected);
    assert_eq!(used("let x = crate::pool::Pool;", &modules), BTreeSet::from(["pool".to_owned()]));
}

/// The largest number of files that may use each other in a circle, inside one module.
const CIRCLE_MAX: usize = 3;

#[test]
fn no_more_than_three_files_use_each_other_in_a_circle() {
    let mut found = Vec::new();
    files(Path::new("src"), &mut found);
    assert!(found.len() > 400, "files are found: {}", found.len());
    let sources = Sources::new(found.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    let circles = sources.circles();
    let long: Vec<_> = circles.iter().filter(|circle| circle.len() > CIRCLE_MAX).collect();
    assert!(long.is_empty(), "{long:#?}");
    assert!(!circles.is_empty(), "short circles are found");
}

#[test]
fn a_planted_circle_is_found() {
    let sources = Sources::new([
        (
            "src/pool/mod.rs",
            "mod slot;\nmod state;\npub use slot::{Slot as PoolSlot};\nstruct Pool;",
        ),
        (
            "src/pool/slot.rs",
            "use super::{Pool, permit::{self}};\npub struct Slot(permit::Permit);",
        ),
        ("src/pool/permit.rs", "pub struct Permit;\nfn of() { super::state::new() }"),
        // The name is passed on by the module, and renamed.
        ("src/pool/state.rs", "use crate::pool::{PoolSlot,};\npub fn new() {} // super::mux::Mux"),
        ("src/pool/mux.rs", "use super::slot;\nconst TEXT: &str = \"super::mux\";"),
    ]);
    let circle = ["pool::permit", "pool::slot", "pool::state"].map(str::to_owned).into();
    assert_eq!(sources.circles(), BTreeSet::from([circle]));
}

/// The beginnings of the paths of pure modules; their files need not contain the word.
const PURE: [&str; 8] = [
    "src/protocol/",
    "src/search/",
    "src/tool/error",
    "src/tool/field_selection",
    "src/tool/validation",
    "src/meta/arguments",
    "src/server_name.rs",
    "src/fault_class.rs",
];

/// Returns whether a file's module page calls it pure.
fn calls_itself_pure(text: &str) -> bool {
    let mut doc = text.lines().take_while(|line| line.starts_with("//!"));
    doc.any(|line| line.split(|found: char| !found.is_alphanumeric()).any(|word| word == "Pure"))
}

#[test]
fn pure_modules_touch_neither_clock_nor_system() {
    let mut found = Vec::new();
    files(Path::new("src"), &mut found);
    found.retain(|(path, text)| {
        PURE.iter().any(|pure| path.starts_with(pure)) || calls_itself_pure(text)
    });
    assert!(found.len() > 80, "files are found: {}", found.len());
    for (path, text) in found {
        // A moment is a value; only reading the current time needs a clock.
        let text = text.replace("use tokio::time::Instant;", "");
        let clocks = ["Instant::now", "SystemTime::now", "std::time::Instant"];
        for forbidden in ["tokio", "std::fs", "std::net", "std::process"].iter().chain(&clocks) {
            assert!(!text.contains(forbidden), "{path} is pure and names {forbidden}");
        }
    }
}

/// The files that start processes: `child` starts servers, `cli::auto_start` starts the service,
/// `cli::login` starts a browser, and `cli::service_ring` becomes or reads `journalctl`.
const STARTERS: [&str; 4] = [
    "src/child/process.rs",
    "src/cli/auto_start.rs",
    "src/cli/login.rs",
    "src/cli/service_ring.rs",
];

#[test]
fn only_the_child_module_starts_servers() {
    let mut found = Vec::new();
    files(Path::new("src"), &mut found);
    for (path, text) in found {
        let starts = text.contains("Command::new");
        assert!(!starts || STARTERS.contains(&path.as_str()), "{path} starts a process");
    }
}
