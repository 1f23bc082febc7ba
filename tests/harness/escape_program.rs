//! The programs of `tests/escapes`, and a run of them by a service.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{DEADLINE, client::Client};

/// The limits of the service, in the section `execute`: smaller ones are reached sooner.
pub(crate) const ESCAPE_LIMITS: &str = "timeout = \"20s\"
    memory_bytes_max = 16777216
    output_bytes_max = 1048576\n";

/// The programs that run at the same time. The service runs eight.
pub(crate) const PARALLEL_MAX: usize = 4;

/// The most bytes of the answer to a program that fails: those of a preview, and some more.
const ERROR_BYTES_MAX: usize = 96 << 10;

/// The largest growth of the service while all programs run, in bytes.
const GROWTH_BYTES_MAX: u64 = 128 << 20;

/// The longest time that a call of another client takes meanwhile.
const LATENCY_MAX: Duration = Duration::from_secs(5);

/// A time that a report mentions.
const LONG: Duration = Duration::from_millis(1500);

/// A program of the corpus.
#[derive(Debug)]
pub(crate) struct EscapeProgram {
    pub(crate) name: String,
    family: String,
    pub(crate) code: String,
    expectation: ProgramExpectation,
    arguments: Value,
}

/// The outcome that a program must have.
#[derive(Debug)]
enum ProgramExpectation {
    /// It returns this value.
    Value(Value),
    /// It fails with this code, and these details.
    Error(String, Vec<(String, String)>),
}

impl EscapeProgram {
    /// Reads all programs below a directory, by family and name.
    pub(crate) fn all(directory: &Path) -> Vec<Self> {
        let entries = |path: &Path| -> Vec<PathBuf> {
            let entries = fs::read_dir(path).expect("the directory of the programs");
            let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
            paths.sort();
            paths
        };
        let families = entries(directory).into_iter().filter(|path| path.is_dir());
        let files = families.flat_map(|family| entries(&family));
        files.map(|path| Self::read(directory, &path)).collect()
    }

    /// Reads a program and the directives in its first lines.
    fn read(directory: &Path, path: &Path) -> Self {
        let code = fs::read_to_string(path).expect("a program is UTF-8");
        let within = path.strip_prefix(directory).expect("it is below").display().to_string();
        let (family, _) = within.split_once('/').expect("a program is in a family");
        let mut head = code.lines().map_while(|line| line.strip_prefix("//")).map(str::trim);
        let opening = head.next().unwrap_or_default();
        assert!(opening.starts_with("Attempt: "), "{within} does not begin with its attempt");
        let (mut expectation, mut arguments) = (None, json!({}));
        for line in head {
            match line.split_once(": ") {
                Some(("expect", expected)) => {
                    let read = ProgramExpectation::read(expected);
                    let read = read.unwrap_or_else(|| panic!("{within}: `{expected}`"));
                    assert!(expectation.replace(read).is_none(), "{within} expects two outcomes");
                }
                Some((name @ ("timeout_ms" | "max_tool_calls"), value)) => {
                    arguments[name] = serde_json::from_str(value).expect("a number");
                }
                _ => {}
            }
        }
        let expectation = expectation.unwrap_or_else(|| panic!("{within} expects nothing"));
        Self { family: family.to_owned(), name: within, code, expectation, arguments }
    }

    /// Runs the program. Returns its time, or what is wrong with its outcome.
    async fn run(&self, client: &Client) -> Result<Duration, String> {
        let since = Instant::now();
        let mut arguments = self.arguments.clone();
        arguments["code"] = json!(self.code);
        let reply = client.tool("mcp_execute", arguments).await;
        let wrong = |what: &str| {
            let body: String = reply.body.chars().take(600).collect();
            Err(format!("{}: {what}, expected {:?}: {body}", self.name, self.expectation))
        };
        // A long call is answered over a stream.
        let answer = reply.answer();
        let (result, error) = (&answer["result"], &answer["result"]["structuredContent"]["error"]);
        let is_expected = match &self.expectation {
            ProgramExpectation::Value(value) => {
                result["isError"] == false && &result["structuredContent"]["value"] == value
            }
            ProgramExpectation::Error(code, details) => {
                let has = |(name, value): &(String, String)| error["details"][name] == **value;
                result["isError"] == true && error["code"] == *code && details.iter().all(has)
            }
        };
        match is_expected {
            _ if !error.is_null() && reply.body.len() > ERROR_BYTES_MAX => wrong("a huge error"),
            true => Ok(since.elapsed()),
            false => wrong("another outcome"),
        }
    }
}

impl ProgramExpectation {
    fn read(text: &str) -> Option<Self> {
        if let Some(value) = text.strip_prefix("value ") {
            return serde_json::from_str(value).ok().map(Self::Value);
        }
        let mut words = text.strip_prefix("error ")?.split(' ');
        let code = words.next()?.to_owned();
        let detail = |word: &str| {
            let (name, value) = word.strip_prefix("details.")?.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        Some(Self::Error(code, words.map(detail).collect::<Option<_>>()?))
    }
}

/// A running service with the limits [`ESCAPE_LIMITS`], and with two servers that are fakes: `fake`
/// and `calm`.
pub(crate) struct ServiceUnderTest {
    /// A client of any path of it.
    pub(crate) client: Client,
    pub(crate) pid: u32,
}

impl ServiceUnderTest {
    /// Runs programs, with calls of another client meanwhile. Returns a report about the times, and
    /// everything that went wrong.
    pub(crate) async fn run(&self, programs: &[EscapeProgram]) -> (String, Vec<String>) {
        let client = self.client.at("/meta").initialized().await;
        let calm = self.client.at("/servers/calm").initialized().await;
        let warm = json!({ "code": "await servers.fake.whoami({})" });
        client.tool("mcp_execute", warm).await.answer();
        calm.call("whoami", json!({})).await;
        let before = self.resident_bytes();
        let (mut failures, mut report, mut n_sandboxes) = (Vec::new(), String::new(), 0);
        for family in programs.chunk_by(|one, other| one.family == other.family) {
            let (since, is_over) = (Instant::now(), AtomicBool::new(false));
            let run = async {
                let runs = family.iter().map(|program| program.run(&client));
                let outcomes: Vec<_> = stream::iter(runs).buffered(PARALLEL_MAX).collect().await;
                is_over.store(true, Ordering::Relaxed);
                outcomes
            };
            let all = async { tokio::join!(run, observe(&calm, self.pid, &is_over)) };
            let (outcomes, observation) =
                tokio::time::timeout(3 * DEADLINE, all).await.expect("in time");
            n_sandboxes = n_sandboxes.max(observation.n_sandboxes);
            let name = &family[0].family;
            for (program, outcome) in family.iter().zip(outcomes) {
                match outcome {
                    Ok(took) if took > LONG => {
                        report += &format!("\n  {}: {took:?}", program.name);
                    }
                    Ok(_) => {}
                    Err(failure) => failures.push(failure),
                }
            }
            report += &format!("\n{name}: {} in {:?}", family.len(), since.elapsed());
            if observation.longest > LATENCY_MAX {
                failures.push(format!("during {name}, a call took {:?}", observation.longest));
            }
            all_sandboxes_end(self.pid).await;
            let called = json!({ "server": "fake", "tool": "echo", "args": { "value": name } });
            let value = client.call("mcp_call", called).await;
            if value != json!({ "value": name }) {
                failures.push(format!("after {name}, a call returned {value}"));
            }
        }
        if n_sandboxes == 0 {
            failures.push("no process of a sandbox was seen".to_owned());
        }
        let after = self.resident_bytes();
        if after > before + GROWTH_BYTES_MAX {
            failures.push(format!("the service grew from {before} to {after} bytes"));
        }
        (report, failures)
    }

    /// Returns the resident memory of the service.
    fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
    }
}

/// Waits until a service has no sandbox any more.
pub(crate) async fn all_sandboxes_end(service: u32) {
    let since = Instant::now();
    loop {
        let sandboxes = sandboxes(service);
        if sandboxes.is_empty() {
            break;
        }
        assert!(since.elapsed() < DEADLINE, "the service keeps sandboxes: {sandboxes:?}");
        tokio::task::yield_now().await;
    }
}

/// Returns the processes of sandboxes that a service has, also those that it has not reaped: the
/// directory of each in `/proc`, and its state.
fn sandboxes(service: u32) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("there is procfs").flatten();
    let sandbox = |entry: fs::DirEntry| {
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        let status = read("status");
        let is_child = status.contains(&format!("\nPPid:\t{service}\n"));
        let state = status.lines().find(|line| line.starts_with("State:"))?;
        let is_zombie = state.starts_with("State:\tZ");
        let is_sandbox = is_zombie || read("cmdline").split('\0').nth(1) == Some("sandbox");
        (is_child && is_sandbox).then(|| format!("{}: {state}", entry.path().display()))
    };
    entries.filter_map(sandbox).collect()
}

/// The service as another client sees it.
#[derive(Default)]
struct CalmObservation {
    /// The longest time of a call.
    longest: Duration,
    /// The largest number of sandboxes at the same time.
    n_sandboxes: usize,
}

/// Calls a tool of another server again and again.
async fn observe(calm: &Client, service: u32, is_over: &AtomicBool) -> CalmObservation {
    let mut observation = CalmObservation::default();
    for n in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let since = Instant::now();
        assert_eq!(calm.call("echo", json!({ "value": n })).await, json!({ "value": n }));
        observation.longest = observation.longest.max(since.elapsed());
        observation.n_sandboxes = observation.n_sandboxes.max(sandboxes(service).len());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    observation
}
