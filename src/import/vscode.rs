//! VS Code: `servers` and `inputs` of `mcp.json`, or the same below `mcp` of `settings.json`.
//!
//! Pure. As examples in its documentation have it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    context::{DeclarationOrigin, ImportContext},
    foreign_server::ForeignServer,
    mcp_servers,
};

pub(super) fn read(
    document: &Value,
    origin: &DeclarationOrigin,
    context: &ImportContext,
) -> Vec<ForeignServer> {
    let mut found = Vec::new();
    for part in [document, &document["mcp"]] {
        let inputs = inputs(part);
        let mut servers = mcp_servers::read(&part["servers"], origin, context);
        servers.iter_mut().for_each(|server| server.inputs.clone_from(&inputs));
        found.extend(servers);
    }
    found
}

/// Returns what is asked for, by id: how it is asked for.
fn inputs(part: &Value) -> BTreeMap<String, String> {
    let inputs = part["inputs"].as_array().into_iter().flatten();
    inputs
        .filter_map(|input| {
            let description = input["description"].as_str().unwrap_or_default();
            Some((input["id"].as_str()?.to_owned(), description.to_owned()))
        })
        .collect()
}
