//! The words of a request that carry meaning.

use std::{borrow::Cow, collections::HashSet};

use super::{
    stemmer::Stemmer,
    tokenizer::{self, TextKind, WordForm},
};

/// Returns the words of `text` that carry meaning, lower-case and in their order, at most `n_max`.
/// Only the first form of each word is returned.
pub fn bearing(text: &str, n_max: usize) -> Vec<String> {
    let stems = Stemmer::default();
    let (mut seen, mut found) = (HashSet::new(), Vec::new());
    tokenizer::each(text, TextKind::Prose, |word, form| {
        if found.len() < n_max
            && form == WordForm::Plain
            && let Some(stem) = stems.of(word)
            && seen.insert(stem.into_owned())
        {
            found.push(word.to_owned());
        }
    });
    found
}

/// The words of a request, to compare with a server's description if its tools are unknown.
#[derive(Debug)]
pub struct RelevanceTerms(HashSet<String>);

impl RelevanceTerms {
    /// Returns the words of `request` that carry meaning.
    pub fn of(request: &str) -> Self {
        let (stems, mut found) = (Stemmer::default(), HashSet::new());
        tokenizer::each(request, TextKind::Prose, |word, _| {
            found.extend(stems.of(word).map(Cow::into_owned));
        });
        Self(found)
    }

    /// Returns whether one of the words is in the server's `name` or in its description `about`.
    pub fn are_about(&self, name: &str, about: &str) -> bool {
        let (stems, mut is_found) = (Stemmer::default(), false);
        for (text, kind) in [(name, TextKind::Name), (about, TextKind::Prose)] {
            tokenizer::each(text, kind, |word, _| {
                is_found |= stems.of(word).is_some_and(|stem| self.0.contains(&*stem));
            });
        }
        is_found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_about_a_server_that_has_one_of_its_words() {
        let words = RelevanceTerms::of("please list the issues in my GitHub repository");
        for (name, about, expected) in [
            ("github-mcp", "", true),
            ("GitHubSearch", "", true),
            ("tracker", "Issue tracking for teams.", true),
            ("browser", "Please use the browser in my place.", false),
            ("git", "", false),
        ] {
            assert_eq!(words.are_about(name, about), expected, "{name}: {about}");
        }
        assert!(!RelevanceTerms::of("I want you to do it!").are_about("it", "Do it."));
    }

    #[test]
    fn relevance_terms_omit_stop_words_and_repetitions() {
        let words = bearing("Please search my issues, then the searches on GitHub", 9);
        assert_eq!(words, ["search", "issues", "github"]);
        assert_eq!(bearing("search issues", 1), ["search"]);
        assert!(bearing("I want you to do it!", 9).is_empty());
    }
}
