//! Notifications to clients that belong to no request.

use serde_json::json;

use crate::{era, fake::Fake};

/// A change to announce.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    Tools,
    Prompts,
    Resources,
    Updated(String),
}

impl Notice {
    /// Returns the notice for a changed list, by the name of the list.
    pub(crate) fn of_list(name: &str) -> Option<Self> {
        match name {
            "tools" => Some(Self::Tools),
            "prompts" => Some(Self::Prompts),
            "resources" => Some(Self::Resources),
            _ => None,
        }
    }

    /// Returns the message; with a subscription, it carries its id.
    pub(crate) fn message(&self, subscription: Option<&str>) -> String {
        let name = match self {
            Self::Tools => "tools/list_changed",
            Self::Prompts => "prompts/list_changed",
            Self::Resources => "resources/list_changed",
            Self::Updated(_) => "resources/updated",
        };
        let meta = subscription.map(|id| format!(r#""_meta":{}"#, era::subscription(id)));
        let uri = match self {
            Self::Updated(uri) => Some(format!(r#""uri":{}"#, json!(uri))),
            Self::Tools | Self::Prompts | Self::Resources => None,
        };
        let params: Vec<String> = meta.into_iter().chain(uri).collect();
        let params = match &params[..] {
            [] => String::new(),
            params => format!(r#","params":{{{}}}"#, params.join(",")),
        };
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/{name}"{params}}}"#)
    }
}

impl Fake {
    /// Notifies all interested clients of both eras; returns the number of streams.
    pub(crate) async fn announce(&self, notice: &Notice) -> usize {
        let message = notice.message(None);
        let n_sessions = match notice {
            Notice::Updated(uri) => {
                self.notify(&message, |session| session.subscribed.contains(uri)).await
            }
            Notice::Tools | Notice::Prompts | Notice::Resources => {
                self.notify(&message, |_| true).await
            }
        };
        n_sessions + self.notify_listen_requests(notice).await
    }
}
