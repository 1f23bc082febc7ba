//! The errors of meta tools as operators see them: protocol errors.

use serde_json::Value;

use super::{ErrorCode, ErrorObject};
use crate::protocol::{
    RpcError,
    rpc_error::{INTERNAL_ERROR, INVALID_PARAMS, REQUEST_TIMEOUT},
};

impl ErrorObject {
    /// Returns the error as a protocol error: the original one, if it was made from one.
    pub fn to_rpc(&self) -> RpcError {
        if let Some(cause) = &self.cause {
            return (**cause).clone();
        }
        let is_format = self.details.get("reason").is_some_and(|reason| reason == "invalid_format");
        let (code, name) = match self.code {
            ErrorCode::ToolNotFound => (INVALID_PARAMS, "TOOL_NOT_FOUND"),
            ErrorCode::NoBackends => (INVALID_PARAMS, "SERVER_NOT_FOUND"),
            ErrorCode::ValidationInput if is_format => (INVALID_PARAMS, "INVALID_FORMAT"),
            ErrorCode::ValidationInput
            | ErrorCode::BackendOverrideInvalid
            | ErrorCode::BackendOverrideNoMatch
            | ErrorCode::StreamNotSupported => (INVALID_PARAMS, "INVALID_ARGUMENTS"),
            ErrorCode::Timeout => (REQUEST_TIMEOUT, "TIMEOUT"),
            ErrorCode::ValidationOutput => (INTERNAL_ERROR, "INVALID_RESULT"),
            ErrorCode::ExecutionFailed
            | ErrorCode::StreamFailed
            | ErrorCode::ChainStepFailed
            | ErrorCode::Cancelled
            | ErrorCode::Internal => (INTERNAL_ERROR, "EXECUTION_FAILED"),
        };
        RpcError::new(code, name, self.said.clone())
            .suggest(self.remedy.clone())
            .context(Value::Object(self.details.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::ToolId;

    #[test]
    fn an_error_of_a_tool_has_the_names_of_seed_001() {
        let error = ErrorObject::unknown_tool(&ToolId::new("git", "lgo"), &["git/log".to_owned()]);
        insta::assert_snapshot!(
            String::from_utf8_lossy(&error.to_rpc().render(Some("1"))),
            @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"server `git` has no tool `lgo`","data":{"code":"TOOL_NOT_FOUND","suggestion":"Did you mean `git/log`?","context":{"similarTools":["git/log"]}}}}"#
        );
    }
}
