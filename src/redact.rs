//! Text from elsewhere, made fit to be shown: without known secrets, and not longer than useful.

use crate::config::defaults;

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

    /// Returns the length of the longest secret, in bytes.
    pub fn longest(&self) -> usize {
        self.secrets.first().map_or(0, String::len)
    }

    /// Returns `text` with every secret replaced.
    pub fn black_out(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "[secret]"))
    }

    /// Returns `text` fit for an error: on one line, without secrets, and cut.
    pub fn quote(&self, text: &str) -> String {
        let text = self.black_out(text.trim()).replace(char::is_control, " ");
        cut(&text, defaults::QUOTE_BYTES_MAX).to_owned()
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{} secrets]", self.secrets.len())
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
    fn a_quotation_has_no_secret_no_line_break_and_an_end() {
        let secrets = ["hunter2".to_owned(), "-----BEGIN-----\nMIIEpAIB\n}\n".to_owned()];
        let redactor = Redactor::new(secrets.iter());
        let text = format!("token hunter2\nkey MIIEpAIB }} {}", "ä".repeat(1000));

        let quoted = redactor.quote(&text);

        assert!(quoted.starts_with("token [secret] key [secret] }"), "{quoted}");
        assert!(quoted.len() <= defaults::QUOTE_BYTES_MAX);
        assert!(!format!("{redactor:?}").contains("hunter2"));
    }
}
