//! The view of a few meta tools, which find the tools of all servers and call them.
//!
//! The list of meta tools never grows with the servers. The two sets have the same operations under
//! different names.

use serde_json::{Value, json};

use super::{RequestOutcome, Views, answer, missing, own_profile, shown};
use crate::{
    call::CallError,
    config::{ToolSet, defaults},
    era,
    meta::{
        ErrorObject, MetaTool, MetaToolSet, ToolId,
        arguments::{BackendKind, MetaArguments},
        chain::ChainIncludes,
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
};

mod call;
mod caller;
mod chain;
mod describe;
mod discover;
mod refusal;
mod reply;
mod responder;
mod state;

use caller::MetaCaller;
use refusal::MetaRefusal;
use reply::MetaReply;
pub(super) use state::MetaState;

impl Views {
    pub(super) async fn meta(
        &self,
        session: &Session,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        match request.method().unwrap_or_default() {
            method::INITIALIZE => {
                let (capabilities, instructions) =
                    (self.meta_capabilities(), self.meta_instructions());
                let profile = own_profile(session, request, capabilities, &instructions);
                Ok(answer(request, &profile))
            }
            method::TOOLS_LIST => self.meta_tools(session, request),
            method::TOOLS_CALL => self.call_of_ours(session, request).await,
            other => Err(CallError::UnknownMethod {
                method: shown(other),
                hint: "Only tools are behind this path: use `/direct` or `/servers/NAME` for the rest.",
            }),
        }
    }

    /// Returns the capabilities of this view.
    pub(super) fn meta_capabilities(&self) -> Value {
        json!({ "tools": { "listChanged": self.config.load().tools.list_changed } })
    }

    /// Returns the instructions for clients: the use of the meta tools, and the servers, as far as
    /// there is room.
    pub(super) fn meta_instructions(&self) -> String {
        let way = match self.sets().first() {
            Some(MetaToolSet::Core) | None => {
                "Find one with `mcp_discover`, then call it with `mcp_call`."
            }
            Some(MetaToolSet::Metatools) => {
                "Find one with `search_tools`, read its arguments with `describe_tool`, then call \
                 it with `run_tool`."
            }
        };
        let slots = self.pool.slots();
        let names: Vec<&str> = slots.keys().map(ServerName::as_str).collect();
        let names = names.join(", ");
        let cut = redact::cut(&names, defaults::INSTRUCTIONS_BYTES_MAX);
        let more = if cut.len() < names.len() { " …" } else { "" };
        format!("Tools of other MCP servers are behind the tools here. {way} Servers: {cut}{more}")
    }

    /// Returns the configured sets of meta tools.
    fn sets(&self) -> Vec<MetaToolSet> {
        let set = |set: &ToolSet| match set {
            ToolSet::Core => MetaToolSet::Core,
            ToolSet::Metatools => MetaToolSet::Metatools,
        };
        self.config.load().tools.sets.iter().map(set).collect()
    }

    /// Answers `tools/list`: the tools of all sets, on one page.
    fn meta_tools(
        &self,
        session: &Session,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        if let Some(cursor) = request.string(MessagePart::Cursor) {
            return Err(CallError::UnknownCursor { cursor: shown(&cursor) });
        }
        let sets = self.sets();
        let tools: Vec<MetaTool> = sets.iter().flat_map(|set| set.tools()).copied().collect();
        let list = definitions::list(tools, self.config.load().tools.always_load);
        let list = if session.is_modern() {
            era::decorate(&list, method::TOOLS_LIST, Some(payloads::implementation_text()))
        } else {
            era::legacy_list(list, ListKind::Tools)
        };
        Ok(RequestOutcome::Answer(Message::response(
            request.part(MessagePart::Id).unwrap_or("null"),
            &list,
        )))
    }

    /// Answers a call of a meta tool, or forwards it to the server of the tool that is meant.
    async fn call_of_ours(
        &self,
        session: &Session,
        request: &Message,
    ) -> Result<RequestOutcome, CallError> {
        let name = request.string(MessagePart::Name).ok_or_else(|| missing(request, "name"))?;
        let sets = self.sets();
        let Some(tool) = MetaTool::named(&name, &sets) else {
            let id = request.part(MessagePart::Id);
            let error = self.no_tool_of_ours(&name, &sets).for_era(session.era());
            return Ok(RequestOutcome::Answer(error.render(id)));
        };
        let reply = MetaReply::to(request, session, tool);
        let outcome =
            match MetaArguments::read(tool, parameter_headers::arguments(request).as_deref()) {
                // Boxed, to keep the future of a call small.
                Ok(arguments) => Box::pin(self.run_own(session, &reply, request, arguments)).await,
                Err(error) => Err(MetaRefusal::from(error)),
            };
        Ok(outcome.unwrap_or_else(|refusal| refusal.answer(&reply)))
    }

    async fn run_own(
        &self,
        session: &Session,
        reply: &MetaReply,
        request: &Message,
        arguments: MetaArguments,
    ) -> Result<RequestOutcome, MetaRefusal> {
        let caller = MetaCaller { session, reply, request };
        match arguments {
            MetaArguments::Discover(asked) => self.discover_tools(session, reply, &asked).await,
            MetaArguments::SearchTools { query, page } => {
                self.summaries(session.holder(), reply, Some(&query), None, &page).await
            }
            MetaArguments::ListNamespaces(page) => self.list_namespaces(reply, &page).await,
            MetaArguments::ListTools { backend_kind, backend_name, page } => match backend_kind {
                None | Some(BackendKind::Mcp) => {
                    let server = backend_name.as_deref();
                    self.summaries(session.holder(), reply, None, server, &page).await
                }
                // All tools run on servers.
                Some(BackendKind::Local | BackendKind::Provider) => {
                    Ok(reply.value(r#"{"tools":[]}"#))
                }
            },
            MetaArguments::Call(asked) => self.call_tool(caller, asked).await,
            MetaArguments::RunTool(asked) => self.run_tool(caller, asked).await,
            MetaArguments::Execute { .. } | MetaArguments::ExecuteCode { .. } => {
                Err(ErrorObject::execution_disabled().into())
            }
            MetaArguments::DescribeTool { tool, detail, examples_max } => {
                self.describe_tool(session, reply, &tool, detail, examples_max).await
            }
            MetaArguments::ListToolExamples { tool, max } => {
                self.list_examples(session, reply, &tool, max).await
            }
            MetaArguments::RunChain { steps, include_backends, include_tools } => {
                let includes = ChainIncludes { backends: include_backends, tools: include_tools };
                self.run_chain(caller, steps, includes).await
            }
            MetaArguments::Provision(asked) => {
                let wanted = provision::ProvisionRequest {
                    intent: &asked.intent,
                    context: asked.context.as_deref(),
                    auto: asked.auto_provision,
                    limits: self.limits(),
                };
                let found = self.provisioner.provision(wanted).await;
                let found = serde_json::to_string(&found).expect("our own values have string keys");
                Ok(reply.value(&found))
            }
        }
    }

    /// Returns the error for an unknown meta tool, with advice for calling a server's tool.
    fn no_tool_of_ours(&self, name: &str, sets: &[MetaToolSet]) -> RpcError {
        let shown = shown(name);
        let error = RpcError::new(
            INVALID_PARAMS,
            "TOOL_NOT_FOUND",
            format!("there is no tool `{shown}` at this path"),
        );
        let names: Vec<&str> =
            sets.iter().flat_map(|set| set.tools()).map(|tool| tool.name()).collect();
        let meant = ToolId::parse(name).ok().filter(|id| self.pool.slot(&id.server).is_some());
        let remedy = match (meant, sets.first()) {
            (Some(ToolId { server, tool }), Some(MetaToolSet::Core)) => {
                format!("Call `mcp_call` with `server`: \"{server}\" and `tool`: \"{tool}\".")
            }
            (Some(id), _) => format!("Call `run_tool` with `tool_id`: \"{id}\"."),
            (None, _) => format!("There are `{}`.", names.join("`, `")),
        };
        error.suggest(remedy).context(json!({ "name": shown, "known": names }))
    }
}
