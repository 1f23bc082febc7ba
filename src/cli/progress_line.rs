//! The progress of a request, redrawn on one line of the terminal.

use std::io::{IsTerminal as _, stderr};

use serde::Deserialize;

use super::{
    output,
    terminal::{self, cut, escape, width},
};

/// The progress that a tool or a script reports.
#[derive(Clone, Debug, Default, Deserialize)]
struct ProgressDisplay {
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

/// The progress line. Nothing is drawn if standard error is not a terminal.
#[derive(Debug)]
pub(super) struct ProgressLine {
    is_terminal: bool,
    is_drawn: bool,
}

/// The escape sequence that clears the line and returns to its start.
const CLEAR: &str = "\r\x1b[2K";

/// The width of the bar, in columns.
const BAR_COLUMNS: usize = 24;

impl ProgressLine {
    /// Returns a line that is not yet drawn.
    pub(super) fn new() -> Self {
        Self { is_terminal: stderr().is_terminal() && !output::is_quiet(), is_drawn: false }
    }

    /// Draws the progress of a notification, given as JSON text.
    pub(super) fn draw(&mut self, params: &str) {
        let Ok(progress) = serde_json::from_str::<ProgressDisplay>(params) else { return };
        if self.is_terminal {
            self.is_drawn = true;
            // The last column stays empty, because some terminals would wrap the line there.
            let columns = terminal::error_width().saturating_sub(1);
            output::eprint(&format!("{CLEAR}{}", line(&progress, columns)));
        }
    }

    /// Erases the line, before other output.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            output::eprint(CLEAR);
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Returns the line: a bar if the total is known, else a counter.
fn line(progress: &ProgressDisplay, columns: usize) -> String {
    let done = progress.progress;
    let mut line = match progress.total.filter(|total| *total > 0.0) {
        Some(total) => {
            let part = (done / total).clamp(0.0, 1.0);
            // The factor is between 0 and 1, so the bar is never longer than its width.
            let full =
                (0..BAR_COLUMNS).filter(|at| (*at as f64) < part * BAR_COLUMNS as f64).count();
            let bar = format!("{}{}", "█".repeat(full), "░".repeat(BAR_COLUMNS - full));
            format!("{bar} {:>3.0} %  {}/{}", part * 100.0, round(done), round(total))
        }
        None => round(done),
    };
    if let Some(message) = &progress.message {
        line.push_str("  ");
        line.push_str(&escape(message));
    }
    debug_assert!(width(&cut(&line, columns)) <= columns, "a line is cut where the terminal ends");
    cut(&line, columns)
}

/// Returns a number with at most two decimals and without trailing zeros.
fn round(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(progress: f64, total: Option<f64>, message: Option<&str>, columns: usize) -> String {
        line(&ProgressDisplay { progress, total, message: message.map(str::to_owned) }, columns)
    }

    #[test]
    fn progress_with_a_known_total_is_shown_as_a_bar() {
        let bar = shown(3.0, Some(4.0), Some("reading\u{1b}[2J"), 80);
        assert_eq!(bar, "██████████████████░░░░░░  75 %  3/4  reading\\u{1b}[2J");
        assert_eq!(shown(9.0, Some(4.0), None, 80), "████████████████████████ 100 %  9/4");
        assert_eq!(shown(0.5, Some(4.0), None, 10), "███░░░░░░…");
    }

    #[test]
    fn progress_without_a_total_is_shown_as_a_counter() {
        assert_eq!(shown(17.0, None, Some("files"), 80), "17  files");
        assert_eq!(shown(0.25, Some(0.0), None, 80), "0.25");
    }
}
