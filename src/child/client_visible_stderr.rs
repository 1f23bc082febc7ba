//! The part of a server's standard error that clients may read.

use std::collections::VecDeque;

use crate::{config::defaults, redact};

/// The separator of lines that are quoted on one line.
const SEPARATOR: &str = " | ";

/// The words between two quotations: the line with the cause, and the lines before it.
const BEFORE: &str = "`, after `";

/// The markers, in lower case, of a line that names the cause of an end.
const CAUSES: [&str; 5] = ["error:", "error]", "exception:", "fatal:", "panicked at"];

/// The last lines of a server's standard error that clients may read. Lines after the first request
/// of a client may be about that client, and are for operators only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorOutput {
    /// The lines, oldest first.
    pub lines: Vec<String>,
    /// A client has sent a request since; all lines are from before it.
    pub is_of_start: bool,
}

impl ErrorOutput {
    /// Returns the last lines on one line, as many as fit into a quotation in backticks. The line
    /// that names the cause comes first, and the lines before it last: the output of a program often
    /// ends with a stack trace.
    pub fn quoted(&self) -> String {
        let fit = |line: &str| line.trim().replace(redact::is_control, " ");
        let mut n_left = defaults::QUOTE_BYTES_MAX;
        let cause = self.lines.iter().rposition(|line| names_cause(line));
        let first = cause.map(|at| redact::cut(&fit(&self.lines[at]), n_left / 2).to_owned());
        n_left -= first.as_ref().map_or(0, |line| line.len() + BEFORE.len());
        let (mut after, mut before) = (VecDeque::new(), VecDeque::new());
        for (at, line) in self.lines.iter().enumerate().rev() {
            if Some(at) == cause {
                continue;
            }
            let mut line = fit(line);
            if first.is_none() && after.is_empty() {
                line.truncate(redact::cut(&line, n_left).len());
            }
            if line.len() > n_left {
                break;
            }
            n_left = n_left.saturating_sub(line.len() + SEPARATOR.len());
            let kept = if cause.is_some_and(|cause| at < cause) { &mut before } else { &mut after };
            kept.push_front(line);
        }
        let join = |lines: Vec<String>| lines.join(SEPARATOR);
        let quotation = join(first.into_iter().chain(after).collect());
        match before.is_empty() {
            true => quotation,
            false => format!("{quotation}{BEFORE}{}", join(before.into())),
        }
    }
}

/// Returns whether a line names the cause of an end. Indented lines are stack frames.
fn names_cause(line: &str) -> bool {
    let is_indented = line.starts_with([' ', '\t']);
    let line = line.to_ascii_lowercase();
    !is_indented && CAUSES.iter().any(|marker| line.contains(marker))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(lines: &[&str]) -> String {
        let lines = lines.iter().map(|&line| line.to_owned()).collect();
        ErrorOutput { lines, is_of_start: false }.quoted()
    }

    #[test]
    fn the_line_that_names_the_cause_comes_first() {
        let node = [
            "node:internal/modules/cjs/loader:1148",
            "  throw err;",
            "  ^",
            "",
            "Error: Cannot find module 'left-pad'",
            "    at Module._load (node:internal)",
            "  [cause]: Error: of another",
            "Node.js v20.1.0",
        ];
        let quotation = quoted(&node);
        assert!(quotation.starts_with("Error: Cannot find module 'left-pad' | "), "{quotation}");
        assert!(quotation.contains(" | Node.js v20.1.0`, after `node:internal"), "{quotation}");
        assert_eq!(quotation.matches("left-pad").count(), 1, "{quotation}");

        let python = ["Traceback (most recent call last):", "  File x", "KeyError: 'API_KEY'"];
        let quotation = quoted(&python);
        assert!(quotation.starts_with("KeyError: 'API_KEY'`, after `Traceback"), "{quotation}");
        assert_eq!(quoted(&["one", "two", "error: three"]), "error: three`, after `one | two");
        assert_eq!(quoted(&["one", "two"]), "one | two");
    }

    #[test]
    fn a_quotation_is_bounded_and_keeps_the_end() {
        let mut lines: Vec<String> = (0..100).map(|number| format!("line {number}")).collect();
        let quoted =
            |lines: &[String]| ErrorOutput { lines: lines.to_vec(), is_of_start: false }.quoted();
        let quotation = quoted(&lines);
        assert!(
            quotation.ends_with("| line 98 | line 99") && !quotation.contains("line 0 "),
            "{quotation}"
        );
        assert!(quotation.len() <= defaults::QUOTE_BYTES_MAX);

        lines.push("ä".repeat(10_000));
        assert!(quoted(&lines).len() <= defaults::QUOTE_BYTES_MAX);
        lines.push(format!("Error: {}", "ä".repeat(10_000)));
        assert!(quoted(&lines).starts_with("Error: ä"));
        assert!(quoted(&lines).len() <= defaults::QUOTE_BYTES_MAX);
    }
}
