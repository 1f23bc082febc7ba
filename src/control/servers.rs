//! The method `servers/list`.

use super::{ControlRequest, MethodResult, to_text};

/// Answers `servers/list`.
pub(super) async fn list(request: &ControlRequest<'_>) -> MethodResult {
    let mut servers = request.service.parts.board.server_states();
    if request.params.flag("memory")? {
        request.service.parts.board.measure(&mut servers).await;
    }
    Ok(to_text(&servers))
}
