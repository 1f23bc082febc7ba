//! The confinement of a process that runs untrusted code: real processes make system calls after
//! they have confined themselves.

use std::fs;

use crate::harness::confined_process::{ConfinedProbe, DescribedAttempt, KernelSupport, ProbeUser};

#[test]
fn a_confined_process_is_killed_at_each_call_that_it_does_not_need() {
    for user in ProbeUser::all() {
        let probe = ConfinedProbe::new(user);
        let wrong = probe.wrong_outcomes_under_all_layers();
        assert!(wrong.is_empty(), "{user:?}: {wrong:#?}");
    }
}

#[test]
fn the_layers_below_the_filter_refuse_most_calls_on_their_own() {
    for user in ProbeUser::all() {
        let probe = ConfinedProbe::new(user);
        let wrong = probe.wrong_outcomes_without_filter();
        assert!(wrong.is_empty(), "{user:?}: {wrong:#?}");
    }
}

#[test]
fn the_same_calls_succeed_without_confinement() {
    let attempts = ConfinedProbe::new(ProbeUser::Own).attempts();
    let possible: Vec<_> = attempts.into_iter().filter(|attempt| attempt.is_possible).collect();
    assert!(possible.len() > 50, "{} attempts", possible.len());
    let mut n_changes = 0;
    for DescribedAttempt { name, .. } in possible {
        let probe = ConfinedProbe::new(ProbeUser::Own);
        let outcome = probe.attempt("free", &name);
        assert!(outcome.text.starts_with("returned "), "{name}: {outcome:?}");
        n_changes += usize::from(!probe.is_unchanged());
    }
    assert!(n_changes > 10, "{n_changes} calls changed files");
}

#[test]
fn a_confined_process_allocates_until_its_limit_and_talks_over_descriptor_0() {
    for user in ProbeUser::all() {
        let probe = ConfinedProbe::new(user);
        let mut process = probe.start(&["serve"]);
        let _support = KernelSupport::of(&mut process);
        assert_eq!(process.line(), "allocated", "{user:?}: exhausted memory is an error");
        process.write("ping");
        assert_eq!(process.line(), "ping");
        let outcome = process.finish();
        assert!(outcome.is_success(), "{outcome:?}");
    }
}

#[test]
fn a_confined_process_has_no_rights_descriptors_or_limits_to_raise() {
    for user in ProbeUser::all() {
        let probe = ConfinedProbe::new(user);
        let mut process = probe.start(&["serve"]);
        let _support = KernelSupport::of(&mut process);
        let read = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", process.pid()));
        let status = read("status").expect("a file for all users");
        // An unprivileged process cannot empty the bounding set, and gains nothing from it.
        let mut sets = vec!["CapInh", "CapPrm", "CapEff", "CapAmb"];
        if user == ProbeUser::Own && ProbeUser::all().len() > 1 {
            sets.push("CapBnd");
        }
        for set in sets {
            assert!(status.contains(&format!("{set}:\t0000000000000000\n")), "{set}: {status}");
        }
        for line in ["NoNewPrivs:\t1\n", "Seccomp:\t2\n", "Threads:\t1\n"] {
            assert!(status.contains(line), "{user:?}: {line} {status}");
        }
        let limits = read("limits").expect("a file for all users");
        for limit in ["open files", "processes", "file size", "core file size", "locked memory"] {
            let line = limits.lines().find(|line| line.starts_with(&format!("Max {limit}")));
            let amounts = line.map(|line| line.split_whitespace().filter(|word| *word == "0"));
            assert_eq!(amounts.map(Iterator::count), Some(2), "{limit}: {line:?}");
        }
        match fs::read_dir(format!("/proc/{}/fd", process.pid())) {
            Ok(descriptors) => {
                let names: Vec<_> = descriptors.map(|entry| entry.unwrap().file_name()).collect();
                assert_eq!(names, ["0"], "{user:?}");
            }
            // The process is not dumpable, so only root reads its descriptors.
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied),
        }
        process.kill();
    }
}

#[test]
fn a_confined_process_ends_with_its_parent() {
    let probe = ConfinedProbe::new(ProbeUser::Own);
    let mut parent = probe.start(&["parent"]);
    let _support = KernelSupport::of(&mut parent);
    assert_eq!(parent.line(), "allocated");
    // The socket closes when the child has ended, too, which waits for input.
    assert_eq!(parent.kill(), "");
}

#[test]
fn a_process_is_not_confined_with_another_parent_or_several_threads() {
    let probe = ConfinedProbe::new(ProbeUser::Own);
    let orphan = probe.start(&["orphan"]).finish();
    assert!(orphan.text.starts_with("ParentDeath: the parent of this process is "), "{orphan:?}");
    let threads = probe.start(&["threads"]).finish();
    assert!(threads.text.starts_with("Preconditions: the process has 2 threads"), "{threads:?}");
}

#[test]
fn a_filter_that_refuses_isolation_is_reported_with_the_directive_that_allows_it() {
    let probe = ConfinedProbe::new(ProbeUser::Own);
    let available = probe.start(&["probe", "none"]).finish();
    assert!(available.text.starts_with("available "), "{available:?}");
    for (call, directive) in [
        ("landlock_create_ruleset", "`SystemCallFilter=landlock_create_ruleset "),
        ("seccomp", "`SystemCallFilter=seccomp`"),
    ] {
        let refused = probe.start(&["probe", call]).finish();
        assert!(
            refused.text.contains(&format!("the system call {call} is refused")),
            "{refused:?}"
        );
        assert!(refused.text.contains(directive), "{refused:?}");
    }
}
