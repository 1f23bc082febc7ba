//! The method `servers/list`.

use super::{ControlParams, ControlService, MethodResult, to_text};

/// Answers `servers/list`.
pub(super) async fn list(desk: &ControlService, params: &ControlParams<'_>) -> MethodResult {
    let mut servers = desk.board.server_states();
    if params.flag("memory")? {
        desk.board.measure(&mut servers).await;
    }
    Ok(to_text(&servers))
}
