//! HTML in which foreign text stays text.

use std::fmt::{Display, Write as _};

/// A part of a page. Markup is `'static`, so that no foreign text can be markup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Html(String);

impl Html {
    /// Adds markup.
    pub fn markup(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds text, also as the value of an attribute in double quotes.
    pub fn text(&mut self, text: &str) -> &mut Self {
        for found in text.chars() {
            match found {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // Characters that change the direction of the text around them, or are not allowed.
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => {
                    self.0.push('\u{fffd}');
                }
                found if found.is_control() && !matches!(found, '\n' | '\t') => {
                    self.0.push('\u{fffd}');
                }
                found => self.0.push(found),
            }
        }
        self
    }

    /// Adds a number, or another value that needs no escape since it is of metamcp.
    pub fn number(&mut self, number: impl Display) -> &mut Self {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _infallible = write!(text, "{number}");
        self.text(&text)
    }

    /// Adds another part.
    pub fn part(&mut self, part: &Self) -> &mut Self {
        self.0.push_str(&part.0);
        self
    }

    /// Returns the text of the part.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the text of the part.
    pub fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_never_markup() {
        let mut html = Html::default();
        html.markup("<a title=\"").text("\" onclick='x' <script>&amp;").markup("\">");
        assert_eq!(
            html.as_str(),
            "<a title=\"&quot; onclick=&#39;x&#39; &lt;script&gt;&amp;amp;\">"
        );
        let mut html = Html::default();
        html.text("a\u{202e}b\u{0}\u{1b}c\n");
        assert_eq!(html.as_str(), "a\u{fffd}b\u{fffd}\u{fffd}c\n");
    }
}
