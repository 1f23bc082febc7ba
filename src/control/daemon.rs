//! What operators ask about the service itself.

use super::{Answer, Desk, Params, to_text};

/// Answers `daemon/status`.
pub(super) async fn status(desk: &Desk, params: &Params<'_>) -> Answer {
    let _ = params;
    Ok(to_text(&desk.board.status()))
}
