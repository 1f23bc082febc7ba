//! Calls of one tool through a meta-tool.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{
    MetaCaller, MetaRefusal, MetaReply,
    responder::{CallTimeouts, MetaResponder, ResultForm},
};
use crate::{
    meta::{
        self, ToolProgress,
        arguments::{CallArguments, RunArguments},
    },
    tool::{ErrorObject, RequestedTool},
    view::{RequestOutcome, Views, checked_call::inner_call, resolve_tool::ResolvedTool},
};

impl Views {
    /// Answers `mcp_call`.
    pub(super) async fn call_tool(
        &self,
        caller: MetaCaller<'_>,
        call: CallArguments,
    ) -> Result<RequestOutcome, MetaRefusal> {
        if let Some(cursor) = &call.cursor {
            return self.read_on(caller.reply, &call.tool, cursor);
        }
        let timeouts = self.call_timeouts(call.timeout);
        let resolved = self
            .resolve(self.list_owner(caller.session), &call.tool, timeouts.limits)
            .await
            .map_err(|error| timeouts.with_timeout_hint(error))?;
        self.run(caller, resolved, &call.args, ResultForm::Original(call.fields), timeouts).await
    }

    /// Answers `run_tool`.
    pub(super) async fn run_tool(
        &self,
        caller: MetaCaller<'_>,
        run: RunArguments,
    ) -> Result<RequestOutcome, MetaRefusal> {
        if run.is_stream {
            return Err(ErrorObject::no_stream().into());
        }
        if run.is_overridden {
            return Err(ErrorObject::no_override().into());
        }
        if let Some(cursor) = &run.cursor {
            return self.read_on(caller.reply, &run.tool, cursor);
        }
        let timeouts = self.call_timeouts(None);
        let resolved =
            self.resolve(self.list_owner(caller.session), &run.tool, timeouts.limits).await?;
        let args = run.args.clone();
        self.run(caller, resolved, &args, ResultForm::Wrapped(Box::new(run)), timeouts).await
    }

    async fn run(
        &self,
        caller: MetaCaller<'_>,
        resolved: ResolvedTool,
        args: &str,
        form: ResultForm,
        timeouts: CallTimeouts,
    ) -> Result<RequestOutcome, MetaRefusal> {
        let ResolvedTool { slot, id, item } = resolved;
        let verdict = self.meta_state.verdict(caller.session.holder(), &item, args).await;
        let warning = self.meta_state.apply_verdict(verdict, &id, &item)?;
        let call = inner_call(caller.request, &item.key, args);
        let responder = MetaResponder {
            meta_state: Arc::clone(&self.meta_state),
            reply: caller.reply.clone(),
            id: id.clone(),
            item,
            form,
            warning,
            timeouts,
            progress: caller.token().map(ToolProgress::new),
            bytes_max: self.config.load().tools.result_bytes_max,
            since: Instant::now(),
        };
        self.exchange_with(slot, caller.session, call, timeouts.limits, Some(Box::new(responder)))
            .await
            .map_err(|error| ErrorObject::from(&error).about(&id).into())
    }

    /// Returns the next page of a stored result.
    fn read_on(
        &self,
        reply: &MetaReply,
        tool: &RequestedTool,
        cursor: &str,
    ) -> Result<RequestOutcome, MetaRefusal> {
        let bytes_max = self.config.load().tools.result_bytes_max;
        let mut refused = None;
        for id in tool.readings().map_err(|error| ErrorObject::bad_id(&error, &[]))? {
            match self.meta_state.page(reply.tool, &id, cursor, bytes_max) {
                Ok(page) => return Ok(reply.result(&page)),
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.unwrap_or(meta::cursor::CursorError::Broken).into())
    }

    /// Returns the limits of a call with the client's timeout, at most those of the service.
    fn call_timeouts(&self, timeout: Option<Duration>) -> CallTimeouts {
        let limits = self.limits_within(timeout);
        CallTimeouts { limits, given: timeout.filter(|given| *given < self.limits().total) }
    }
}
