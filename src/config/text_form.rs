//! The form of a text file that its edits keep: the byte order mark and the line ends.
//!
//! Pure.

/// A byte order mark, which some editors write.
const MARK: char = '\u{feff}';

/// The byte order mark and the line ends of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextForm {
    has_mark: bool,
    /// Each line, and whether it ends with a carriage return and a line feed.
    lines: Vec<(String, bool)>,
}

impl TextForm {
    /// Returns the form of a text, and the text without it: without the mark, and with line feeds only.
    pub fn split(text: &str) -> (Self, String) {
        let plain = text.strip_prefix(MARK).unwrap_or(text);
        let lines = plain.split_inclusive('\n').map(|line| match line.strip_suffix("\r\n") {
            Some(line) => (line.to_owned(), true),
            None => (line.strip_suffix('\n').unwrap_or(line).to_owned(), false),
        });
        let form = Self { has_mark: text.starts_with(MARK), lines: lines.collect() };
        (form, plain.replace("\r\n", "\n"))
    }

    /// Returns a text with this form. A line that stays keeps its end; a new one ends as the line
    /// before it.
    pub fn join(&self, text: &str) -> String {
        let new: Vec<&str> = text.split_inclusive('\n').collect();
        let content = |at: usize| new[at].strip_suffix('\n').unwrap_or(new[at]);
        let n_common = new.len().min(self.lines.len());
        let is_same = |at: usize, old: usize| content(at) == self.lines[old].0;
        let n_first = (0..n_common).take_while(|&at| is_same(at, at)).count();
        let from_end = |back: &usize| is_same(new.len() - 1 - back, self.lines.len() - 1 - back);
        let n_last = (0..n_common - n_first).take_while(from_end).count();
        let between = n_first..self.lines.len() - n_last;
        let (mut next, mut is_crlf) = (n_first, self.lines.first().is_some_and(|line| line.1));
        let mut joined = if self.has_mark { MARK.to_string() } else { String::new() };
        for (at, line) in new.iter().enumerate() {
            let old = if at < n_first {
                Some(at)
            } else if at >= new.len() - n_last {
                Some(at + self.lines.len() - new.len())
            } else {
                let found = (next..between.end).find(|&old| is_same(at, old));
                next = found.map_or(next, |old| old + 1);
                found
            };
            is_crlf = old.map_or(is_crlf, |old| self.lines[old].1);
            joined.push_str(content(at));
            if line.ends_with('\n') {
                joined.push_str(if is_crlf { "\r\n" } else { "\n" });
            }
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_added_line_ends_as_the_others_do() {
        let (form, text) = TextForm::split("\u{feff}a\r\nb\r\n");
        assert_eq!(text, "a\nb\n");
        assert_eq!(form.join("a\nc\nb\n"), "\u{feff}a\r\nc\r\nb\r\n");
    }

    #[test]
    fn in_a_text_with_both_line_ends_each_line_keeps_its_own() {
        let (form, text) = TextForm::split("a\r\nb\nc\r\nd\n");
        assert_eq!(text, "a\nb\nc\nd\n");
        assert_eq!(form.join("a\nb\nnew\nc\nd\n"), "a\r\nb\nnew\nc\r\nd\n");
        assert_eq!(form.join("a\nnew\nc\nd\nlast\n"), "a\r\nnew\r\nc\r\nd\nlast\n");
        assert_eq!(form.join("b\nd\n"), "b\nd\n");
    }

    proptest! {
        #[test]
        fn a_text_without_an_edit_keeps_every_byte(text in "\u{feff}?[a\r\n]{0,9}") {
            let (form, plain) = TextForm::split(&text);
            prop_assert_eq!(form.join(&plain), text);
        }

        #[test]
        fn an_edit_changes_no_more_than_line_ends(old in "[ab\r\n]{0,9}", new in "[ab\n]{0,9}") {
            let joined = TextForm::split(&old).0.join(&new);
            prop_assert_eq!(joined.replace("\r\n", "\n"), new);
        }
    }
}
