//! Text from elsewhere, made fit to be shown: without known secrets, and not longer than useful.

use std::{borrow::Cow, collections::BTreeMap};

use crate::config::{Secret, defaults};

/// The secrets that one server was given.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first: a secret that holds another one is blacked out as a whole.
    secrets: Vec<String>,
}

impl Redactor {
    /// The shortest line of a secret of several lines that is looked for, in bytes: `-` or `}` on
    /// a line of its own gives nothing away, and would black out much else.
    const LINE_BYTES_MIN: usize = 6;

    /// Returns a redactor for `secrets`. One of several lines, as a key in PEM form is, is looked
    /// for line by line.
    pub fn new<'a>(secrets: impl Iterator<Item = &'a String>) -> Self {
        let mut lines: Vec<String> = Vec::new();
        for secret in secrets {
            let secret = secret.trim();
            let has_lines = secret.contains('\n');
            let parts = secret.lines().map(str::trim).filter(|part| !part.is_empty());
            lines.extend(
                parts
                    .filter(|part| !has_lines || part.len() >= Self::LINE_BYTES_MIN)
                    .map(str::to_owned),
            );
        }
        lines.sort_by_key(|line| std::cmp::Reverse(line.len()));
        Self { secrets: lines }
    }

    /// Returns a redactor for those of `values` that are declared as references: what came from one is
    /// a secret, wherever it turns up.
    pub fn of(declared: &BTreeMap<String, Secret>, values: &BTreeMap<String, String>) -> Self {
        let references = declared.iter().filter(|(_, value)| value.is_reference());
        Self::new(references.filter_map(|(key, _)| values.get(key)))
    }

    /// Returns the length of the longest secret, in bytes.
    pub fn longest(&self) -> usize {
        self.secrets.first().map_or(0, String::len)
    }

    /// Returns `text` with every secret replaced.
    pub fn black_out(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "[secret]"))
    }

    /// Returns `text` fit for an error: on one line, without secrets and what is unruly, and cut.
    pub fn quote(&self, text: &str) -> String {
        let text = self.black_out(text.trim()).replace(is_unruly, " ");
        cut(&text, defaults::QUOTE_BYTES_MAX).to_owned()
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{} secrets]", self.secrets.len())
    }
}

/// Tells whether a character changes more of a text than its own place, or is not seen in it: it moves
/// the cursor, turns the direction of what is beside it, or is a tag, with which words can be hidden.
pub fn is_unruly(found: char) -> bool {
    let turns = matches!(
        found,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    let is_tag = matches!(found, '\u{e0000}'..='\u{e007f}');
    found.is_control() || turns || is_tag
}

/// Returns a text of somebody else's as it may stand in one of ours: what is unruly in it is a space;
/// its lines and its tabs stay.
pub fn tame(text: &str) -> Cow<'_, str> {
    let is_unruly = |found: char| is_unruly(found) && !matches!(found, '\n' | '\t');
    match text.contains(is_unruly) {
        true => text.replace(is_unruly, " ").into(),
        false => text.into(),
    }
}

/// Returns at most `length_max` bytes of `text`, whole characters.
pub fn cut(text: &str, length_max: usize) -> &str {
    let mut end = text.len().min(length_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_tame_moves_turns_and_hides_nothing() {
        let text = "a\u{1b}[31m b\0\u{7}\r\nc\td\u{202e}e\u{e0041}f\u{85}";
        assert_eq!(tame(text), "a [31m b   \nc\td e f ");
        assert!(matches!(tame("ä \u{1f642}\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_quotation_has_no_secret_no_line_break_and_an_end() {
        let secrets = ["hunter2".to_owned(), "-----BEGIN-----\nMIIEpAIB\n}\n".to_owned()];
        let redactor = Redactor::new(secrets.iter());
        let text = format!("token hunter2\nkey MIIEpAIB }}\u{202e} {}", "ä".repeat(1000));

        let quoted = redactor.quote(&text);

        assert!(quoted.starts_with("token [secret] key [secret] }  ä"), "{quoted}");
        assert!(quoted.len() <= defaults::QUOTE_BYTES_MAX);
        assert!(!format!("{redactor:?}").contains("hunter2"));
    }
}
