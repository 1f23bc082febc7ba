//! The view of a few meta-tools, which find the tools of all servers and call them.
//!
//! The list of meta-tools never grows with the servers. The two sets have the same operations under
//! different names.

use serde_json::{Value, json};

use super::{RequestOutcome, Views, answer, answer_text, initialize_result, missing, quoted};
use crate::{
    call::CallError,
    config::{ToolSet, defaults},
    era,
    meta::{
        MetaTool,
        arguments::{BackendKind, MetaArguments},
        definitions,
    },
    protocol::{
        Message, RpcError,
        jsonrpc::MessagePart,
        list_page::ListKind,
        parameter_headers,
        payloads::{self, method},
        rpc_error::INVALID_PARAMS,
    },
    provision, redact,
    server_name::ServerName,
    session::Session,
    tool::{ErrorObject, ToolId},
};

mod call;
mod chain;
mod describe;
mod discover;
mod meta_caches;
mod reply;
mod responder;

pub(super) use meta_caches::MetaState;
use reply::{MetaCaller, MetaRefusal, MetaReply};

impl Views {
    pub(super) async fn meta(
        &self,
        session: &Session,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        match request.method().unwrap_or_default() {
            method::INITIALIZE => {
                let instructions = self.meta_instructions();
                let capabilities = self.meta_capabilities();
                let result = initialize_result(session, request, capabilities, &instructions);
                Ok(answer(request, &result))
            }
            method::TOOLS_LIST => self.meta_tools(session, request),
            method::TOOLS_CALL => self.call_meta_tool(session, request).await,
            other => Err(CallError::UnknownMethod {
                method: quoted(other),
                hint: "This path serves only tools: use `/direct` or `/servers/NAME` for the rest.",
            }),
        }
    }

    /// Returns the capabilities of this view.
    pub(super) fn meta_capabilities(&self) -> Value {
        json!({ "tools": { "listChanged": self.config.load().tools.list_changed } })
    }

    /// Returns the instructions for clients: the use of the meta-tools, and as many servers as fit.
    pub(super) fn meta_instructions(&self) -> String {
        let usage = match self.config.load().tools.sets.first() {
            Some(ToolSet::Core) | None => {
                "Find one with `mcp_discover`, then call it with `mcp_call`."
            }
            Some(ToolSet::Metatools) => {
                "Find one with `search_tools`, read its arguments with `describe_tool`, then call \
                 it with `run_tool`."
            }
        };
        let slots = self.pool.slots();
        let names: Vec<&str> = slots.keys().map(ServerName::as_str).collect();
        let names = names.join(", ");
        let cut = redact::cut(&names, defaults::INSTRUCTIONS_BYTES_MAX);
        let more = if cut.len() < names.len() { " …" } else { "" };
        format!(
            "These tools give access to the tools of other MCP servers. {usage} Servers: {cut}{more}"
        )
    }

    /// Answers `tools/list`: the tools of all sets, on one page.
    fn meta_tools(
        &self,
        session: &Session,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        if let Some(cursor) = request.string(MessagePart::Cursor) {
            return Err(CallError::UnknownCursor { cursor: quoted(&cursor) });
        }
        let config = self.config.load();
        let tools = config.tools.sets.iter().flat_map(|set| set.tools()).copied();
        let list = definitions::list(tools, config.tools.always_load);
        let list = if session.is_modern() {
            era::decorate(&list, method::TOOLS_LIST, Some(payloads::implementation_text()))
        } else {
            era::legacy_list(list, ListKind::Tools)
        };
        Ok(answer_text(request, &list))
    }

    /// Answers a call of a meta-tool, or forwards the call that it stands for.
    async fn call_meta_tool(
        &self,
        session: &Session,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        let name = request.string(MessagePart::Name).ok_or_else(|| missing(request, "name"))?;
        let Some(tool) = MetaTool::named(&name, &self.config.load().tools.sets) else {
            let error = self.no_meta_tool(&name).for_era(session.era());
            return Ok(RequestOutcome::Answer(error.render(request.part(MessagePart::Id))));
        };
        let reply = MetaReply::new(request, session, tool);
        let caller = MetaCaller { session, reply: &reply, request };
        let arguments = parameter_headers::arguments(request);
        let outcome = match MetaArguments::read(tool, arguments.as_deref()) {
            // Boxed, to keep the future of a call small.
            Ok(arguments) => Box::pin(self.run_meta_tool(caller, arguments)).await,
            Err(error) => Err(MetaRefusal::from(error)),
        };
        Ok(outcome.unwrap_or_else(|refusal| refusal.answer(&reply)))
    }

    async fn run_meta_tool(
        &self,
        caller: MetaCaller<'_>,
        arguments: MetaArguments,
    ) -> Result<RequestOutcome, MetaRefusal> {
        let reply = caller.reply;
        match arguments {
            MetaArguments::Discover(arguments) => self.discover_tools(caller, &arguments).await,
            MetaArguments::SearchTools { query, page } => {
                self.summaries(caller, Some(&query), None, &page).await
            }
            MetaArguments::ListNamespaces(page) => self.list_namespaces(reply, &page).await,
            MetaArguments::ListTools { backend_kind, backend_name, page } => match backend_kind {
                None | Some(BackendKind::Mcp) => {
                    self.summaries(caller, None, backend_name.as_deref(), &page).await
                }
                // All tools run on servers.
                Some(BackendKind::Local | BackendKind::Provider) => {
                    Ok(reply.value(r#"{"tools":[]}"#))
                }
            },
            MetaArguments::Call(arguments) => self.call_tool(caller, arguments).await,
            MetaArguments::RunTool(arguments) => self.run_tool(caller, arguments).await,
            MetaArguments::Execute { .. } | MetaArguments::ExecuteCode { .. } => {
                Err(ErrorObject::execution_disabled().into())
            }
            MetaArguments::DescribeTool { tool, detail, examples_max } => {
                self.describe_tool(caller, &tool, detail, examples_max).await
            }
            MetaArguments::ListToolExamples { tool, max } => {
                self.list_examples(caller, &tool, max).await
            }
            MetaArguments::RunChain { steps, includes } => {
                self.run_chain(caller, steps, includes).await
            }
            MetaArguments::Provision(arguments) => {
                let request = provision::ProvisionRequest {
                    intent: &arguments.intent,
                    context: arguments.context.as_deref(),
                    auto: arguments.auto_provision,
                    limits: self.limits(),
                };
                let found = self.provisioner.provision(request).await;
                let found = serde_json::to_string(&found).expect("our own values have string keys");
                Ok(reply.value(&found))
            }
        }
    }

    /// Returns the error for an unknown meta-tool, with advice for calling a server's tool.
    fn no_meta_tool(&self, name: &str) -> RpcError {
        let sets = &self.config.load().tools.sets;
        let shown = quoted(name);
        let message = format!("there is no tool `{shown}` at this path");
        let names: Vec<&str> =
            sets.iter().flat_map(|set| set.tools()).map(|tool| tool.name()).collect();
        let id = ToolId::parse(name).ok().filter(|id| self.pool.slot(&id.server).is_some());
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
