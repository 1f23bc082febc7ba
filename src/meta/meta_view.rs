//! The view of a few meta-tools, which find the tools of all servers and call them.
//!
//! The list of meta-tools never grows with the servers. The two sets have the same operations under
//! different names.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    call, chain,
    definitions::{self, MetaTool},
    describe, discover, execute,
    kept_results::KeptResults,
    meta_arguments::MetaArguments,
    meta_call::{MetaCall, MetaRefusal, MetaServices},
    provision,
    refused_call::{MetaFailure, NamedTool, RefusedCall},
    reply::MetaReply,
};
use crate::{
    call::CallError,
    call_record::{ParentCall, RecordedFailure},
    config::{ToolSet, defaults},
    connection::ForwardedHeaders,
    era,
    forward::{Forwarder, RequestOutcome, discovery_result, initialize_result, missing, quoted},
    protocol::{
        Message, RpcError,
        jsonrpc::MessagePart,
        list_page::ListKind,
        parameter_headers,
        payloads::{self, method},
        rpc_error::INVALID_PARAMS,
    },
    provision::Provisioner,
    redact,
    script::ScriptServices,
    server_name::ServerName,
    session::Session,
    tool::{ArgumentChecker, ToolDirectory, ToolId},
};

/// The view of a few meta-tools.
#[derive(Debug)]
pub struct MetaView {
    services: Arc<MetaServices>,
}

impl MetaView {
    /// Returns the view over these services.
    pub fn new(
        forwarder: Arc<Forwarder>,
        directory: Arc<ToolDirectory>,
        checker: Arc<ArgumentChecker>,
        provisioner: Arc<Provisioner>,
        scripts: ScriptServices,
    ) -> Self {
        let results = KeptResults::new();
        let services =
            MetaServices { forwarder, directory, checker, provisioner, scripts, results };
        Self { services: Arc::new(services) }
    }

    /// Returns the services of the view.
    pub(super) fn services(&self) -> &Arc<MetaServices> {
        &self.services
    }

    /// Returns the discovery result, for modern clients.
    pub fn discovery(&self) -> Value {
        discovery_result(self.capabilities(), &self.instructions())
    }

    /// Answers a request, or forwards the call that it stands for. `observed` is its record, if it
    /// has one. Cancel safe: nothing was sent.
    ///
    /// # Errors
    ///
    /// [`MetaFailure`] if the view has no such method, or a meta-tool refuses the call.
    pub async fn handle(
        &self,
        session: &Arc<Session>,
        request: &Message,
        forwarded: Option<&Arc<ForwardedHeaders>>,
        observed: Option<ParentCall>,
    ) -> Result<RequestOutcome, MetaFailure> {
        match request.method().unwrap_or_default() {
            method::INITIALIZE => {
                let instructions = self.instructions();
                let capabilities = self.capabilities();
                let result = initialize_result(session, request, capabilities, &instructions);
                Ok(RequestOutcome::answer(request, &result))
            }
            method::TOOLS_LIST => Ok(self.list(session, request)?),
            method::TOOLS_CALL => self.call(session, request, forwarded, observed).await,
            other => Err(MetaFailure::Error(CallError::UnknownMethod {
                method: quoted(other),
                hint: "This path serves only tools: use `/direct` or `/servers/NAME` for the rest.",
            })),
        }
    }

    /// Returns the capabilities of this view.
    pub fn capabilities(&self) -> Value {
        json!({ "tools": { "listChanged": self.services.forwarder.peek_config().tools.list_changed } })
    }

    /// Returns the instructions for clients: the use of the meta-tools, and as many servers as fit.
    fn instructions(&self) -> String {
        let usage = match self.services.forwarder.peek_config().tools.sets.first() {
            Some(ToolSet::Core) | None => {
                "Find one with `mcp_discover`, then call it with `mcp_call`."
            }
            Some(ToolSet::Metatools) => {
                "Find one with `search_tools`, read its arguments with `describe_tool`, then call \
                 it with `run_tool`."
            }
        };
        let slots = self.services.forwarder.pool().slots();
        let names: Vec<&str> = slots.keys().map(ServerName::as_str).collect();
        let names = names.join(", ");
        let cut = redact::cut(&names, defaults::INSTRUCTIONS_BYTES_MAX);
        let more = if cut.len() < names.len() { " …" } else { "" };
        format!(
            "These tools give access to the tools of other MCP servers. {usage} Servers: {cut}{more}"
        )
    }

    /// Returns the bytes of the tool list.
    pub fn list_bytes(&self) -> usize {
        self.definitions().len()
    }

    /// Returns the tools of all sets, as the result of `tools/list`.
    fn definitions(&self) -> String {
        let config = self.services.forwarder.peek_config();
        let runs_code = self.services.sandbox_launcher().is_ok();
        let tools = config.tools.sets.iter().flat_map(|set| MetaTool::of_set(*set)).copied();
        let tools = tools.filter(|tool| runs_code || !tool.runs_code());
        definitions::list(tools, config.tools.always_load)
    }

    /// Answers `tools/list`: the tools of all sets, on one page.
    fn list(&self, session: &Session, request: &Message) -> Result<RequestOutcome, CallError> {
        if let Some(cursor) = request.string(MessagePart::Cursor) {
            return Err(CallError::UnknownCursor(quoted(&cursor)));
        }
        let list = self.definitions();
        let list = if session.is_modern() {
            era::decorate(&list, method::TOOLS_LIST, Some(payloads::implementation_text()))
        } else {
            era::legacy_list(list, ListKind::Tools)
        };
        Ok(RequestOutcome::answer_text(request, &list))
    }

    /// Answers a call of a meta-tool, or forwards the call that it stands for.
    async fn call(
        &self,
        session: &Arc<Session>,
        request: &Message,
        forwarded: Option<&Arc<ForwardedHeaders>>,
        observed: Option<ParentCall>,
    ) -> Result<RequestOutcome, MetaFailure> {
        let name = request.string(MessagePart::Name).ok_or_else(|| missing(request, "name"))?;
        let Some(tool) = MetaTool::named(&name, &self.services.forwarder.peek_config().tools.sets)
        else {
            let error = self.no_meta_tool(&name).for_era(session.era());
            let failure = RecordedFailure::own(error.name, "there is no such tool at this path");
            let answer = error.render(request.part(MessagePart::Id));
            return Err(MetaFailure::Refused(Box::new(RefusedCall {
                answer,
                failure,
                tool: None,
            })));
        };
        let reply = MetaReply::new(request, session, tool);
        let services = &self.services;
        let call = MetaCall { services, session, reply: &reply, request, forwarded, observed };
        let arguments = parameter_headers::arguments(request);
        let outcome = match MetaArguments::read(tool, arguments.as_deref()) {
            // Boxed, to keep the future of a call small.
            Ok(arguments) => Box::pin(run(call, arguments)).await,
            Err(error) => Err(MetaRefusal::from(error)),
        };
        outcome.map_err(|refusal| {
            let named = MetaArguments::named_tool(tool, arguments.as_deref());
            let slot = |name: &str| services.forwarder.pool().slot(name);
            let declared = |name: &str| slot(name).map(|slot| slot.name().clone());
            let tool = named.map(|named| NamedTool::of(&named, declared));
            let failure = refusal.to_record();
            let answer = refusal.answer(&reply);
            MetaFailure::Refused(Box::new(RefusedCall { answer, failure, tool }))
        })
    }

    /// Returns the error for an unknown meta-tool, with advice for calling a server's tool.
    fn no_meta_tool(&self, name: &str) -> RpcError {
        let sets = &self.services.forwarder.peek_config().tools.sets;
        let shown = quoted(name);
        let message = format!("there is no tool `{shown}` at this path");
        let names: Vec<&str> =
            sets.iter().flat_map(|set| MetaTool::of_set(*set)).map(|tool| tool.name()).collect();
        let id = ToolId::parse(name)
            .ok()
            .filter(|id| self.services.forwarder.pool().slot(&id.server).is_some());
        let remedy = match (id, sets.first()) {
            (Some(ToolId { server, tool }), Some(ToolSet::Core)) => {
                format!("Call `mcp_call` with `server`: \"{server}\" and `tool`: \"{tool}\".")
            }
            (Some(id), _) => format!("Call `run_tool` with `tool_id`: \"{id}\"."),
            (None, _) => format!("Use one of `{}`.", names.join("`, `")),
        };
        RpcError::new(INVALID_PARAMS, "TOOL_NOT_FOUND", message)
            .suggest(remedy)
            .context(json!({ "name": shown, "known": names }))
    }
}

/// Runs a meta-tool.
pub(super) async fn run(
    call: MetaCall<'_>,
    arguments: MetaArguments,
) -> Result<RequestOutcome, MetaRefusal> {
    match arguments {
        MetaArguments::Discover(arguments) => discover::discover_tools(call, &arguments).await,
        MetaArguments::SearchTools { query, page } => {
            discover::summaries(call, Some(&query), None, &page).await
        }
        MetaArguments::ListNamespaces(page) => discover::list_namespaces(call, &page).await,
        MetaArguments::ListTools { backend_name, page } => {
            discover::summaries(call, None, backend_name.as_deref(), &page).await
        }
        MetaArguments::Call(arguments) => call::call_tool(call, arguments).await,
        MetaArguments::RunTool(arguments) => call::run_tool(call, arguments).await,
        MetaArguments::Execute(arguments) => execute::execute(call, arguments).await,
        MetaArguments::DescribeTool { tool, detail, examples_max } => {
            describe::describe_tool(call, &tool, detail, examples_max).await
        }
        MetaArguments::ListToolExamples { tool, max } => {
            describe::list_examples(call, &tool, max).await
        }
        MetaArguments::RunChain { steps, includes } => {
            chain::run_chain(call, steps, includes).await
        }
        MetaArguments::Provision(arguments) => Ok(provision::provision(call, &arguments).await),
    }
}
