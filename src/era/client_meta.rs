//! The description of the client that a request to a modern server must contain.

use crate::protocol::{
    LoggingLevel, Message, ObjectMembers, client_meta, jsonrpc::MessagePart, payloads, version,
};

use super::ClientEra;

/// Returns `message` with the four members of `params._meta` that describe its client. All other
/// members keep their bytes. A client of the modern era has set them itself.
pub fn add_client_meta(message: &Message, client: &ClientEra) -> Message {
    let (capabilities, level): (&str, Option<LoggingLevel>) = match client {
        // Servers may hide features that a client does not support. These lists serve all clients,
        // so every capability is declared. List requests ask for no input; a client that calls a
        // tool declares its own capabilities.
        ClientEra::Metamcp => (payloads::CLIENT_CAPABILITIES, None),
        ClientEra::Legacy { capabilities, level } => (capabilities, *level),
        ClientEra::Modern(_) => return message.clone(),
    };
    let mut meta =
        message.part(MessagePart::Meta).and_then(ObjectMembers::read).unwrap_or_default();
    meta.set(client_meta::VERSION, quoted(version::MODERN));
    meta.set(client_meta::CLIENT_INFO, payloads::implementation_text());
    meta.set(client_meta::CAPABILITIES, capabilities);
    match level {
        Some(level) => meta.set(client_meta::LOG_LEVEL, quoted(level.name())),
        None => drop(meta.take(client_meta::LOG_LEVEL)),
    }
    with_meta(message, &meta.to_string()).unwrap_or_else(|| message.clone())
}

/// Returns `message` with `params._meta` replaced, or `None` if its parameters are an array.
fn with_meta(message: &Message, meta: &str) -> Option<Message> {
    if message.part(MessagePart::Meta).is_some() {
        return Message::parse_own(message.edit([(MessagePart::Meta, meta)])).ok();
    }
    let mut whole = ObjectMembers::read(message.text())?;
    let mut params = match whole.get("params") {
        None | Some("null") => ObjectMembers::default(),
        Some(params) => ObjectMembers::read(params)?,
    };
    params.set("_meta", meta);
    whole.set("params", params.to_string());
    Message::parse_own(whole.to_string().into()).ok()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::protocol::client_meta::ClientMeta;

    fn message(text: &str) -> Message {
        Message::parse(text.to_owned().into()).expect("a message")
    }

    fn legacy(level: Option<LoggingLevel>) -> ClientEra {
        ClientEra::Legacy { capabilities: r#"{"roots":{ }}"#.into(), level }
    }

    #[test]
    fn client_metadata_is_added_to_a_request_with_any_parameters() {
        for (params, rest) in [
            ("", r#""params":{"_meta":{"#),
            (r#","params":null"#, r#""params":{"_meta":{"#),
            (r#","params":{}"#, r#""params":{"_meta":{"#),
            (r#","params":{ "a":1e400}"#, r#""params":{"a":1e400,"_meta":{"#),
            (r#","params":{"_meta":{},"a": 1.0}"#, r#"},"a": 1.0}"#),
            (r#","params":{"_meta":{"x": 1.0}}"#, r#""_meta":{"x":1.0,"#),
            (r#","params":{"_meta":7}"#, r#""params":{"_meta":{"#),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":"1","method":"tools/list"{params}}}"#);
            let introduced = add_client_meta(&message(&text), &legacy(Some(LoggingLevel::Error)));
            let bytes = String::from_utf8_lossy(introduced.bytes()).into_owned();
            assert!(bytes.contains(rest), "{params}: {bytes}");
            assert_eq!(introduced.part(MessagePart::Id), Some("\"1\""));
            assert_eq!(client_meta::version_of(&introduced).as_deref(), Some(version::MODERN));
            let read = ClientMeta::read(&introduced).expect("an introduction");
            assert_eq!(&*read.capabilities, r#"{"roots":{ }}"#);
            assert_eq!(read.level, Some(LoggingLevel::Error));
            assert!(read.client_info.is_some_and(|info| info.contains("metamcp")));
        }
    }

    #[test]
    fn a_request_with_added_client_metadata_keeps_its_progress_token() {
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"p"},"z":1}}"#;
        let introduced = add_client_meta(&message(text), &ClientEra::Metamcp);
        assert_eq!(introduced.part(MessagePart::ProgressToken), Some("\"p\""));
        assert_eq!(introduced.part(MessagePart::Name), Some("\"a\""));
    }

    #[test]
    fn new_client_metadata_replaces_that_of_the_previous_client() {
        let first = add_client_meta(
            &Message::request("tools/list", None),
            &legacy(Some(LoggingLevel::Debug)),
        );
        let second = add_client_meta(&first, &ClientEra::Metamcp);
        let read = ClientMeta::read(&second).expect("an introduction");
        assert_eq!(read.level, None, "no client wants messages");
        assert_eq!(&*read.capabilities, payloads::CLIENT_CAPABILITIES);
    }

    #[test]
    fn client_metadata_of_a_modern_client_is_unchanged() {
        let client_meta = ClientMeta {
            capabilities: "{}".into(),
            client_info: Some(Arc::from("{}")),
            level: None,
        };
        let request = message(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{ }}}"#);
        let introduced = add_client_meta(&request, &ClientEra::Modern(client_meta));
        assert_eq!(introduced.bytes(), request.bytes());
    }

    #[test]
    fn array_parameters_are_unchanged() {
        let request = message(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#);
        assert_eq!(add_client_meta(&request, &ClientEra::Metamcp).bytes(), request.bytes());
    }
}
