//! The settings of the catalog: `[catalog]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{refusal::Refusal, reload_effect::ReloadEffect};

/// The settings of the catalog.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CatalogConfig {
    /// The directory in which metamcp keeps definitions of tools for the next start, an absolute
    /// path, or "off". Without it, `$CACHE_DIRECTORY` or the cache directory of the user.
    #[schemars(with = "String", title = "absolute path as a string, or off", regex(pattern = "^(off|/.+)$"), extend("x-reload" = ReloadEffect::Restart))]
    pub cache: CatalogCache,
    /// If `true`, metamcp reads all lists of a server when it first connects it. It also connects
    /// servers with unknown lists in the background, at most two at a time.
    pub prime: bool,
}

impl Default for CatalogConfig {
    fn default() -> Self {
        Self { cache: CatalogCache::default(), prime: true }
    }
}

/// The place where definitions of tools are kept between runs of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum CatalogCache {
    /// The cache directory from systemd, or that of the user.
    #[default]
    Found,
    /// No place: nothing is kept.
    Off,
    /// This directory.
    Directory(PathBuf),
}

/// The word for [`CatalogCache::Off`].
const OFF: &str = "off";

impl TryFrom<String> for CatalogCache {
    type Error = Refusal;

    fn try_from(text: String) -> Result<Self, Refusal> {
        let path = PathBuf::from(&text);
        if text == OFF {
            return Ok(Self::Off);
        }
        if !path.is_absolute() || path.file_name().is_none() || text.contains('\0') {
            return Err(Refusal::new(
                format!("`{}` is not an absolute path of a directory", text.escape_debug()),
                "write one, as in \"/var/cache/metamcp\", or \"off\", or leave the key out for the directory of the service",
            ));
        }
        Ok(Self::Directory(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::tests::{bad, good};

    #[test]
    fn the_cache_directory_is_found_declared_or_off() {
        let cache = |text: &str| good(&format!("[catalog]\n{text}\n")).catalog.cache;
        assert_eq!(good("").catalog.cache, CatalogCache::Found);
        assert_eq!(cache(""), CatalogCache::Found);
        assert_eq!(cache("cache = \"off\""), CatalogCache::Off);
        let directory = CatalogCache::Directory("/var/cache/metamcp".into());
        assert_eq!(cache("cache = \"/var/cache/metamcp\""), directory);
    }

    #[test]
    fn lists_are_primed_unless_the_file_says_otherwise() {
        assert!(good("").catalog.prime && good("[catalog]\n").catalog.prime);
        assert!(!good("[catalog]\nprime = false\n").catalog.prime);
    }

    #[test]
    fn a_cache_value_that_is_not_a_directory_is_refused_with_the_remedy() {
        insta::assert_snapshot!(bad("[catalog]\ncache = \"cache\"\n"), @r#"
        `cache` is not an absolute path of a directory
         --> c.toml:2:9
          |
        2 | cache = "cache"
          |         ^^^^^^^
          = help: write one, as in "/var/cache/metamcp", or "off", or leave the key out for the directory of the service
        "#);
        insta::assert_snapshot!(bad("[catalog]\ncache = false\n"), @r#"
        invalid type: boolean `false`, expected a string
         --> c.toml:2:9
          |
        2 | cache = false
          |         ^^^^^
          = help: write a text in quotes, as in "text"
        "#);
        for path in ["", "/", "Off", "/a/..", "/a\\u0000"] {
            let shown = bad(&format!("[catalog]\ncache = \"{path}\"\n"));
            assert!(shown.contains("is not an absolute path of a directory"), "{path}: {shown}");
        }
    }
}
