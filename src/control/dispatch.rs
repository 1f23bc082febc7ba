//! The handlers of the methods of the control interface.

use super::{
    ControlMethod, ControlRequest, MethodResult, auth_status, completions, daemon, listing,
    mcp_attach, prompts, resources, servers, tasks, tools,
};
use crate::protocol::list_page::ListKind;

/// Answers a request.
pub(super) async fn answer(request: &ControlRequest<'_>) -> MethodResult {
    use ControlMethod as Method;
    match request.params.method {
        Method::ServersList => servers::list(request).await,
        Method::ToolsList => tools::list(request).await,
        Method::ToolsInfo => tools::info(request).await,
        Method::ToolsCall => tools::call(request).await,
        Method::ToolsValidate => tools::validate(request).await,
        Method::ToolsGrep => tools::grep(request).await,
        Method::ToolsCallAsync => tasks::call(request).await,
        Method::TasksList => tasks::list(request).await,
        Method::TasksGet => tasks::get(request).await,
        Method::TasksResult => tasks::result(request).await,
        Method::TasksCancel => tasks::cancel(request).await,
        Method::ToolsSearch => tools::search(request).await,
        Method::ResourcesList => {
            listing::list_result(request, ListKind::Resources, "resource").await
        }
        Method::ResourcesRead => resources::read(request).await,
        Method::PromptsList => listing::list_result(request, ListKind::Prompts, "prompt").await,
        Method::PromptsGet => prompts::get(request).await,
        Method::CompletionsComplete => completions::complete(request).await,
        Method::AuthStatus => auth_status::status(request).await,
        Method::DaemonStatus => daemon::status(request).await,
        // The connection of this request cannot be attached.
        Method::McpAttach => Err(mcp_attach::refusal().into()),
        Method::ConfigReload => daemon::reload(request).await,
        Method::DaemonStop => daemon::stop(request).await,
    }
}
