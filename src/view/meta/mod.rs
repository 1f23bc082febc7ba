//! The view of a few tools of our own: they find the tools of all servers, and call them.
//!
//! What a client sees never grows with the servers. The tools of the two sets are the same operations
//! under two names each.

use serde_json::{Value, json};

use super::{Outcome, Views, answer, own_profile, shown};
use crate::{
    call::CallError,
    config::{ToolSet, defaults},
    era,
    meta::{Set, Tool, definitions},
    name::ServerName,
    protocol::{
        Message,
        jsonrpc::Part,
        mcp::{self, List, method},
    },
    redact,
    session::Session,
};

impl Views {
    pub(super) async fn meta(
        &self,
        session: &Session,
        request: &Message,
    ) -> Result<Outcome, CallError> {
        match request.method().unwrap_or_default() {
            method::INITIALIZE => {
                let (capabilities, instructions) =
                    (self.meta_capabilities(), self.meta_instructions());
                let profile = own_profile(session, request, capabilities, &instructions);
                Ok(answer(request, &profile))
            }
            method::TOOLS_LIST => self.meta_tools(session, request),
            other => Err(CallError::UnknownMethod {
                method: shown(other),
                hint: "Only tools are behind this path: use `/direct` or `/servers/NAME` for the rest.",
            }),
        }
    }

    /// Returns what clients of this view are offered.
    pub(super) fn meta_capabilities(&self) -> Value {
        json!({ "tools": { "listChanged": self.config.load().tools.list_changed } })
    }

    /// Returns what clients of this view are told of it: how it is used, and which servers there are,
    /// as far as there is room.
    pub(super) fn meta_instructions(&self) -> String {
        let way = match self.sets().first() {
            Some(Set::Core) | None => "Find one with `mcp_discover`, then call it with `mcp_call`.",
            Some(Set::Metatools) => {
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

    /// Returns the sets of tools that the view has.
    fn sets(&self) -> Vec<Set> {
        let set = |set: &ToolSet| match set {
            ToolSet::Core => Set::Core,
            ToolSet::Metatools => Set::Metatools,
        };
        self.config.load().tools.sets.iter().map(set).collect()
    }

    /// Answers `tools/list`: the tools of all sets, on one page.
    fn meta_tools(&self, session: &Session, request: &Message) -> Result<Outcome, CallError> {
        if let Some(cursor) = request.string(Part::Cursor) {
            return Err(CallError::UnknownCursor { cursor: shown(&cursor) });
        }
        let sets = self.sets();
        let tools: Vec<Tool> = sets.iter().flat_map(|set| set.tools()).copied().collect();
        let list = definitions::list(tools);
        let list = if session.is_modern() {
            era::decorate(&list, method::TOOLS_LIST, Some(mcp::implementation_text()))
        } else {
            era::legacy_list(list, List::Tools)
        };
        Ok(Outcome::Answer(Message::response(request.part(Part::Id).unwrap_or("null"), &list)))
    }
}
