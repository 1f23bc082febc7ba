//! Real clients that start `metamcp stdio`, while the service is restarted.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Command, Stdio},
};

use super::{
    Installed,
    harness::daemon::{Daemon, PROGRAM},
};

#[test]
fn clients_on_standard_input_and_output_work_through_a_restart() {
    let servers = Installed::find();
    let mut metamcp = Daemon::with(servers.config_with("eager")).keep_sockets().ready();
    let socket = metamcp.control().display().to_string();
    let stdio = [PROGRAM, "stdio", "--socket", &socket];
    type Start<'a> = (&'a str, Box<dyn Fn() -> Command + 'a>, Vec<&'a str>);
    let clients: [Start<'_>; 5] = [
        ("TypeScript 1", Box::new(|| servers.typescript("stdio.mjs")), vec!["1", "legacy"]),
        ("TypeScript 2, legacy", Box::new(|| servers.typescript("stdio.mjs")), vec!["2", "legacy"]),
        ("TypeScript 2, modern", Box::new(|| servers.typescript("stdio.mjs")), vec!["2", "auto"]),
        ("Python 1", Box::new(|| servers.first_python("stdio.py")), vec!["legacy"]),
        ("Python 2", Box::new(|| servers.python("stdio.py")), vec!["auto"]),
    ];
    for (name, start, options) in clients {
        let mut client = start()
            .args(options)
            .args(stdio)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("installed by tests/real/install");
        let mut lines = BufReader::new(client.stdout.take().expect("piped")).lines();
        let mut next = || lines.next().expect(name).expect("readable");
        assert_eq!(next(), "one", "{name}");
        let mut stdin = client.stdin.take().expect("piped");

        assert!(metamcp.stop().success());
        writeln!(stdin, "two").expect("it reads");
        metamcp.restart();

        assert_eq!(next(), "two", "{name}");
        drop(stdin);
        assert!(client.wait().expect("it ends").success(), "{name}");
    }
}
