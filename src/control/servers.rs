//! What operators ask about servers.

use super::{Answer, Desk, Params, to_text};

/// Answers `servers/list`.
pub(super) async fn list(desk: &Desk, params: &Params<'_>) -> Answer {
    let _ = params;
    Ok(to_text(&desk.board.status().servers))
}
