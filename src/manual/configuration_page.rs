//! The manual page metamcp.toml(5).

use roff::Roff;
use serde_json::Value;

use super::{
    configuration_keys::{ConfigurationKey, configuration_keys, sections},
    page_text::{begin, example, item, paragraph, section},
};

/// A configuration with a server of each kind.
const EXAMPLE: &str = r#"[servers.git]
command = "mcp-server-git"
args = ["--repository", "/srv/repository"]

[servers.linear]
url = "https://mcp.linear.app/mcp"

[servers.notes]
socket = "/run/metamcp-servers/notes.sock""#;

/// The files that a command reads, the first that exists.
const FILES: [(&str, &str); 2] = [
    ("~/.config/metamcp/metamcp.toml", "The file of the user; `$XDG_CONFIG_HOME` moves it."),
    ("/etc/metamcp/metamcp.toml", "The file of the host."),
];

/// Returns metamcp.toml(5) for the JSON Schema of the configuration.
pub fn configuration_page(schema: &Value) -> String {
    let mut page = Roff::new();
    begin(&mut page, "metamcp.toml", "5", "the configuration of metamcp");
    section(
        &mut page,
        "Description",
        "The file describes the service and its servers in TOML. An unknown key is an error. \
         `metamcp check` checks the file and starts nothing. `metamcp reload` applies it.",
    );
    paragraph(
        &mut page,
        "A duration is a whole number and its unit, `ms`, `s`, `m` or `h`, as in `30s`. A value \
         of `env` or `headers` may be `credential:NAME` or `env:NAME`, which metamcp replaces by \
         that credential or variable.",
    );
    section(&mut page, "Example", "A server of each kind:");
    example(&mut page, EXAMPLE);
    for (name, table) in sections(schema) {
        let meaning = table["description"].as_str().unwrap_or_default();
        section(&mut page, &format!("[{name}]"), meaning);
        for key in configuration_keys(schema, name) {
            item(&mut page, &key.path, &lines(&key));
        }
    }
    section(
        &mut page,
        "Environment",
        "A variable sets a key, as `METAMCP_POOL_SIZE` sets `pool.size`. Variables take \
         precedence over the file, and flags of `metamcp serve` over variables.",
    );
    section(&mut page, "Files", "Every command reads the first of these that exists:");
    for (path, meaning) in FILES {
        item(&mut page, path, &[meaning.to_owned()]);
    }
    section(&mut page, "See also", "`metamcp`(1), `metamcp-errors`(7)");
    page.render()
}

/// Returns the lines that describe a key.
fn lines(key: &ConfigurationKey) -> Vec<String> {
    let default = match key.default.as_str() {
        "" => String::new(),
        "required" => "; required".to_owned(),
        default => format!("; default {default}"),
    };
    vec![
        key.meaning.clone(),
        format!("Type: {}{default}. A reload applies it: {}.", key.kind, key.applied),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::schema;

    #[test]
    fn the_page_has_every_key() {
        let schema = schema();
        let page = configuration_page(&schema);
        let mut n_keys = 0;
        for (name, _) in sections(&schema) {
            for key in configuration_keys(&schema, name) {
                let escaped = key.path.replace('-', "\\-").replace('.', "\\&.");
                let plain = key.path.replace('-', "\\-");
                assert!(page.contains(&plain) || page.contains(&escaped), "{}", key.path);
                n_keys += 1;
            }
        }
        assert!(n_keys > 100, "{n_keys} keys");
    }
}
