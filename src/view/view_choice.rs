//! The views, and the table of the paths and names by which clients choose them.
//!
//! Pure.

use crate::{server_name::ServerName, session::ServerScope};

/// A view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// All servers; tools and prompts are called `server__item`.
    Direct,
    /// All tools behind a few meta-tools that search, describe and call them.
    Meta,
    /// One server, with its own names.
    Passthrough {
        /// The server.
        server: ServerName,
        /// It is the root view, whose `initialize` does not wait for the server.
        is_root: bool,
    },
}

impl View {
    /// Returns the servers that a client's session at this view covers.
    pub fn scope(&self) -> ServerScope {
        match self {
            Self::Direct => ServerScope::Every,
            Self::Meta => ServerScope::Tools,
            Self::Passthrough { server, .. } => ServerScope::One(server.clone()),
        }
    }
}

/// The choice of a view by a client, by path or by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewChoice<'a> {
    /// The view that the operator declares.
    Root,
    /// All servers merged.
    Direct,
    /// All tools behind the meta-tools.
    Meta,
    /// The server of this name.
    Server(&'a str),
}

impl<'a> ViewChoice<'a> {
    /// Returns the choice that a path stands for, if any.
    pub fn at_path(path: &'a str) -> Option<Self> {
        Some(match path {
            "/" | "/mcp" => Self::Root,
            "/direct" => Self::Direct,
            "/meta" => Self::Meta,
            _ => Self::Server(path.strip_prefix("/servers/")?),
        })
    }

    /// Returns its path.
    pub fn path(self) -> String {
        match self {
            Self::Root => "/".to_owned(),
            Self::Direct => "/direct".to_owned(),
            Self::Meta => "/meta".to_owned(),
            Self::Server(name) => format!("/servers/{name}"),
        }
    }

    /// Returns the choice with this name, if any; that of a server has none.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Root, Self::Direct, Self::Meta].into_iter().find(|view| view.name() == Some(name))
    }

    /// Returns its name, unless it is that of a server.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Root => Some("root"),
            Self::Direct => Some("direct"),
            Self::Meta => Some("meta"),
            Self::Server(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_view_is_chosen_by_its_path_and_by_its_name() {
        for view in [ViewChoice::Root, ViewChoice::Direct, ViewChoice::Meta] {
            assert_eq!(ViewChoice::at_path(&view.path()), Some(view));
            assert_eq!(view.name().and_then(ViewChoice::named), Some(view));
        }
        let git = ViewChoice::Server("git");
        assert_eq!((ViewChoice::at_path("/servers/git"), git.name()), (Some(git), None));
        assert_eq!(git.path(), "/servers/git");
        assert_eq!(ViewChoice::at_path("/mcp"), Some(ViewChoice::Root));
        for other in ["", "/servers", "/meta/", "/direct/git", "/sse"] {
            assert_eq!(ViewChoice::at_path(other), None, "{other}");
        }
    }
}
