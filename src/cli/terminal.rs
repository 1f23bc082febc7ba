//! The properties of the terminal that a command writes to.

use std::{
    io::{IsTerminal as _, stderr, stdout},
    sync::OnceLock,
};

use unicode_width::UnicodeWidthChar as _;

use crate::redact;

/// The assumed width of a terminal that does not report it, in columns.
const WIDTH: usize = 80;

pub(super) fn is_stdout_terminal() -> bool {
    stdout().is_terminal()
}

/// The cases in which the output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ColourChoice {
    /// On a terminal, unless the environment forbids it.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The choice of the command line.
static CHOICE: OnceLock<ColourChoice> = OnceLock::new();

/// Sets the choice of the command line, once.
pub(super) fn choose_colour(choice: ColourChoice) {
    let _is_first = CHOICE.set(choice);
}

/// Returns `true` if standard output may be coloured.
pub(super) fn is_coloured() -> bool {
    let is_set = |name: &str, off: &str| {
        std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != off)
    };
    match CHOICE.get().copied().unwrap_or_default() {
        ColourChoice::Always => true,
        ColourChoice::Never => false,
        // Source: no-color.org, bixense.com/clicolors.
        ColourChoice::Auto if is_set("NO_COLOR", "") => false,
        ColourChoice::Auto if is_set("CLICOLOR_FORCE", "0") => true,
        ColourChoice::Auto => {
            let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
            is_stdout_terminal() && !is_dumb
        }
    }
}

/// Returns the columns and lines of standard output, if it is a terminal.
pub(super) fn size() -> Option<(usize, usize)> {
    is_stdout_terminal().then(|| size_of(stdout())).map(|size| size.unwrap_or((WIDTH, usize::MAX)))
}

/// Returns the columns of standard error; 80 if unknown.
pub(super) fn error_width() -> usize {
    size_of(stderr()).map_or(WIDTH, |(width, _)| width)
}

fn size_of(stream: impl rustix::fd::AsFd) -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    // Some pseudo-terminals report a size of 0.
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col.into(), size.ws_row.into()))
}

/// Returns the width of a text in columns.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(|found| found.width().unwrap_or(0)).sum()
}

/// Returns the part of a text that fits into `columns`; a shortened text ends with `…`.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let fits = |found: &char| {
        let width = found.width().unwrap_or(0);
        let fits = width <= left;
        left = if fits { left - width } else { 0 };
        fits
    };
    let head: String = text.chars().take_while(fits).collect();
    if columns == 0 { String::new() } else { format!("{head}…") }
}

/// Returns the lines of a text that fit into `columns`, broken between words where possible. No
/// character other than a space is lost.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let gap = usize::from(!line.is_empty());
        if width(&line) + gap + width(word) > columns && !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        // A word that is longer than a line is broken anywhere.
        for found in word.chars() {
            if width(&line) + found.width().unwrap_or(0) > columns && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            line.push(found);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Returns a text on one line, with control characters escaped.
pub(super) fn escape(text: &str) -> String {
    escape_if(text, redact::is_control)
}

/// Returns a text of several lines, with control characters escaped.
pub(super) fn escape_lines(text: &str) -> String {
    escape_if(text, |found| redact::is_control(found) && !matches!(found, '\n' | '\t'))
}

fn escape_if(text: &str, is_unruly: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for found in text.chars() {
        match is_unruly(found) {
            true => escaped.extend(found.escape_default()),
            false => escaped.push(found),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_steer_the_terminal() {
        let text = "a\u{1b}[2Jb\u{202e}c\r\nä\t\u{1f642}";
        assert_eq!(escape(text), "a\\u{1b}[2Jb\\u{202e}c\\r\\nä\\t\u{1f642}");
        assert_eq!(escape_lines(text), "a\\u{1b}[2Jb\\u{202e}c\\r\nä\t\u{1f642}");
    }

    #[test]
    fn a_text_that_is_too_wide_is_cut_at_a_whole_character() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("abc", 0), "");
        for columns in 0..12 {
            assert!(width(&cut("a日b本c語d", columns)) <= columns);
        }
    }

    #[test]
    fn a_text_is_wrapped_between_words_and_a_long_word_anywhere() {
        assert_eq!(wrap("ab cd ef", 5), ["ab cd", "ef"]);
        assert_eq!(wrap("a abcdefgh b", 4), ["a", "abcd", "efgh", "b"]);
        assert_eq!(wrap("日本語", 4), ["日本", "語"]);
        assert!(wrap(" ", 4).is_empty());
    }
}
