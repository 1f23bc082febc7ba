//! The form of a text file that its edits keep: the byte order mark and the line ends.
//!
//! Pure.

/// A byte order mark, which some editors write.
const MARK: char = '\u{feff}';

/// The byte order mark and the line ends of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextForm {
    has_mark: bool,
    /// All lines end with a carriage return. In a text with both ends, each stays as it is.
    is_crlf: bool,
}

impl TextForm {
    /// Returns the form of a text, and the text without it.
    pub fn split(text: &str) -> (Self, String) {
        let plain = text.strip_prefix(MARK).unwrap_or(text);
        let n_crlf = plain.matches("\r\n").count();
        let is_crlf = n_crlf > 0 && n_crlf == plain.matches('\n').count();
        let form = Self { has_mark: text.starts_with(MARK), is_crlf };
        (form, if is_crlf { plain.replace("\r\n", "\n") } else { plain.to_owned() })
    }

    /// Returns a text with this form.
    pub fn join(self, text: &str) -> String {
        let text = if self.is_crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        if self.has_mark { format!("{MARK}{text}") } else { text }
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

    proptest! {
        #[test]
        fn a_text_without_an_edit_keeps_every_byte(text in "\u{feff}?[a\r\n]{0,9}") {
            let (form, plain) = TextForm::split(&text);
            prop_assert_eq!(form.join(&plain), text);
        }
    }
}
