//! The capabilities that a client declares, and the requests of servers that need them.

use super::{Message, ObjectMembers, payloads::method};

/// Returns whether a client with these capabilities, given as JSON text, can answer this request. A
/// method unknown to metamcp passes: any client may receive it.
pub fn covers(capabilities: &str, question: &Message) -> bool {
    let declared = ObjectMembers::read(capabilities).unwrap_or_default();
    match question.method().unwrap_or_default() {
        method::SAMPLING => declared.get("sampling").is_some(),
        method::ROOTS_LIST => declared.get("roots").is_some(),
        method::ELICITATION => {
            // The original mode had no name.
            let mode = question.param_members().string("mode");
            let modes = declared.get("elicitation").and_then(ObjectMembers::read);
            modes.is_some_and(|modes| match mode.as_deref() {
                None | Some("form") => modes.is_empty() || modes.get("form").is_some(),
                Some(other) => modes.get(other).is_some(),
            })
        }
        _ => true,
    }
}

/// Returns the capability that a client must declare to receive this request.
pub fn of(question: &Message) -> Option<&'static str> {
    match question.method().unwrap_or_default() {
        method::SAMPLING => Some("sampling"),
        method::ELICITATION => Some("elicitation"),
        method::ROOTS_LIST => Some("roots"),
        _ => None,
    }
}

/// Returns whether these capabilities, given as JSON text, include the extension `name`.
pub fn has_extension(capabilities: &str, name: &str) -> bool {
    let extensions = ObjectMembers::one(capabilities, "extensions").and_then(ObjectMembers::read);
    extensions.is_some_and(|extensions| extensions.get(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_receives_only_the_questions_that_it_has_declared() {
        let ask = |method, params| Message::request(method, Some(params));
        let form = ask(method::ELICITATION, "{}");
        let named = ask(method::ELICITATION, r#"{"mode":"form"}"#);
        let url = ask(method::ELICITATION, r#"{"mode":"url"}"#);
        for (capabilities, expected) in [
            ("{}", [false, false, false]),
            (r#"{"elicitation":{}}"#, [true, true, false]),
            (r#"{"elicitation":{"form":{}}}"#, [true, true, false]),
            (r#"{"elicitation":{"url":{}}}"#, [false, false, true]),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, [true, true, true]),
        ] {
            let asked = [&form, &named, &url].map(|question| covers(capabilities, question));
            assert_eq!(asked, expected, "{capabilities}");
        }
        let roots = ask(method::ROOTS_LIST, "{}");
        assert!(covers(r#"{"roots":{}}"#, &roots) && !covers(r#"{"sampling":{}}"#, &roots));
        assert!(covers("{}", &ask("vendor/ask", "{}")));
    }
}
