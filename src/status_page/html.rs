//! HTML in which foreign text stays text.

use std::fmt::Display;

use crate::redact;

/// A part of a page. Markup is `'static`, so that no foreign text can be markup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Html(String);

impl Html {
    /// Returns a part that is a text.
    pub fn of_text(text: &str) -> Self {
        let mut html = Self::default();
        html.text(text);
        html
    }

    /// Returns a part that is a number.
    pub fn of_number(number: impl Display) -> Self {
        Self::of_text(&number.to_string())
    }

    /// Adds markup.
    pub fn markup(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds text, also as the value of an attribute in double quotes.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.cut(text, usize::MAX)
    }

    /// Adds the beginning of a text, which takes about `bytes_max` bytes of the page at most.
    pub fn cut(&mut self, text: &str, bytes_max: usize) -> &mut Self {
        let end = self.0.len().saturating_add(bytes_max);
        for found in text.chars() {
            if self.0.len() >= end {
                self.0.push('…');
                break;
            }
            match found {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' | '\t' => self.0.push(found),
                // Such characters hide text, or change the direction of the text around them.
                _ if redact::is_control(found) => self.0.push('\u{fffd}'),
                _ => self.0.push(found),
            }
        }
        self
    }

    /// Adds a parameter of an address in an attribute, whose value may be foreign.
    pub fn parameter(&mut self, name: &'static str, value: &str) -> &mut Self {
        self.markup(name).markup("=");
        form_urlencoded::byte_serialize(value.as_bytes()).for_each(|part| self.0.push_str(part));
        self
    }

    /// Adds a number.
    pub fn number(&mut self, number: impl Display) -> &mut Self {
        self.text(&number.to_string())
    }

    /// Adds another part.
    pub fn part(&mut self, part: &Self) -> &mut Self {
        self.0.push_str(&part.0);
        self
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the part has no content.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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
        html.text("a\u{202e}b\u{0}\u{1b}c\u{e0041}\n");
        assert_eq!(html.as_str(), "a\u{fffd}b\u{fffd}\u{fffd}c\u{fffd}\n");
    }

    #[test]
    fn a_cut_text_and_a_parameter_stay_inside_their_place() {
        let mut html = Html::default();
        html.cut("<<<<<<<<", 8).markup(" ").cut("ab", 8).markup(" ");
        html.parameter("q", "a b&c=\"'<\u{202e}");
        assert_eq!(html.as_str(), "&lt;&lt;… ab q=a+b%26c%3D%22%27%3C%E2%80%AE");
    }
}
