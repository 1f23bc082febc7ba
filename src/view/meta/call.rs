//! Calls of one tool through a meta tool.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{
    MetaCaller, MetaRefusal, MetaReply,
    responder::{CallTimeouts, MetaResponder, ResultForm},
};
use crate::{
    meta::{
        self, ErrorObject, RequestedTool, ToolProgress,
        arguments::{CallArguments, RunArguments},
    },
    view::{RequestOutcome, Views, checked_call::inner_call, resolve_tool::ResolvedTool},
};

impl Views {
    /// Answers `mcp_call`.
    pub(super) async fn call_tool(
        &self,
        caller: MetaCaller<'_>,
        asked: CallArguments,
    ) -> Result<RequestOutcome, MetaRefusal> {
        if let Some(cursor) = &asked.cursor {
            return self.read_on(caller.reply, &asked.tool, cursor);
        }
        let bounds = self.bounds_of(asked.timeout);
        let resolved = self
            .resolve(self.lister(caller.session), &asked.tool, bounds.limits)
            .await
            .map_err(|error| bounds.with_timeout_hint(error))?;
        self.run(caller, resolved, &asked.args, ResultForm::AsItIs(asked.fields), bounds).await
    }

    /// Answers `run_tool`.
    pub(super) async fn run_tool(
        &self,
        caller: MetaCaller<'_>,
        asked: RunArguments,
    ) -> Result<RequestOutcome, MetaRefusal> {
        if asked.is_stream {
            return Err(ErrorObject::no_stream().into());
        }
        if asked.is_overridden {
            return Err(ErrorObject::no_override().into());
        }
        if let Some(cursor) = &asked.cursor {
            return self.read_on(caller.reply, &asked.tool, cursor);
        }
        let bounds = self.bounds_of(None);
        let resolved =
            self.resolve(self.lister(caller.session), &asked.tool, bounds.limits).await?;
        let args = asked.args.clone();
        self.run(caller, resolved, &args, ResultForm::Wrapped(Box::new(asked)), bounds).await
    }

    async fn run(
        &self,
        caller: MetaCaller<'_>,
        resolved: ResolvedTool,
        args: &str,
        form: ResultForm,
        bounds: CallTimeouts,
    ) -> Result<RequestOutcome, MetaRefusal> {
        let ResolvedTool { slot, id, item } = resolved;
        let verdict = self.desk.verdict(caller.session.holder(), &item, args).await;
        let warning = self.desk.apply_verdict(verdict, &id, &item)?;
        let call = inner_call(caller.request, &item.key, args);
        let finish = MetaResponder {
            desk: Arc::clone(&self.desk),
            reply: caller.reply.clone(),
            id: id.clone(),
            item,
            form,
            warning,
            bounds,
            telling: caller.token().map(ToolProgress::to),
            bytes_max: self.config.load().tools.result_bytes_max,
            since: Instant::now(),
        };
        self.exchange_with(slot, caller.session, call, bounds.limits, Some(Box::new(finish)))
            .await
            .map_err(|error| ErrorObject::from(&error).about(&id).into())
    }

    /// Returns the next page of a stored result.
    fn read_on(
        &self,
        reply: &MetaReply,
        wanted: &RequestedTool,
        cursor: &str,
    ) -> Result<RequestOutcome, MetaRefusal> {
        let bytes_max = self.config.load().tools.result_bytes_max;
        let mut refused = None;
        for id in wanted.readings().map_err(|error| ErrorObject::bad_id(&error))? {
            match self.desk.page(reply.tool, &id, cursor, bytes_max) {
                Ok(page) => return Ok(reply.result(&page)),
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.unwrap_or(meta::cursor::CursorError::Broken).into())
    }

    /// Returns the limits of a call with the client's timeout, at most those of the service.
    fn bounds_of(&self, timeout: Option<Duration>) -> CallTimeouts {
        let limits = self.limits_within(timeout);
        CallTimeouts { limits, given: timeout.filter(|given| *given < self.limits().total) }
    }
}
