//! The translation of a client's request to the era of its server.

use std::borrow::Cow;

use super::{ClientEra, TaskSupport, add_client_meta};
use crate::protocol::{
    Era, Message, ObjectMembers,
    client_meta::{CAPABILITIES, CLIENT_INFO, LOG_LEVEL, VERSION},
    jsonrpc::MessagePart,
    payloads::method::{LEGACY_ONLY, TOOLS_CALL},
    task,
};

/// The reason why a request has no equivalent in its server's era.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TranslationError {
    /// A method exists only in the era of the client.
    #[error("`{0}` of {from} has no counterpart in {to}", from = versions_of(*.1), to = versions_of(other_era(*.1)))]
    NoCounterpart(String, Era),
    /// The request continues something that this service did not start.
    #[error("`params.requestState` is unknown or has expired")]
    UnknownState,
    /// The request continues something that another request started.
    #[error("`params.requestState` belongs to another request")]
    OtherRequest,
    /// The request needs a task, or asks for one, and the client does not support tasks.
    #[error("the request needs a task, and the client has not declared that it supports tasks")]
    TaskRequired,
}

fn versions_of(era: Era) -> &'static str {
    match era {
        Era::Legacy => "protocol versions up to 2025-11-25",
        Era::Modern => "protocol version 2026-07-28",
    }
}

fn other_era(era: Era) -> Era {
    match era {
        Era::Legacy => Era::Modern,
        Era::Modern => Era::Legacy,
    }
}

/// Translates a client's request to the era `server`; `support` tells how tasks are translated. A
/// request about a task is a step of a [`TaskRequest`](super::TaskRequest).
///
/// # Errors
///
/// [`TranslationError`] if the server's era has no equivalent.
pub fn request<'a>(
    request: &'a Message,
    client: &ClientEra,
    server: Era,
    support: TaskSupport,
) -> Result<Cow<'a, Message>, TranslationError> {
    let method = request.method().unwrap_or_default();
    let supports_tasks = support != TaskSupport::Forbidden;
    let no_counterpart = |client| TranslationError::NoCounterpart(method.to_owned(), client);
    match (client, server) {
        (ClientEra::Modern(_), Era::Modern)
        | (ClientEra::Legacy { .. } | ClientEra::Metamcp, Era::Legacy) => {
            Ok(Cow::Borrowed(request))
        }
        (ClientEra::Metamcp, Era::Modern) => Ok(Cow::Owned(add_client_meta(request, client))),
        (ClientEra::Legacy { .. }, Era::Modern) => {
            let is_about_task = method.starts_with(task::PREFIX);
            if is_about_task && !supports_tasks || LEGACY_ONLY.contains(&method) {
                return Err(no_counterpart(Era::Legacy));
            }
            let is_to_be_task =
                supports_tasks && method == TOOLS_CALL && task::is_task_call(request);
            let request = match is_about_task || is_to_be_task {
                true => add_client_meta(request, &client.with_tasks()),
                false => add_client_meta(request, client),
            };
            // A modern server decides by itself whether a call becomes a task.
            Ok(Cow::Owned(request.with_params(|params| drop(params.take("task")))))
        }
        (ClientEra::Modern(client_meta), Era::Legacy) => {
            if method.starts_with(task::PREFIX) && !supports_tasks {
                return Err(no_counterpart(Era::Modern));
            }
            if request.part(MessagePart::RequestState).is_some() {
                return Err(TranslationError::UnknownState);
            }
            let is_task = support == TaskSupport::Required && method == TOOLS_CALL;
            let needs_task_support = is_task || method.starts_with(task::PREFIX);
            if needs_task_support && !task::declares_tasks(&client_meta.capabilities) {
                return Err(TranslationError::TaskRequired);
            }
            Ok(Cow::Owned(request.with_params(|params| {
                strip(params);
                if is_task {
                    params.set("task", "{}");
                }
            })))
        }
    }
}

/// Removes the members that a legacy server knows from the handshake or not at all.
fn strip(params: &mut ObjectMembers<'_>) {
    params.take("inputResponses");
    params.take("requestState");
    params.edit_object("_meta", |meta| {
        for name in [VERSION, CAPABILITIES, CLIENT_INFO, LOG_LEVEL] {
            meta.take(name);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{LoggingLevel, client_meta::ClientMeta};

    const FORBIDDEN: TaskSupport = TaskSupport::Forbidden;

    fn message(text: &str) -> Message {
        Message::parse(text.to_owned().into()).expect("a message")
    }

    fn modern() -> ClientEra {
        ClientEra::Modern(ClientMeta { capabilities: "{}".into(), client_info: None, level: None })
    }

    fn legacy() -> ClientEra {
        ClientEra::Legacy {
            capabilities: r#"{"roots":{}}"#.into(),
            level: Some(LoggingLevel::Error),
        }
    }

    #[test]
    fn a_request_within_one_era_is_unchanged() {
        let text =
            r#"{ "jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a" ,"task":{}}}"#;
        for (client, server) in
            [(modern(), Era::Modern), (legacy(), Era::Legacy), (ClientEra::Metamcp, Era::Legacy)]
        {
            let sent = request(&message(text), &client, server, FORBIDDEN)
                .expect("a request")
                .into_owned();
            assert_eq!(sent.bytes(), text);
        }
    }

    #[test]
    fn a_legacy_server_receives_no_client_metadata() {
        let asked = message(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","x":1e400,"inputResponses":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/logLevel":"error","progressToken":"t","traceparent":"00"}}}"#,
        );
        let sent = request(&asked, &modern(), Era::Legacy, FORBIDDEN).expect("a request");
        assert_eq!(
            sent.bytes(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","x":1e400,"_meta":{"progressToken":"t","traceparent":"00"}}}"#
        );
        let bare = message(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        );
        let sent = request(&bare, &modern(), Era::Legacy, FORBIDDEN).expect("a request");
        assert_eq!(sent.bytes(), r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#);
    }

    #[test]
    fn a_modern_server_receives_client_metadata_and_no_legacy_task_members() {
        let asked = message(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","task":{"ttl":1}}}"#,
        );
        let sent = request(&asked, &legacy(), Era::Modern, FORBIDDEN).expect("a request");
        let read = ClientMeta::read(&sent).expect("an introduction");
        assert_eq!(
            (&*read.capabilities, read.level),
            (r#"{"roots":{}}"#, Some(LoggingLevel::Error))
        );
        assert!(!String::from_utf8_lossy(sent.bytes()).contains("task"));
    }

    #[test]
    fn a_task_call_is_declared_in_the_form_of_its_servers_era() {
        const TAKES: &str = r#"{"extensions":{"x":{},"io.modelcontextprotocol/tasks":{}}}"#;
        let asked = message(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","task":{"ttl":1}}}"#,
        );
        let declares = |client: &ClientEra, support| {
            let sent = request(&asked, client, Era::Modern, support).expect("a request");
            assert!(!String::from_utf8_lossy(sent.bytes()).contains("ttl"));
            task::declares_tasks(&ClientMeta::read(&sent).expect("an introduction").capabilities)
        };
        assert!(declares(&legacy(), TaskSupport::Optional));
        assert!(!declares(&legacy(), TaskSupport::Forbidden));

        let taking = |capabilities: &str| {
            let capabilities = capabilities.into();
            ClientEra::Modern(ClientMeta { capabilities, client_info: None, level: None })
        };
        let plain = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#;
        let sent = |client: &ClientEra, support| {
            let plain = message(plain);
            let sent = request(&plain, client, Era::Legacy, support)?;
            Ok(String::from_utf8_lossy(sent.bytes()).into_owned())
        };
        let demanded = plain.replace("}}", r#","task":{}}}"#);
        assert_eq!(sent(&taking(TAKES), TaskSupport::Required), Ok(demanded));
        assert_eq!(sent(&taking(TAKES), TaskSupport::Optional), Ok(plain.to_owned()));
        assert_eq!(sent(&taking("{}"), TaskSupport::Required), Err(TranslationError::TaskRequired));
        assert_eq!(sent(&taking("{}"), TaskSupport::Optional), Ok(plain.to_owned()));
    }

    #[test]
    fn a_request_without_a_counterpart_in_the_other_era_is_refused_by_name() {
        let refused = |text: &str, client: &ClientEra, server| {
            request(&message(text), client, server, FORBIDDEN).expect_err(text).to_string()
        };
        for method in ["get", "result", "list", "cancel", "update"] {
            let tasks = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tasks/{method}"}}"#);
            for (client, other, same) in
                [(legacy(), Era::Modern, Era::Legacy), (modern(), Era::Legacy, Era::Modern)]
            {
                assert!(refused(&tasks, &client, other).contains("has no counterpart"), "{method}");
                let asked = message(&tasks);
                let sent = request(&asked, &client, same, FORBIDDEN);
                let sent = sent.expect("as it is").into_owned();
                assert_eq!(sent.bytes(), &tasks);
            }
        }
        let tasks = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get"}"#;
        assert_eq!(
            refused(tasks, &legacy(), Era::Modern),
            "`tasks/get` of protocol versions up to 2025-11-25 has no counterpart in protocol version 2026-07-28"
        );
        assert!(
            refused(tasks, &modern(), Era::Legacy).contains("of protocol version 2026-07-28 has")
        );
        let foreign =
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"requestState":"x"}}"#;
        assert!(refused(foreign, &modern(), Era::Legacy).contains("requestState"));
    }
}
