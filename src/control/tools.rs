//! What operators ask about tools.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    config::defaults,
    protocol::{RpcError, error::INVALID_PARAMS},
    search::{Pattern, Strategy},
    view::{Views, Wish},
};

/// The parameters of `tools/search`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    query: String,
    server: Option<String>,
    strategy: Option<Strategy>,
    limit: Option<usize>,
    #[serde(default)]
    explain: bool,
}

/// The parameters of `tools/grep`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Grep {
    pattern: String,
    limit: Option<usize>,
}

/// Answers `tools/search`.
pub(super) async fn search(views: &Views, params: &str) -> Result<Value, RpcError> {
    let Search { query, server, strategy, limit, explain } =
        read(params).map_err(|error| *error)?;
    let wish = Wish {
        text: Some(&query),
        server: server.as_deref(),
        strategy,
        offset: 0,
        limit: bounded(limit),
        is_explained: explain,
    };
    let found =
        views.find(views.known_tools().await, &wish).await.map_err(|error| error.to_rpc())?;
    Ok(found.to_value())
}

/// Answers `tools/grep`.
pub(super) async fn grep(views: &Views, params: &str) -> Result<Value, RpcError> {
    let Grep { pattern, limit } = read(params).map_err(|error| *error)?;
    let pattern = Pattern::new(&pattern).map_err(|error| {
        RpcError::new(INVALID_PARAMS, error.code(), error.to_string()).suggest(error.hint())
    })?;
    Ok(views.grep(&pattern, bounded(limit)).await.to_value())
}

fn bounded(limit: Option<usize>) -> usize {
    limit.unwrap_or(defaults::DISCOVER_LIMIT).clamp(1, defaults::DISCOVER_LIMIT_MAX)
}

fn read<T: DeserializeOwned>(params: &str) -> Result<T, Box<RpcError>> {
    serde_json::from_str(params).map_err(|error| {
        let error = RpcError::new(INVALID_PARAMS, "INVALID_PARAMS", error.to_string())
            .suggest("Send the parameters by name, as `metamcp --help` names them.");
        Box::new(error)
    })
}
