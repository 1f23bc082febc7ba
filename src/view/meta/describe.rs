//! One tool, described.

use serde_json::json;

use super::{Refusal, Reply};
use crate::{
    meta::{ErrorObject, Wanted, arguments::Detail, describe::Described},
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
        let describe = move |tool: &Described<'_>| tool.described(detail, examples_max);
        Ok(reply.value(&self.of_tool(session, wanted, describe).await?))
    }

    /// Answers `list_tool_examples`.
    pub(super) async fn list_examples(
        &self,
        session: &Session,
        reply: &Reply,
        wanted: &Wanted,
        max: usize,
    ) -> Result<Outcome, Refusal> {
        let list =
            move |tool: &Described<'_>| json!({ "examples": tool.examples(max) }).to_string();
        Ok(reply.value(&self.of_tool(session, wanted, list).await?))
    }

    /// Returns something that is made of the definition of a tool.
    pub(super) async fn of_tool(
        &self,
        session: &Session,
        wanted: &Wanted,
        make: impl FnOnce(&Described<'_>) -> String + Send + 'static,
    ) -> Result<String, ErrorObject> {
        let Resolved { id, item, .. } =
            self.resolve(self.lister(session), wanted, self.limits()).await?;
        let bytes = item.json().len();
        let making = move || make(&Described::new(id, item.json()));
        let made = self.desk.compute(session.holder(), bytes, move |_| making()).await;
        made.map_err(|error| ErrorObject::too_busy(&error))
    }
}
