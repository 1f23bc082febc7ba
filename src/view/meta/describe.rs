//! One tool, described.

use serde_json::json;

use super::{Refusal, Reply};
use crate::{
    meta::{Wanted, arguments::Detail, describe::Described},
    session::Session,
    view::{Outcome, Views, resolve::Resolved},
};

impl Views {
    /// Answers `describe_tool`.
    pub(super) async fn describe_tool(
        &self,
        session: &Session,
        reply: &Reply,
        wanted: &Wanted,
        detail: Detail,
        examples_max: usize,
    ) -> Result<Outcome, Refusal> {
        let Resolved { id, item, .. } =
            self.resolve(self.lister(session), wanted, self.limits()).await?;
        Ok(reply.value(&Described::new(id, item.json()).described(detail, examples_max)))
    }

    /// Answers `list_tool_examples`.
    pub(super) async fn list_examples(
        &self,
        session: &Session,
        reply: &Reply,
        wanted: &Wanted,
        max: usize,
    ) -> Result<Outcome, Refusal> {
        let Resolved { id, item, .. } =
            self.resolve(self.lister(session), wanted, self.limits()).await?;
        let examples = Described::new(id, item.json()).examples(max);
        Ok(reply.value(&json!({ "examples": examples }).to_string()))
    }
}
