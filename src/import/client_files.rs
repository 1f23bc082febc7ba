//! The paths of the clients' files.
//!
//! Pure: no path is accessed here. The paths are those on Linux.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    client_profile::{ClientFile, FileRoot},
    declaration_origin::ImportContext,
    known_client::KnownClient,
};

/// The directories that the paths of clients' files are relative to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileRoots {
    /// The home of the user.
    pub home: Option<PathBuf>,
    /// The user's configuration directory.
    pub config: Option<PathBuf>,
    /// The current directory.
    pub project: Option<PathBuf>,
    /// The directories that variables name, by the variable.
    pub moved: BTreeMap<&'static str, PathBuf>,
}

impl FileRoots {
    /// Returns the directories of this process.
    pub fn of_process() -> Self {
        let home = std::env::home_dir();
        let config = std::env::var_os("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| home.as_ref().map(|home| home.join(".config")));
        let moved = places().filter_map(|(_, file)| {
            let variable = file.moved?.variable;
            let named = std::env::var_os(variable).filter(|named| !named.is_empty())?;
            Some((variable, std::path::absolute(named).ok()?))
        });
        Self { home, config, project: std::env::current_dir().ok(), moved: moved.collect() }
    }

    /// Returns the absolute path of a file; `None` if its directory is unknown. In the home
    /// directory, the paths of a project are those of the user.
    pub fn path(&self, file: &ClientFile) -> Option<PathBuf> {
        let moved =
            file.moved.and_then(|moved| Some((self.moved.get(moved.variable)?, moved.path)));
        if let Some((directory, path)) = moved {
            return Some(directory.join(path));
        }
        let root = match file.root {
            FileRoot::Home => &self.home,
            FileRoot::Config => &self.config,
            FileRoot::Project if self.project == self.home => &None,
            FileRoot::Project => &self.project,
        };
        root.as_ref().map(|root| root.join(file.path))
    }
}

/// Returns the files of all clients, those of the user before those of a project.
pub fn places() -> impl Iterator<Item = (KnownClient, &'static ClientFile)> {
    let of = |is_wanted: fn(FileRoot) -> bool| {
        KnownClient::ALL.into_iter().flat_map(move |client| {
            let files = client.profile().files.iter().filter(move |file| is_wanted(file.root));
            files.map(move |file| (client, file))
        })
    };
    of(|root| root != FileRoot::Project).chain(of(|root| root == FileRoot::Project))
}

/// Returns the user and project that the file at `path`, an absolute path, belongs to.
pub fn context_of(path: &Path, home: Option<&Path>) -> ImportContext {
    let directory = path.parent().unwrap_or(path);
    let of_projects = places().filter(|(_, file)| file.root == FileRoot::Project);
    let depth = of_projects
        .filter(|(_, file)| path.ends_with(file.path))
        .map(|(_, file)| Path::new(file.path).components().count())
        .max();
    let project = depth.and_then(|depth| path.ancestors().nth(depth)).unwrap_or(directory);
    // A file that applies to all projects of the user belongs to no project.
    let is_below_home = |file: &ClientFile| {
        file.root == FileRoot::Home && file.path.contains('/') && path.ends_with(file.path)
    };
    let is_users = home
        .is_some_and(|home| project == home || project.starts_with(home.join(".config")))
        || depth.is_none() && places().any(|(_, file)| is_below_home(file))
        || directory.ends_with("User")
        || directory.ends_with("Claude");
    ImportContext {
        home: home.map(|home| home.display().to_string()),
        project: Some(project.display().to_string()).filter(|_| !is_users),
    }
}
