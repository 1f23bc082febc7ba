//! The scripts of operators. Each is a client of its own, which answers no questions of servers.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    super::{meta_call::MetaServices, meta_view::MetaView},
    operations::ScriptOperations,
    requested_script::RequestedScript,
    script_answer::operator_answer,
};
use crate::{
    capacity_holder::Holder,
    protocol::{Message, RpcError, payloads::method},
    script::{PreparedScript, ScriptContext, ScriptExchange},
    session::{ServerScope, Session},
    tool::{ErrorCode, ErrorObject},
};

/// The digest of the requests of all operators: no client's request has it.
const OPERATOR: &str = "operator";

/// The progress token of a script. Its driver replaces it by that of the caller, if there is one.
const TOKEN: &str = "0";

/// The scripts of operators.
#[derive(Clone, Debug)]
pub struct OperatorScripts {
    services: Arc<MetaServices>,
}

impl OperatorScripts {
    /// Returns the scripts of operators, which use the services of `view`.
    pub fn of_view(view: &MetaView) -> Self {
        Self { services: Arc::clone(view.services()) }
    }

    /// Returns a script, ready to run, that counts for `holder`. `meta` is the `_meta` of the
    /// request, JSON text of an object.
    ///
    /// # Errors
    ///
    /// [`ErrorObject`] if the script is too large, or no script may run here.
    pub fn script(
        &self,
        script: RequestedScript,
        meta: Option<&str>,
        holder: Holder,
    ) -> Result<PreparedScript, Box<ErrorObject>> {
        let config = self.services.forwarder.config();
        let context = self.context(meta, holder)?;
        script.check(&config.execute)?;
        Ok(script.into_task(&config.execute, OPERATOR.to_owned(), context))
    }

    /// Returns the script that goes on from the record that `state` leads to. It counts for
    /// `holder`.
    ///
    /// # Errors
    ///
    /// [`ErrorObject`] if there is no such record, or no script may run here.
    pub async fn resume(
        &self,
        state: &str,
        holder: Holder,
    ) -> Result<PreparedScript, Box<ErrorObject>> {
        let context = self.context(None, holder)?;
        let resumed = PreparedScript::resume(state, OPERATOR, "{}", context).await;
        resumed.map_err(|error| {
            Box::new(ErrorObject::new(ErrorCode::OutcomeUnknown, error.to_string(), ""))
        })
    }

    /// Returns whether scripts may run, and whether this process can isolate them, with the reasons.
    pub fn to_operator_json(&self) -> Value {
        let launcher = self.services.sandbox_launcher();
        let mut object = json!({ "available": launcher.is_ok() });
        if let Err(reason) = launcher {
            object["reason"] = json!(reason);
        }
        if let Some(reason) = self.services.scripts.isolation_error() {
            object["isolationError"] = json!(reason);
        }
        if self.services.scripts.has_cgroups() {
            object["cgroups"] = json!(true);
        }
        object
    }

    /// Removes the record that `state` leads to, unless its script runs.
    pub async fn discard(&self, state: &str) {
        self.services.scripts.records.discard(state).await;
    }

    /// Returns the circumstances of a script: a client with connections of its own, which end with
    /// it.
    fn context(
        &self,
        meta: Option<&str>,
        holder: Holder,
    ) -> Result<ScriptContext, Box<ErrorObject>> {
        let services = &self.services;
        let launcher = services.sandbox_launcher().map_err(|reason| {
            let remedy = "Run `metamcp doctor`: it says what scripts need.";
            Box::new(ErrorObject::execution_unavailable(&reason, remedy))
        })?;
        let client = services.forwarder.sessions().one_shot_client("{}");
        let session = Session::one_shot(ServerScope::Every, client, holder);
        let params = meta.map_or_else(|| "{}".to_owned(), |meta| format!(r#"{{"_meta":{meta}}}"#));
        let request = Message::request(method::TOOLS_CALL, Some(&params));
        Ok(ScriptContext {
            launcher,
            runner: Arc::new(ScriptOperations::of_operator(services, &session, &request)),
            records: Arc::clone(&services.scripts.records),
            places: Arc::clone(&services.scripts.places),
            can_suspend: false,
            token: Some(TOKEN.to_owned()),
            holder,
        })
    }
}

/// Returns the exchange that runs a script of an operator to its result, JSON text, or to its error.
pub fn operator_exchange(task: PreparedScript) -> ScriptExchange<Result<String, Box<RpcError>>> {
    ScriptExchange::new(task, async |outcome| operator_answer(outcome))
}
