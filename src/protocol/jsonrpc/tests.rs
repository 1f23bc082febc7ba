use super::*;

#[track_caller]
fn parse(text: &str) -> Message {
    Message::parse(Bytes::copy_from_slice(text.as_bytes())).expect(text)
}

#[track_caller]
fn refusal(text: &str) -> String {
    Message::parse(Bytes::copy_from_slice(text.as_bytes())).expect_err(text).to_string()
}

#[test]
fn a_message_nested_too_deep_is_refused_with_its_id_unless_metamcp_made_it() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let answer = |levels| {
        Bytes::from(format!(r#"{{"jsonrpc":"2.0","result":{},"id":"a"}}"#, nested(levels)))
    };
    assert!(Message::parse(answer(DEPTH_MAX - 1)).is_ok());
    let refused = Message::parse(answer(DEPTH_MAX)).expect_err("too deep");
    let ParseError::TooDeep { kind, id } = refused else { panic!("{refused}") };
    assert_eq!((kind, id.as_deref()), (MessageKind::Response, Some("\"a\"")));
    let ours = Message::parse_own(answer(100_000)).expect("a message");
    assert!(ours.is_too_deep());
}

#[test]
fn requests_notifications_and_responses_are_distinguished() {
    assert_eq!(parse(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#).kind(), MessageKind::Request);
    assert_eq!(parse(r#"{"jsonrpc":"2.0","method":"m"}"#).kind(), MessageKind::Notification);
    assert_eq!(parse(r#"{"jsonrpc":"2.0","id":1,"result":null}"#).kind(), MessageKind::Response);
    assert_eq!(parse(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#).kind(), MessageKind::Response);
}

#[test]
fn a_body_that_is_no_message_is_refused_with_the_reason() {
    for (text, reason) in [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        (r#"{"jsonrpc":"2.0","method":"m"} x"#, "not valid JSON"),
        ("[]", "a batch is not accepted here"),
        (r#"["2.0",1,"ping",{}]"#, "a batch is not accepted here"),
        ("3", "not a JSON-RPC 2.0 message"),
        (r#"{"method":"m"}"#, r#"`jsonrpc` must be "2.0""#),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, "`id` must be a string or a number"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, "`id` must be a string or a number"),
        (r#"{"jsonrpc":"2.0","id":1}"#, "a request needs `method` and `id`"),
        (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#, "a request needs `method` and `id`"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, "duplicate field `id`"),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "expected a string"),
    ] {
        let error = refusal(text);
        assert!(error.contains(reason), "{text}: {error}");
    }
    assert!(
        Message::parse(Bytes::from_static(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}")).is_err()
    );
}

#[test]
fn a_repeated_member_that_routes_a_request_is_refused() {
    for name in [
        "_meta",
        "progressToken",
        "requestId",
        "name",
        "uri",
        "cursor",
        "protocolVersion",
        "capabilities",
        "level",
        "progress",
        "requestState",
        "inputResponses",
        "ref",
    ] {
        let twice = format!(r#"{{"{name}":{{}},"x":1,"{name}":{{}}}}"#);
        let texts = [
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{twice}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{twice}}}}}"#),
        ];
        let n_refused = if name == "progressToken" { 2 } else { 1 };
        for text in &texts[..n_refused] {
            let error = refusal(text);
            assert!(error.contains(&format!("duplicate field `{name}`")), "{text}: {error}");
        }
    }
    let other = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":1,"x":2}}"#;
    assert_eq!(
        parse(other).bytes(),
        other.as_bytes(),
        "metamcp forwards members that it does not read"
    );
}

#[test]
fn parameters_of_any_type_pass_unchanged() {
    for params in ["[1,[2]]", "\"text\"", "1", "-1", "1.5", "true", "null", "{}"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
        assert_eq!(parse(&text).bytes(), text.as_bytes());
    }
}

#[test]
fn an_edit_changes_its_parts_and_no_other_byte() {
    let message = parse(
        r#"{ "params" : {"x":1e400, "_meta":{"z":0,"progressToken": "t","a":1},"name":"n"}, "extra":[1.0],"id" : "a\"b","method":"tools/call","jsonrpc":"2.0"}"#,
    );

    assert_eq!(message.part(MessagePart::Id), Some(r#""a\"b""#));
    assert_eq!(
        message.edit([
            (MessagePart::Id, "7"),
            (MessagePart::ProgressToken, "7"),
            (MessagePart::Name, "\"m\"")
        ]),
        r#"{ "params" : {"x":1e400, "_meta":{"z":0,"progressToken": 7,"a":1},"name":"m"}, "extra":[1.0],"id" : 7,"method":"tools/call","jsonrpc":"2.0"}"#
    );
}

#[test]
fn an_edit_adds_no_missing_part() {
    let message = parse(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#);
    assert_eq!(message.edit([(MessagePart::ProgressToken, "9")]), message.bytes());
}

#[test]
fn a_progress_token_is_found_in_requests_and_in_notifications() {
    let request = parse(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":5},"arguments":{"progressToken":6,"_meta":{"progressToken":7}}}}"#,
    );
    assert_eq!(request.integer(MessagePart::ProgressToken), Some(5));
    let progress = parse(
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":8,"progress":1}}"#,
    );
    assert_eq!(progress.integer(MessagePart::ProgressToken), Some(8));
}

#[test]
fn escaped_keys_and_names_are_understood() {
    let message =
        parse(r#"{"jsonrpc":"2.0","\u0069d":3,"method":"a\/b","params":{"name":"\u00e4"}}"#);
    assert_eq!(message.integer(MessagePart::Id), Some(3));
    assert_eq!(message.method(), Some("a/b"));
    assert_eq!(message.string(MessagePart::Name).as_deref(), Some("ä"));
}

#[test]
fn debug_output_does_not_show_the_content() {
    let message = parse(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"password":"hunter2"}}"#);
    assert!(!format!("{message:?}").contains("hunter2"));
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            "[ -~ä\"\\\\\n]{0,12}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 24, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
                prop::collection::btree_map("[a-zA-Z_]{1,8}|_meta|id|progressToken", inner, 0..5)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn id() -> impl Strategy<Value = serde_json::Value> {
        prop_oneof![any::<i64>().prop_map(Into::into), "[ -~ä\"]{0,12}".prop_map(Into::into)]
    }

    proptest! {
        #[test]
        fn editing_an_id_there_and_back_restores_every_byte(params in json(), id in id()) {
            let text = serde_json::json!({"jsonrpc":"2.0","id":id,"method":"m","params":params});
            let text = serde_json::to_string_pretty(&text).expect("a value is JSON");
            let original = parse(&text);

            let away = Message::parse(original.edit([(MessagePart::Id, "123456789")])).expect("still JSON");
            let back = away.edit([(MessagePart::Id, original.part(MessagePart::Id).expect("has an id"))]);

            prop_assert_eq!(away.integer(MessagePart::Id), Some(123_456_789));
            prop_assert_eq!(back, text.as_bytes());
        }

        #[test]
        fn replacing_a_part_equals_scanning_the_edited_message(
            params in json(), name in "[ -~ä]{0,12}", is_last in any::<bool>(),
        ) {
            let name = serde_json::Value::from(name).to_string();
            let params = params.to_string();
            let (a, b) = if is_last { (r#""id":"i","#, "") } else { ("", r#","id":"i""#) };
            let text = format!(
                r#"{{{a}"jsonrpc":"2.0","method":"m","params":{{"x":{params},"name":"old","_meta":{{"progressToken":1}}}}{b}}}"#
            );
            let replaced = parse(&text).with(MessagePart::Name, &name);
            let scanned = Message::parse(replaced.bytes().clone()).expect("still a message");

            for part in [MessagePart::Id, MessagePart::Name, MessagePart::ProgressToken, MessagePart::Uri] {
                prop_assert_eq!(replaced.part(part), scanned.part(part));
            }
            prop_assert_eq!(replaced.part(MessagePart::Name), Some(name.as_str()));
        }

        #[test]
        fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _parsed = Message::parse(bytes.clone().into());
            let _parsed = Message::parse_lossy(bytes.into());
        }

        #[test]
        fn the_lossy_parser_accepts_any_bytes_in_a_text(
            bytes in prop::collection::vec(0x80_u8.., 0..16),
        ) {
            let message = [br#"{"jsonrpc":"2.0","id":1,"result":""#.as_slice(), &bytes, br#""}"#].concat();
            let read = Message::parse_lossy(message.clone().into()).expect("a message");
            let text = serde_json::Value::from(String::from_utf8_lossy(&bytes));
            let found: serde_json::Value =
                serde_json::from_str(read.part(MessagePart::Result).expect("a result")).expect("JSON");

            prop_assert_eq!(found, text);
            prop_assert_eq!(
                Message::parse(message.into()).is_ok(),
                std::str::from_utf8(&bytes).is_ok()
            );
        }

        #[test]
        fn no_json_makes_the_parser_panic(value in json()) {
            let _parsed = Message::parse(value.to_string().into());
        }
    }
}
