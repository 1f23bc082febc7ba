//! The subscription of metamcp at a server of the modern era, on behalf of all clients.
//!
//! The ids of metamcp's requests, and thus of its subscriptions, are numbers.

use serde_json::json;

use super::{ClientEra, add_client_meta, client_subscription::SubscriptionFilter};
use crate::protocol::{
    Message, ObjectMembers, client_meta::SUBSCRIPTION_ID, jsonrpc::MessagePart, payloads::method,
};

/// Returns the request that subscribes to the notifications of `filter`.
pub fn listen(filter: &SubscriptionFilter) -> Message {
    let params = json!({ "notifications": filter.to_json() }).to_string();
    let request = Message::request(method::SUBSCRIPTIONS_LISTEN, Some(&params));
    add_client_meta(&request, &ClientEra::Metamcp)
}

/// Returns the id of metamcp's request that a notification names, if any.
pub fn subscription(notification: &Message) -> Option<u64> {
    let meta = ObjectMembers::read(notification.part(MessagePart::Meta)?)?;
    meta.get(SUBSCRIPTION_ID)?.parse().ok()
}

/// Returns a notification without the id of metamcp's request, which is internal. The rest is
/// unchanged.
pub fn untagged(notification: &Message) -> Message {
    let read = || {
        let mut meta = ObjectMembers::read(notification.part(MessagePart::Meta)?)?;
        meta.take(SUBSCRIPTION_ID)?;
        if !meta.is_empty() {
            let text = notification.edit([(MessagePart::Meta, &meta.to_string())]);
            return Message::parse_own(text).ok();
        }
        let mut whole = ObjectMembers::read(notification.text())?;
        whole.edit_object("params", |params| drop(params.take("_meta")));
        Message::parse_own(whole.to_string().into()).ok()
    };
    read().unwrap_or_else(|| notification.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notification(params: &str) -> Message {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"notifications/x"{params}}}"#);
        Message::parse(text.into()).expect("a notification")
    }

    #[test]
    fn the_subscription_id_of_metamcp_is_removed_from_a_notification() {
        for (tagged, id, rest) in [
            (r#","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#, Some(7), ""),
            (
                r#","params":{"uri":"a","_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#,
                Some(7),
                r#","params":{"uri":"a"}"#,
            ),
            (
                r#","params":{"_meta":{"x":1e400,"io.modelcontextprotocol/subscriptionId":7},"uri":"a"}"#,
                Some(7),
                r#","params":{"_meta":{"x":1e400},"uri":"a"}"#,
            ),
            (r#","params":{"uri":"a"}"#, None, r#","params":{"uri":"a"}"#),
            (r#","params":{"_meta":{}}"#, None, r#","params":{"_meta":{}}"#),
            ("", None, ""),
        ] {
            let tagged = notification(tagged);
            assert_eq!(subscription(&tagged), id);
            assert_eq!(untagged(&tagged).bytes(), notification(rest).bytes());
        }
    }

    #[test]
    fn a_listen_request_is_read_back_as_the_same_filter() {
        let filter = SubscriptionFilter {
            tools: true,
            uris: vec!["a:1".into()],
            ..SubscriptionFilter::default()
        };
        let request = listen(&filter);
        assert_eq!(SubscriptionFilter::read(&request), Ok(filter));
        assert!(crate::protocol::client_meta::version_of(&request).is_some());
    }
}
