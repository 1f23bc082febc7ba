//! A text of a client, with references to values stored elsewhere.
//!
//! Pure.

use super::declaration_origin::ImportContext;

/// The syntax of references in a client's texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VariableSyntax {
    /// `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${input:ID}`, `${file:PATH}`, `${userHome}`.
    Dollar,
    /// `{env:NAME}`, `{file:PATH}`.
    Braces,
    /// As `Dollar`, and `$NAME`.
    Shell,
    /// No references.
    Plain,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TextPiece {
    /// Literal text.
    Text(String),
    /// A variable of the client's environment.
    Variable {
        /// Its name.
        name: String,
        /// The reference has a default value.
        has_default: bool,
    },
    /// A value that the client asks its user for, by its id.
    Input(String),
    /// The content of a file.
    File(String),
    /// A reference that only the client can resolve, by its kind.
    Foreign(String),
}

/// A text of a client. It has no empty pieces, and no two adjacent literal texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ForeignText(pub(super) Vec<TextPiece>);

impl ForeignText {
    pub(super) fn plain(text: &str) -> Self {
        let mut found = Self::default();
        found.push(TextPiece::Text(text.to_owned()));
        found
    }

    /// Returns a reference to a variable of the client's environment.
    pub(super) fn variable(name: &str) -> Self {
        Self(vec![TextPiece::Variable { name: name.to_owned(), has_default: false }])
    }

    /// Parses a text in the syntax of a client.
    pub(super) fn read(text: &str, syntax: VariableSyntax, context: &ImportContext) -> Self {
        let open = match syntax {
            VariableSyntax::Dollar => "${",
            VariableSyntax::Shell => "$",
            VariableSyntax::Braces => "{",
            VariableSyntax::Plain => return Self::plain(text),
        };
        let mut found = Self::default();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(open) {
            found.push(TextPiece::Text(before.to_owned()));
            let piece = match (syntax, after.strip_prefix('{')) {
                (VariableSyntax::Shell, None) => bare(after, context),
                (VariableSyntax::Shell, Some(after)) => enclosed(after, context, dollar),
                (VariableSyntax::Dollar, _) => enclosed(after, context, dollar),
                (VariableSyntax::Braces | VariableSyntax::Plain, _) => {
                    enclosed(after, context, braces)
                }
            };
            match piece {
                Some((piece, after)) => {
                    found.push(piece);
                    rest = after;
                }
                // The brace does not begin a reference.
                None => {
                    found.push(TextPiece::Text(open.to_owned()));
                    rest = after;
                }
            }
        }
        found.push(TextPiece::Text(rest.to_owned()));
        found
    }

    pub(super) fn push(&mut self, piece: TextPiece) {
        match (self.0.last_mut(), piece) {
            (_, TextPiece::Text(text)) if text.is_empty() => {}
            (Some(TextPiece::Text(last)), TextPiece::Text(text)) => last.push_str(&text),
            (_, piece) => self.0.push(piece),
        }
    }

    /// Returns the text if all of it is literal.
    pub(super) fn as_plain(&self) -> Option<&str> {
        match &self.0[..] {
            [] => Some(""),
            [TextPiece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the kind of the first reference that only the client can resolve.
    pub(super) fn foreign(&self) -> Option<&str> {
        self.0.iter().find_map(|piece| match piece {
            TextPiece::Foreign(word) => Some(word.as_str()),
            _ => None,
        })
    }
}

/// Reads a reference up to its closing brace, and returns the text behind it.
fn enclosed<'a>(
    after: &'a str,
    context: &ImportContext,
    read: fn(&str, &ImportContext) -> Option<TextPiece>,
) -> Option<(TextPiece, &'a str)> {
    let (inside, rest) = after.split_once('}')?;
    Some((read(inside, context)?, rest))
}

/// Reads a name without braces, and returns the text behind it.
fn bare<'a>(after: &'a str, context: &ImportContext) -> Option<(TextPiece, &'a str)> {
    let is_part = |found: char| found.is_ascii_alphanumeric() || found == '_';
    let end = after.find(|found| !is_part(found)).unwrap_or(after.len());
    let (name, rest) = after.split_at(end);
    is_name(name).then(|| (variable(name, false, context), rest))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|found: char| found.is_ascii_digit())
        && text.chars().all(|found| found.is_ascii_alphanumeric() || found == '_')
}

fn variable(name: &str, has_default: bool, context: &ImportContext) -> TextPiece {
    let known = match name {
        "HOME" => context.home.as_ref(),
        "CLAUDE_PROJECT_DIR" => context.project.as_ref(),
        _ => None,
    };
    match known {
        Some(path) => TextPiece::Text(path.clone()),
        None => TextPiece::Variable { name: name.to_owned(), has_default },
    }
}

fn file(path: &str, context: &ImportContext) -> TextPiece {
    match (path.strip_prefix("~/"), &context.home) {
        (Some(rest), Some(home)) => TextPiece::File(format!("{home}/{rest}")),
        _ => TextPiece::File(path.to_owned()),
    }
}

fn dollar(inside: &str, context: &ImportContext) -> Option<TextPiece> {
    if let Some((name, _)) = inside.split_once(":-")
        && is_name(name)
    {
        return Some(variable(name, true, context));
    }
    let foreign = |word: &str| TextPiece::Foreign(word.to_owned());
    let path = |path: &Option<String>, word: &str| match path {
        Some(path) => TextPiece::Text(path.clone()),
        None => foreign(word),
    };
    match inside.split_once(':') {
        Some(("env", name)) if is_name(name) => Some(variable(name, false, context)),
        Some(("input", id)) if !id.is_empty() => Some(TextPiece::Input(id.to_owned())),
        Some(("file", path)) if !path.is_empty() => Some(file(path, context)),
        Some((word @ ("command" | "config" | "workspaceFolder" | "env" | "input"), _)) => {
            Some(foreign(word))
        }
        Some(_) => None,
        None => match inside {
            "userHome" => Some(path(&context.home, inside)),
            "workspaceFolder" | "workspaceRoot" | "cwd" => Some(path(&context.project, inside)),
            "workspaceFolderBasename" => {
                let name = context
                    .project
                    .as_ref()
                    .map(|path| path.rsplit('/').next().unwrap_or_default().to_owned());
                Some(path(&name, inside))
            }
            "pathSeparator" | "/" => Some(TextPiece::Text("/".to_owned())),
            name if is_name(name) => Some(variable(name, false, context)),
            _ => None,
        },
    }
}

fn braces(inside: &str, context: &ImportContext) -> Option<TextPiece> {
    match inside.split_once(':') {
        Some(("env", name)) if is_name(name) => Some(variable(name, false, context)),
        Some(("file", path)) if !path.is_empty() => Some(file(path, context)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, syntax: VariableSyntax) -> Vec<TextPiece> {
        let context = ImportContext {
            home: Some("/home/ada".to_owned()),
            project: Some("/srv/shop".to_owned()),
        };
        ForeignText::read(text, syntax, &context).0
    }

    fn text(text: &str) -> TextPiece {
        TextPiece::Text(text.to_owned())
    }

    fn variable(name: &str, has_default: bool) -> TextPiece {
        TextPiece::Variable { name: name.to_owned(), has_default }
    }

    #[test]
    fn a_variable_reference_in_a_client_configuration_is_recognised() {
        let dollar = |text| read(text, VariableSyntax::Dollar);
        assert_eq!(dollar("${TOKEN}"), [variable("TOKEN", false)]);
        assert_eq!(
            dollar("a ${env:A}${B:-x:y}"),
            [text("a "), variable("A", false), variable("B", true)]
        );
        assert_eq!(dollar("${input:key}"), [TextPiece::Input("key".to_owned())]);
        assert_eq!(dollar("${workspaceFolder}${/}x${userHome}"), [text("/srv/shop/x/home/ada")]);
        assert_eq!(dollar("${config:editor.x}"), [TextPiece::Foreign("config".to_owned())]);
        assert_eq!(
            read("{env:A}{b} {file:~/k}", VariableSyntax::Braces),
            [variable("A", false), text("{b} "), TextPiece::File("/home/ada/k".to_owned())]
        );
    }

    #[test]
    fn a_variable_may_stand_without_braces_as_in_a_shell() {
        let read = |text| read(text, VariableSyntax::Shell);
        assert_eq!(
            read("a-$B_1/${C}$ $1"),
            [text("a-"), variable("B_1", false), text("/"), variable("C", false), text("$ $1")]
        );
    }

    #[test]
    fn a_text_that_opens_no_variable_is_kept_as_plain_text() {
        for plain in ["", "$A", "${", "${}", "${a b}", "$${", "{env:A}", "x}"] {
            let pieces = read(plain, VariableSyntax::Dollar);
            assert_eq!(ForeignText(pieces).as_plain(), Some(plain), "{plain}");
        }
        assert_eq!(read("${A}", VariableSyntax::Plain), [text("${A}")]);
    }
}
