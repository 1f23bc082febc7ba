//! A text of a client, in which parts may stand for something that is elsewhere.
//!
//! Pure.

use super::context::ImportContext;

/// How a client writes such parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VariableSyntax {
    /// `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${input:ID}`, `${file:PATH}`, `${userHome}`.
    Dollar,
    /// `{env:NAME}`, `{file:PATH}`.
    Braces,
    /// Not at all.
    Plain,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TextPiece {
    /// What stands for itself.
    Text(String),
    /// A variable of the client's environment.
    Variable {
        /// Its name.
        name: String,
        /// Whether the client knows what to take where it is not set.
        has_default: bool,
    },
    /// What the client asks its user for, by its id.
    Input(String),
    /// The content of a file.
    File(String),
    /// Something of the client's own, by the word for its kind.
    Foreign(String),
}

/// A text of a client. Empty pieces are left out, and no two texts stand side by side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ForeignText(pub(super) Vec<TextPiece>);

impl ForeignText {
    /// Returns a text that stands for itself.
    pub(super) fn plain(text: &str) -> Self {
        let mut found = Self::default();
        found.push(TextPiece::Text(text.to_owned()));
        found
    }

    /// Returns a variable of the client's environment.
    pub(super) fn variable(name: &str) -> Self {
        Self(vec![TextPiece::Variable { name: name.to_owned(), has_default: false }])
    }

    /// Reads a text as a client writes it.
    pub(super) fn read(text: &str, syntax: VariableSyntax, context: &ImportContext) -> Self {
        let open = match syntax {
            VariableSyntax::Dollar => "${",
            VariableSyntax::Braces => "{",
            VariableSyntax::Plain => return Self::plain(text),
        };
        let mut found = Self::default();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(open) {
            found.push(TextPiece::Text(before.to_owned()));
            let piece = after.split_once('}').and_then(|(inside, rest)| {
                let piece = match syntax {
                    VariableSyntax::Dollar => dollar(inside, context),
                    VariableSyntax::Braces | VariableSyntax::Plain => braces(inside, context),
                };
                piece.map(|piece| (piece, rest))
            });
            match piece {
                Some((piece, after)) => {
                    found.push(piece);
                    rest = after;
                }
                // It opens nothing.
                None => {
                    found.push(TextPiece::Text(open.to_owned()));
                    rest = after;
                }
            }
        }
        found.push(TextPiece::Text(rest.to_owned()));
        found
    }

    /// Adds a piece at the end.
    pub(super) fn push(&mut self, piece: TextPiece) {
        match (self.0.last_mut(), piece) {
            (_, TextPiece::Text(text)) if text.is_empty() => {}
            (Some(TextPiece::Text(last)), TextPiece::Text(text)) => last.push_str(&text),
            (_, piece) => self.0.push(piece),
        }
    }

    /// Returns the text if all of it stands for itself.
    pub(super) fn as_plain(&self) -> Option<&str> {
        match &self.0[..] {
            [] => Some(""),
            [TextPiece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the word for the first part that only the client understands.
    pub(super) fn foreign(&self) -> Option<&str> {
        self.0.iter().find_map(|piece| match piece {
            TextPiece::Foreign(word) => Some(word.as_str()),
            TextPiece::Text(_)
            | TextPiece::Variable { .. }
            | TextPiece::Input(_)
            | TextPiece::File(_) => None,
        })
    }
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
    fn what_stands_for_something_else_is_found() {
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
    fn what_opens_nothing_stands_for_itself() {
        for plain in ["", "$A", "${", "${}", "${a b}", "$${", "{env:A}", "x}"] {
            let pieces = read(plain, VariableSyntax::Dollar);
            assert_eq!(ForeignText(pieces).as_plain(), Some(plain), "{plain}");
        }
        assert_eq!(read("${A}", VariableSyntax::Plain), [text("${A}")]);
    }
}
