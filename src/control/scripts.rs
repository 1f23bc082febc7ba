//! The methods `scripts/…`.

use super::{ControlRequest, MethodResult, tasks};
use crate::{
    config::defaults,
    meta::RequestedScript,
    protocol::{ObjectMembers, RpcError},
    redact,
    script::PreparedScript,
    task::TaskWork,
    view::operator::{self, ProgressLines},
};

/// The longest name of a script, in bytes: the rest is cut off.
const NAME_BYTES_MAX: usize = 256;

/// Answers `scripts/run`.
pub(super) async fn run(request: &ControlRequest<'_>) -> MethodResult {
    let script = script(request)?;
    let token = request.params.meta()?.and_then(|meta| ObjectMembers::one(meta, "progressToken"));
    let progress = request.requester.lines.as_ref().zip(token);
    let progress = progress.map(|(lines, token)| ProgressLines { lines, token });
    operator::finish_script(script, progress).await
}

/// Answers `scripts/run-async`.
pub(super) async fn run_async(request: &ControlRequest<'_>) -> MethodResult {
    let name = request.params.optional::<String>("name")?;
    let name = name.map(|name| redact::cut(&name, NAME_BYTES_MAX).to_owned());
    let script = TaskWork::Script(Box::new(script(request)?), name);
    Ok(tasks::start(request.service, script).await?.to_string())
}

/// Returns the script that a request describes, ready to run.
fn script(request: &ControlRequest<'_>) -> Result<PreparedScript, Box<RpcError>> {
    let params = &request.params;
    let calls_max = params.optional::<usize>("maxToolCalls")?;
    if calls_max.is_some_and(|max| !(1..=defaults::EXECUTE_CALLS_MAX).contains(&max)) {
        let range = format!("from 1 to {}", defaults::EXECUTE_CALLS_MAX);
        return Err(params.invalid("maxToolCalls", &range));
    }
    let script = RequestedScript {
        code: params.required("code")?,
        args: Some(params.optional("args")?.unwrap_or_default()),
        timeout: params.timeout()?,
        calls_max,
    };
    let scripts = request.service.parts.operators.scripts();
    let script = scripts.script(script, params.meta()?, request.holder());
    script.map_err(|error| Box::new(error.to_rpc()))
}
