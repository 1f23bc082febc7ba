//! The next step after a mistake, as a person at the command line can take it.

use std::fs;

use super::Rig;
use crate::harness::{daemon, fake::Fakes};

#[test]
fn each_hint_is_a_command_that_a_person_can_type() {
    let rig = Rig::start();
    let (code, id, stderr) = rig.run(&["call", "--async", "fake/hold", "{\"key\":\"k\"}"]);
    assert_eq!(code, 0, "{stderr}");
    let id = id.trim();
    let wait = format!("hint: Wait for it with `metamcp task {id} --wait`.");
    for (words, expected) in [
        (&["auth", "nope"][..], "hint: Run `metamcp servers` to list the servers."),
        (&["call", "x/y"], "hint: Run `metamcp servers` to list the servers."),
        (&["call", "fake/nothing_like_it"], "hint: Run `metamcp tools` to list the tools."),
        (&["prompt", "fake/nothing_like_it"], "hint: Run `metamcp prompts fake` to list them."),
        (&["call", "fake/"], "no tool follows the server"),
        (&["call", "fake", "echo"], "hint: Did you mean `metamcp call fake/echo`?"),
        (&["call", "--timeout", "500ms", "fake/hold", "{\"key\":\"t\"}"], "or raise `--timeout`."),
        (&["read", "a://b"], "hint: Write SERVER/URI; `metamcp resources` lists them."),
        (&["read", "fake:"], "hint: Write SERVER/URI; `metamcp resources` lists them."),
        (&["read", "fake/"], "hint: Write SERVER/URI; `metamcp resources` lists them."),
        (
            &["reload", "--config", "/no/such/file"],
            "hint: Correct the path: there is no such file.",
        ),
        (&["login", "fake"], "hint: Only a server with a `url`"),
        (&["task", id, "--result"], &wait),
    ] {
        let (code, _, stderr) = rig.run(words);
        assert_ne!(code, 0, "{words:?}");
        assert!(stderr.contains(expected), "{words:?}: {stderr}");
    }
    assert_eq!(rig.run(&["task", id, "--cancel"]).0, 0);
    let (_, _, stderr) = rig.run(&["task", id, "--cancel"]);
    assert!(stderr.ends_with("hint: There is nothing to cancel.\n"), "{stderr}");
    let (code, text, stderr) = rig.run(&["read", "fake:///one"]);
    assert_eq!((code, text.as_str()), (0, "the first\n"), "{stderr}");
    rig.daemon.wait_log("requested a reload of the configuration from `/no/such/file`");
    assert!(!rig.daemon.log().contains("Some("), "{}", rig.daemon.log());
}

#[test]
fn a_mistake_without_a_service_is_answered_with_what_to_write() {
    let home = tempfile::tempdir().expect("a directory");
    let path = |name: &str| home.path().join(name).display().to_string();
    let (config, invalid) = (path("c.toml"), path("invalid.toml"));
    fs::write(&config, Fakes::new().server("clock", &[])).expect("written");
    fs::write(&invalid, "[servers.clock]\ncommand = \"true\"\nno_such_key = 1\n").expect("written");
    let variables = [("HOME", path("")), ("XDG_CONFIG_HOME", path(""))];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let clients = "use one of claude-code, ";
    for (words, expected) in [
        (&["remove", "clok", "--config", &config][..], "hint: Did you mean `clock`?"),
        (&["enable", "clok", "--config", &config], "hint: Did you mean `clock`?"),
        (&["disable", "clok", "--config", &config], "hint: Did you mean `clock`?"),
        (&["disable", "clock", "--config", &invalid], "the file was invalid before"),
        (&["add", "x", "--config", &config], "hint: Give a URL, or `-- PROGRAM`"),
        (&["connect", "foo"], clients),
        (&["connect", "code"], "did you mean `vscode`?"),
        (&["connect", "cursor", "--name", ""], "a value is required for '--name <ENTRY>'"),
        (&["connect", "cursor", "--file", "/dev/null"], "it is not a regular file"),
    ] {
        let (code, _, stderr) = daemon::run_in(home.path(), &variables, words);
        assert_ne!(code, 0, "{words:?}");
        assert!(stderr.contains(expected), "{words:?}: {stderr}");
    }
}
