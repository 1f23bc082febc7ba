//! The subscription of a client of the modern era, and its notifications.
//!
//! Source: MCP 2026-07-28, "Subscriptions".

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::protocol::{
    Message, ObjectMembers, client_meta::SUBSCRIPTION_ID, jsonrpc::MessagePart,
    list_page::ListKind, payloads::method,
};

/// The notifications that a client requests or receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionFilter {
    /// Changes of the tools.
    pub tools: bool,
    /// Changes of the prompts.
    pub prompts: bool,
    /// Changes of the resources or their templates.
    pub resources: bool,
    /// Updates of these resources, each listed once.
    pub uris: Vec<String>,
}

/// The reason why a filter is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The filter is missing or no object.
    #[error("`params.notifications` is not an object")]
    NoObject,
    /// A member has the wrong type.
    #[error("`params.notifications.{0}` is not a {1}")]
    Member(&'static str, &'static str),
}

const TOOLS: &str = "toolsListChanged";
const PROMPTS: &str = "promptsListChanged";
const RESOURCES: &str = "resourcesListChanged";
const URIS: &str = "resourceSubscriptions";

impl SubscriptionFilter {
    /// Reads the filter of a `subscriptions/listen`. Unknown members have no effect.
    ///
    /// # Errors
    ///
    /// [`FilterError`] if the filter is malformed.
    pub fn read(listen: &Message) -> Result<Self, FilterError> {
        let params = listen.param_members();
        let filter = params.get("notifications").and_then(ObjectMembers::read);
        let filter = filter.ok_or(FilterError::NoObject)?;
        let is_set = |name| match filter.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(FilterError::Member(name, "boolean")),
        };
        let mut uris: Vec<String> = match filter.get(URIS) {
            None => Vec::new(),
            Some(text) => serde_json::from_str(text)
                .map_err(|_| FilterError::Member(URIS, "list of strings"))?,
        };
        let mut seen = std::collections::HashSet::new();
        uris.retain(|uri| seen.insert(uri.clone()));
        Ok(Self {
            tools: is_set(TOOLS)?,
            prompts: is_set(PROMPTS)?,
            resources: is_set(RESOURCES)?,
            uris,
        })
    }

    /// Returns the filter without resources, and without the changes that a server with these
    /// capabilities never announces.
    #[must_use]
    pub fn supported_by(&self, capabilities: &Value) -> Self {
        let announces = |list: ListKind| capabilities[list.capability()]["listChanged"] == true;
        Self {
            tools: self.tools && announces(ListKind::Tools),
            prompts: self.prompts && announces(ListKind::Prompts),
            resources: self.resources && announces(ListKind::Resources),
            uris: Vec::new(),
        }
    }

    /// Returns whether the filter matches this notification.
    pub fn matches(&self, notification: &Message) -> bool {
        match notification.method().unwrap_or_default() {
            method::TOOLS_CHANGED => self.tools,
            method::PROMPTS_CHANGED => self.prompts,
            method::RESOURCES_CHANGED => self.resources,
            method::RESOURCE_UPDATED => {
                notification.string(MessagePart::Uri).is_some_and(|uri| self.uris.contains(&uri))
            }
            // Log messages and progress belong to requests.
            _ => false,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut members = Map::new();
        for (name, is_set) in
            [(TOOLS, self.tools), (PROMPTS, self.prompts), (RESOURCES, self.resources)]
        {
            if is_set {
                members.insert(name.into(), true.into());
            }
        }
        if !self.uris.is_empty() {
            members.insert(URIS.into(), self.uris.clone().into());
        }
        members.into()
    }
}

/// Returns the acknowledgement of the subscription `id`, JSON text, with the filter in effect.
pub fn acknowledged(id: &str, filter: &SubscriptionFilter) -> Bytes {
    let params = format!(r#"{{"notifications":{}}}"#, filter.to_json());
    tagged(&Message::notification(method::SUBSCRIPTIONS_ACKNOWLEDGED, Some(&params)), id)
}

/// Returns a notification for the stream of the subscription `id`, JSON text.
pub fn tagged(notification: &Message, id: &str) -> Bytes {
    let Some(mut message) = ObjectMembers::read(notification.text()) else {
        return notification.bytes().clone();
    };
    let params = message.get("params").unwrap_or_default().to_owned();
    let mut params = ObjectMembers::read(&params).unwrap_or_default();
    params.set_in_object("_meta", SUBSCRIPTION_ID, id);
    message.set("params", params.to_string());
    message.to_string().into()
}

/// Returns the final answer to the subscription `id`, JSON text.
pub fn ended(id: &str) -> Bytes {
    let result = format!(r#"{{"resultType":"complete","_meta":{{"{SUBSCRIPTION_ID}":{id}}}}}"#);
    Message::response(id, &result)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(notifications: &Value) -> Result<SubscriptionFilter, FilterError> {
        let params = json!({ "notifications": notifications }).to_string();
        SubscriptionFilter::read(&Message::request("subscriptions/listen", Some(&params)))
    }

    fn notice(method: &str, params: Option<&str>) -> Message {
        Message::notification(method, params)
    }

    #[test]
    fn a_filter_matches_only_the_requested_notifications() {
        let filter = read(&json!({
            "toolsListChanged": true, "promptsListChanged": false, "x": 1,
            "resourceSubscriptions": ["a:1", "a:2", "a:1"],
        }));
        let filter = filter.expect("a filter");
        assert_eq!(filter.uris, ["a:1", "a:2"]);
        let updated = |uri| notice(method::RESOURCE_UPDATED, Some(uri));
        for (message, is_wanted) in [
            (notice(method::TOOLS_CHANGED, None), true),
            (notice(method::PROMPTS_CHANGED, None), false),
            (notice(method::RESOURCES_CHANGED, None), false),
            (updated(r#"{"uri":"a:2"}"#), true),
            (updated(r#"{"uri":"a:3"}"#), false),
            (notice(method::LOG_MESSAGE, Some(r#"{"level":"error"}"#)), false),
            (notice(method::PROGRESS, Some(r#"{"progressToken":1}"#)), false),
        ] {
            assert_eq!(filter.matches(&message), is_wanted, "{message:?}");
        }
        assert_eq!(read(&json!({})), Ok(SubscriptionFilter::default()));
    }

    #[test]
    fn a_malformed_filter_is_refused() {
        let no_params = Message::request("subscriptions/listen", None);
        assert_eq!(SubscriptionFilter::read(&no_params), Err(FilterError::NoObject));
        for other in [json!(null), json!([]), json!(true)] {
            assert_eq!(read(&other), Err(FilterError::NoObject), "{other}");
        }
        for (member, value) in [
            (TOOLS, json!("yes")),
            (PROMPTS, json!(1)),
            (RESOURCES, json!(null)),
            (URIS, json!("a:1")),
            (URIS, json!([1])),
            (URIS, json!(null)),
        ] {
            let refused = read(&json!({ member: value }));
            assert!(matches!(refused, Err(FilterError::Member(..))), "{member} {refused:?}");
        }
    }

    #[test]
    fn a_filter_omits_notifications_that_the_server_never_sends() {
        let all = SubscriptionFilter {
            tools: true,
            prompts: true,
            resources: true,
            uris: vec!["a:1".into()],
        };
        let capabilities = json!({
            "tools": { "listChanged": true }, "prompts": { "listChanged": false }, "logging": {},
        });
        assert_eq!(
            all.supported_by(&capabilities),
            SubscriptionFilter { tools: true, ..SubscriptionFilter::default() }
        );
        assert_eq!(all.supported_by(&Value::Null), SubscriptionFilter::default());
    }

    #[test]
    fn a_subscription_message_names_its_request_and_is_otherwise_unchanged() {
        let filter = SubscriptionFilter {
            tools: true,
            uris: vec!["a:1".into()],
            ..SubscriptionFilter::default()
        };
        assert_eq!(
            acknowledged("\"l\\u0041\"", &filter),
            r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["a:1"],"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":"l\u0041"}}}"#
        );
        assert_eq!(
            tagged(&notice("notifications/tools/list_changed", None), "7"),
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}"#
        );
        let theirs = Some(r#"{"uri":"a:1","_meta":{"x":1e400}}"#);
        assert_eq!(
            tagged(&notice("notifications/resources/updated", theirs), "7"),
            r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1","_meta":{"x":1e400,"io.modelcontextprotocol/subscriptionId":7}}}"#
        );
        assert_eq!(
            ended("7"),
            r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":7}}}"#
        );
    }
}
