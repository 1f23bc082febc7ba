//! A mistake in the configuration, shown at its place.
//!
//! Pure: text in, text out. Values of `env` and `headers`, keys and tokens are never shown.

use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
};

use super::{
    masked_line::{masked_line, masked_message, masked_words},
    refusal::Refusal,
    secret::SECRET_TABLES,
};

/// The longest part of a line that is shown, in characters.
const SHOWN_CHARACTERS: usize = 120;

/// The quotes around a string of several lines.
const LONG_QUOTES: [&str; 2] = ["\"\"\"", "'''"];

/// The source of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// This file.
    File(PathBuf),
    /// The variable of this name.
    Environment(String),
    /// This flag, as written on the command line.
    Flag(String),
}

/// One mistake, with its place and the remedy.
///
/// Prints as a compiler does: the message, the place, the line with the text underlined, and help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The source with the mistake.
    pub origin: SettingOrigin,
    /// The line, from 1; for a variable or flag, in its value.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The description of the mistake.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    text: String,
    width: usize,
}

impl Diagnostic {
    /// Returns a diagnostic that concerns a whole variable or flag.
    pub(super) fn of(origin: SettingOrigin, message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            origin,
            line: 1,
            column: 1,
            message: message.into(),
            help: None,
            text: String::new(),
            width: 0,
        })
    }

    pub(super) fn helped(mut self: Box<Self>, help: impl Into<String>) -> Box<Self> {
        self.help = Some(help.into());
        self
    }

    /// Returns the file, or the name of the variable or flag.
    pub fn source(&self) -> String {
        match &self.origin {
            SettingOrigin::File(path) => path.display().to_string(),
            SettingOrigin::Environment(name) | SettingOrigin::Flag(name) => name.clone(),
        }
    }

    /// Returns the place in one word: `FILE:LINE:COLUMN`, or the name of the variable or flag.
    pub fn place(&self) -> String {
        match &self.origin {
            SettingOrigin::File(_) => format!("{}:{}:{}", self.source(), self.line, self.column),
            SettingOrigin::Environment(_) | SettingOrigin::Flag(_) => self.source(),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, message, text, .. } = self;
        // A long line is shown from a little before the place.
        let skipped =
            if text.chars().count() > SHOWN_CHARACTERS { column.saturating_sub(40) } else { 0 };
        let text: String = text.chars().skip(skipped).take(SHOWN_CHARACTERS).collect();
        let width = self.width.min(SHOWN_CHARACTERS);
        let indent = (column - 1).saturating_sub(skipped);
        // Only a file has lines to count.
        let number = match &self.origin {
            SettingOrigin::File(_) => line.to_string(),
            SettingOrigin::Environment(_) | SettingOrigin::Flag(_) => " ".to_owned(),
        };
        let margin = " ".repeat(number.len());
        writeln!(f, "{message}")?;
        write!(f, "{margin}--> {}", self.place())?;
        if !text.is_empty() || width > 0 {
            writeln!(f, "\n{margin} |")?;
            writeln!(f, "{number} | {text}")?;
            write!(f, "{margin} | {}{}", " ".repeat(indent), "^".repeat(width))?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n{margin} = help: {help}")?;
        }
        Ok(())
    }
}

/// One mistake, and its place in the text.
#[derive(Debug)]
pub(super) struct ConfigProblem {
    span: Range<usize>,
    message: String,
    help: Option<String>,
    hidden: HiddenPart,
}

/// The part of the line that is hidden although no key says that it is a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HiddenPart {
    Nothing,
    Values,
    /// The values, and everything from the mistake on.
    FromMistake,
}

impl ConfigProblem {
    pub(super) fn at(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None, hidden: HiddenPart::Nothing }
    }

    /// Hides the values on the line of the mistake.
    pub(super) fn hiding_values(mut self) -> Self {
        self.hidden = HiddenPart::Values;
        self
    }

    /// Hides the values, and everything from the mistake on: the text is not TOML.
    pub(super) fn of_syntax(mut self) -> Self {
        self.hidden = HiddenPart::FromMistake;
        self
    }

    /// Returns the mistake of a refused value at `span`.
    pub(super) fn refused(span: Range<usize>, refusal: Refusal) -> Self {
        Self::at(span, refusal.message).help(refusal.help)
    }

    /// Returns the mistake of `count` things at `span`, of which there may be `most`.
    pub(super) fn too_many(span: Range<usize>, count: usize, things: &str, most: usize) -> Self {
        Self::at(span, format!("{count} {things}")).help(format!("use {most} or less"))
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Returns the byte offset at which the mistake begins.
    pub(super) fn start(&self) -> usize {
        self.span.start
    }

    /// Moves the place of the mistake by `by` bytes.
    pub(super) fn shifted(mut self, by: usize) -> Self {
        self.span = self.span.start + by..self.span.end + by;
        self
    }

    /// Returns the diagnostic for a mistake in one part of `text`, which comes from `origin`.
    pub(super) fn locate_in(
        self,
        origin: SettingOrigin,
        text: &str,
        part: Range<usize>,
    ) -> Diagnostic {
        let span = self.span.start.saturating_sub(part.start)
            ..self.span.end.min(part.end).saturating_sub(part.start);
        let problem = Self { span, ..self };
        let found = problem.locate(Path::new(""), text.get(part).unwrap_or_default());
        Diagnostic { origin, ..found }
    }

    /// Adds this help if there is none.
    pub(super) fn with_default_help(mut self, help: &str) -> Self {
        self.help.get_or_insert_with(|| help.to_owned());
        self
    }

    pub(super) fn locate(self, path: &Path, text: &str) -> Diagnostic {
        let start = floor_char_boundary(text, self.span.start);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_text = text[line_start..].lines().next().unwrap_or_default();
        let before_line = &text[..line_start];
        let end = floor_char_boundary(text, self.span.end.max(start));
        let on_line = end.min(line_start + line_text.len()).max(start);
        let column = text[line_start..start].chars().count() + 1;
        // A tab would move the underline.
        let mut shown = line_text.replace('\t', " ");
        let mut message = self.message;
        let has_login = line_text.contains('@') && line_text.contains([':', '/']);
        let is_secret = has_login || line_text.contains('?') || line_text.contains("-----BEGIN");
        // The line shows no more than the message.
        let is_secret = is_secret || message.contains("***");
        let section = section_before(before_line);
        let is_secret = is_secret || holds_values(section, line_text);
        if is_secret {
            message = masked_message(&message);
        }
        let is_syntax = self.hidden == HiddenPart::FromMistake;
        // In a value that began on an earlier line, nothing is a key. Where quotes are missing, its
        // lines look like keys.
        let is_continued = is_in_long_string(before_line)
            || is_syntax && (has_long_string(before_line) || has_open_quote(section))
            || (is_syntax || is_secret) && is_open(section);
        if is_continued {
            shown = masked_words(&shown);
        } else if is_syntax {
            shown = masked_line(&shown, Some(start - line_start));
        } else if is_secret || self.hidden == HiddenPart::Values {
            shown = masked_line(&shown, None);
        } else if let Some(comment) = shown.find('#') {
            // Perhaps a setting that is commented out.
            shown = format!("{}{}", &shown[..comment], masked_words(&shown[comment..]));
        }
        Diagnostic {
            origin: SettingOrigin::File(path.to_owned()),
            line: before.matches('\n').count() + 1,
            column,
            message,
            help: self.help,
            text: shown,
            width: text[start..on_line].chars().count().max(1),
        }
    }
}

/// Returns whether a line of `section` belongs to `env`, `headers` or arguments of a server, or to a
/// key or token.
fn holds_values(section: &str, line: &str) -> bool {
    let is_values = |word: &str| {
        SECRET_TABLES.contains(&word)
            || matches!(
                word,
                "args" | "command" | "session_key" | "api_key" | "client_secret" | "token"
            )
    };
    let has_values = |text: &str| {
        text.split(|found: char| !found.is_ascii_alphanumeric() && found != '_').any(is_values)
    };
    // In a table of its own, or in a value that began on an earlier line.
    let is_own_table = || has_values(section.lines().next().unwrap_or_default());
    has_values(line) || is_own_table() || has_values(section) && is_open(section)
}

/// Returns the last table of some TOML, from its header on.
fn section_before(before: &str) -> &str {
    let mut line_starts = before.rmatch_indices('\n').map(|(at, _)| at + 1).chain([0]);
    let is_header = |at: &usize| before[*at..].trim_start_matches([' ', '\t']).starts_with('[');
    &before[line_starts.find(is_header).unwrap_or_default()..]
}

/// Returns whether a bracket is open at the end of some TOML. Brackets in strings count too.
fn is_open(text: &str) -> bool {
    let count = |found: char| text.matches(found).count();
    let ends_open = text.trim_end().ends_with(['[', '{', ',']);
    ends_open || count('{') > count('}') || count('[') > count(']') || is_in_long_string(text)
}

/// Returns whether a line of some TOML may have an open string, which goes on in the next lines.
fn has_open_quote(text: &str) -> bool {
    text.lines().any(|line| ['"', '\''].into_iter().any(|it| line.matches(it).count() % 2 == 1))
}

/// Returns whether a string of several lines is open at the end of some TOML.
fn is_in_long_string(text: &str) -> bool {
    LONG_QUOTES.into_iter().any(|quotes| text.matches(quotes).count() % 2 == 1)
}

/// Returns whether some TOML has the quotes of a string of several lines.
fn has_long_string(text: &str) -> bool {
    LONG_QUOTES.into_iter().any(|quotes| text.contains(quotes))
}

fn floor_char_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}
