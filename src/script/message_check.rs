//! A script whose sandbox is nothing but bytes: the check of its state for fuzzer and tests. Pure.

use std::{collections::BTreeSet, time::Duration};

use serde_json::value::RawValue;

use super::{
    limits::{ScriptEnd, ScriptLimits},
    record::RecordHead,
    script_state::{ScriptAction, ScriptState},
};
use crate::sandbox::message::{
    FrameBuffer, HostMessage, OperationOutcome, SandboxMessage, ScriptStart,
};

/// The memory that a script may take beside the bytes that it has sent.
const OVERHEAD_BYTES: usize = 64 << 10;

/// The limits of the script.
fn limits() -> ScriptLimits {
    ScriptLimits {
        wall: Duration::from_secs(10),
        wall_is_callers: true,
        sleep_max: Duration::from_secs(1),
        output_bytes_max: 100,
        calls_max: 5,
        parallel_max: 3,
        memory_bytes_max: 64 << 20,
    }
}

/// Has a script take the messages in these bytes, each of which a hostile sandbox may send.
///
/// # Panics
///
/// If an invariant is violated.
#[doc(hidden)]
pub fn check_sandbox_bytes(bytes: &[u8]) {
    let mut frames = FrameBuffer::default();
    frames.bytes_mut().extend_from_slice(bytes);
    let messages = std::iter::from_fn(|| frames.take_message().ok().flatten());
    check_sandbox_messages(messages, bytes.len());
}

/// Has a script take these messages, which have `n_bytes` together.
pub(super) fn check_sandbox_messages(
    messages: impl Iterator<Item = SandboxMessage>,
    n_bytes: usize,
) {
    let limits = limits();
    let (code, request_digest) = (String::new(), String::new());
    let start = ScriptStart { code, args: None, seed: 0, now_ms: 0, limits: limits.of_sandbox() };
    let mut state = ScriptState::new(RecordHead { start, limits, request_digest });
    let mut script = CheckedScript::default();
    script.take_all(state.begin_run().into_iter().map(ScriptAction::Send).collect());
    for (index, message) in messages.enumerate() {
        if script.take_all(state.on_message(message)) {
            break;
        }
        // Some operations end, the latest first; some ask the client, and some go on.
        let number = script.running.last().copied().filter(|_| index % 3 != 0);
        let actions = number.map(|number| match index % 5 {
            0 => state.on_asked(number, "{}".to_owned()),
            _ => {
                let value = RawValue::from_string("null".to_owned()).expect("JSON");
                state.on_settled(number, OperationOutcome::Value(value), index as u64)
            }
        });
        number.map(|number| script.running.remove(&number));
        if script.take_all(actions.unwrap_or_default()) {
            break;
        }
        let n_kept = state.n_bytes();
        assert!(n_kept <= 4 * n_bytes + OVERHEAD_BYTES, "{n_kept} bytes for {n_bytes}");
        let _waits = (state.waits_for_client(), state.suspension(), state.take_unsaved());
    }
    assert!(state.take_output().len() <= self::limits().output_bytes_max);
}

/// The actions that a state has asked for.
#[derive(Default)]
struct CheckedScript {
    n_run: u32,
    running: BTreeSet<u32>,
    settled: BTreeSet<u32>,
}

impl CheckedScript {
    /// Takes actions. Returns whether the script has ended.
    fn take_all(&mut self, actions: Vec<ScriptAction>) -> bool {
        actions.into_iter().any(|action| match action {
            ScriptAction::Run(number, ..) => {
                assert!(number > 0 && self.running.insert(number), "{number} runs twice");
                assert!(!self.settled.contains(&number), "{number} has ended");
                self.n_run += 1;
                false
            }
            ScriptAction::Send(HostMessage::Settle(settlement)) => {
                assert!(self.settled.insert(settlement.operation), "it is settled once");
                false
            }
            ScriptAction::Send(HostMessage::Start(_)) | ScriptAction::Report(_) => false,
            ScriptAction::End(end) => {
                assert!(!matches!(end, ScriptEnd::Suspended(_) | ScriptEnd::NotStarted(_)));
                true
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::sandbox::message::{
        FRAME_BYTES_MAX, FRAME_HEAD_BYTES, FailureKind, FrameError, ScriptFailure, ScriptOperation,
        ScriptProgress, frame,
    };

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("JSON")
    }

    fn operation() -> impl Strategy<Value = ScriptOperation> {
        let name = || "[a-c\u{0}\"]{0,2}";
        let args =
            || prop_oneof![Just("{}"), Just("[1]"), Just(r#"{"steps":[1,2,3]}"#), Just("1e999")];
        let tool = (name(), name(), args()).prop_map(|(server, tool, args)| {
            ScriptOperation::Tool { server, tool, args: raw(args) }
        });
        let describe =
            (name(), name()).prop_map(|(server, tool)| ScriptOperation::Describe { server, tool });
        let sleep =
            prop_oneof![4 => 0.0..1000.0, 1 => any::<f64>()].prop_map(ScriptOperation::Sleep);
        let chain = args().prop_map(|args| ScriptOperation::Chain(raw(args)));
        prop_oneof![4 => tool, 1 => describe, 3 => sleep, 1 => chain]
    }

    fn failure() -> impl Strategy<Value = SandboxMessage> {
        let kind = prop_oneof![
            Just(FailureKind::Syntax),
            Just(FailureKind::Stuck),
            Just(FailureKind::Memory),
            Just(FailureKind::Output)
        ];
        kind.prop_map(|kind| {
            let (message, stack) = ("x".to_owned(), String::new());
            let failure = ScriptFailure { kind, message, place: None, stack, cause: None };
            SandboxMessage::Failed(failure)
        })
    }

    /// Returns messages whose operations are numbered in order, except for a few.
    fn messages() -> impl Strategy<Value = Vec<SandboxMessage>> {
        let begin = (operation(), prop_oneof![20 => Just(None), 1 => any::<u32>().prop_map(Some)])
            .prop_map(|(what, number)| SandboxMessage::Begin {
                operation: number.unwrap_or(0),
                what,
            });
        let progress = (any::<f64>(), any::<Option<f64>>()).prop_map(|(done, total)| {
            SandboxMessage::Progress(ScriptProgress { done, total, message: String::new() })
        });
        let other = prop_oneof![
            6 => ".{0,9}".prop_map(SandboxMessage::Print),
            6 => progress,
            6 => (0_u32..9).prop_map(SandboxMessage::Idle),
            1 => any::<u32>().prop_map(SandboxMessage::Idle),
            1 => Just(()).prop_map(|()| SandboxMessage::Returned(raw("[]"))),
            1 => failure(),
        ];
        let number_all = |mut messages: Vec<SandboxMessage>| {
            let mut next = 1;
            for message in &mut messages {
                if let SandboxMessage::Begin { operation: operation @ 0, .. } = message {
                    (*operation, next) = (next, next + 1);
                }
            }
            messages
        };
        prop::collection::vec(prop_oneof![3 => begin, 2 => other], 0..40).prop_map(number_all)
    }

    proptest! {
        #[test]
        fn a_hostile_sandbox_only_ends_its_script(messages in messages()) {
            let n_bytes = messages.iter().map(|message| frame(message).map_or(0, |it| it.len()));
            let n_bytes = n_bytes.sum();
            check_sandbox_messages(messages.into_iter(), n_bytes);
        }

        #[test]
        fn no_bytes_make_a_script_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            check_sandbox_bytes(&bytes);
        }

        #[test]
        fn changed_frames_only_end_their_script(
            messages in messages(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
        ) {
            let frames = messages.iter().filter_map(|message| frame(message).ok());
            let mut bytes: Vec<u8> = frames.flatten().collect();
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            check_sandbox_bytes(&bytes);
        }
    }

    /// Returns the end of a script whose sandbox sends these messages.
    fn end_of(messages: &[serde_json::Value]) -> Result<ScriptEnd, FrameError> {
        let limits = limits();
        let (code, request_digest) = (String::new(), String::new());
        let start =
            ScriptStart { code, args: None, seed: 0, now_ms: 0, limits: limits.of_sandbox() };
        let mut state = ScriptState::new(RecordHead { start, limits, request_digest });
        state.begin_run();
        let mut frames = FrameBuffer::default();
        for message in messages {
            frames.bytes_mut().extend_from_slice(&frame(message)?);
        }
        while let Some(message) = frames.take_message()? {
            for action in state.on_message(message) {
                if let ScriptAction::End(end) = action {
                    return Ok(end);
                }
            }
        }
        panic!("it goes on after {messages:?}");
    }

    #[test]
    fn a_message_that_no_sandbox_sends_breaks_its_script() {
        let begin = |number: u64, what| json!({ "begin": { "operation": number, "what": what } });
        let sleep = |ms: f64| json!({ "sleep": ms });
        for messages in [
            vec![begin(0, sleep(1.0))],
            vec![begin(2, sleep(1.0))],
            vec![begin(u64::from(u32::MAX), sleep(1.0))],
            vec![begin(1, sleep(1.0)), begin(1, sleep(1.0))],
            vec![begin(1, sleep(1.0)), begin(3, sleep(1.0))],
            vec![begin(1, sleep(-1.0))],
            vec![begin(1, sleep(1000.5))],
            vec![begin(1, sleep(1e300))],
            vec![json!({ "idle": 1 })],
            vec![json!({ "idle": u32::MAX })],
            vec![json!({ "idle": 0 }), json!({ "idle": 0 })],
            vec![json!({ "failed": { "kind": "exception", "message": "x".repeat(1 << 20) } })],
            vec![json!({ "progress": { "done": 1.0, "message": "x".repeat(5000) } })],
        ] {
            let end = end_of(&messages).expect("messages");
            assert!(matches!(end, ScriptEnd::Broken(_)), "{messages:?}: {end:?}");
        }
        for message in [
            begin(1 << 32, sleep(1.0)),
            begin(1, json!({ "sleep": null })),
            begin(1, json!({ "sleep": "NaN" })),
            begin(1, json!({ "tool": { "server": "a", "tool": "b" } })),
            begin(1, json!({ "run": "rm" })),
            json!({ "idle": -1 }),
            json!({ "print": 5 }),
            json!({ "returned": 1, "failed": 2 }),
            json!({ "failed": { "kind": "success", "message": "x" } }),
            json!({ "start": {} }),
            json!("idle"),
            json!(null),
            json!([]),
        ] {
            let end = end_of(std::slice::from_ref(&message));
            assert!(matches!(end, Err(FrameError::Json(_))), "{message}: {end:?}");
        }
    }

    #[test]
    fn a_script_beyond_a_limit_ends_with_that_limit() {
        let text = "x".repeat(60);
        for (messages, name) in [
            (vec![json!({ "print": text }), json!({ "print": text })], "output"),
            (vec![json!({ "print": text }), json!({ "returned": text })], "output"),
            (vec![json!({ "returned": "x".repeat(101) })], "output"),
            (vec![json!({ "failed": { "kind": "output", "message": "" } })], "output"),
            (vec![json!({ "failed": { "kind": "memory", "message": "" } })], "memory"),
        ] {
            let end = end_of(&messages).expect("messages");
            assert!(matches!(end, ScriptEnd::Limit(limit) if limit.name() == name), "{end:?}");
        }
    }

    #[test]
    fn a_script_whose_results_are_too_large_together_ends() {
        let limits = ScriptLimits { calls_max: 100, ..limits() };
        let (code, request_digest) = (String::new(), String::new());
        let start =
            ScriptStart { code, args: None, seed: 0, now_ms: 0, limits: limits.of_sandbox() };
        let mut state = ScriptState::new(RecordHead { start, limits, request_digest });
        state.begin_run();
        let large = raw(&json!("x".repeat(1 << 20)).to_string());
        let ended = (1..100).find_map(|operation| {
            let (server, tool) = ("a".to_owned(), "b".to_owned());
            let what = ScriptOperation::Tool { server, tool, args: raw("{}") };
            let begun = state.on_message(SandboxMessage::Begin { operation, what });
            assert!(matches!(begun[..], [ScriptAction::Run(..)]), "{begun:?}");
            let outcome = OperationOutcome::Value(large.clone());
            let settled = state.on_settled(operation, outcome, 1);
            settled.into_iter().find_map(|action| match action {
                ScriptAction::End(end) => Some((operation, end)),
                _ => None,
            })
        });
        let (n_results, end) = ended.expect("an end");
        assert_eq!(n_results, 16, "the sixteenth is more than the rest of 16 MiB");
        assert!(matches!(end, ScriptEnd::Limit(limit) if limit.name() == "results"), "{end:?}");
    }

    #[test]
    fn a_value_that_is_nested_too_deep_for_a_message_is_a_failure() {
        let (code, request_digest) = (String::new(), String::new());
        let limits = ScriptLimits { output_bytes_max: 1000, ..limits() };
        let start =
            ScriptStart { code, args: None, seed: 0, now_ms: 0, limits: limits.of_sandbox() };
        let mut state = ScriptState::new(RecordHead { start, limits, request_digest });
        state.begin_run();
        let value = raw(&("[".repeat(126) + &"]".repeat(126)));
        let mut actions = state.on_message(SandboxMessage::Returned(value));
        let Some(ScriptAction::End(end)) = actions.pop() else { panic!("{actions:?}") };
        assert!(
            matches!(&end, ScriptEnd::Failed(failure) if failure.kind == FailureKind::Value),
            "{end:?}"
        );
    }

    #[test]
    fn a_frame_is_read_once_it_is_whole_and_a_longer_one_never() {
        let whole = frame(&json!({ "print": "x" })).expect("short");
        let mut frames = FrameBuffer::default();
        for byte in &whole {
            let read = frames.take_message::<SandboxMessage>().expect("no error");
            assert!(read.is_none() && frames.first_frame().expect("no error").is_none());
            frames.bytes_mut().extend_from_slice(&[*byte]);
        }
        assert_eq!(frames.first_frame().expect("no error"), Some(whole.len() - FRAME_HEAD_BYTES));
        let read = frames.take_message::<SandboxMessage>().expect("no error");
        assert!(matches!(read, Some(SandboxMessage::Print(text)) if text == "x"));
        let too_long = u32::try_from(FRAME_BYTES_MAX + 1).expect("it fits");
        frames.bytes_mut().extend_from_slice(&too_long.to_le_bytes());
        assert!(matches!(frames.first_frame(), Err(FrameError::TooLong)));
        assert!(frames.take_message::<SandboxMessage>().is_err());
        assert!(frames.n_bytes() < 1000, "no room was made");
        let text = "x".repeat(FRAME_BYTES_MAX);
        assert!(matches!(frame(&text), Err(FrameError::TooLong)));
        assert!(frame(&&text[2..]).is_ok());
    }
}
