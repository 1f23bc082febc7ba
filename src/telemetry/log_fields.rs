//! The fields of a log event, and those that a line shows beside its text.

use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing_subscriber::{
    field::RecordFields,
    fmt::{FormatFields, format::Writer},
};

use crate::redact;

/// The field that names the server of an event.
const SERVER_FIELD: &str = "mcp_server";

/// The field by which `journalctl -x` finds the explanation of an event.
const MESSAGE_ID: &str = "message_id";

/// The field that holds the text of an event. Source: `tracing`.
const MESSAGE: &str = "message";

/// The values of the fields of one event.
#[derive(Debug, Default)]
pub(super) struct LogFields {
    pub(super) text: String,
    pub(super) server: Option<String>,
    others: Vec<(&'static str, String)>,
}

impl LogFields {
    /// Returns the fields whose values the text does not contain: `name=value`, separated by spaces.
    pub(super) fn others_to_show(&self) -> String {
        let mut fields = String::new();
        for (name, value) in &self.others {
            if contains_words(&self.text, value) {
                continue;
            }
            let gap = if fields.is_empty() { "" } else { " " };
            let is_list = value.starts_with('[');
            // Writing to a string cannot fail.
            let _infallible = match value.contains([' ', '"']) && !is_list {
                true => write!(fields, "{gap}{name}={value:?}"),
                false => write!(fields, "{gap}{name}={value}"),
            };
        }
        fields
    }
}

/// Returns whether `text` contains `words`, and not only as a part of a longer word.
fn contains_words(text: &str, words: &str) -> bool {
    let is_letter = |found: char| found.is_alphanumeric();
    text.match_indices(words).any(|(at, _)| {
        !text[..at].ends_with(is_letter) && !text[at + words.len()..].starts_with(is_letter)
    })
}

impl Visit for LogFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            MESSAGE => value.clone_into(&mut self.text),
            SERVER_FIELD => self.server = Some(value.to_owned()),
            // Only the journal has a use for it.
            MESSAGE_ID => {}
            name => self.others.push((name, value.to_owned())),
        }
    }
}

/// The format of the lines on standard error: the text, then the fields that it does not contain. The
/// server is always there, because `metamcp logs --server` finds the line by it.
#[derive(Debug)]
pub(super) struct LineFormat;

impl<'writer> FormatFields<'writer> for LineFormat {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut values = LogFields::default();
        fields.record(&mut values);
        let server = values.server.as_ref().map(|server| format!("{SERVER_FIELD}={server}"));
        let others = values.others_to_show();
        let parts = [Some(values.text), server, Some(others)];
        let parts: Vec<String> =
            parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        // A server must not steer the terminal.
        writer.write_str(&redact::sanitize(&parts.join(" ")))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        sync::{Arc, Mutex},
    };

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("not poisoned").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_on_standard_error_shows_each_value_once_beside_its_server() {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .with_target(false)
            .without_time()
            .fmt_fields(LineFormat)
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let (server, n) = ("git", 7);
            tracing::warn!(mcp_server = %server, n, reason = "no such file", fault = "a b", list = ?["x"], part = "file", letter = "f", "server `{server}`: no such file\u{1b}[2J");
        });
        let bytes = written.0.lock().expect("not poisoned").clone();
        assert_eq!(
            String::from_utf8(bytes).expect("text"),
            " WARN server `git`: no such file [2J mcp_server=git n=7 fault=\"a b\" list=[\"x\"] letter=f\n"
        );
    }
}
