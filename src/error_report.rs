//! The display of an error with its causes.
//!
//! The text of an error names what was attempted; its cause is in `source`. Only the outermost code
//! combines them, with this function.

use std::error::Error;

/// Returns an error and its causes on one line, outermost first.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Formats a quotation to append to a sentence; empty without a quotation.
pub fn appended(quote: &str) -> String {
    if quote.is_empty() { String::new() } else { format!(": {quote}") }
}
