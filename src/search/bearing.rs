//! The words of a request that carry meaning.

use std::collections::HashSet;

use super::{
    stem::Stems,
    words::{self, Form, Manner},
};

/// Returns the words of `text` that carry meaning, lower-case and in their order, at most `n_max`.
/// Of several forms of a word, the first.
pub fn bearing(text: &str, n_max: usize) -> Vec<String> {
    let stems = Stems::default();
    let (mut seen, mut found) = (HashSet::new(), Vec::new());
    words::each(text, Manner::Prose, |word, form| {
        if found.len() < n_max
            && form == Form::Plain
            && let Some(stem) = stems.of(word)
            && seen.insert(stem.into_owned())
        {
            found.push(word.to_owned());
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_carries_no_meaning_is_left_out_and_each_word_is_there_once() {
        let words = bearing("Please search my issues, then the searches on GitHub", 9);
        assert_eq!(words, ["search", "issues", "github"]);
        assert_eq!(bearing("search issues", 1), ["search"]);
        assert!(bearing("I want you to do it!", 9).is_empty());
    }
}
