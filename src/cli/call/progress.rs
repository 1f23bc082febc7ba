//! How far a call has come, on one line of the terminal that is written again and again.

use serde::Deserialize;

use crate::cli::{
    output,
    terminal::{self, cut, escape, width},
};

/// What a tool says of its progress.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ProgressDisplay {
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

/// The line. Where standard error is no terminal, there is none.
#[derive(Debug)]
pub(super) struct ProgressLine {
    is_watched: bool,
    is_drawn: bool,
}

/// Begins the line anew: to its start, and nothing on it.
const CLEAR: &str = "\r\x1b[2K";

/// How wide the bar is, in columns. Ours.
const BAR_COLUMNS: usize = 24;

impl ProgressLine {
    /// Returns a line that is not drawn yet.
    pub(super) fn new() -> Self {
        Self { is_watched: terminal::is_watched(), is_drawn: false }
    }

    /// Draws what a notification of progress says, given as JSON text.
    pub(super) fn draw(&mut self, params: &str) {
        let Ok(progress) = serde_json::from_str::<ProgressDisplay>(params) else { return };
        if self.is_watched {
            self.is_drawn = true;
            // One column is left, in which some terminals would break the line.
            let columns = terminal::error_width().saturating_sub(1);
            output::complain(&format!("{CLEAR}{}", line(&progress, columns)));
        }
    }

    /// Takes the line away, before anything else is printed.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            output::complain(CLEAR);
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Returns the line: a bar where the end is known, else a counter.
fn line(progress: &ProgressDisplay, columns: usize) -> String {
    let done = progress.progress;
    let mut line = match progress.total.filter(|total| *total > 0.0) {
        Some(total) => {
            let part = (done / total).clamp(0.0, 1.0);
            // Between 0 and 1, so the product is between 0 and the factor.
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

/// Returns a number without more digits than say something.
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
    fn where_the_end_is_known_there_is_a_bar() {
        let bar = shown(3.0, Some(4.0), Some("reading\u{1b}[2J"), 80);
        assert_eq!(bar, "██████████████████░░░░░░  75 %  3/4  reading\\u{1b}[2J");
        assert_eq!(shown(9.0, Some(4.0), None, 80), "████████████████████████ 100 %  9/4");
        assert_eq!(shown(0.5, Some(4.0), None, 10), "███░░░░░░…");
    }

    #[test]
    fn where_it_is_not_there_is_a_counter() {
        assert_eq!(shown(17.0, None, Some("files"), 80), "17  files");
        assert_eq!(shown(0.25, Some(0.0), None, 80), "0.25");
    }
}
