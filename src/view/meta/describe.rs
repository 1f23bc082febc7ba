//! The descriptions of one tool.

use serde_json::json;

use super::{MetaCaller, MetaRefusal};
use crate::{
    meta::{arguments::DetailLevel, describe::DescribedTool},
    session::Session,
    tool::{ErrorObject, RequestedTool},
    view::{RequestOutcome, Views, resolve_tool::ResolvedTool},
};

impl Views {
    /// Answers `describe_tool`.
    pub(super) async fn describe_tool(
        &self,
        caller: MetaCaller<'_>,
        tool: &RequestedTool,
        detail: DetailLevel,
        examples_max: usize,
    ) -> Result<RequestOutcome, MetaRefusal> {
        let describe = move |tool: &DescribedTool<'_>| tool.described(detail, examples_max);
        Ok(caller.reply.value(&self.of_tool(caller.session, tool, describe).await?))
    }

    /// Answers `list_tool_examples`.
    pub(super) async fn list_examples(
        &self,
        caller: MetaCaller<'_>,
        tool: &RequestedTool,
        max: usize,
    ) -> Result<RequestOutcome, MetaRefusal> {
        let list =
            move |tool: &DescribedTool<'_>| json!({ "examples": tool.examples(max) }).to_string();
        Ok(caller.reply.value(&self.of_tool(caller.session, tool, list).await?))
    }

    /// Returns the text that `make` derives from the definition of a tool.
    pub(super) async fn of_tool(
        &self,
        session: &Session,
        tool: &RequestedTool,
        make: impl FnOnce(&DescribedTool<'_>) -> String + Send + 'static,
    ) -> Result<String, ErrorObject> {
        let ResolvedTool { id, item, .. } =
            self.resolve(self.list_owner(session), tool, self.limits()).await?;
        let bytes = item.json().len();
        let work = move || make(&DescribedTool::new(id, item.json()));
        let text = self.meta_state.compute(session.holder(), bytes, move |_| work()).await;
        text.map_err(|error| ErrorObject::too_busy(&error))
    }
}
