use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::{
    capacity_holder::{Account, AccountMember},
    config::defaults,
    protocol::{Message, jsonrpc::MessagePart},
};

const ONE: Holder = Holder::SERVICE;

impl Queueable for &str {
    fn admitted(&mut self, _id: u64) {}
}

impl Queueable for usize {
    fn admitted(&mut self, _id: u64) {}
}

/// Returns a session of a user.
fn session(uid: u32, number: u64) -> Holder {
    Holder { account: Account::User(uid), member: AccountMember::Session(number) }
}

/// Admits a request of `holder`, or queues it; returns its ticket if it waits.
fn ask(mux: &mut Mux<usize>, holder: Holder) -> Option<QueueTicket> {
    let waiter = mux.admit(holder, 0).err()?;
    let before = mux.in_flight();
    let (ticket, _) = mux.enqueue(holder, waiter);
    (mux.in_flight() == before).then_some(ticket)
}

#[test]
fn a_client_that_fills_the_connection_waits_while_other_clients_pass() {
    let mut mux = Mux::new(8, 8);
    for _ in 0..8 {
        assert!(ask(&mut mux, session(1, 1)).is_none(), "free room is never refused");
    }
    let waiting = ask(&mut mux, session(1, 1)).expect("it waits");
    assert!(ask(&mut mux, session(1, 2)).is_none(), "a session of the same user");
    for _ in 0..4 {
        assert!(ask(&mut mux, session(2, 1)).is_none(), "another user, to half of all");
    }
    assert!(ask(&mut mux, session(2, 1)).is_some());
    assert_eq!(mux.in_flight(), 13);
    // One answer makes no room while more requests than the bound are in flight.
    assert_eq!(mux.settle(1), SettledRequest::Wanted(0));
    assert!(mux.leave_queue(waiting).is_some());
}

#[test]
fn a_free_place_goes_to_the_client_with_the_fewest_requests() {
    let mut mux = Mux::new(2, 2);
    let ids: Vec<u64> = (0..2).filter_map(|_| mux.admit(session(1, 1), 0).ok()).collect();
    let greedy = ask(&mut mux, session(1, 1)).expect("it waits");
    mux.settle(ids[0]);
    assert!(mux.leave_queue(greedy).is_none(), "it was admitted");
    let greedy = ask(&mut mux, session(1, 1)).expect("it waits");
    assert_eq!(mux.in_flight(), 2);
    mux.abandon(ids[1], Duration::from_secs(60));
    assert!(mux.leave_queue(greedy).is_none(), "a draining request takes no place");
    assert_eq!((mux.in_flight(), mux.n_draining), (2, 1));
    assert!(mux.drain().len() == 3 && mux.waitlist.is_none());
}

#[test]
fn the_client_with_the_most_waiting_loses_its_newest_request_and_no_other_does() {
    let mut mux = Mux::new(1, 1);
    mux.admit(session(1, 1), 0).expect("room");
    let full = (0..2).filter_map(|_| ask(&mut mux, session(2, 1))).count();
    let first = ask(&mut mux, session(2, 1)).expect("it waits");
    let waiting = defaults::IN_FLIGHT_QUEUE_MAX - full - 1;
    for _ in 0..waiting {
        let (_, lost) = mux.enqueue(session(1, 1), 1);
        assert!(lost.is_none());
    }
    assert_eq!(mux.enqueue(session(2, 1), 2).1, Some(1), "that of the other");
    assert_eq!(mux.enqueue(session(1, 1), 3).1, Some(3), "its own");
    assert!(mux.leave_queue(first).is_some());
}

#[test]
fn a_full_connection_takes_no_more_until_an_answer_comes() {
    let mut mux = Mux::new(2, 2);
    let first = mux.admit(ONE, "a").expect("room");
    mux.admit(ONE, "b").expect("room");
    assert_eq!(mux.admit(ONE, "c"), Err("c"));

    assert_eq!(mux.settle(first), SettledRequest::Wanted("a"));
    assert!(mux.admit(ONE, "c").is_ok());
}

#[test]
fn an_abandoned_request_drains_until_its_deadline() {
    let now = Duration::from_secs(7);
    let minute = Duration::from_secs(60);
    let mut mux = Mux::new(8, 8);
    let (gone, late) = (mux.admit(ONE, "a").expect("room"), mux.admit(ONE, "b").expect("room"));
    let kept = mux.admit(ONE, "c").expect("room");
    assert_eq!(mux.abandon(gone, now + minute), Some(&"a"));
    assert_eq!(mux.abandon(late, now + 2 * minute), Some(&"b"));
    assert_eq!(mux.abandon(late, now), None, "once");
    assert_eq!((mux.in_flight(), mux.n_draining), (1, 2));
    assert!(mux.waiter(gone).is_none() && mux.is_open(gone));

    assert_eq!(mux.settle(gone), SettledRequest::Drained("a"));
    assert_eq!(mux.settle(gone), SettledRequest::Unknown);
    assert!(mux.expire(now + minute).is_empty());
    assert_eq!(mux.expire(now + 2 * minute), ["b"]);
    assert_eq!(mux.settle(kept), SettledRequest::Wanted("c"));
    assert_eq!((mux.in_flight(), mux.n_draining), (0, 0));
}

#[test]
fn draining_requests_do_not_block_new_ones() {
    let later = Duration::from_secs(300);
    let mut mux = Mux::new(2, 2);
    for number in 0..100 {
        let forgotten = mux.expire(Duration::ZERO);
        // Returned, so that their answers are no longer read.
        assert_eq!(forgotten, (number >= 2).then(|| number - 2).into_iter().collect::<Vec<_>>());
        let id = mux.admit(ONE, number).expect("a drained one makes room");
        mux.abandon(id, later);
    }
    assert_eq!((mux.in_flight(), mux.n_draining), (0, 2));
    assert!(mux.draining.len() <= 22, "a forgotten request leaves no entry");
}

#[test]
fn the_number_of_draining_requests_is_bounded() {
    let later = Duration::from_secs(300);
    let mut mux = Mux::new(100, 3);
    let kept = mux.admit(ONE, 0).expect("room");
    for number in 1..=10 {
        let id = mux.admit(ONE, number).expect("room");
        mux.abandon(id, later);
    }
    assert_eq!(mux.expire(Duration::ZERO), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!((mux.in_flight(), mux.n_draining), (1, 3));
    assert_eq!(mux.settle(kept), SettledRequest::Wanted(0));
}

#[test]
fn a_request_is_not_the_sole_request_while_an_abandoned_one_drains() {
    let mut mux = Mux::new(8, 8);
    let (gone, kept) = (mux.admit(ONE, "a").expect("room"), mux.admit(ONE, "b").expect("room"));
    assert_eq!(mux.sole_request(|_| true), None);
    mux.abandon(gone, Duration::from_secs(60));
    assert_eq!(mux.sole_request(|_| true), None, "the server may still talk about the first one");
    mux.settle(gone);
    assert_eq!(mux.sole_request(|_| true), Some(kept));
}

/// A step of the test; the numbers select a request or a duration.
#[derive(Clone, Debug)]
enum Step {
    /// A client sends a request with one of few ids, so that they collide.
    Ask { id: u8 },
    /// The server answers a request that it received at any time, perhaps again.
    Answer(usize),
    /// A client disconnects.
    Leave(usize),
    /// Time passes.
    Wait(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4_u8).prop_map(|id| Step::Ask { id }),
        4 => any::<usize>().prop_map(Step::Answer),
        1 => any::<usize>().prop_map(Step::Leave),
        1 => (0..90_u8).prop_map(Step::Wait),
    ]
}

/// The request of one client, and its state.
struct Asked {
    client: usize,
    request: Message,
    /// The request as the server received it.
    sent: Message,
    is_waiting: bool,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn the_mux_finds_an_older_waiting_request_after_any_order_of_answers(
        steps in prop::collection::vec((0..4_u8, any::<prop::sample::Index>()), 1..300),
    ) {
        let mut mux = Mux::new(1000, 1000);
        let mut ids = Vec::new();
        for (step, index) in steps {
            if step < 2 || ids.is_empty() {
                ids.push(mux.admit(ONE, 0).expect("room"));
                continue;
            }
            let id = *index.get(&ids);
            let mut wanted = mux.entries.iter().filter(|(_, entry)| !entry.is_draining);
            let expected = wanted.any(|(other, _)| *other < id);
            prop_assert_eq!(mux.has_older(id), expected);
            match step {
                2 => drop(mux.abandon(id, Duration::from_secs(60)).copied()),
                _ => drop(mux.settle(id)),
            }
        }
    }

    /// Clients use the same few ids and tokens, as numbers and as strings. The server answers with
    /// the id and the text that it saw. Each client must get its own text, under its own id.
    #[test]
    fn no_interleaving_brings_an_answer_to_another_client(
        steps in prop::collection::vec(step(), 0..40),
    ) {
        // One model beside the mux: a part of it alone would show nothing.
        let mut now = Duration::ZERO;
        let mut mux = Mux::new(16, 8);
        let mut asked: Vec<Asked> = Vec::new();
        let mut by_id: HashMap<u64, usize> = HashMap::new();
        for (client, step) in steps.into_iter().enumerate() {
            match step {
                Step::Ask { id } => {
                    let id = if id % 2 == 0 { format!("{id}") } else { format!("\"{id}\"") };
                    let text = format!(
                        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{client},"_meta":{{"progressToken":{id}}}}}}}"#
                    );
                    let request = Message::parse(text.into()).expect("a request");
                    let Ok(number) = mux.admit(ONE, client) else { continue };
                    let number_text = number.to_string();
                    let sent = request.edit([(MessagePart::Id, &number_text), (MessagePart::ProgressToken, &number_text)]);
                    let sent = Message::parse(sent).expect("still a request");
                    prop_assert_eq!(sent.integer(MessagePart::Id), Some(number));
                    prop_assert_eq!(sent.integer(MessagePart::ProgressToken), Some(number));
                    prop_assert!(by_id.insert(number, asked.len()).is_none(), "never used twice");
                    asked.push(Asked { client, request, sent, is_waiting: true });
                }
                Step::Answer(at) if !asked.is_empty() => {
                    let at = at % asked.len();
                    let Asked { client, request, sent, is_waiting } = &mut asked[at];
                    // The server echoes the request that it saw.
                    let answer = String::from_utf8_lossy(sent.bytes()).replace("\"method\":\"tools/call\",\"params\"", "\"result\"");
                    let answer = Message::parse(answer.into()).expect("a response");
                    let number = answer.integer(MessagePart::Id).expect("ours");
                    match mux.settle(number) {
                        SettledRequest::Wanted(owner) => {
                            prop_assert!(*is_waiting);
                            prop_assert_eq!(owner, *client);
                            let id = request.part(MessagePart::Id).expect("it has one");
                            let restored = Message::parse(answer.edit([(MessagePart::Id, id)])).expect("a response");
                            prop_assert_eq!(restored.part(MessagePart::Id), Some(id), "the same spelling");
                            let mine = format!("\"arguments\":{client},");
                            prop_assert!(restored.part(MessagePart::Result).is_some_and(|result| result.contains(&mine)));
                        }
                        SettledRequest::Drained(owner) => prop_assert_eq!(owner, *client),
                        SettledRequest::Unknown => prop_assert!(!*is_waiting),
                    }
                    *is_waiting = false;
                }
                Step::Leave(at) if !asked.is_empty() => {
                    let at = at % asked.len();
                    let number = asked[at].sent.integer(MessagePart::Id).expect("ours");
                    let left = mux.abandon(number, now + Duration::from_secs(60)).copied();
                    let expected = asked[at].is_waiting.then_some(asked[at].client);
                    prop_assert_eq!(left, expected);
                    asked[at].is_waiting = false;
                }
                Step::Wait(seconds) => {
                    now += Duration::from_secs(seconds.into());
                    for owner in mux.expire(now) {
                        prop_assert!(asked.iter().any(|asked| asked.client == owner && !asked.is_waiting));
                    }
                }
                Step::Answer(_) | Step::Leave(_) => {}
            }
            let n_waiting = asked.iter().filter(|asked| asked.is_waiting).count();
            prop_assert_eq!(mux.in_flight(), n_waiting);
        }
    }
}
