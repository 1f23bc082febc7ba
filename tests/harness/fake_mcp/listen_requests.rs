//! `subscriptions/listen`: a request that is answered when it ends, with notices until then.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    call::Call,
    era,
    fake::Fake,
    message::{Members, RpcError},
    notice::Notice,
    output::Output,
};

/// The notices that a listener wants.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    #[serde(skip_serializing_if = "is_off")]
    tools_list_changed: bool,
    #[serde(skip_serializing_if = "is_off")]
    prompts_list_changed: bool,
    #[serde(skip_serializing_if = "is_off")]
    resources_list_changed: bool,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    resource_subscriptions: BTreeSet<String>,
}

/// A listening request.
#[derive(Debug)]
pub(crate) struct ListenRequest {
    call: Call,
    filter: Filter,
}

impl ListenRequest {
    /// Returns whether the client is gone or has cancelled the request.
    pub(crate) fn is_over(&self) -> bool {
        self.call.cancelled.is_cancelled()
    }

    /// Returns the number of the call.
    pub(crate) fn number(&self) -> u64 {
        self.call.number
    }

    /// Returns the call.
    pub(crate) fn into_call(self) -> Call {
        self.call
    }

    /// Returns the watched resources.
    pub(crate) fn uris(&self) -> impl Iterator<Item = &String> {
        self.filter.resource_subscriptions.iter()
    }

    fn wants(&self, notice: &Notice) -> bool {
        match notice {
            Notice::Tools => self.filter.tools_list_changed,
            Notice::Prompts => self.filter.prompts_list_changed,
            Notice::Resources => self.filter.resources_list_changed,
            Notice::Updated(uri) => self.filter.resource_subscriptions.contains(uri),
        }
    }
}

/// Starts to listen: the acknowledgement is the first message.
pub(crate) async fn open(call: Call, params: &Members) {
    let filter = match agreed(&call.fake, params) {
        Ok(filter) => filter,
        Err(error) => return call.error(&error).await,
    };
    let (id, agreed) = (era::subscription(&call.id), json!(filter));
    let message = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{id},"notifications":{agreed}}}}}"#
    );
    call.output.send(Output::ServerMessage(message)).await;
    let fake = call.fake.clone();
    fake.log("listen", &format!(r#","id":{}"#, call.id));
    let gone = {
        let mut state = fake.state();
        state.listen_requests.push(ListenRequest { call, filter });
        // The call may already have been cancelled.
        state.listen_requests.extract_if(.., |listen| listen.is_over()).collect::<Vec<_>>()
    };
    drop(gone);
    fake.count("listened");
}

/// Returns the supported part of the filter; it excludes URIs that start with `refuse:`.
fn agreed(fake: &Fake, params: &Members) -> Result<Filter, RpcError> {
    let mut filter: Filter = params.required("notifications")?;
    let watches = fake.options.subscribe;
    filter.resource_subscriptions.retain(|uri| watches && !uri.starts_with("refuse:"));
    Ok(filter)
}

impl Fake {
    /// Writes a notice to every stream that wants it; returns their number.
    pub(crate) async fn notify_listen_requests(&self, notice: &Notice) -> usize {
        let wanted = {
            let state = self.state();
            let wanting = state.listen_requests.iter().filter(|listen| listen.wants(notice));
            wanting.map(|listen| (listen.call.id.clone(), listen.call.output.clone())).collect()
        };
        let wanted: Vec<_> = wanted;
        for (id, output) in &wanted {
            output.send(Output::ServerMessage(notice.message(Some(id)))).await;
        }
        wanted.len()
    }

    /// Writes a message verbatim to all listening streams; returns their number.
    pub(crate) async fn push_to_listen_requests(&self, message: &str) -> usize {
        let outputs: Vec<_> = {
            let state = self.state();
            state.listen_requests.iter().map(|listen| listen.call.output.clone()).collect()
        };
        for output in &outputs {
            output.send(Output::ServerMessage(message.to_owned())).await;
        }
        outputs.len()
    }

    /// Ends all listening streams correctly, with an answer; returns their number.
    pub(crate) async fn end_listen_requests(&self) -> usize {
        let ended = std::mem::take(&mut self.state().listen_requests);
        let n_ended = ended.len();
        for ListenRequest { call, .. } in ended {
            let meta = era::subscription(&call.id);
            call.result(&format!(r#"{{"resultType":"complete","_meta":{meta}}}"#)).await;
        }
        self.changed();
        n_ended
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_off(is_on: &bool) -> bool {
    !is_on
}
