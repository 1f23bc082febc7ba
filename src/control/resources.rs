//! What operators ask about resources.

use serde_json::json;

use super::{Answer, Asker, Desk, Params, listing};
use crate::{
    protocol::mcp::{List, method},
    view::operator,
};

/// Answers `resources/list`.
pub(super) async fn list(desk: &Desk, params: &Params<'_>) -> Answer {
    listing::whole(desk, params, List::Resources, "resource").await
}

/// Answers `resources/read`.
pub(super) async fn read(desk: &Desk, params: &Params<'_>, asker: &Asker) -> Answer {
    let server: String = params.required("server")?;
    let uri: String = params.required("uri")?;
    let asked = json!({ "uri": uri }).to_string();
    let exchange =
        desk.views.operator_ask(&server, method::RESOURCES_READ, &asked, asker.holder())?;
    operator::finish(exchange, None).await
}
