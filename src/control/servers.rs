//! What operators ask about servers.

use super::{Answer, Desk, Params, to_text};

/// Answers `servers/list`.
pub(super) async fn list(desk: &Desk, params: &Params<'_>) -> Answer {
    let mut servers = desk.board.server_states();
    if params.flag("memory")? {
        desk.board.weigh(&mut servers).await;
    }
    Ok(to_text(&servers))
}
