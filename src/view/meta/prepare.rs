//! A call of an operator, checked and ready to be made.

use std::sync::Arc;

use serde_json::{Value, json};

use super::call;
use crate::{
    meta::{ErrorObject, Wanted},
    pool::Slot,
    protocol::{
        Message, RpcError,
        error::INVALID_PARAMS,
        mcp::{Item, method},
    },
    session::{Scope, Session},
    view::Views,
};

/// A call of an operator, checked and ready to be made.
pub struct Prepared {
    /// The server.
    pub slot: Arc<Slot>,
    /// The definition of the tool.
    pub tool: Item,
    /// The call, as a client of the server would send it.
    pub request: Message,
}

impl Views {
    /// Returns the call of the tool called `name`, in any spelling, with these arguments, JSON text,
    /// once they fit its schema.
    ///
    /// # Errors
    ///
    /// [`RpcError`] when there is no such tool, or it cannot be called so.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is called.
    pub async fn prepare_call(
        &self,
        name: &str,
        arguments: &str,
        meta: Option<&str>,
    ) -> Result<Prepared, Box<RpcError>> {
        let session = Session::anonymous(Scope::Every);
        let wanted = Wanted { server: None, tool: name.to_owned() };
        let resolved =
            self.resolve(&session, &wanted, self.limits()).await.map_err(|error| to_rpc(&error))?;
        call::understand(&self.desk.validators, &resolved.item).await;
        call::check(&self.desk.validators, &resolved.id, &resolved.item, arguments)
            .map_err(|error| to_rpc(&error))?;
        let name = Value::from(resolved.item.key.as_str());
        let meta = meta.map(|meta| format!(r#","_meta":{meta}"#)).unwrap_or_default();
        let params = format!(r#"{{"name":{name},"arguments":{arguments}{meta}}}"#);
        let request = Message::request(method::TOOLS_CALL, Some(&params));
        Ok(Prepared { slot: resolved.slot, tool: resolved.item, request })
    }
}

fn to_rpc(error: &ErrorObject) -> Box<RpcError> {
    let name = "TOOL_NOT_CALLED";
    RpcError::new(INVALID_PARAMS, name, error.message.clone())
        .suggest("See `tools/info` for what the tool takes.")
        .context(json!({ "tool": error.tool_id, "details": error.details }))
        .into()
}
