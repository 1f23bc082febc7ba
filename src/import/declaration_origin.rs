//! The origin of a file and of its declarations.
//!
//! Pure.

use super::known_client::KnownClient;

/// The directories that a file may refer to implicitly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportContext {
    /// The home of its user, an absolute path.
    pub home: Option<String>,
    /// The project that contains it, an absolute path.
    pub project: Option<String>,
}

/// The origin of a server's declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclarationOrigin {
    /// The client.
    pub client: KnownClient,
    /// The file.
    pub file: String,
    /// The project, if one file declares servers for several.
    pub project: Option<String>,
}

/// A file with declarations, as its parser needs it.
pub(super) struct SourceFile {
    pub(super) origin: DeclarationOrigin,
    pub(super) context: ImportContext,
}

impl SourceFile {
    /// Returns the file for the servers of the project at `path`.
    pub(super) fn of_project(&self, path: &str) -> Self {
        let project = Some(path.to_owned());
        let origin = DeclarationOrigin { project: project.clone(), ..self.origin.clone() };
        Self { origin, context: ImportContext { project, ..self.context.clone() } }
    }
}

impl std::fmt::Display for DeclarationOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {}", self.client.title(), self.file)?;
        match &self.project {
            Some(project) => write!(f, ", project {project}"),
            None => Ok(()),
        }
    }
}
