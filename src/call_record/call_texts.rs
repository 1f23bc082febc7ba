//! The arguments and the result of a call in its record, where the operator asks for them.

use std::sync::LazyLock;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::{
    config::{RecordedText, defaults},
    protocol::{Message, ObjectMembers, jsonrpc::MessagePart},
    redact::{self, Redactor},
};

/// The bytes of a hash that a record has.
const HASH_BYTES: usize = 8;

/// The arguments and the result of a call, or their hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTexts {
    /// Their form: hashes, or the texts themselves.
    pub form: RecordedText,
    /// The arguments.
    pub arguments: Option<Box<str>>,
    /// The result.
    pub result: Option<Box<str>>,
}

impl CallTexts {
    /// Returns the texts of a request, if its server's records have some. They have no `secrets`.
    pub(super) fn of_request(
        form: RecordedText,
        request: &Message,
        secrets: &[Redactor],
    ) -> Option<Self> {
        if form == RecordedText::None {
            return None;
        }
        let arguments = request.params().and_then(|params| ObjectMembers::one(params, "arguments"));
        let arguments = arguments.map(|text| recorded(form, text, secrets));
        Some(Self { form, arguments, result: None })
    }

    /// Adds the result of the answer, without the `secrets`.
    pub(super) fn add_answer(&mut self, answer: &Message, secrets: &[Redactor]) {
        let result = answer.part(MessagePart::Result).or(answer.part(MessagePart::Error));
        self.result = result.map(|text| recorded(self.form, text, secrets));
    }

    /// Returns the size in memory beside the structure itself.
    pub(super) fn n_bytes(&self) -> usize {
        [&self.arguments, &self.result].into_iter().flatten().map(|text| text.len()).sum()
    }
}

fn recorded(form: RecordedText, text: &str, secrets: &[Redactor]) -> Box<str> {
    match form {
        RecordedText::None => Box::default(),
        RecordedText::Text => {
            redact::redacted_start(text, secrets, defaults::CALL_TEXT_BYTES_MAX).into()
        }
        RecordedText::Hash => hash(text),
    }
}

/// Returns a salted hash. The salt ends with the process, so that no later reader can try texts.
fn hash(text: &str) -> Box<str> {
    static SALTED: LazyLock<Hmac<Sha256>> = LazyLock::new(|| {
        let mut salt = [0; 32];
        getrandom::fill(&mut salt).expect("the kernel has random numbers");
        Hmac::new_from_slice(&salt).expect("any length is a key")
    });
    let tag = SALTED.clone().chain_update(text).finalize().into_bytes();
    tag.iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(arguments: &str) -> Message {
        let params = format!(r#"{{"name":"x","arguments":{arguments}}}"#);
        Message::request("tools/call", Some(&params))
    }

    #[test]
    fn a_record_has_texts_only_where_they_are_asked_for() {
        let texts = |form| CallTexts::of_request(form, &request(r#"{"a":1}"#), &[]);
        assert_eq!(texts(RecordedText::None), None);
        let text = texts(RecordedText::Text).expect("asked for");
        assert_eq!(text.arguments.as_deref(), Some(r#"{"a":1}"#));
        let hashed = texts(RecordedText::Hash).expect("asked for").arguments.expect("a hash");
        assert_eq!(hashed.len(), 2 * HASH_BYTES);
        let other = CallTexts::of_request(RecordedText::Hash, &request(r#"{"a":2}"#), &[]);
        assert_ne!(other.and_then(|other| other.arguments), Some(hashed.clone()));
        assert_eq!(texts(RecordedText::Hash).and_then(|same| same.arguments), Some(hashed));
    }

    #[test]
    fn a_long_text_is_cut() {
        let long = format!("{:?}", "x".repeat(2 * defaults::CALL_TEXT_BYTES_MAX));
        let texts = CallTexts::of_request(RecordedText::Text, &request(&long), &[]);
        assert_eq!(texts.expect("asked for").n_bytes(), defaults::CALL_TEXT_BYTES_MAX);
    }

    #[test]
    fn a_text_has_no_secret_of_the_server_also_where_it_is_cut() {
        let secret = "hunter2-\u{e9}-0123456789";
        let secrets = [Redactor::new([secret.to_owned()].iter())];
        let max = defaults::CALL_TEXT_BYTES_MAX;
        for n_before in [0, max - 40, max - 30, max - 4, max, max + 10, max + 40] {
            let long = format!("{:?}", format!("{}{secret}{secret}", "x".repeat(n_before)));
            let mut texts =
                CallTexts::of_request(RecordedText::Text, &request(&long), &secrets).expect("one");
            let result = Message::response("1", &format!(r#"{{"content":{long}}}"#));
            texts.add_answer(&Message::parse(result).expect("a message"), &secrets);
            for text in [&texts.arguments, &texts.result].map(|text| text.as_deref().expect("one"))
            {
                assert!(!text.contains("hunter2") && text.len() <= max, "{text}");
                assert_eq!(text.contains("[secret]"), n_before < max - 10, "{text}");
            }
        }
    }
}
