use proptest::prelude::*;

use super::*;
use crate::capacity_holder::{Account, AccountMember};

const THRESHOLD: u32 = 3;
const COOLDOWN: Duration = Duration::from_secs(30);

fn settings() -> Settings {
    Settings { failure_threshold: THRESHOLD, cooldown: COOLDOWN }
}

fn client(number: u64) -> Holder {
    Holder { account: Account::User(1000), member: AccountMember::Session(number) }
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Admits a request that fails with no other one running.
fn fail(breaker: &mut Breaker, now: Duration) -> BreakerChange {
    let ticket = breaker.admit(client(1), now).expect("it passes");
    breaker.failed(&ticket, Fault::Offline, None, now)
}

/// Returns a breaker that has tripped at this time.
fn tripped(now: Duration) -> Breaker {
    let mut breaker = Breaker::new(settings());
    for _ in 1..THRESHOLD {
        assert_eq!(fail(&mut breaker, now), BreakerChange::Nothing);
    }
    assert_eq!(fail(&mut breaker, now), BreakerChange::Tripped { failures: THRESHOLD });
    breaker
}

fn state(breaker: &Breaker) -> BreakerState {
    breaker.snapshot(at(0)).state
}

#[test]
fn failures_in_a_row_trip_at_the_threshold_and_reset_the_counter() {
    let breaker = tripped(at(5));
    assert_eq!(
        breaker.snapshot(at(15)),
        BreakerSnapshot {
            state: BreakerState::Open,
            failures: 0,
            trips: 1,
            next_probe_ms: Some(20_000),
            last_fault: Some(Fault::Offline),
        }
    );
}

#[test]
fn a_success_resets_the_failure_counter() {
    let mut breaker = Breaker::new(settings());
    for _ in 0..10 {
        assert_eq!(fail(&mut breaker, at(0)), BreakerChange::Nothing);
        assert_eq!(fail(&mut breaker, at(0)), BreakerChange::Nothing);
        let ticket = breaker.admit(client(1), at(0)).expect("it passes");
        assert_eq!(breaker.succeeded(&ticket, at(0)), BreakerChange::Nothing);
    }
    assert_eq!(state(&breaker), BreakerState::Normal);
}

#[test]
fn each_fault_counts_clears_or_changes_nothing() {
    let after = |fault: Fault| {
        let mut breaker = Breaker::new(settings());
        let _nothing = fail(&mut breaker, at(0));
        let ticket = breaker.admit(client(1), at(0)).expect("it passes");
        let _nothing = breaker.failed(&ticket, fault, None, at(0));
        breaker.snapshot(at(0)).failures
    };
    for (fault, failures) in [
        (Fault::Offline, 2),
        (Fault::Http, 2),
        (Fault::StdioExit, 2),
        (Fault::Other, 2),
        (Fault::Auth, 1),
        (Fault::Cancelled, 1),
        (Fault::Protocol, 0),
    ] {
        assert_eq!(after(fault), failures, "{}", fault.name());
    }
}

#[test]
fn exactly_at_the_end_of_the_cooldown_one_probe_passes() {
    let mut breaker = tripped(at(0));
    assert_eq!(breaker.admit(client(1), at(29)), Err(at(1)));
    let just_before = COOLDOWN - Duration::from_nanos(1);
    assert_eq!(breaker.admit(client(1), just_before), Err(Duration::from_nanos(1)));
    let _probe = breaker.admit(client(1), COOLDOWN).expect("the probe");
    assert_eq!(state(&breaker), BreakerState::Probe);
    assert_eq!(breaker.admit(client(1), COOLDOWN), Err(COOLDOWN), "and no other");
}

#[test]
fn a_probe_that_succeeds_lets_everything_pass_again() {
    let mut breaker = tripped(at(0));
    let probe = breaker.admit(client(1), COOLDOWN).expect("the probe");
    assert_eq!(breaker.succeeded(&probe, at(0)), BreakerChange::Normal);
    assert_eq!(state(&breaker), BreakerState::Normal);
    for _ in 1..THRESHOLD {
        assert_eq!(
            fail(&mut breaker, COOLDOWN),
            BreakerChange::Nothing,
            "and the row is a new one"
        );
    }
}

#[test]
fn a_probe_that_fails_trips_at_once_for_another_whole_cooldown() {
    let mut breaker = tripped(at(0));
    for n_trips in 2..5 {
        let now = COOLDOWN * (n_trips - 1) + at(1);
        let probe = breaker.admit(client(1), now).expect("the probe");
        let change = breaker.failed(&probe, Fault::Http, None, now);
        assert_eq!(change, BreakerChange::Tripped { failures: 1 });
        assert_eq!(breaker.admit(client(1), now), Err(COOLDOWN));
        assert_eq!(breaker.snapshot(now).trips, u64::from(n_trips));
    }
}

#[test]
fn a_probe_lets_the_next_one_start_at_once_when_its_caller_leaves() {
    for fault in [None, Some(Fault::Cancelled), Some(Fault::Auth)] {
        let mut breaker = tripped(at(0));
        let probe = breaker.admit(client(1), at(40)).expect("the probe");
        match fault {
            None => breaker.cancelled(&probe, at(41)),
            Some(fault) => {
                assert_eq!(breaker.failed(&probe, fault, None, at(41)), BreakerChange::Nothing);
            }
        }
        assert_eq!(state(&breaker), BreakerState::Open);
        let next = breaker.admit(client(1), at(41)).expect("the next probe");
        assert_eq!(breaker.succeeded(&next, at(0)), BreakerChange::Normal);
    }
}

#[test]
fn a_probe_without_an_outcome_is_replaced_after_a_cooldown() {
    let mut breaker = tripped(at(0));
    let late = breaker.admit(client(1), at(30)).expect("the probe");
    assert_eq!(breaker.admit(client(1), at(59)), Err(at(1)));
    let next = breaker.admit(client(1), at(60)).expect("the next probe");
    breaker.cancelled(&late, at(61));
    assert_eq!(state(&breaker), BreakerState::Probe, "the late probe no longer decides");
    // A late success counts although it took longer than the cooldown.
    assert_eq!(breaker.succeeded(&late, at(0)), BreakerChange::Normal);
    assert_eq!(breaker.succeeded(&next, at(0)), BreakerChange::Nothing);
}

#[test]
fn a_probe_that_fails_late_trips_as_well() {
    let mut breaker = tripped(at(0));
    let late = breaker.admit(client(1), at(30)).expect("the probe");
    let next = breaker.admit(client(1), at(60)).expect("the next probe");
    let change = breaker.failed(&late, Fault::Offline, None, at(70));
    assert_eq!(change, BreakerChange::Tripped { failures: 1 });
    assert_eq!(breaker.admit(client(1), at(70)), Err(COOLDOWN));
    assert_eq!(breaker.failed(&next, Fault::Offline, None, at(80)), BreakerChange::Nothing);
    assert_eq!(breaker.admit(client(1), at(80)), Err(at(20)), "the late probe has tripped it");
}

#[test]
fn a_request_admitted_before_the_trip_does_not_change_the_breaker_afterwards() {
    let mut breaker = Breaker::new(settings());
    let old: Vec<BreakerTicket> =
        (0..9).map(|_| breaker.admit(client(1), at(0)).expect("it passes")).collect();
    for ticket in &old[..2] {
        assert_eq!(breaker.failed(ticket, Fault::Offline, None, at(1)), BreakerChange::Nothing);
    }
    assert_ne!(breaker.failed(&old[2], Fault::Offline, None, at(1)), BreakerChange::Nothing);

    assert_eq!(breaker.succeeded(&old[3], at(0)), BreakerChange::Nothing);
    assert_eq!(breaker.failed(&old[4], Fault::Offline, None, at(2)), BreakerChange::Nothing);
    assert_eq!(breaker.admit(client(1), at(2)), Err(at(29)));
    let probe = breaker.admit(client(1), at(31)).expect("the probe");
    assert_eq!(breaker.succeeded(&old[5], at(0)), BreakerChange::Nothing);
    assert_eq!(breaker.failed(&old[6], Fault::Offline, None, at(32)), BreakerChange::Nothing);
    breaker.cancelled(&old[7], at(32));
    assert_eq!(state(&breaker), BreakerState::Probe);
    assert_eq!(breaker.succeeded(&probe, at(0)), BreakerChange::Normal);
    assert_eq!(breaker.failed(&old[8], Fault::Offline, None, at(33)), BreakerChange::Nothing);
    assert_eq!(breaker.snapshot(at(33)).failures, 0);
}

#[test]
fn requests_that_fail_in_one_incident_count_as_one_failure() {
    for incident in [BreakerIncident::Connection(1), BreakerIncident::Dial(1)] {
        let mut breaker = Breaker::new(settings());
        let wave: Vec<BreakerTicket> =
            (0..20).map(|_| breaker.admit(client(1), at(0)).expect("it passes")).collect();
        for ticket in &wave {
            let change = breaker.failed(ticket, Fault::StdioExit, Some(incident), at(1));
            assert_eq!(change, BreakerChange::Nothing, "{incident:?}");
        }
        assert_eq!(breaker.snapshot(at(1)).failures, 1, "{incident:?}");
    }
}

#[test]
fn each_of_several_successive_failures_on_one_connection_counts() {
    let mut breaker = Breaker::new(settings());
    for failures in 1..THRESHOLD {
        let ticket = breaker.admit(client(1), at(0)).expect("it passes");
        let incident = Some(BreakerIncident::Connection(7));
        assert_eq!(
            breaker.failed(&ticket, Fault::Offline, incident, at(0)),
            BreakerChange::Nothing
        );
        assert_eq!(breaker.snapshot(at(0)).failures, failures);
    }
}

#[test]
fn a_second_dial_after_the_same_wait_is_the_same_incident_and_a_later_one_is_not() {
    let mut breaker = Breaker::new(settings());
    let wave: Vec<BreakerTicket> =
        (0..6).map(|_| breaker.admit(client(1), at(0)).expect("it passes")).collect();
    for (dial, ticket) in (2..).zip(&wave) {
        let incident = Some(BreakerIncident::Dial(dial));
        assert_eq!(breaker.failed(ticket, Fault::Offline, incident, at(1)), BreakerChange::Nothing);
    }
    assert_eq!(breaker.snapshot(at(1)).failures, 1);
    let later = breaker.admit(client(1), at(2)).expect("it passes");
    let same = breaker.failed(&later, Fault::Offline, Some(BreakerIncident::Dial(2)), at(3));
    assert_eq!((same, breaker.snapshot(at(3)).failures), (BreakerChange::Nothing, 1));
    let later = breaker.admit(client(1), at(3)).expect("it passes");
    let next = breaker.failed(&later, Fault::Offline, Some(BreakerIncident::Dial(9)), at(3));
    assert_eq!((next, breaker.snapshot(at(3)).failures), (BreakerChange::Nothing, 2));
}

#[test]
fn requests_that_time_out_together_each_count() {
    let mut breaker = Breaker::new(settings());
    let wave: Vec<BreakerTicket> =
        (0..3).map(|_| breaker.admit(client(1), at(0)).expect("it passes")).collect();
    let changes: Vec<BreakerChange> =
        wave.iter().map(|ticket| breaker.failed(ticket, Fault::Offline, None, at(1))).collect();
    assert_eq!(changes[2], BreakerChange::Tripped { failures: 3 });
}

/// Admits a client's request that times out with no other one running.
fn time_out(breaker: &mut Breaker, holder: Holder, now: Duration) -> BreakerChange {
    let ticket = breaker.admit(holder, now).expect("it passes");
    breaker.failed(&ticket, Fault::Offline, Some(BreakerIncident::Timeout), now)
}

#[test]
fn timeouts_of_one_client_do_not_trip_while_another_uses_the_server() {
    let mut breaker = Breaker::new(settings());
    let _ticket = breaker.admit(client(2), at(0)).expect("it passes");
    for second in 0..=COOLDOWN.as_secs() {
        assert_eq!(time_out(&mut breaker, client(1), at(second)), BreakerChange::Nothing);
        let expected = THRESHOLD.min(u32::try_from(second).expect("small") + 2) - 1;
        assert_eq!(breaker.snapshot(at(second)).failures, expected);
    }

    let late = COOLDOWN + at(1);
    let change = time_out(&mut breaker, client(1), late);
    assert_eq!(change, BreakerChange::Tripped { failures: THRESHOLD }, "the other client has left");
}

#[test]
fn timeouts_of_two_clients_trip_together() {
    let mut breaker = Breaker::new(settings());
    for second in 0..10 {
        assert_eq!(time_out(&mut breaker, client(1), at(second)), BreakerChange::Nothing);
        let _ticket = breaker.admit(client(2), at(second)).expect("it passes");
    }
    let change = time_out(&mut breaker, client(2), at(10));
    assert_eq!(change, BreakerChange::Tripped { failures: THRESHOLD });
}

#[test]
fn the_exit_of_a_server_trips_after_timeouts_that_did_not() {
    let mut breaker = Breaker::new(settings());
    let _ticket = breaker.admit(client(2), at(0)).expect("it passes");
    for _ in 0..10 {
        assert_eq!(time_out(&mut breaker, client(1), at(0)), BreakerChange::Nothing);
    }
    let ticket = breaker.admit(client(1), at(1)).expect("it passes");
    let death = Some(BreakerIncident::Connection(1));
    let change = breaker.failed(&ticket, Fault::StdioExit, death, at(1));
    assert_eq!(change, BreakerChange::Tripped { failures: THRESHOLD });
}

#[test]
fn timeouts_of_the_only_client_trip() {
    for holder in [client(1), Holder::SERVICE, Holder::unknown()] {
        let mut breaker = Breaker::new(settings());
        for _ in 1..THRESHOLD {
            assert_eq!(time_out(&mut breaker, holder, at(0)), BreakerChange::Nothing);
            let _ours = breaker.admit(Holder::SERVICE, at(0)).expect("it passes");
        }
        let change = time_out(&mut breaker, holder, at(0));
        assert_eq!(change, BreakerChange::Tripped { failures: THRESHOLD }, "{holder:?}");
    }
}

#[test]
fn a_threshold_of_zero_never_trips() {
    let mut breaker = Breaker::new(Settings { failure_threshold: 0, cooldown: COOLDOWN });
    for _ in 0..100 {
        assert_eq!(fail(&mut breaker, at(0)), BreakerChange::Nothing);
    }
    assert_eq!((state(&breaker), breaker.snapshot(at(0)).failures), (BreakerState::Normal, 100));
}

#[test]
fn changed_settings_take_effect_at_once() {
    let with = |failure_threshold, seconds| Settings { failure_threshold, cooldown: at(seconds) };

    let mut shorter = tripped(at(100));
    shorter.configure(with(THRESHOLD, 10));
    assert_eq!(shorter.admit(client(1), at(109)), Err(at(1)));
    assert!(shorter.admit(client(1), at(110)).is_ok());

    let mut off = tripped(at(100));
    off.configure(with(0, 30));
    assert!(off.admit(client(1), at(100)).is_ok());
    assert_eq!(state(&off), BreakerState::Normal);

    let mut lower = Breaker::new(settings());
    let _nothing = fail(&mut lower, at(0));
    lower.configure(with(1, 30));
    assert_eq!(fail(&mut lower, at(0)), BreakerChange::Tripped { failures: 2 });
}

#[derive(Clone, Debug)]
enum Step {
    Admit,
    Succeed(usize),
    Fail(usize, Fault),
    Leave(usize),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Admit),
        1 => (0..8usize).prop_map(Step::Succeed),
        4 => (0..8usize, 0..Fault::ALL.len()).prop_map(|(at, fault)| Step::Fail(at, Fault::ALL[fault])),
        1 => (0..8usize).prop_map(Step::Leave),
        2 => (0..40u64).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn in_any_order_of_events_one_probe_passes_at_a_time_and_a_healthy_server_recovers(
        steps in steps()
    ) {
        // One model beside the breaker: a part of it alone would show nothing.
        let mut breaker = Breaker::new(settings());
        let (mut now, mut row) = (at(0), 0);
        let mut running: Vec<BreakerTicket> = Vec::new();
        // The probe that decides, and its start.
        let mut probe: Option<(u64, Duration)> = None;
        for step in steps {
            let before = breaker.snapshot(now);
            match step {
                Step::Wait(seconds) => now += at(seconds),
                Step::Admit => match breaker.admit(client(1), now) {
                    Ok(ticket) => {
                        if let Some(number) = ticket.probe {
                            prop_assert_ne!(before.state, BreakerState::Normal);
                            if let Some((_, since)) = probe.replace((number, now)) {
                                prop_assert!(since + COOLDOWN <= now, "two probes at a time");
                            }
                        }
                        running.push(ticket);
                    }
                    Err(retry_in) => {
                        prop_assert_ne!(before.state, BreakerState::Normal, "a normal one rejects nothing");
                        prop_assert!(retry_in <= COOLDOWN && !retry_in.is_zero());
                    }
                },
                Step::Succeed(at) | Step::Fail(at, _) | Step::Leave(at) if running.is_empty() => {
                    let _nobody_runs = at;
                }
                Step::Succeed(at) | Step::Fail(at, _) | Step::Leave(at) => {
                    let ticket = running.remove(at % running.len());
                    let is_of_now = ticket.trips == before.trips;
                    let fault = match step {
                        Step::Fail(_, fault) => Some(fault),
                        _ => None,
                    };
                    let change = match (&step, fault) {
                        (_, Some(fault)) => breaker.failed(&ticket, fault, None, now),
                        (Step::Succeed(_), None) => breaker.succeeded(&ticket, now),
                        _ => {
                            breaker.cancelled(&ticket, now);
                            BreakerChange::Nothing
                        }
                    };
                    let is_success =
                        matches!(step, Step::Succeed(_)) || fault == Some(Fault::Protocol);
                    let is_failure = fault.is_some_and(Fault::counts);
                    if is_of_now && before.state == BreakerState::Normal {
                        row = if is_success { 0 } else { row + u32::from(is_failure) };
                        let has_tripped = is_failure && row == THRESHOLD;
                        let expected = if has_tripped {
                            row = 0;
                            BreakerChange::Tripped { failures: THRESHOLD }
                        } else {
                            BreakerChange::Nothing
                        };
                        prop_assert_eq!(change, expected);
                    }
                    if !is_of_now {
                        prop_assert_eq!(change, BreakerChange::Nothing);
                    }
                    if change == BreakerChange::Normal || ticket.probe.is_some_and(|number| {
                        probe.is_some_and(|(waited_for, _)| waited_for == number)
                    }) {
                        probe = None;
                    }
                }
            }
        }
        // The running requests have gone; the server answers from now on.
        now += COOLDOWN;
        let ticket = breaker.admit(client(1), now).expect("a probe at the latest");
        let _normal = breaker.succeeded(&ticket, at(0));
        prop_assert_eq!(breaker.snapshot(now).state, BreakerState::Normal);
        prop_assert!(breaker.admit(client(1), now).is_ok() && breaker.admit(client(1), now).is_ok());
    }

    /// Each event is a client's use of the server, and whether it times out. Some seconds pass
    /// between the events.
    #[test]
    fn timeouts_of_one_client_never_trip_a_server_that_another_uses(
        events in proptest::collection::vec((0..3_u64, any::<bool>(), 0..20_u64), 0..100)
    ) {
        let mut breaker = Breaker::new(settings());
        let (mut now, mut uses) = (at(0), Vec::new());
        let mut row: Vec<u64> = Vec::new();
        for (number, is_late, pause) in events {
            now += at(pause);
            let Ok(ticket) = breaker.admit(client(number), now) else { return Ok(()) };
            uses.push((number, now));
            if !is_late {
                let _nothing = breaker.succeeded(&ticket, now);
                row.clear();
                continue;
            }
            row.push(number);
            let change = breaker.failed(&ticket, Fault::Offline, Some(BreakerIncident::Timeout), now);
            let has_other =
                uses.iter().any(|(other, used)| *other != number && *used + COOLDOWN >= now);
            let is_mixed = row.iter().any(|other| *other != number);
            if let BreakerChange::Tripped { failures } = change {
                prop_assert_eq!(failures, THRESHOLD);
                prop_assert!(!has_other || is_mixed, "by one client alone");
            } else if !has_other {
                prop_assert!(row.len() < THRESHOLD as usize || is_mixed, "alone, and not tripped");
            }
        }
    }

    #[test]
    fn the_breaker_never_counts_more_failures_than_there_were(
        incidents in proptest::collection::vec((0..4u64, any::<bool>()), 0..60)
    ) {
        let settings = Settings { failure_threshold: 1000, cooldown: COOLDOWN };
        let mut breaker = Breaker::new(settings);
        let wave: Vec<BreakerTicket> =
            incidents.iter().map(|_| breaker.admit(client(1), at(0)).expect("it passes")).collect();
        let mut met = std::collections::BTreeSet::new();
        for (ticket, (number, is_dial)) in wave.iter().zip(incidents) {
            let incident =
                if is_dial { BreakerIncident::Dial(number) } else { BreakerIncident::Connection(number) };
            let _nothing = breaker.failed(ticket, Fault::Offline, Some(incident), at(0));
            // All requests that wait at the same time meet one connection failure.
            met.insert(if is_dial { None } else { Some(number) });
        }
        prop_assert_eq!(breaker.snapshot(at(0)).failures as usize, met.len());
    }
}
