//! The redaction of untrusted text: known secrets are removed, and the length is limited.

use std::{borrow::Cow, collections::BTreeMap, fmt::Write as _, path::Path, sync::Arc};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};

use crate::config::{SecretValue, defaults};

/// The secrets that one server was given.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Matches the longest secret at a position, so that nested secrets disappear as a whole.
    secrets: Option<Arc<AhoCorasick>>,
}

impl Redactor {
    /// The minimum length of a secret's line, in bytes, if it has several: `-` or `}` on a line
    /// alone reveals nothing, and would match much other text. The same limit holds for literals
    /// whose name is not that of a secret, and for encoded forms.
    const LINE_BYTES_MIN: usize = 6;

    /// Common configuration values that occur in much program output. Chosen for metamcp.
    const WORDS: [&str; 9] = [
        "production",
        "development",
        "staging",
        "testing",
        "verbose",
        "warning",
        "disabled",
        "enabled",
        "localhost",
    ];

    /// The replacement of a secret.
    const PLACEHOLDER: &str = "[secret]";

    /// Returns a redactor for `secrets` in plain, URL-encoded and base64 form. A secret of several
    /// lines, such as a PEM key, is matched line by line.
    pub fn new<'a>(secrets: impl Iterator<Item = &'a String>) -> Self {
        let mut forms: Vec<String> = Vec::new();
        for secret in secrets {
            let secret = secret.trim();
            let has_lines = secret.contains('\n');
            let parts = secret.lines().map(str::trim).filter(|part| !part.is_empty());
            for part in parts.filter(|part| !has_lines || part.len() >= Self::LINE_BYTES_MIN) {
                forms.push(part.to_owned());
                if part.len() >= Self::LINE_BYTES_MIN {
                    forms.extend(encoded(part));
                }
            }
            if has_lines {
                forms.extend(encoded(secret));
            }
        }
        if forms.is_empty() {
            return Self::default();
        }
        // Fails only for gigabytes of secrets.
        let secrets = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            // The fastest kind needs 20 MB for a key of 2 KB.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&forms);
        Self { secrets: secrets.ok().map(Arc::new) }
    }

    /// Returns a redactor for those of `values` that may be secret: values from references, values
    /// with the name of a secret, and literals that are long enough, no path of this host and no
    /// common word. The part after the scheme of an `Authorization` header is a separate secret.
    pub fn of(declared: &BTreeMap<String, SecretValue>, values: &BTreeMap<String, String>) -> Self {
        let is_secret = |key: &str, secret: &SecretValue, value: &str| {
            let is_path = || value.starts_with('/') && Path::new(value).exists();
            secret.is_reference()
                || SecretValue::is_secret_name(key)
                || (value.len() >= Self::LINE_BYTES_MIN
                    && !Self::WORDS.contains(&value)
                    && !is_path())
        };
        let mut secrets = Vec::new();
        for (key, secret) in declared {
            let Some(value) = values.get(key).filter(|value| is_secret(key, secret, value)) else {
                continue;
            };
            secrets.push(value.clone());
            let after_scheme = value.trim().split_once(' ').map(|(_, rest)| rest.trim().to_owned());
            secrets.extend(after_scheme.filter(|_| key.eq_ignore_ascii_case("authorization")));
        }
        Self::new(secrets.iter())
    }

    /// Returns the length of the longest form of a secret, in bytes.
    pub fn longest_secret(&self) -> usize {
        self.secrets.as_ref().map_or(0, |secrets| secrets.max_pattern_len())
    }

    /// Returns `text` with every secret replaced.
    pub fn redact(&self, text: &str) -> String {
        let Some(secrets) = &self.secrets else { return text.to_owned() };
        let mut shown = String::with_capacity(text.len());
        secrets.replace_all_with(text, &mut shown, |_, _, shown| {
            shown.push_str(Self::PLACEHOLDER);
            true
        });
        shown
    }

    /// Returns `text` for use in an error: on one line, redacted, without control characters, and
    /// cut.
    pub fn quote(&self, text: &str) -> String {
        let text = self.redact(text.trim()).replace(is_control, " ");
        cut(&text, defaults::QUOTE_BYTES_MAX).to_owned()
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n_forms = self.secrets.as_ref().map_or(0, |secrets| secrets.patterns_len());
        write!(f, "[{n_forms} forms of secrets]")
    }
}

/// Returns the encoded forms of a secret: URL-encoded with digits of either case, as JSON, and in
/// both alphabets of base64.
fn encoded(secret: &str) -> Vec<String> {
    let url = |is_upper: bool, space: &str| {
        secret.bytes().fold(String::new(), |mut text, byte| {
            // Writing to a `String` cannot fail.
            let _ = match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    write!(text, "{}", char::from(byte))
                }
                b' ' => write!(text, "{space}"),
                _ if is_upper => write!(text, "%{byte:02X}"),
                _ => write!(text, "%{byte:02x}"),
            };
            text
        })
    };
    let json = serde_json::Value::from(secret).to_string();
    let mut forms = vec![
        url(true, "%20"),
        url(false, "%20"),
        url(true, "+"),
        url(false, "+"),
        json[1..json.len() - 1].to_owned(),
    ];
    // The secret may follow other text, as in `user:password`. Three bytes are four characters, so
    // there are three alignments. The outermost characters depend on the adjacent bytes.
    for n_before in 0..3 {
        let bytes = [&[0; 2][..n_before], secret.as_bytes()].concat();
        let whole = (n_before * 8).div_ceil(6)..bytes.len() * 8 / 6;
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            forms.push(engine.encode(&bytes)[whole.clone()].to_owned());
        }
    }
    forms.sort_unstable();
    forms.dedup();
    forms.retain(|form| form != secret && form.len() >= Redactor::LINE_BYTES_MIN);
    forms
}

/// Returns whether a character affects the display beyond its own position, or is invisible: it
/// moves the cursor, changes the text direction, or is a tag character that can hide words.
pub fn is_control(found: char) -> bool {
    let turns = matches!(
        found,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    let is_tag = matches!(found, '\u{e0000}'..='\u{e007f}');
    found.is_control() || turns || is_tag
}

/// Returns untrusted text for use in metamcp's output: control characters become spaces; newlines
/// and tabs remain.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    let is_hidden = |found: char| is_control(found) && !matches!(found, '\n' | '\t');
    match text.contains(is_hidden) {
        true => text.replace(is_hidden, " ").into(),
        false => text.into(),
    }
}

/// Returns the first `length_max` bytes of `text` at most, with every secret of `redactors` replaced.
pub fn redacted_start(text: &str, redactors: &[Redactor], length_max: usize) -> String {
    let longest = redactors.iter().map(Redactor::longest_secret).max().unwrap_or_default();
    let start = cut(text, length_max + longest);
    let mut shown =
        redactors.iter().fold(start.to_owned(), |shown, redactor| redactor.redact(&shown));
    if start.len() < text.len() {
        // The end may be the beginning of a secret.
        shown.truncate(cut(&shown, shown.len().saturating_sub(longest)).len());
    }
    shown.truncate(cut(&shown, length_max).len());
    shown
}

/// Returns the first `length_max` bytes of `text` at most, in whole characters.
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
    fn sanitized_text_has_no_control_characters_or_hidden_words() {
        let text = "a\u{1b}[31m b\0\u{7}\r\nc\td\u{202e}e\u{e0041}f\u{85}";
        assert_eq!(sanitize(text), "a [31m b   \nc\td e f ");
        assert!(matches!(sanitize("ä \u{1f642}\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_quoted_text_has_no_secrets_or_line_breaks_and_a_limited_length() {
        let secrets = ["hunter2".to_owned(), "-----BEGIN-----\nMIIEpAIB\n}\n".to_owned()];
        let redactor = Redactor::new(secrets.iter());
        let text = format!("token hunter2\nkey MIIEpAIB }}\u{202e} {}", "ä".repeat(1000));

        let quoted = redactor.quote(&text);

        assert!(quoted.starts_with("token [secret] key [secret] }  ä"), "{quoted}");
        assert!(quoted.len() <= defaults::QUOTE_BYTES_MAX);
        assert!(!format!("{redactor:?}").contains("hunter2"));
    }

    #[test]
    fn a_secret_is_redacted_in_every_encoding() {
        let secret = "s3cr\u{e9}t/ä+ word\"x";
        let redactor = Redactor::new([secret.to_owned()].iter());
        let percent = "s3cr%C3%A9t%2F%C3%A4%2B%20word%22x";
        let mut texts = vec![
            secret.to_owned(),
            percent.to_owned(),
            percent.replace("%20", "+"),
            percent.to_lowercase(),
            serde_json::to_string(secret).expect("a string"),
        ];
        for user in ["", "u:", "me:", "you:"] {
            for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                texts.push(engine.encode(format!("{user}{secret}")));
                texts.push(engine.encode(format!("{user}{secret}@host")));
            }
        }
        for text in texts {
            let shown = redactor.redact(&format!("error: <{text}> is wrong"));
            assert!(shown.contains("[secret]"), "{text}: {shown}");
            assert!(shown.starts_with("error: <") && shown.ends_with("> is wrong"), "{shown}");
            // The remains of base64 are adjacent characters and at most two of the secret's own.
            assert!(shown.len() < "error: <[secret]> is wrong".len() + 16, "{text}: {shown}");
        }
    }

    #[test]
    fn literals_are_secrets_unless_they_are_short_or_paths() {
        let given = [
            ("AUTHORIZATION", "Bearer abc"),
            ("DEBUG", "1"),
            ("HOME", "/usr"),
            ("MY_TOKEN", "xyz"),
            ("OTHER", "correct horse"),
            ("REFERENCE", "credential:four"),
        ];
        let declared =
            given.map(|(key, text)| (key.to_owned(), SecretValue::from(text.to_owned())));
        let mut values: BTreeMap<_, _> =
            given.map(|(key, text)| (key.to_owned(), text.to_owned())).into();
        values.insert("REFERENCE".to_owned(), "four".to_owned());

        let redactor = Redactor::of(&declared.into(), &values);

        assert_eq!(
            redactor.redact("Bearer abc, abc, 1, /usr/bin, xyz, correct horse, correct, four"),
            "[secret], [secret], 1, /usr/bin, [secret], [secret], correct, [secret]"
        );
    }
}
