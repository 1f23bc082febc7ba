//! The summary of a tool: its description on one line.
//!
//! Pure.

use crate::{config::defaults::SUMMARY_CHARS_MAX, protocol::ObjectMembers, redact};

/// Returns the server's description of a tool, or else its title, given the members of its
/// definition.
pub fn description(members: &ObjectMembers<'_>) -> String {
    let description = members.string("description");
    description
        .filter(|text| !text.trim().is_empty())
        .or_else(|| members.string("title"))
        .or_else(|| ObjectMembers::read(members.get("annotations")?)?.string("title"))
        .unwrap_or_default()
}

/// Returns the summary of a tool, given its definition as JSON text.
pub fn summary_of(definition: &str) -> String {
    summary(&description(&ObjectMembers::read(definition).unwrap_or_default()))
}

/// Returns a text, shortened to one line.
pub fn summary(text: &str) -> String {
    let text = redact::sanitize(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    cut(&words.join(" "), SUMMARY_CHARS_MAX)
}

/// Returns the beginning of a text, with `…` if there is more.
pub fn cut(text: &str, chars_max: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(chars_max) else { return text.to_owned() };
    let (end_short, _) = text.char_indices().nth(chars_max.saturating_sub(1)).unwrap_or((end, ' '));
    let shown = &text[..end_short];
    // Between words, unless that loses half of the text.
    let shown = match shown.rfind(char::is_whitespace) {
        Some(at) if at > end_short / 2 => shown[..at].trim_end(),
        _ => shown,
    };
    format!("{shown}…")
}
