//! Names of types: identifiers, each given once. Pure.

use std::collections::BTreeSet;

/// The names that are given.
#[derive(Debug)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// Returns names of which these are given.
    pub(super) fn new<const N: usize>(given: [&str; N]) -> Self {
        Self(given.into_iter().map(str::to_owned).collect())
    }

    /// Gives the name, or one with a number behind it where that is given already.
    pub(super) fn take(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 2;
        while !self.0.insert(name.clone()) {
            name = format!("{wanted}_{number}");
            number += 1;
        }
        name
    }
}

/// Returns how the types of a tool begin.
pub(super) fn of_tool(server: &str, tool: &str) -> String {
    let stem = pascal(server) + &pascal(tool);
    match stem.starts_with(|found: char| found.is_ascii_alphabetic()) {
        true => stem,
        false => format!("Tool{stem}"),
    }
}

/// The longest part of a name that comes from elsewhere, in bytes. Ours.
const WORD_BYTES_MAX: usize = 80;

/// Returns a word in the manner of types: what is no letter or digit begins another part.
pub(super) fn pascal(text: &str) -> String {
    let mut name = String::new();
    let mut is_start = true;
    for found in text.chars() {
        if !found.is_ascii_alphanumeric() {
            is_start = true;
        } else if name.len() < WORD_BYTES_MAX {
            name.push(if is_start { found.to_ascii_uppercase() } else { found });
            is_start = false;
        }
    }
    name
}

/// Tells whether a name needs no quotes.
pub(super) fn is_identifier(text: &str) -> bool {
    let is_word = |found: char| found.is_ascii_alphanumeric() || matches!(found, '_' | '$');
    !text.is_empty()
        && text.chars().all(is_word)
        && !text.starts_with(|found: char| found.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_called_as_its_tool_and_no_two_are_called_the_same() {
        for (server, tool, expected) in [
            ("git", "git_log", "GitGitLog"),
            ("my-files", "readTextFile", "MyFilesReadTextFile"),
            ("1password", "get", "Tool1passwordGet"),
            ("git", "日本", "Git"),
        ] {
            assert_eq!(of_tool(server, tool), expected);
        }
        let mut names = Names::new(["A"]);
        assert_eq!(["A", "B", "B", "B"].map(|name| names.take(name)), ["A_2", "B", "B_2", "B_3"]);
    }

    #[test]
    fn only_plain_words_go_without_quotes() {
        for (text, expected) in [
            ("a", true),
            ("_a1", true),
            ("$", true),
            ("1a", false),
            ("a-b", false),
            ("", false),
            ("ä", false),
        ] {
            assert_eq!(is_identifier(text), expected, "{text}");
        }
    }
}
