//! The parser for Codex: `[mcp_servers.NAME]` of `config.toml`.
//!
//! Pure. Source: examples in its documentation. Codex has no variables in texts; separate keys name
//! variables.

use serde_json::Value;

use super::{
    declaration_origin::SourceFile,
    foreign_server::{ForeignServer, ForeignTransport, ImportedEndpoint},
    server_members::{ImportEntry, bearer},
    variable_syntax::{ForeignText, VariableSyntax},
};

pub(super) fn read(document: &Value, file: &SourceFile) -> Vec<ForeignServer> {
    let servers = document["mcp_servers"].as_object().into_iter().flatten();
    file.servers(servers, VariableSyntax::Plain, |entry| {
        entry.start_timeout_ms = start_timeout_ms(entry);
        transport(entry)
    })
}

fn transport(entry: &mut ImportEntry<'_>) -> Result<ForeignTransport, String> {
    let mut transport = entry.take_transport()?;
    match &mut transport {
        ForeignTransport::Program { env, .. } => {
            let names = entry.take("env_vars").unwrap_or_default();
            for item in names.as_array().into_iter().flatten() {
                if let Some(name) = item.as_str().or_else(|| item["name"].as_str()) {
                    env.entry(name.to_owned()).or_insert_with(|| ForeignText::variable(name));
                }
            }
        }
        ForeignTransport::Endpoint(ImportedEndpoint { headers, .. }) => {
            headers.extend(entry.table(&["http_headers"])?);
            for (header, variable) in entry.table(&["env_http_headers"])? {
                if let Some(name) = variable.as_plain() {
                    headers.insert(header, ForeignText::variable(name));
                }
            }
            if let Some(variable) = entry.text(&["bearer_token_env_var"])?
                && let Some(name) = variable.as_plain()
            {
                headers.insert("Authorization".to_owned(), bearer(ForeignText::variable(name)));
            }
            if let Some(token) = entry.text(&["bearer_token"])? {
                headers.entry("Authorization".to_owned()).or_insert_with(|| bearer(token));
            }
        }
    }
    Ok(transport)
}

fn start_timeout_ms(entry: &mut ImportEntry<'_>) -> Option<u64> {
    let seconds = entry.take("startup_timeout_sec").and_then(|value| value.as_f64());
    let ms = entry.take("startup_timeout_ms").and_then(|value| value.as_u64());
    // A number out of range becomes the largest one, and is refused later.
    seconds.map(|seconds| (seconds * 1000.0) as u64).or(ms)
}
