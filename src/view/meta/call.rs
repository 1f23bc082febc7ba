//! A call of one tool, through a tool of ours.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{
    Caller, Refusal, Reply,
    finish::{Bounds, Finish, Form},
};
use crate::{
    meta::{
        self, ErrorObject, Telling, Wanted,
        arguments::{Call, Run},
    },
    view::{Outcome, Views, calling::call_of, resolve::Resolved},
};

impl Views {
    /// Answers `mcp_call`.
    pub(super) async fn call_tool(
        &self,
        caller: Caller<'_>,
        asked: Call,
    ) -> Result<Outcome, Refusal> {
        if let Some(cursor) = &asked.cursor {
            return self.read_on(caller.reply, &asked.tool, cursor);
        }
        let bounds = self.bounds_of(asked.timeout);
        let resolved = self
            .resolve(self.lister(caller.session), &asked.tool, bounds.limits)
            .await
            .map_err(|error| bounds.told(error))?;
        self.run(caller, resolved, &asked.args, Form::AsItIs(asked.fields), bounds).await
    }

    /// Answers `run_tool`.
    pub(super) async fn run_tool(
        &self,
        caller: Caller<'_>,
        asked: Run,
    ) -> Result<Outcome, Refusal> {
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
        self.run(caller, resolved, &args, Form::Wrapped(Box::new(asked)), bounds).await
    }

    async fn run(
        &self,
        caller: Caller<'_>,
        resolved: Resolved,
        args: &str,
        form: Form,
        bounds: Bounds,
    ) -> Result<Outcome, Refusal> {
        let Resolved { slot, id, item } = resolved;
        let verdict = self.desk.verdict(caller.session.holder(), &item, args).await;
        let warning = self.desk.judge(verdict, &id, &item)?;
        let call = call_of(caller.request, &item.key, args);
        let finish = Finish {
            desk: Arc::clone(&self.desk),
            reply: caller.reply.clone(),
            id: id.clone(),
            item,
            form,
            warning,
            bounds,
            telling: caller.token().map(Telling::to),
            bytes_max: self.config.load().tools.result_bytes_max,
            since: Instant::now(),
        };
        self.exchange_with(slot, caller.session, call, bounds.limits, Some(Box::new(finish)))
            .await
            .map_err(|error| ErrorObject::from(&error).about(&id).into())
    }

    /// Returns the next page of a result that is there already.
    fn read_on(&self, reply: &Reply, wanted: &Wanted, cursor: &str) -> Result<Outcome, Refusal> {
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

    /// Returns the bounds of a call that its client gives so much time; never more than the service
    /// does in all.
    fn bounds_of(&self, timeout: Option<Duration>) -> Bounds {
        let limits = self.limits_within(timeout);
        Bounds { limits, given: timeout.filter(|given| *given < self.limits().total) }
    }
}
