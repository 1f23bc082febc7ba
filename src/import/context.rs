//! What is known of where a file belongs.
//!
//! Pure.

use super::format::ImportFormat;

/// The directories that a file may mean without naming them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportContext {
    /// The home of its user, an absolute path.
    pub home: Option<String>,
    /// The project that it is part of, an absolute path.
    pub project: Option<String>,
}

/// Where a server was declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclarationOrigin {
    /// By which client.
    pub format: ImportFormat,
    /// In which file.
    pub file: String,
    /// For which project, where one file declares servers for several.
    pub project: Option<String>,
}

impl std::fmt::Display for DeclarationOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {}", self.format.client(), self.file)?;
        match &self.project {
            Some(project) => write!(f, ", project {project}"),
            None => Ok(()),
        }
    }
}
