//! A pattern for the search of tools.

use regex::{Regex, RegexBuilder};

/// The longest pattern, in bytes. Neither people nor models write longer ones.
pub(super) const PATTERN_BYTES_MAX: usize = 1024;

/// The maximum memory of a compiled pattern, in bytes: enough for any pattern written by hand, and
/// too little for `(a{1000}){1000}`.
pub(super) const PROGRAM_BYTES_MAX: usize = 1024 * 1024;

/// A regular expression that ignores case and matches in linear time.
#[derive(Clone, Debug)]
pub struct SearchPattern(Regex);

/// The reason that a text is not a valid pattern.
#[derive(Debug, thiserror::Error)]
pub enum SearchPatternError {
    /// It is too long.
    #[error("a pattern has at most {PATTERN_BYTES_MAX} bytes, this one has {length}")]
    Length {
        /// Its length, in bytes.
        length: usize,
    },
    /// It breaks the grammar; the message shows the place.
    #[error("not a regular expression: {what}\n  {pattern}\n  {}{}", " ".repeat(*column), "^".repeat((*width).max(1)))]
    Syntax {
        /// The pattern as it was read, on one line.
        pattern: String,
        /// The number of characters before the mistake.
        column: usize,
        /// The number of wrong characters.
        width: usize,
        /// The description of the mistake.
        what: String,
    },
    /// It would take too much memory.
    #[error("the pattern would take more than {PROGRAM_BYTES_MAX} bytes of memory")]
    Size,
}

impl SearchPatternError {
    /// Returns the stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Length { .. } => "PATTERN_TOO_LONG",
            Self::Syntax { .. } => "PATTERN_SYNTAX",
            Self::Size => "PATTERN_TOO_LARGE",
        }
    }

    /// Returns what can be done about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Length { .. } => "Search for a part of it.",
            Self::Syntax { .. } => {
                "Write `a|b` for either and `[(]` for a parenthesis as such; there are no look-arounds."
            }
            Self::Size => "Use smaller repetition counts.",
        }
    }
}

impl SearchPattern {
    /// Reads a regular expression; `\|`, `\(`, `\)`, `\{` and `\}` have the meaning of `grep`.
    ///
    /// # Errors
    ///
    /// [`SearchPatternError`] if the text breaks the grammar or exceeds a bound.
    pub fn new(text: &str) -> Result<Self, SearchPatternError> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(SearchPatternError::Length { length: text.len() });
        }
        let pattern = extended(text);
        // `call\(` alone means a literal parenthesis, unlike in `grep`.
        let is_plain = regex_syntax::parse(&pattern).is_err() && regex_syntax::parse(text).is_ok();
        let pattern = if is_plain { text.to_owned() } else { pattern };
        let built = RegexBuilder::new(&pattern)
            .case_insensitive(true)
            .size_limit(PROGRAM_BYTES_MAX)
            .dfa_size_limit(PROGRAM_BYTES_MAX)
            .build();
        match built {
            Ok(regex) => Ok(Self(regex)),
            Err(regex::Error::CompiledTooBig(_)) => Err(SearchPatternError::Size),
            Err(_) => Err(syntax_error(&pattern)),
        }
    }

    /// Returns whether the pattern matches anywhere in `text`.
    pub fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// Converts a pattern of `grep` to the extended grammar.
///
/// In `grep`, a backslash gives `| ( ) { }` their special meaning; here, it removes that meaning.
/// Models write both. Only escaped characters change, so other patterns keep their meaning.
fn extended(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(found) = characters.next() {
        if found != '\\' {
            pattern.push(found);
            continue;
        }
        match characters.next() {
            Some(escaped @ ('|' | '(' | ')' | '{' | '}')) => pattern.push(escaped),
            Some(escaped) => pattern.extend(['\\', escaped]),
            None => pattern.push('\\'),
        }
    }
    pattern
}

/// Locates the mistake in `pattern`, which the compiler refused.
fn syntax_error(pattern: &str) -> SearchPatternError {
    let (what, at) = match regex_syntax::parse(pattern) {
        Err(regex_syntax::Error::Parse(error)) => (error.kind().to_string(), *error.span()),
        Err(regex_syntax::Error::Translate(error)) => (error.kind().to_string(), *error.span()),
        // The parser accepts it, but the compiler does not: it is too large.
        Ok(_) | Err(_) => return SearchPatternError::Size,
    };
    let characters = |text: &str| text.chars().count();
    SearchPatternError::Syntax {
        column: characters(&pattern[..at.start.offset]),
        width: characters(&pattern[at.start.offset..at.end.offset]),
        pattern: pattern.replace(char::is_control, " "),
        what,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_in_both_grammars_of_grep_are_understood() {
        for (pattern, text, is_in) in [
            ("create_(issue|pull)", "git/create_issue", true),
            (r"create_\(issue\|pull\)", "git/create_pull", true),
            (r"o\{2\}k", "book", true),
            (r"o\{3\}k", "book", false),
            ("LOG$", "git/git_log", true),
            (r"call\(", "call(x)", true),
            (r"a\.b", "a-b", false),
            ("wetter|天气", "获取天气", true),
            ("", "anything", true),
        ] {
            assert_eq!(
                SearchPattern::new(pattern).unwrap().is_in(text),
                is_in,
                "{pattern} in {text}"
            );
        }
    }

    #[test]
    fn the_error_of_an_invalid_pattern_shows_the_place_of_the_mistake() {
        let error = SearchPattern::new("list_(issues|pulls").unwrap_err();

        assert_eq!(error.code(), "PATTERN_SYNTAX");
        assert_eq!(
            error.to_string(),
            "not a regular expression: unclosed group\n  list_(issues|pulls\n       ^"
        );
    }

    #[test]
    fn a_pattern_that_needs_too_much_memory_is_refused() {
        for (bomb, code) in [
            ("(a{500}){500}".to_owned(), "PATTERN_TOO_LARGE"),
            ("((((a{99}){99}){99}){99}){99}".to_owned(), "PATTERN_TOO_LARGE"),
            ("(".repeat(1000), "PATTERN_SYNTAX"),
            ("a".repeat(PATTERN_BYTES_MAX + 1), "PATTERN_TOO_LONG"),
        ] {
            assert_eq!(SearchPattern::new(&bomb).unwrap_err().code(), code);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_pattern_or_an_error_that_quotes_it(text in "\\PC{0,40}") {
            if let Err(error) = SearchPattern::new(&text) {
                prop_assert!(!error.to_string().is_empty() && !error.hint().is_empty());
            }
        }
    }
}
