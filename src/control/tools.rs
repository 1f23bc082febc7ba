//! What operators ask about tools.

use super::{Answer, Desk, Params};
use crate::{
    config::defaults,
    protocol::{RpcError, error::INVALID_PARAMS},
    search::{Pattern, Strategy},
    view::Wish,
};

impl super::params::Kind for Strategy {
    const WORDS: &'static str = "`keyword`, `bm25` or `hybrid`";
}

/// Answers `tools/search`.
pub(super) async fn search(desk: &Desk, params: &Params<'_>) -> Answer {
    let query: String = params.required("query")?;
    let server: Option<String> = params.optional("server")?;
    let wish = Wish {
        text: Some(&query),
        server: server.as_deref(),
        strategy: params.optional("strategy")?,
        offset: 0,
        limit: bounded(params.optional("limit")?),
        is_explained: params.flag("explain")?,
    };
    let views = &desk.views;
    let found = views.find(views.known_tools().await, &wish).await;
    Ok(found.map_err(|error| error.to_rpc())?.to_value().to_string())
}

/// Answers `tools/grep`.
pub(super) async fn grep(desk: &Desk, params: &Params<'_>) -> Answer {
    let pattern: String = params.required("pattern")?;
    let limit = bounded(params.optional("limit")?);
    let pattern = Pattern::new(&pattern).map_err(|error| {
        RpcError::new(INVALID_PARAMS, error.code(), error.to_string()).suggest(error.hint())
    })?;
    Ok(desk.views.grep(&pattern, limit).await.to_value().to_string())
}

fn bounded(limit: Option<usize>) -> usize {
    limit.unwrap_or(defaults::DISCOVER_LIMIT).clamp(1, defaults::DISCOVER_LIMIT_MAX)
}
