//! The service without a service manager: one per user, started on demand, and stopped when it is
//! idle.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, getsid};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    harness::{
        DEADLINE,
        daemon::{self, Daemon, PROGRAM, exit_in_time},
        fake::{Fakes, is_alive},
        operator::Operator,
        stdio::StdioClient,
    },
    until,
};

/// The home directory of a separate user; a service that runs there is stopped on drop.
struct Home {
    directory: TempDir,
}

impl Home {
    fn new(servers: &str) -> Self {
        let home = Self { directory: tempfile::tempdir().expect("a directory") };
        fs::create_dir(home.path("metamcp")).expect("made");
        let socket = home.socket();
        let config = format!("[listen]\nhttp = \"127.0.0.1:0\"\ncontrol = {socket:?}\n{servers}");
        fs::write(home.file(), config).expect("written");
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn file(&self) -> PathBuf {
        self.path("metamcp/metamcp.toml")
    }

    fn socket(&self) -> PathBuf {
        self.path("run/control.sock")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("metamcp/metamcp.log")).unwrap_or_default()
    }

    fn variables(&self) -> [(&'static str, &Path); 6] {
        let names = [
            "HOME",
            "XDG_CONFIG_HOME",
            "XDG_STATE_HOME",
            "XDG_DATA_HOME",
            "XDG_CACHE_HOME",
            "XDG_RUNTIME_DIR",
        ];
        names.map(|name| (name, self.directory.path()))
    }

    #[expect(clippy::disallowed_methods, reason = "the guard reaps what it started")]
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(arguments)
            .envs(self.variables())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn serve(&self) -> Child {
        let file = self.file().display().to_string();
        self.command(&["serve", "--config", &file]).spawn().expect("started")
    }

    /// Runs a command to its end and returns code, standard output and standard error.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.command(arguments).output().expect("started");
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }

    /// Returns the status of the service, if one answers.
    fn status(&self) -> Option<Value> {
        let socket = self.socket().display().to_string();
        let (code, stdout, _) = self.run(&["status", "--json", "--socket", &socket]);
        (code == 0).then(|| serde_json::from_str(&stdout).expect("JSON"))
    }

    fn pid(&self) -> Option<u64> {
        self.status()?["pid"].as_u64()
    }
}

impl Drop for Home {
    #[expect(clippy::print_stderr, reason = "the test harness shows it with the failed test")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- log of the service that was started\n{}---", self.log());
        }
        let Some(pid) = self.pid() else { return };
        daemon::signal(u32::try_from(pid).expect("a pid"), Signal::TERM);
        let deadline = tokio::time::Instant::now() + DEADLINE;
        while is_alive(pid) && tokio::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
    }
}

/// Waits until a service answers, and returns its process id.
async fn wait_answering(home: &Home) -> u64 {
    until(async || home.pid().is_some()).await;
    home.pid().expect("it answers")
}

/// Waits for the end of a process; returns its exit code and standard error.
fn finish(mut process: Child) -> (Option<i32>, String) {
    let ended = exit_in_time(&mut process).expect("it ends");
    let mut text = String::new();
    process.stderr.take().expect("piped").read_to_string(&mut text).expect("readable");
    (ended.code(), text)
}

#[tokio::test]
async fn a_second_service_exits_and_reports_whether_the_first_one_answers() {
    let home = Home::new("");
    let mut first = home.serve();
    let pid = wait_answering(&home).await;

    let (code, stderr) = finish(home.serve());
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains(&format!("another metamcp (pid {pid}) already answers at")),
        "{stderr}"
    );
    assert!(stderr.contains("hint: "), "{stderr}");

    daemon::signal(first.id(), Signal::STOP);
    let (code, stderr) = finish(home.serve());
    assert_eq!(code, Some(1));
    assert!(stderr.contains(&format!("another metamcp (pid {pid}) does not answer")), "{stderr}");
    daemon::signal(first.id(), Signal::CONT);

    daemon::signal(first.id(), Signal::TERM);
    assert!(exit_in_time(&mut first).expect("it ends").success());
    assert!(!home.socket().exists());
}

#[tokio::test]
async fn a_service_removes_the_leftovers_of_a_killed_service() {
    let home = Home::new("");
    let mut first = home.serve();
    let pid = wait_answering(&home).await;
    daemon::signal(first.id(), Signal::KILL);
    exit_in_time(&mut first).expect("it ends");
    assert!(home.socket().exists(), "the socket is left over");
    let lock = home.path("run/metamcp.lock");
    assert!(fs::read_to_string(&lock).expect("readable").starts_with(&pid.to_string()));
    // Meanwhile, another process has this id.
    fs::write(&lock, format!("{} 1\n", std::process::id())).expect("written");

    let mut second = home.serve();
    assert_ne!(wait_answering(&home).await, pid);
    daemon::signal(second.id(), Signal::TERM);
    assert!(exit_in_time(&mut second).expect("it ends").success());
    assert_eq!(fs::read_to_string(&lock).expect("readable"), "");
}

#[tokio::test]
async fn one_of_two_services_started_at_once_serves() {
    let home = Home::new("");
    let mut both = [home.serve(), home.serve()];
    let pid = wait_answering(&home).await;
    let winner = both.iter().position(|process| u64::from(process.id()) == pid).expect("one");
    let ended = exit_in_time(&mut both[1 - winner]).expect("it ends");
    assert_eq!(ended.code(), Some(1));
    daemon::signal(both[winner].id(), Signal::TERM);
    assert!(exit_in_time(&mut both[winner]).expect("it ends").success());
}

#[tokio::test]
async fn a_service_started_during_the_shutdown_of_another_waits_for_its_end() {
    let fakes = Fakes::new();
    // The server delays its exit, and thus that of the service.
    let server =
        fakes.server("slow", &["--ignore-term", "--no-eof-exit"]) + "start = \"prewarm\"\n";
    let home = Home::new(&server);
    let mut first = home.serve();
    let pid = wait_answering(&home).await;
    daemon::signal(first.id(), Signal::TERM);
    // No client is admitted any more.
    until(async || home.status().is_none()).await;

    let mut second = home.serve();

    assert!(exit_in_time(&mut first).expect("it ends").success());
    assert_ne!(wait_answering(&home).await, pid);
    daemon::signal(second.id(), Signal::TERM);
    assert!(exit_in_time(&mut second).expect("it ends").success());
}

#[tokio::test]
async fn an_unused_service_exits_and_is_started_again_for_the_next_client() {
    let fakes = Fakes::new();
    let config = "[service]\nidle_exit = \"1s\"\n".to_owned() + &fakes.server("fake", &[]);
    let mut daemon = Daemon::with(config).keep_sockets().ready();
    let mut client =
        StdioClient::to(&daemon, &["--server", "fake"]).initialized("2025-06-18", json!({})).await;
    client.result(1, "echo", json!({ "value": 1 })).await;
    assert!(client.close().await.2.success());

    assert_eq!(daemon.wait_exit().code(), Some(0));
    daemon.wait_log("no client used the service for `service.idle_exit`");
    let notices = daemon.notices();
    let is_reported =
        notices.iter().any(|notice| notice.contains("STATUS=") && notice.contains("unused: exits"));
    assert!(is_reported, "{notices:?}");
    assert!(fakes.pids("fake").into_iter().all(|pid| !is_alive(pid)));

    // The manager holds the sockets, and starts the service for the next client.
    let mut client = StdioClient::to(&daemon, &["--server", "fake"]);
    client.tool(2, "echo", json!({ "value": 2 })).await;
    daemon.restart();
    assert_eq!(client.message().await["id"], 2);
    daemon.client("/healthz").get().await;
}

#[tokio::test]
async fn a_service_does_not_exit_while_a_server_works_on_a_task() {
    let fakes = Fakes::new();
    let tasks = ["--tasks", "--protocol", "2025-11-25"];
    let config = "[service]\nidle_exit = \"1s\"\nshutdown_timeout = \"100ms\"\n".to_owned()
        + &fakes.server("fake", &tasks);
    let mut daemon = Daemon::with(config).keep_sockets().ready();
    // With a check every 50 ms, this takes longer than the service may be idle.
    let mut steps = vec!["working"; 50];
    steps.push("completed");
    let call = json!({ "name": "fake/job", "arguments": { "steps": steps } });
    let mut operator = Operator::at(&daemon).await;
    operator.request(json!(1), "tools/call-async", call).await;
    let begun = operator.next().await.expect("an answer");
    drop(operator);

    assert_eq!(daemon.wait_exit().code(), Some(0));

    daemon.restart();
    let mut operator = Operator::at(&daemon).await;
    let id = &begun["result"]["taskId"];
    operator.request(json!(2), "tasks/get", json!({ "taskId": id })).await;
    let answer = operator.next().await.expect("an answer");
    assert_eq!(answer["result"]["status"], "completed", "{answer}\n{}", daemon.log());
}

#[tokio::test]
async fn a_command_starts_a_missing_service_and_two_commands_start_only_one() {
    let fakes = Fakes::new();
    let gate = fakes.path("never").display().to_string();
    // A server that never answers delays no client.
    let slow = fakes.server("slow", &["--start-gate", &gate]) + "start = \"prewarm\"\n";
    let home = Home::new(&(slow + &fakes.server("fake", &[])));
    assert_eq!(home.run(&["status"]).0, 69, "a request for the status starts no service");

    let both = [0, 1].map(|_| home.command(&["grep", "echo"]).spawn().expect("started"));
    for process in both {
        let (code, stderr) = finish(process);
        assert_eq!(code, Some(0), "{stderr}");
    }
    let pid = home.pid().expect("it answers still");
    assert_eq!(home.log().matches("serving").count(), 1, "{}", home.log());
    let raw = Pid::from_raw(i32::try_from(pid).expect("a pid"));
    assert_eq!(getsid(raw).expect("it runs"), raw.expect("a number"), "in a session of its own");

    let (code, _, stderr) = home.run(&["status"]);
    assert_eq!(code, 0, "the service is found at the configured socket: {stderr}");

    let mut client = StdioClient::start(&["--server", "fake"], &home.variables())
        .initialized("2025-06-18", json!({}))
        .await;
    assert_eq!(client.result(1, "echo", json!({ "value": 1 })).await["id"], 1);
    assert_eq!(home.pid(), Some(pid), "the same service");
}

#[tokio::test]
async fn a_command_reports_why_the_service_cannot_be_started() {
    let home = Home::new("[servers.x]\ncomand = \"y\"\n");
    let (code, _, stderr) = home.run(&["grep", "x"]);
    assert_eq!(code, 78);
    assert!(stderr.contains("unknown key `comand`"), "{stderr}");

    let home = Home::new("");
    fs::create_dir(home.path("run")).expect("made");
    fs::write(home.socket(), "no socket").expect("written");
    let (code, _, stderr) = home.run(&["grep", "x"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("is not a socket") && stderr.contains("metamcp.log"), "{stderr}");
}

#[tokio::test]
async fn a_command_starts_no_service_where_a_unit_is_installed() {
    let home = Home::new("");
    let units = home.path("systemd/user");
    fs::create_dir_all(&units).expect("made");
    fs::write(units.join("metamcp.service"), "").expect("written");
    assert_eq!(home.run(&["grep", "x"]).0, 69);
    let (_, stderr, ended) = StdioClient::start(&[], &home.variables()).close().await;
    assert_eq!(ended.code(), Some(69), "{stderr}");
}
