//! The documentation holds together: its links lead somewhere, and the README stays short.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// The length of a README that a visitor reads to its end.
const README_LINES_MAX: usize = 250;

/// The pages of the project, by path, without their code blocks.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut paths: Vec<PathBuf> =
        ["README.md", "nix/options.md", "tests/FEATURES.md"].map(PathBuf::from).into();
    let docs = fs::read_dir("docs").expect("the tests run in the package's directory");
    paths.extend(docs.map(|page| page.expect("readable").path()));
    paths
        .into_iter()
        .map(|path| (path.clone(), prose(&fs::read_to_string(path).expect("text"))))
        .collect()
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
fn the_readme_links_every_page_and_stays_short() {
    let readme = fs::read_to_string("README.md").expect("text");
    assert!(readme.lines().count() <= README_LINES_MAX, "{} lines", readme.lines().count());
    for path in pages().keys().filter(|path| path.starts_with("docs")) {
        assert!(
            readme.contains(&format!("({})", path.display())),
            "the README has no link to {path:?}"
        );
    }
}
