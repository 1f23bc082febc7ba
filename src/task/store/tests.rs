use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::task::TaskSubject;

const LIMITS: TaskLimits =
    TaskLimits { n_running: 3, n_tasks: 4, n_bytes: 100, expiry: Duration::from_secs(3600) };
const HOUR_MS: u64 = 3_600_000;

fn begin(store: &mut TaskStore, id: &str, now_ms: u64) -> Vec<String> {
    let subject = TaskSubject::Call { server: "git".to_owned(), tool: "log".to_owned() };
    store.insert(TaskRecord::new(id.to_owned(), subject, now_ms))
}

fn result(text: &str) -> TaskEvent {
    TaskEvent::Ended(TaskEnd::Result(text.to_owned()))
}

fn upstream(id: &str) -> UpstreamTask {
    UpstreamTask { id: id.to_owned(), poll_ms: Some(10), survives: true }
}

#[test]
fn a_call_ends_once_and_stays_unchanged() {
    let mut store = TaskStore::new(LIMITS);
    begin(&mut store, "a", 1);
    assert_eq!(store.apply("a", result(r#"{"content":[]}"#), 2), Some(vec![]));
    let ended = store.get("a").cloned();
    for event in [
        result("{}"),
        TaskEvent::Working(None),
        TaskEvent::Lost("gone".into()),
        TaskEvent::Ended(TaskEnd::Cancelled("late".into())),
    ] {
        assert_eq!(store.apply("a", event, 3), None);
    }
    assert_eq!(store.get("a").cloned(), ended);
    assert_eq!(store.apply("b", result("{}"), 3), None, "the store does not know it");
}

#[test]
fn the_end_of_a_call_determines_the_status_of_its_task() {
    let error = || TaskEnd::Error { error: r#"{"code":1}"#.into(), message: "no".into() };
    for (end, status, has_outcome) in [
        (TaskEnd::Result("{}".into()), TaskStatus::Completed, true),
        (TaskEnd::Result(r#"{"isError":true}"#.into()), TaskStatus::Failed, true),
        (error(), TaskStatus::Failed, true),
        (TaskEnd::Cancelled("you".into()), TaskStatus::Cancelled, false),
        (TaskEnd::Unknown("gone".into()), TaskStatus::UnknownOutcome, false),
    ] {
        let mut store = TaskStore::new(LIMITS);
        begin(&mut store, "a", 1);
        store.apply("a", TaskEvent::Ended(end), 5);
        let task = store.get("a").expect("known");
        assert_eq!((task.status, task.outcome.is_some()), (status, has_outcome));
        assert_eq!((task.updated_ms, task.ended_ms), (5, Some(5)));
        assert_eq!(task.message.is_none(), status == TaskStatus::Completed);
    }
}

#[test]
fn the_task_of_a_lost_server_continues_when_the_server_returns() {
    let mut store = TaskStore::new(LIMITS);
    begin(&mut store, "a", 1);
    store.apply("a", TaskEvent::Accepted(upstream("x")), 2);
    store.apply("a", TaskEvent::Lost("connection refused".into()), 3);
    let task = store.get("a").expect("known");
    assert_eq!(
        (task.status, task.message.as_deref()),
        (TaskStatus::Unreachable, Some("connection refused"))
    );
    assert_eq!(store.n_running(), 1);
    store.apply("a", TaskEvent::Working(None), 4);
    assert_eq!(store.get("a").map(|task| task.status), Some(TaskStatus::Working));
    assert_eq!(store.upstream("git", "x").map(|task| task.id.as_str()), Some("a"));
    assert!(store.upstream("jira", "x").is_none() && store.upstream("git", "y").is_none());
}

#[test]
fn a_call_is_forgotten_a_while_after_its_end_and_never_while_it_runs() {
    let mut store = TaskStore::new(LIMITS);
    begin(&mut store, "runs", 0);
    begin(&mut store, "ends", 0);
    assert_eq!(store.sweep(100 * HOUR_MS), (vec![], None));
    store.apply("ends", result("{}"), 7);
    assert_eq!(store.sweep(HOUR_MS + 6), (vec![], Some(HOUR_MS + 7)));
    assert_eq!(store.sweep(HOUR_MS + 7), (vec!["ends".to_owned()], None));
    assert!(store.get("ends").is_none() && store.get("runs").is_some());
}

#[test]
fn the_task_that_ended_first_makes_room_and_a_running_task_stays() {
    let mut store = TaskStore::new(LIMITS);
    for (id, now_ms) in [("a", 0), ("b", 1), ("c", 2)] {
        begin(&mut store, id, now_ms);
    }
    assert!(!store.has_room());
    store.apply("c", result("{}"), 3);
    store.apply("b", result("{}"), 4);
    assert_eq!(begin(&mut store, "d", 5), Vec::<String>::new());
    assert_eq!(begin(&mut store, "e", 6), ["c"]);
    assert_eq!(store.apply("e", result(&"x".repeat(1000)), 7), Some(vec!["b".to_owned()]));
    let known: Vec<&str> = store.all().iter().map(|task| task.id.as_str()).collect();
    assert_eq!(known, ["a", "d", "e"], "the last one stays, however large it is");
    store.apply("d", result("{}"), 8);
    assert!(store.get("e").is_none(), "and goes for the next");
}

#[test]
fn operators_see_when_a_task_expires() {
    let mut store = TaskStore::new(LIMITS);
    begin(&mut store, "a", 1_700_000_000_000);
    store.apply("a", TaskEvent::Accepted(upstream("x")), 1_700_000_000_000);
    store.apply("a", result("{}"), 1_700_000_001_500);
    let json = store.get("a").expect("known").to_operator_json(LIMITS.expiry);
    insta::assert_snapshot!(json, @r#"{"createdAt":"2023-11-14T22:13:20.000Z","endedAt":"2023-11-14T22:13:21.500Z","expiresAt":"2023-11-14T23:13:21.500Z","lastUpdatedAt":"2023-11-14T22:13:21.500Z","pollInterval":10,"server":"git","serverTaskId":"x","status":"completed","taskId":"a","tool":"log","ttl":3600000}"#);
}

/// A step of the property test.
#[derive(Clone, Debug)]
enum Act {
    Begin(u8),
    Happen(u8, TaskEvent),
    Sweep,
    Pass(u64),
}

fn events() -> impl Strategy<Value = TaskEvent> {
    prop_oneof![
        Just(TaskEvent::Accepted(upstream("x"))),
        Just(TaskEvent::Working(None)),
        Just(TaskEvent::InputRequired(Some("who?".into()))),
        Just(TaskEvent::Progress(Value::Null)),
        Just(TaskEvent::Lost("gone".into())),
        (0..200_usize).prop_map(|n_bytes| result(&"x".repeat(n_bytes))),
        Just(TaskEvent::Ended(TaskEnd::Cancelled("you".into()))),
        Just(TaskEvent::Ended(TaskEnd::Unknown("gone".into()))),
    ]
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        (0..9_u8).prop_map(Act::Begin),
        (0..9_u8, events()).prop_map(|(id, event)| Act::Happen(id, event)),
        Just(Act::Sweep),
        (0..2 * HOUR_MS).prop_map(Act::Pass),
    ];
    prop::collection::vec(act, 0..60)
}

proptest! {
    #[test]
    fn the_store_keeps_its_bounds_and_reports_each_removed_task(acts in acts()) {
        let mut store = TaskStore::new(LIMITS);
        let (mut now_ms, mut known) = (0, BTreeSet::new());
        for act in acts {
            match act {
                Act::Begin(id) => {
                    let id = format!("{id}");
                    if !store.has_room() || store.get(&id).is_some() {
                        continue;
                    }
                    known.insert(id.clone());
                    for gone in begin(&mut store, &id, now_ms) {
                        prop_assert!(known.remove(&gone));
                    }
                }
                Act::Happen(id, event) => {
                    let id = format!("{id}");
                    let before = store.get(&id).cloned();
                    let had_ended = before.as_ref().is_none_or(|task| task.status.has_ended());
                    let gone = store.apply(&id, event, now_ms);
                    prop_assert_eq!(gone.is_none(), had_ended);
                    if had_ended {
                        prop_assert_eq!(store.get(&id).cloned(), before, "an end is an end");
                    }
                    for gone in gone.into_iter().flatten() {
                        prop_assert!(known.remove(&gone) && gone != id);
                    }
                }
                Act::Sweep => {
                    let (gone, next) = store.sweep(now_ms);
                    prop_assert!(next.is_none_or(|next| next > now_ms));
                    for gone in gone {
                        prop_assert!(known.remove(&gone));
                    }
                }
                Act::Pass(ms) => now_ms += ms,
            }
            let all = store.all();
            let ids: BTreeSet<String> = all.iter().map(|task| task.id.clone()).collect();
            prop_assert_eq!(&ids, &known, "each removed task is reported, and nothing else");
            let n_bytes: usize = all.iter().map(|task| task.n_bytes()).sum();
            prop_assert_eq!(n_bytes, store.n_bytes);
            let n_large = all.iter().filter(|task| task.n_bytes() > 0).count();
            prop_assert!(n_bytes <= LIMITS.n_bytes || n_large <= 1);
            prop_assert!(all.len() <= LIMITS.n_tasks && store.n_running() <= LIMITS.n_running);
            for task in all {
                prop_assert_eq!(task.ended_ms.is_some(), task.status.has_ended());
                prop_assert!(task.updated_ms >= task.created_ms);
            }
        }
    }
}
