//! The descriptions of one tool.

use serde_json::json;

use super::{MetaRefusal, MetaReply};
use crate::{
    meta::{ErrorObject, RequestedTool, arguments::DetailLevel, describe::DescribedTool},
    session::Session,
    view::{RequestOutcome, Views, resolve_tool::ResolvedTool},
};

impl Views {
    /// Answers `describe_tool`.
    pub(super) async fn describe_tool(
        &self,
        session: &Session,
        reply: &MetaReply,
        wanted: &RequestedTool,
        detail: DetailLevel,
        examples_max: usize,
    ) -> Result<RequestOutcome, MetaRefusal> {
        let describe = move |tool: &DescribedTool<'_>| tool.described(detail, examples_max);
        Ok(reply.value(&self.of_tool(session, wanted, describe).await?))
    }

    /// Answers `list_tool_examples`.
    pub(super) async fn list_examples(
        &self,
        session: &Session,
        reply: &MetaReply,
        wanted: &RequestedTool,
        max: usize,
    ) -> Result<RequestOutcome, MetaRefusal> {
        let list =
            move |tool: &DescribedTool<'_>| json!({ "examples": tool.examples(max) }).to_string();
        Ok(reply.value(&self.of_tool(session, wanted, list).await?))
    }

    /// Returns the text that `make` derives from the definition of a tool.
    pub(super) async fn of_tool(
        &self,
        session: &Session,
        wanted: &RequestedTool,
        make: impl FnOnce(&DescribedTool<'_>) -> String + Send + 'static,
    ) -> Result<String, ErrorObject> {
        let ResolvedTool { id, item, .. } =
            self.resolve(self.lister(session), wanted, self.limits()).await?;
        let bytes = item.json().len();
        let making = move || make(&DescribedTool::new(id, item.json()));
        let made = self.desk.compute(session.holder(), bytes, move |_| making()).await;
        made.map_err(|error| ErrorObject::too_busy(&error))
    }
}
