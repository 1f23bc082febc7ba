use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::*;
use crate::child::escalation;

fn shell(script: &str) -> ChildProgram {
    ChildProgram {
        command: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        env: BTreeMap::new(),
        cwd: None,
    }
}

async fn first_line(stdout: ChildStdout) -> String {
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await.expect("readable");
    line.trim().to_owned()
}

#[track_caller]
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie that its new parent has not reaped yet is dead.
    !stat.is_empty() && !stat.contains(") Z ")
}

#[tokio::test]
async fn a_child_exits_when_its_input_ends() {
    let (mut child, pipes) = Child::spawn(&shell("cat; exit 3")).expect("starts");
    drop(pipes);
    // Before any signal: a busy machine may take longer than the first wait of the escalation.
    child.wait().await;
    assert_eq!(
        child.terminate(escalation::cancelled_token()).await.to_string(),
        "exited with code 3"
    );
}

#[tokio::test]
async fn a_child_that_ignores_sigterm_is_killed() {
    let (child, pipes) =
        Child::spawn(&shell("trap '' TERM; echo ready; while :; do sleep 1; done"))
            .expect("starts");
    assert_eq!(first_line(pipes.stdout).await, "ready");
    drop(pipes.stdin);
    assert_eq!(
        child.terminate(escalation::cancelled_token()).await.to_string(),
        "was ended by signal 9"
    );
}

#[tokio::test]
async fn a_grandchild_ends_with_the_child_that_started_it() {
    let (child, pipes) = Child::spawn(&shell("sleep 600 & echo $!; exit 0")).expect("starts");
    let grandchild = first_line(pipes.stdout).await;
    assert!(is_alive(&grandchild));

    child.terminate(escalation::cancelled_token()).await;

    assert!(!is_alive(&grandchild));
}

/// A shell command that ignores SIGTERM and the end of its input, in another group than the child.
const DAEMON: &str = r#"setsid --fork sh -c 'trap "" TERM; echo $$; exec sleep 600'"#;

#[tokio::test]
async fn a_daemon_that_left_the_process_group_ends_with_the_child() {
    let (child, pipes) = Child::spawn(&shell(&format!("{DAEMON}; cat"))).expect("starts");
    let (group, daemon) = (child.group, first_line(pipes.stdout).await);
    let stat = std::fs::read_to_string(format!("/proc/{daemon}/stat")).expect("it runs");
    assert!(!stat.contains(&format!(" {} ", group.as_raw_nonzero())), "another group: {stat}");
    drop(pipes.stdin);

    // On a busy machine, a signal may come before the shell sees the end of its input.
    assert!(matches!(child.terminate(escalation::cancelled_token()).await, ChildExit::Status(_)));

    assert!(!is_alive(&daemon));
}

#[tokio::test]
async fn a_daemon_of_a_child_that_exited_by_itself_is_terminated() {
    let (mut child, pipes) = Child::spawn(&shell(&format!("{DAEMON}; exit 1"))).expect("starts");
    let daemon = first_line(pipes.stdout).await;
    child.wait().await;
    assert!(is_alive(&daemon));

    assert_eq!(
        child.terminate(escalation::cancelled_token()).await.to_string(),
        "exited with code 1"
    );

    assert!(!is_alive(&daemon));
}

#[tokio::test]
async fn the_daemon_of_another_child_is_left_alone() {
    let (one, its_pipes) = Child::spawn(&shell(&format!("{DAEMON}; cat"))).expect("starts");
    let (other, pipes) = Child::spawn(&shell(&format!("{DAEMON}; cat"))).expect("starts");
    let (daemon, its) = (first_line(pipes.stdout).await, first_line(its_pipes.stdout).await);
    drop(its_pipes.stdin);

    one.terminate(escalation::cancelled_token()).await;

    assert!(!is_alive(&its) && is_alive(&daemon));
    other.terminate(escalation::cancelled_token()).await;
    assert!(!is_alive(&daemon));
}

#[tokio::test]
async fn a_process_with_an_empty_environment_does_not_delay_a_termination() {
    let (other, pipes) =
        Child::spawn(&shell("setsid --fork env -i sh -c 'echo $$; read x' <&0; cat"))
            .expect("starts");
    let bare = Pid::from_raw(first_line(pipes.stdout).await.parse().expect("a number"));
    let bare = ProcessEntry::read(bare.expect("a number")).expect("readable").expect("it runs");
    assert_eq!(bare.environment(), Some(Vec::new()));
    assert!(!bare.is_execing());
    drop(pipes.stdin);
    other.terminate(escalation::cancelled_token()).await;
}

#[tokio::test]
async fn a_process_that_a_daemon_starts_during_termination_does_not_survive() {
    let script =
        r#"setsid --fork sh -c 'trap "" TERM; echo $$; while :; do sleep 0.01 & sleep 0.01; done'"#;
    let (child, pipes) = Child::spawn(&shell(&format!("{script}; cat"))).expect("starts");
    let daemon = first_line(pipes.stdout).await;
    let ProcessDescendants::Child { marker: Some(marker), .. } = child.descendants else {
        panic!("it has a marker")
    };
    drop(pipes.stdin);

    child.terminate(escalation::cancelled_token()).await;

    assert!(!is_alive(&daemon));
    let is_left = |process: ProcessEntry| {
        process.environment().is_some_and(|found| ChildMarker::find(&found) == Some(marker))
    };
    assert!(!ProcessEntry::all().any(is_left));
}

#[tokio::test]
async fn a_child_inherits_no_variable_that_is_not_on_the_list() {
    let mut program = shell("echo $(env | cut -d= -f1 | sort | tr '\\n' ' ')");
    program.env.insert("DECLARED".into(), "yes".into());
    let (child, pipes) = Child::spawn(&program).expect("starts");
    let names = first_line(pipes.stdout).await;
    child.terminate(escalation::cancelled_token()).await;

    for name in names.split(' ').filter(|name| {
        !["DECLARED", environment::MARKER, "PWD", "OLDPWD", "_", "SHLVL"].contains(name)
    }) {
        assert!(environment::INHERITED.contains(&name), "{name} leaked");
    }
    assert!(names.contains("DECLARED"));
}

#[tokio::test]
async fn a_long_output_is_returned_as_its_last_bytes() {
    let script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo end";
    let output = Child::output(&shell(script), 1000).await.expect("it ends");
    assert!(output.ends_with("line 19999\nend\n"), "{output}");
    assert_eq!(output.len(), 1000);

    assert_eq!(Child::output(&shell("echo short"), 1000).await.as_deref(), Some("short\n"));
    assert_eq!(Child::output(&shell("echo lost; exit 1"), 1000).await, None);
}
