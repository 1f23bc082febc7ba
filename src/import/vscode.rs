//! The parser for VS Code: `servers` and `inputs` of `mcp.json`, or of `mcp` in `settings.json`.
//!
//! Pure. Source: examples in its documentation.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{declaration_origin::SourceFile, foreign_server::ForeignServer};

pub(super) fn read(document: &Value, file: &SourceFile) -> Vec<ForeignServer> {
    let mut found = Vec::new();
    for part in [document, &document["mcp"]] {
        let inputs = inputs(part);
        let mut servers = file.mcp_servers(&part["servers"]);
        servers.iter_mut().for_each(|server| server.inputs.clone_from(&inputs));
        found.extend(servers);
    }
    found
}

/// Returns the prompts for the inputs, by id.
fn inputs(part: &Value) -> BTreeMap<String, String> {
    let inputs = part["inputs"].as_array().into_iter().flatten();
    inputs
        .filter_map(|input| {
            let description = input["description"].as_str().unwrap_or_default();
            Some((input["id"].as_str()?.to_owned(), description.to_owned()))
        })
        .collect()
}
