//! The documentation holds together: its links lead somewhere, the README stays short, and what
//! follows from code is up to date.
//!
//! `REGENERATE=1 cargo test --test documentation` writes what follows from code: the tables in
//! `docs/reference/configuration.md` and `docs/errors.md`, the commands in
//! `docs/reference/command-line.md`, `systemd/metamcp.catalog`, and `nix/schema.json`, from which the
//! Nix modules make their options.

mod console_blocks;
mod error_codes;
mod manual_pages;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use metamcp::{
    cli,
    config::schema::schema,
    manual::{
        ConfigurationKey, ERROR_GROUPS, ErrorGroup, command_reference, configuration_keys,
        message_catalog, sections,
    },
};

/// The length of a README that a visitor reads to its end.
const README_LINES_MAX: usize = 250;

/// The contents of the handbook, as mdbook reads them.
const CONTENTS_PAGE: &str = "docs/SUMMARY.md";

/// Returns the paths of the project's pages.
fn page_paths() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        ["README.md", "nix/options.md", "tests/FEATURES.md"].map(PathBuf::from).into();
    add_pages(Path::new("docs"), &mut paths);
    paths.sort();
    paths
}

/// The pages of the project, by path, without their code blocks.
fn pages() -> BTreeMap<PathBuf, String> {
    page_paths()
        .into_iter()
        .map(|path| (path.clone(), prose(&fs::read_to_string(path).expect("text"))))
        .collect()
}

/// Adds the pages below `directory`.
fn add_pages(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the tests run in the package's directory") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            add_pages(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
}

/// Returns `text` without its fenced code.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

/// Returns the anchors of a page's headings, as a forge makes them.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let slug = |heading: &str| -> String {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(slug).collect()
}

/// Returns the targets of a page's links.
fn links(page: &str) -> impl Iterator<Item = &str> {
    page.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_exist() {
    let pages = pages();
    let mut n_links = 0;
    let mut broken = Vec::new();
    for (path, page) in &pages {
        for link in links(page).filter(|link| !link.contains("://")) {
            n_links += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                path.clone()
            } else {
                normalized(&path.parent().unwrap_or(Path::new("")).join(file))
            };
            let has_anchor = anchor.is_empty()
                || pages.get(&target).is_some_and(|page| anchors(page).iter().any(|a| a == anchor));
            if !target.exists() || !has_anchor {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "these links lead nowhere: {broken:#?}");
    assert!(n_links > 50, "{n_links} links");
}

#[test]
fn every_link_to_another_site_is_a_complete_url() {
    let mut n_links = 0;
    for (path, page) in &pages() {
        for link in links(page).filter(|link| link.contains("://")) {
            n_links += 1;
            let host =
                link.strip_prefix("https://").map(|rest| rest.split('/').next().unwrap_or(""));
            let is_complete = host.is_some_and(|host| {
                host.contains('.') && !host.contains(|c: char| c.is_whitespace() || c == '_')
            });
            assert!(is_complete && !link.contains(' '), "{}: {link}", path.display());
        }
    }
    assert!(n_links > 0, "no link");
}

/// Returns `path` without `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

#[test]
fn the_contents_link_every_page_once() {
    let pages = pages();
    let contents = &pages[Path::new(CONTENTS_PAGE)];
    let mut linked: Vec<_> = links(contents).map(|link| Path::new("docs").join(link)).collect();
    linked.sort();
    let expected: Vec<_> = pages
        .into_keys()
        .filter(|path| path.starts_with("docs") && path != Path::new(CONTENTS_PAGE))
        .collect();
    assert_eq!(linked, expected);
}

#[test]
fn the_readme_stays_short() {
    let readme = fs::read_to_string("README.md").expect("text");
    assert!(readme.lines().count() <= README_LINES_MAX, "{} lines", readme.lines().count());
}

/// Checks that the file at `path` is `expected`, or writes it.
fn check_generated(path: &str, expected: &str) {
    if std::env::var_os("REGENERATE").is_some() {
        fs::write(path, expected).expect("writable");
    }
    let is_same = fs::read_to_string(path).expect("text") == expected;
    assert!(
        is_same,
        "{path} is out of date: run `REGENERATE=1 cargo test --test documentation`, then \
         `nix/tests/options-doc --write`"
    );
}

#[test]
fn nix_reads_the_schema_of_the_program() {
    check_generated("nix/schema.json", &format!("{:#}\n", schema()));
}

/// The page with the tables of keys.
const KEYS_PAGE: &str = "docs/reference/configuration.md";

/// The line before a table of keys, up to the name of its section.
const TABLE_START: &str = "<!-- keys of ";

/// The line after a table of keys.
const TABLE_END: &str = "<!-- end of keys -->";

/// The page with the table of errors.
const ERRORS_PAGE: &str = "docs/errors.md";

/// The line before a group of errors, up to its key.
const ERRORS_START: &str = "<!-- errors: ";

/// The line after a group of errors.
const ERRORS_END: &str = "<!-- end of errors -->";

/// The page with all commands.
const COMMANDS_PAGE: &str = "docs/reference/command-line.md";

/// The line before the commands.
const COMMANDS_START: &str = "<!-- all ";

/// The line after the commands.
const COMMANDS_END: &str = "<!-- end of commands -->";

/// Returns `page` with new text between the lines that begin with `start` and `end`; `texts` has
/// the text by the name in the first of them. A name is used once.
fn regenerated(page: &str, start: &str, end: &str, mut texts: BTreeMap<String, String>) -> String {
    let mut parts = page.split(start);
    let mut generated = parts.next().expect("a beginning").to_owned();
    for part in parts {
        let (name, rest) = part.split_once(" -->\n").expect("a name");
        let (_, rest) = rest.split_once(end).expect("an end");
        let text = texts.remove(name).unwrap_or_else(|| panic!("no text for `{name}`"));
        generated.push_str(&format!("{start}{name} -->\n{text}{end}{rest}"));
    }
    assert!(texts.is_empty(), "no place for {:?}", texts.keys());
    generated
}

#[test]
fn the_reference_page_has_the_keys_of_the_schema() {
    let schema = schema();
    let page = fs::read_to_string(KEYS_PAGE).expect("text");
    let tables = sections(&schema)
        .map(|(name, _)| (name.to_owned(), key_table(&configuration_keys(&schema, name))))
        .collect();
    let generated = regenerated(&page, TABLE_START, TABLE_END, tables);
    check_generated(KEYS_PAGE, &generated);
}

/// Returns the table of the keys of a section.
fn key_table(keys: &[ConfigurationKey]) -> String {
    let mut table =
        "| key | type | default | meaning | applied |\n|---|---|---|---|---|\n".to_owned();
    for ConfigurationKey { path, kind, default, meaning, applied } in keys {
        let meaning = meaning.replace('|', "\\|");
        table.push_str(&format!("| `{path}` | {kind} | {default} | {meaning} | {applied} |\n"));
    }
    table
}

#[test]
fn the_errors_page_has_the_table_of_errors() {
    let page = fs::read_to_string(ERRORS_PAGE).expect("text");
    let tables =
        ERROR_GROUPS.iter().map(|group| (group.key.to_owned(), group_section(group))).collect();
    let generated = regenerated(&page, ERRORS_START, ERRORS_END, tables);
    check_generated(ERRORS_PAGE, &generated);
}

/// Returns the section of a group of errors.
fn group_section(group: &ErrorGroup) -> String {
    format!("## {}\n\n{}\n\n{}", group.title, group.intro, group.markdown())
}

/// The explanations that `journalctl -x` shows.
const CATALOG: &str = "systemd/metamcp.catalog";

#[test]
fn the_journal_has_the_explanation_of_every_error() {
    let catalog = message_catalog();
    for code in ERROR_GROUPS.iter().flat_map(|group| group.entries).map(|entry| entry.code) {
        let is_name = code.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        assert!(!is_name || catalog.contains(&format!("Subject: Error {code}\n")), "{code}");
    }
    check_generated(CATALOG, &catalog);
}

#[test]
fn the_command_page_has_every_command() {
    let page = fs::read_to_string(COMMANDS_PAGE).expect("text");
    let texts = BTreeMap::from([("commands".to_owned(), command_reference(&cli::command()))]);
    let generated = regenerated(&page, COMMANDS_START, COMMANDS_END, texts);
    check_generated(COMMANDS_PAGE, &generated);
}
