//! One page of a registry's list of servers, with install instructions for each entry. Pure.
//!
//! Anyone can publish there. Entries are only ever shown, with bounded texts. A package name that a
//! shell could misread does not become part of a command line.

use serde_json::Value;

use crate::{config::defaults, redact::cut};

/// The key of the registry's own metadata about an entry.
const OFFICIAL: &str = "io.modelcontextprotocol.registry/official";

/// The longest name, in bytes. Source: the schema of an entry, 200 characters.
const NAME_BYTES_MAX: usize = 200;

/// The longest cursor, in bytes: it becomes part of a URL.
const CURSOR_BYTES_MAX: usize = 1024;

/// A server that a registry lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::provision) struct RegistryEntry {
    /// The name: a reversed domain and a name within it.
    pub(in crate::provision) name: String,
    /// The title for people; may be empty.
    pub(in crate::provision) title: String,
    /// The description.
    pub(in crate::provision) description: String,
    /// The instructions for declaring the server.
    pub(in crate::provision) install: String,
}

impl RegistryEntry {
    /// Returns the entry in the form of a tool definition, for the search.
    pub(in crate::provision) fn definition(&self) -> String {
        let Self { name, title, description, .. } = self;
        serde_json::json!({ "name": name, "title": title, "description": description }).to_string()
    }
}

/// A page of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RegistryPage {
    pub(super) entries: Vec<RegistryEntry>,
    /// The cursor of the next page.
    pub(super) next: Option<String>,
}

/// Returns name, description and instructions of each entry on a page, given as JSON text. For the
/// fuzz targets.
#[doc(hidden)]
pub fn read_page(answer: &str) -> Option<Vec<[String; 3]>> {
    let page = RegistryPage::read(&serde_json::from_str(answer).ok()?)?;
    let words = |entry: RegistryEntry| [entry.name, entry.description, entry.install];
    Some(page.entries.into_iter().map(words).collect())
}

impl RegistryPage {
    /// Reads a page, in the present format of the API or in the older one with a plain list.
    /// Returns `None` if it is not a list. Leaves out entries that are invalid, withdrawn or not the
    /// latest.
    pub(super) fn read(answer: &Value) -> Option<Self> {
        let servers = answer.get("servers").unwrap_or(answer).as_array()?;
        let entries = servers.iter().take(defaults::REGISTRY_PAGE_ITEMS).filter_map(entry);
        let metadata = answer.get("metadata");
        let cursor = |key| metadata.and_then(|found| found.get(key)).and_then(Value::as_str);
        let next = cursor("nextCursor").or_else(|| cursor("next_cursor"));
        let next =
            next.filter(|next| (1..=CURSOR_BYTES_MAX).contains(&next.len())).map(str::to_owned);
        Some(Self { entries: entries.collect(), next })
    }
}

fn entry(listed: &Value) -> Option<RegistryEntry> {
    let server = listed.get("server").unwrap_or(listed);
    let official = [listed, server].into_iter().find_map(|at| at.get("_meta")?.get(OFFICIAL));
    let member = |key| official.and_then(|found| found.get(key)).or_else(|| server.get(key));
    let is_withdrawn =
        member("status").and_then(Value::as_str).is_some_and(|word| word != "active");
    let is_old = member("isLatest").and_then(Value::as_bool) == Some(false);
    if is_withdrawn || is_old {
        return None;
    }
    let text = |key| server.get(key).and_then(Value::as_str).unwrap_or_default();
    let name = text("name");
    let is_name = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name.chars().all(|found| found.is_ascii_graphic());
    let bounded = |key| cut(text(key), defaults::DESCRIPTION_BYTES_MAX).to_owned();
    is_name.then(|| RegistryEntry {
        name: name.to_owned(),
        title: bounded("title"),
        description: bounded("description"),
        install: install(server),
    })
}

/// Returns the instructions for declaring a server, by its first package or remote.
fn install(server: &Value) -> String {
    let first = |key| server.get(key).and_then(Value::as_array).and_then(|all| all.first());
    first("packages")
        .and_then(of_package)
        .or_else(|| first("remotes").and_then(of_remote))
        .unwrap_or_else(|| "see its entry in the registry".to_owned())
}

fn of_package(package: &Value) -> Option<String> {
    let word = |keys: [&str; 2]| keys.into_iter().find_map(|key| package.get(key)?.as_str());
    let identifier = word(["identifier", "name"]).filter(|text| is_plain(text))?;
    let version = word(["version"; 2]).filter(|text| is_plain(text));
    let with = |separator: &str| match version {
        Some(version) => format!("{identifier}{separator}{version}"),
        None => identifier.to_owned(),
    };
    Some(match word(["registryType", "registry_type"])? {
        "npm" => format!("npx -y {}", with("@")),
        "pypi" => format!("uvx {}", with("@")),
        "oci" if identifier.contains(['@']) || after_last_slash(identifier).contains(':') => {
            format!("docker run -i --rm {identifier}")
        }
        "oci" => format!("docker run -i --rm {}", with(":")),
        "nuget" => format!("dnx {} --yes", with("@")),
        "mcpb" => format!("the bundle {identifier}"),
        other if is_plain(other) => format!("the {other} package {}", with(" ")),
        _ => return None,
    })
}

fn of_remote(remote: &Value) -> Option<String> {
    let url = remote.get("url")?.as_str()?;
    let is_url = url.starts_with("https://") || url.starts_with("http://");
    (is_url && is_plain(url)).then(|| format!("url = \"{url}\""))
}

fn after_last_slash(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or(text)
}

/// Returns whether a text can only be read as a plain word, not as an option or shell syntax.
fn is_plain(text: &str) -> bool {
    let is_harmless = |found: char| found.is_ascii_alphanumeric() || "@/._:+-~".contains(found);
    (1..=NAME_BYTES_MAX).contains(&text.len())
        && !text.starts_with('-')
        && text.chars().all(is_harmless)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listed(entry: Value) -> Option<RegistryEntry> {
        RegistryPage::read(&json!({ "servers": [entry] })).expect("a list").entries.pop()
    }

    #[test]
    fn registry_entries_are_read_with_and_without_metadata() {
        let server = json!({ "name": "com.example/weather", "description": "forecasts" });
        let expected = RegistryEntry {
            name: "com.example/weather".into(),
            title: String::new(),
            description: "forecasts".into(),
            install: "see its entry in the registry".into(),
        };
        let meta = json!({ OFFICIAL: { "status": "active", "isLatest": true } });
        for answer in [
            json!({ "servers": [{ "server": server, "_meta": meta }], "metadata": { "count": 1 } }),
            json!({ "servers": [server], "metadata": { "next_cursor": "" } }),
            json!([server]),
        ] {
            let page = RegistryPage::read(&answer).expect("a list");
            assert_eq!(
                page,
                RegistryPage { entries: vec![expected.clone()], next: None },
                "{answer}"
            );
        }
        let page =
            RegistryPage::read(&json!({ "servers": [], "metadata": { "nextCursor": "a/b" } }));
        assert_eq!(page.expect("a list").next.as_deref(), Some("a/b"));
    }

    #[test]
    fn a_malformed_registry_page_is_rejected_and_a_malformed_entry_is_skipped() {
        for answer in [json!(null), json!({}), json!({ "servers": {} }), json!("x")] {
            assert_eq!(RegistryPage::read(&answer), None, "{answer}");
        }
        for entry in [
            json!(null),
            json!({ "description": "nameless" }),
            json!({ "name": "" }),
            json!({ "name": "a b" }),
            json!({ "name": "x".repeat(201) }),
            json!({ "name": 7 }),
            json!({ "name": "a/b", "status": "deleted" }),
            json!({ "server": { "name": "a/b" }, "_meta": { OFFICIAL: { "status": "deprecated" } } }),
            json!({ "server": { "name": "a/b" }, "_meta": { OFFICIAL: { "isLatest": false } } }),
        ] {
            assert_eq!(listed(entry.clone()), None, "{entry}");
        }
    }

    #[test]
    fn each_kind_of_package_has_install_instructions() {
        for (server, install) in [
            (
                json!({ "packages": [{ "registryType": "npm", "identifier": "@a/b", "version": "1.0.2" }] }),
                "npx -y @a/b@1.0.2",
            ),
            (json!({ "packages": [{ "registry_type": "pypi", "identifier": "b" }] }), "uvx b"),
            (
                json!({ "packages": [{ "registryType": "oci", "identifier": "docker.io/a/b:1" }] }),
                "docker run -i --rm docker.io/a/b:1",
            ),
            (
                json!({ "packages": [{ "registryType": "oci", "identifier": "a/b", "version": "2" }] }),
                "docker run -i --rm a/b:2",
            ),
            (
                json!({ "packages": [{ "registryType": "nuget", "identifier": "B", "version": "2" }] }),
                "dnx B@2 --yes",
            ),
            (
                json!({ "packages": [], "remotes": [{ "type": "sse", "url": "https://h/mcp" }] }),
                "url = \"https://h/mcp\"",
            ),
        ] {
            let mut server = server;
            server["name"] = "a/b".into();
            assert_eq!(listed(server).expect("an entry").install, install);
        }
    }

    #[test]
    fn a_package_name_that_a_shell_could_misread_is_in_no_command_line() {
        for identifier in [
            "a; rm -rf /",
            "$(id)",
            "`id`",
            "a\nb",
            "--eval=1",
            "a b",
            "a|b",
            "a&b",
            "a>b",
            "ä",
            "",
        ] {
            let package = json!({ "registryType": "npm", "identifier": identifier });
            let entry = listed(json!({ "name": "a/b", "packages": [package] })).expect("an entry");
            assert_eq!(entry.install, "see its entry in the registry", "{identifier}");
        }
        let package = json!({ "registryType": "npm", "identifier": "a", "version": "1; id" });
        let entry = listed(json!({ "name": "a/b", "packages": [package] })).expect("an entry");
        assert_eq!(entry.install, "npx -y a");
        let remote = json!({ "url": "https://h/\"; id" });
        let entry = listed(json!({ "name": "a/b", "remotes": [remote] })).expect("an entry");
        assert_eq!(entry.install, "see its entry in the registry");
    }
}
