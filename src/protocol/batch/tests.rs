use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const N_MAX: usize = 8;

fn parse(text: &str) -> Result<Batch, BatchError> {
    Batch::parse(&Bytes::copy_from_slice(text.as_bytes()), N_MAX)
}

#[track_caller]
fn refused(text: &str) -> String {
    parse(text).expect_err("no batch").to_string()
}

#[test]
fn an_array_is_read_as_a_batch_and_nothing_else_is() {
    for text in ["[]", " \r\n\t[1]", "["] {
        assert!(Batch::is_batch(text.as_bytes()), "{text}");
    }
    for text in ["{}", "", "7", "\"[\"", "{\"a\":[]}"] {
        assert!(!Batch::is_batch(text.as_bytes()), "{text}");
    }
}

#[test]
fn an_unusable_batch_is_refused_with_the_reason() {
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(refused("[]"), "the batch has no messages");
    assert!(refused("[").starts_with("not valid JSON"));
    assert!(refused(&format!("[{request}] {request}")).starts_with("not valid JSON"));
    assert!(refused(&format!("[{request},]")).starts_with("not valid JSON"));
    assert!(
        refused(r#"["2.0",1,"ping",{}]"#).starts_with("no member of the batch is a valid message")
    );
    assert!(
        refused(&format!("[[{request}]]")).starts_with("no member of the batch is a valid message")
    );
    let handshake = r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}"#;
    assert_eq!(
        refused(&format!("[{request},{handshake}]")),
        "`initialize` is not allowed in a batch"
    );
    let many = [request; N_MAX + 1].join(",");
    assert_eq!(refused(&format!("[{many}]")), "the batch has 9 messages, and the limit is 8");
}

#[test]
fn two_requests_with_one_id_are_refused_and_a_response_is_no_request() {
    let request = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    for (first, second) in [("1", "1"), (r#""a""#, r#""\u0061""#)] {
        let refusal = refused(&format!("[{},{}]", request(first), request(second)));
        assert_eq!(refusal, format!("two requests of the batch have the id {second}"));
    }
    let two = parse(&format!("[{},{},{response}]", request("1"), request("\"1\"")));
    assert!(two.expect("a number and a string are two ids").wants_answer());
    let answers = parse(&format!("[{response},{response}]")).expect("responses");
    assert!(!answers.wants_answer());
}

#[test]
fn an_invalid_batch_member_does_not_affect_the_others() {
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let batch = parse(&format!("[{notification},{{}},7]")).expect("a batch");
    assert!(batch.wants_answer(), "an invalid member gets an error");
    let found: Vec<bool> = batch.into_members().map(|member| member.is_ok()).collect();
    assert_eq!(found, [true, false, false]);
    assert!(!parse(&format!("[{notification}]")).expect("a batch").wants_answer());
}

/// Returns a strategy for messages: a kind, white space and the text of an id.
fn message() -> impl Strategy<Value = (u8, String, String)> {
    (0..4u8, "[ \n\t]{0,3}", "\\PC{0,12}")
}

proptest! {
    #[test]
    fn every_member_keeps_its_bytes_and_its_place(
        kinds in proptest::collection::vec(message(), 1..=N_MAX),
    ) {
        let texts: Vec<String> = kinds.iter().enumerate().map(|(n, (kind, space, word))| {
            let word = Value::from(word.as_str());
            match kind {
                0 => format!(r#"{{{space}"jsonrpc":"2.0","id":{n},"method":"m","params":{{"w":{word}}}}}"#),
                1 => format!(r#"{{"id":"{n}",{space}"jsonrpc":"2.0","method":{word}}}"#),
                2 => format!(r#"{{"jsonrpc":"2.0","method":{word}{space}}}"#),
                _ => format!(r#"{{"jsonrpc":"2.0","id":{n},"result":{word}}}"#),
            }
        }).collect();
        let separators = kinds.iter().map(|(_, space, _)| format!("{space},{space}"));
        let mut text = String::from("[");
        for (member, separator) in texts.iter().zip(separators) {
            text += member;
            text += &separator;
        }
        let text = format!("{}]", text.trim_end().trim_end_matches(','));

        let is_known = texts.iter().all(|text| !text.contains("\"initialize\""));
        prop_assume!(is_known);
        let batch = parse(&text).expect(&text);
        let is_any_request = kinds.iter().any(|(kind, ..)| *kind < 2);
        prop_assert_eq!(batch.wants_answer(), is_any_request);
        let members: Vec<Bytes> =
            batch.into_members().map(|member| member.expect("a message").bytes().clone()).collect();
        prop_assert_eq!(members, texts);
    }

    #[test]
    fn merged_answers_form_one_array(
        texts in proptest::collection::vec("\\PC{0,40}", 0..20),
        large in 0..20usize,
    ) {
        let values: Vec<Value> = texts
            .iter()
            .enumerate()
            .map(|(n, text)| json!({ "id": n, "result": text.repeat(if n == large { 2000 } else { 1 }) }))
            .collect();
        let answers = values.iter().enumerate().map(|(n, value)| {
            let text = Bytes::from(value.to_string());
            match n % 2 {
                0 => ByteChunks::One(text),
                _ => ByteChunks::Many(vec![text.slice(..1), text.slice(1..)]),
            }
        });
        let merged = merge(answers);
        let length = merged.len();
        let joined = merged.join();
        prop_assert_eq!(joined.len(), length);
        let read: Vec<Value> = serde_json::from_slice(&joined).expect("an array");
        prop_assert_eq!(read, values);
    }

    #[test]
    fn no_bytes_make_the_batch_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _whatever = Batch::parse(&bytes.into(), N_MAX);
    }
}
