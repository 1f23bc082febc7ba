//! The bytes that a model reads and writes to answer a question: with direct calls, with calls
//! through the meta-tools, and with a script.
//!
//! Three things count: once, the instructions and the definitions of the view; the name and the
//! arguments of each call; and the text of each result. The transcripts are in
//! `target/tmp/token-costs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    Installed,
    harness::{client::Client, daemon::Daemon, script::execute_section},
};

const N_SERVICES: usize = 1000;
const N_COMMITS: usize = 1000;
/// The files or commits of one call, few enough for the largest result that common clients accept.
const BATCH: usize = 100;

#[tokio::test]
async fn a_script_costs_a_model_a_fraction_of_the_bytes_of_its_calls() {
    let servers = Installed::find();
    let data = data();
    let mut table = format!("{:<8} {:<8} {}\n", "scenario", "strategy", ByteCounts::HEAD);

    for scenario in [Scenario::FanOut, Scenario::Join, Scenario::Paging] {
        let metamcp = Daemon::with(scenario.config(&servers, data.path())).ready();
        let mut sums = Vec::new();
        for strategy in [Strategy::Direct, Strategy::Meta, Strategy::Script] {
            let mut conversation = Conversation::begin(&metamcp, strategy).await;
            let answer = scenario.solve(&mut conversation, data.path()).await;

            assert_eq!(answer, scenario.expected(), "{scenario:?} {strategy:?}");
            let (name, counts) = (format!("{scenario:?}-{strategy:?}"), &conversation.counts);
            conversation.save(&name);
            let row = counts.row();
            writeln!(table, "{:<8} {:<8} {row}", format!("{scenario:?}"), format!("{strategy:?}"))
                .expect("a row");
            sums.push(counts.sum());
        }

        let factor = scenario.min_savings_factor();
        let [direct, meta, script] = sums[..] else { unreachable!("three strategies") };
        let is_fraction = script * factor <= direct.min(meta);
        assert!(is_fraction, "{scenario:?}: a script does not save a factor of {factor}\n{table}");
    }
    println!("{table}");
}

/// A question about the data of [`data`].
#[derive(Clone, Copy, Debug)]
enum Scenario {
    /// "Which of the 1,000 services request more memory than their limit?"
    FanOut,
    /// "How many of the last 300 commits did each team make?"
    Join,
    /// "How many reverts does the log have in each month?"
    Paging,
}

/// The tools that a model uses to answer a question.
#[derive(Clone, Copy, Debug)]
enum Strategy {
    /// The tools of the servers.
    Direct,
    /// `mcp_discover` and `mcp_call`.
    Meta,
    /// `mcp_discover`, `mcp_call` to look at samples, and `mcp_execute`.
    Script,
}

impl Scenario {
    /// Returns a configuration with only the servers that the scenario needs.
    fn config(self, installed: &Installed, data: &Path) -> String {
        let names: &[&str] = match self {
            Self::FanOut => &["filesystem"],
            Self::Join => &["filesystem", "git"],
            Self::Paging => &["git"],
        };
        let mut servers = installed.servers();
        servers.retain(|name, _| names.contains(&name.as_str()));
        for (name, server) in &mut servers {
            let served = if name == "git" { data.join("repository") } else { data.to_owned() };
            server["args"][1] = served.to_str().expect("UTF-8").into();
            server["start"] = "prewarm".into();
        }
        let servers = toml::to_string(&json!({ "servers": servers })).expect("TOML");
        format!("{}{servers}", execute_section())
    }

    /// Returns how many times fewer bytes a script must take than either kind of calls.
    ///
    /// The measured factors are 47, 6.7 and 21.
    fn min_savings_factor(self) -> usize {
        match self {
            Self::FanOut => 20,
            Self::Join => 4,
            Self::Paging => 10,
        }
    }

    fn expected(self) -> Value {
        match self {
            Self::FanOut => json!([
                "service-0143",
                "service-0286",
                "service-0429",
                "service-0572",
                "service-0715",
                "service-0858",
            ]),
            Self::Join => {
                json!({"Billing": 75, "Catalog": 41, "Delivery": 52, "Identity": 81, "Search": 51})
            }
            Self::Paging => {
                json!({
                    "2026-01": 2, "2026-02": 2, "2026-03": 3, "2026-04": 2,
                    "2026-05": 3, "2026-06": 2, "2026-07": 3, "2026-08": 2,
                    "2026-09": 3, "2026-10": 2, "2026-11": 3,
                })
            }
        }
    }

    /// Answers the question as a model that knows where the data is.
    async fn solve(self, model: &mut Conversation, data: &Path) -> Value {
        let data = data.to_str().expect("UTF-8");
        let (query, limit, tools) = match self {
            Self::FanOut => ("read many files", 3, vec!["read_text_file", "read_multiple_files"]),
            Self::Join => {
                ("git commit log and read a text file", 4, vec!["git_log", "read_text_file"])
            }
            Self::Paging => ("git commit log", 3, vec!["git_log"]),
        };
        model.discover(query, limit, &tools).await;
        if matches!(model.strategy, Strategy::Script) {
            return self.run_script(model, data).await;
        }
        match self {
            Self::FanOut => services_above_their_limit(model, data).await,
            Self::Join => commits_per_team(model, data).await,
            Self::Paging => reverts_per_month(model, data).await,
        }
    }

    /// Looks at a sample of each text, because no schema describes them, and runs the script.
    async fn run_script(self, model: &mut Conversation, data: &str) -> Value {
        if matches!(self, Self::FanOut) {
            let path = format!("{data}/services/0001.json");
            model.call("filesystem", "read_text_file", json!({ "path": path })).await;
        }
        if matches!(self, Self::Join) {
            let args = json!({ "path": format!("{data}/people.json"), "head": 12 });
            model.call("filesystem", "read_text_file", args).await;
        }
        if matches!(self, Self::Join | Self::Paging) {
            let args = json!({ "repo_path": format!("{data}/repository"), "max_count": 2 });
            model.call("git", "git_log", args).await;
        }
        let code = match self {
            Self::FanOut => include_str!("scripts/fan-out.ts"),
            Self::Join => include_str!("scripts/join.ts"),
            Self::Paging => include_str!("scripts/paging.ts"),
        };
        let mut arguments = json!({ "code": code.replace("DIRECTORY", data) });
        if matches!(self, Self::FanOut) {
            arguments["max_tool_calls"] = N_SERVICES.into();
        }
        let answer = model.tool("mcp_execute", arguments).await;
        serde_json::from_str::<Value>(&answer).expect("JSON")["value"].take()
    }
}

/// Reads the services in batches, and returns the names of those above their limit.
async fn services_above_their_limit(model: &mut Conversation, data: &str) -> Value {
    let paths: Vec<String> =
        (1..=N_SERVICES).map(|n| format!("{data}/services/{n:04}.json")).collect();
    let mut found = Vec::new();
    for batch in paths.chunks(BATCH) {
        let args = json!({ "paths": batch });
        let text = model.call("filesystem", "read_multiple_files", args).await;
        for file in text.split("\n---\n") {
            let (_path, service) = file.split_once('\n').expect("a path before the file");
            let service: Value = serde_json::from_str(service).expect("JSON");
            let mib = |member: &str| service["resources"][member].as_u64().expect("a number");
            if mib("memory_request_mib") > mib("memory_limit_mib") {
                found.push(service["name"].clone());
            }
        }
    }
    found.into()
}

/// Reads the commits and the people, and returns the number of commits per team.
async fn commits_per_team(model: &mut Conversation, data: &str) -> Value {
    let args = json!({ "repo_path": format!("{data}/repository"), "max_count": 300 });
    let log = model.call("git", "git_log", args).await;
    let args = json!({ "path": format!("{data}/people.json") });
    let people = model.call("filesystem", "read_text_file", args).await;
    let people: Vec<Value> = serde_json::from_str(&people).expect("JSON");
    let team_of = |author: &str| {
        let person = people.iter().find(|person| person["name"] == author).expect("a person");
        person["team"].as_str().expect("a team").to_owned()
    };
    let mut counts = BTreeMap::<String, u64>::new();
    for commit in commits(&log) {
        *counts.entry(team_of(commit.author)).or_default() += 1;
    }
    json!(counts)
}

/// Reads the log page by page, and returns the number of reverts per month.
///
/// A page begins with the last commit of the previous one, because `git_log` pages by time.
async fn reverts_per_month(model: &mut Conversation, data: &str) -> Value {
    let mut args = json!({ "repo_path": format!("{data}/repository"), "max_count": BATCH });
    let mut months = BTreeMap::<String, u64>::new();
    let mut seen = BTreeSet::new();
    loop {
        let log = model.call("git", "git_log", args.clone()).await;
        let page = commits(&log);
        for commit in &page {
            if seen.insert(commit.hash.to_owned()) && commit.subject.starts_with("Revert ") {
                *months.entry(commit.date[..7].to_owned()).or_default() += 1;
            }
        }
        match page.last() {
            Some(last) if page.len() == BATCH => args["end_timestamp"] = last.date.into(),
            _ => {
                assert_eq!(seen.len(), N_COMMITS);
                return json!(months);
            }
        }
    }
}

/// A commit in a text of `git_log`.
struct LoggedCommit<'a> {
    hash: &'a str,
    author: &'a str,
    date: &'a str,
    subject: &'a str,
}

/// Returns the commits of a text of `git_log`.
fn commits(log: &str) -> Vec<LoggedCommit<'_>> {
    log.split("Commit: ").skip(1).map(|text| LoggedCommit::read(text).expect(text)).collect()
}

impl<'a> LoggedCommit<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (hash, rest) = text.split_once("\nAuthor: ")?;
        let (author, rest) = rest.split_once("\nDate: ")?;
        let (date, rest) = rest.split_once("\nMessage: ")?;
        Some(Self { hash, author, date, subject: rest.lines().next()? })
    }
}

/// The bytes that a model reads and writes in a conversation.
#[derive(Default)]
struct ByteCounts {
    n_calls: usize,
    /// The instructions of the view and the definitions of its tools.
    definitions: usize,
    /// The names and arguments of calls.
    written: usize,
    /// The texts of results.
    read: usize,
}

impl ByteCounts {
    const HEAD: &str = "  calls definitions  written     read      sum";

    fn sum(&self) -> usize {
        self.definitions + self.written + self.read
    }

    fn row(&self) -> String {
        let Self { n_calls, definitions, written, read } = self;
        format!("{n_calls:>7} {definitions:>11} {written:>8} {read:>8} {:>8}", self.sum())
    }
}

/// A model that uses the tools of one view.
struct Conversation {
    client: Client,
    strategy: Strategy,
    counts: ByteCounts,
    /// Everything that the model reads and writes, in order.
    transcript: String,
}

impl Conversation {
    /// Reads the instructions, and the members of each tool that clients pass to a model.
    async fn begin(metamcp: &Daemon, strategy: Strategy) -> Self {
        let view = if matches!(strategy, Strategy::Direct) { "/direct" } else { "/meta" };
        let client = metamcp.client(view);
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let opened = client.request(json!(0), "initialize", params).await.answer();
        let listed = client.request(json!(0), "tools/list", json!({})).await.answer();
        assert!(listed["result"].get("nextCursor").is_none(), "all tools are on one page");
        let tools = listed["result"]["tools"].as_array().expect("a list").iter();
        let definitions = tools.map(|tool| {
            let [name, description, schema] =
                ["name", "description", "inputSchema"].map(|member| &tool[member]);
            json!({ "name": name, "description": description, "inputSchema": schema }).to_string()
        });
        let mut texts = vec![opened["result"]["instructions"].as_str().unwrap_or("").to_owned()];
        texts.extend(definitions);
        let counts = ByteCounts {
            definitions: texts.iter().map(String::len).sum(),
            ..ByteCounts::default()
        };
        Self { client, strategy, counts, transcript: texts.join("\n") }
    }

    /// Finds tools. Direct calls need no search, because all definitions are known.
    async fn discover(&mut self, query: &str, limit: usize, expected: &[&str]) {
        let detail = match self.strategy {
            Strategy::Direct => return,
            Strategy::Meta => "schema",
            Strategy::Script => "types",
        };
        let arguments = json!({ "query": query, "detail": detail, "limit": limit });
        let found = self.tool("mcp_discover", arguments).await;
        for tool in expected {
            assert!(found.contains(&format!("\"tool\":\"{tool}\"")), "{query}: {found}");
        }
    }

    /// Calls a tool of a server, and returns the text of its result.
    async fn call(&mut self, server: &str, tool: &str, args: Value) -> String {
        match self.strategy {
            Strategy::Direct => self.tool(&format!("{server}__{tool}"), args).await,
            Strategy::Meta | Strategy::Script => {
                let arguments = json!({ "server": server, "tool": tool, "args": args });
                self.tool("mcp_call", arguments).await
            }
        }
    }

    /// Calls a tool of the view.
    ///
    /// The text counts once, even if the result repeats it as a structured value.
    async fn tool(&mut self, name: &str, arguments: Value) -> String {
        let written = json!({ "name": name, "arguments": arguments }).to_string();
        let result = self.client.tool(name, arguments).await.answer()["result"].take();
        assert_ne!(result["isError"], true, "{written}: {result}");
        let [content] = result["content"].as_array().expect("a list").as_slice() else {
            panic!("{written}: a preview or several texts: {result}");
        };
        let text = content["text"].as_str().expect("a text").to_owned();
        self.counts.n_calls += 1;
        self.counts.written += written.len();
        self.counts.read += text.len();
        for part in [&written, &text] {
            self.transcript.push('\n');
            self.transcript.push_str(part);
        }
        text
    }

    /// Writes the transcript to a file, where its tokens can be counted.
    fn save(&self, name: &str) {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("token-costs");
        fs::create_dir_all(&directory).expect("a directory");
        fs::write(directory.join(name.to_lowercase() + ".txt"), &self.transcript).expect("written");
    }
}

/// Returns a directory with 1,000 services, 40 people and a repository of their 1,000 commits.
fn data() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: String, value: &Value| {
        fs::write(directory.path().join(name), format!("{value:#}\n")).expect("written");
    };
    fs::create_dir(directory.path().join("services")).expect("a directory");
    for n in 1..=N_SERVICES {
        write(format!("services/{n:04}.json"), &service(n));
    }
    let people = people();
    let teams = ["Billing", "Catalog", "Delivery", "Identity", "Search"];
    let listed = people.iter().enumerate().map(
        |(n, name)| json!({ "name": name, "team": teams[n * 3 % teams.len()], "mail": mail(name) }),
    );
    write("people.json".to_owned(), &listed.collect());
    commit(&directory.path().join("repository"), &people);
    directory
}

/// Returns a service; every 143rd requests more memory than its limit.
fn service(n: usize) -> Value {
    let limit = 256 * (1 + n % 8);
    let request = if n.is_multiple_of(143) { limit + 64 } else { limit / 2 };
    json!({
        "name": format!("service-{n:04}"),
        "image": format!("registry.internal/service-{n:04}:1.{}.{}", n % 40, n % 7),
        "replicas": 1 + n % 5,
        "resources": {
            "cpu_millis": 100 * (1 + n % 10),
            "memory_request_mib": request,
            "memory_limit_mib": limit,
        },
        "port": 8000 + n,
        "health": "/healthz",
    })
}

fn people() -> Vec<String> {
    let first = "Ada Alan Barbara Edsger Frances Grace John Katherine Leslie Margaret";
    let last = ["Adams", "Brown", "Clark", "Davis"];
    first.split(' ').flat_map(|first| last.map(|last| format!("{first} {last}"))).collect()
}

fn mail(name: &str) -> String {
    format!("{}@example.org", name.to_lowercase().replace(' ', "."))
}

/// Makes a repository with a commit every eight hours; every 37th is a revert.
fn commit(directory: &Path, people: &[String]) {
    const VERBS: [&str; 6] = ["Add", "Fix", "Remove", "Rename", "Document", "Test"];
    const PARTS: [&str; 7] =
        ["the parser", "the cache", "a retry", "the login", "the exporter", "a limit", "the index"];
    let mut stream = String::new();
    for n in 1..=N_COMMITS {
        let name = &people[n * n / 9 % people.len()];
        let person = format!("{name} <{}> {} +0000", mail(name), 1_767_225_600 + n * 8 * 3600);
        let subject = format!("{} {}", VERBS[n % VERBS.len()], PARTS[n % PARTS.len()]);
        let is_revert = n.is_multiple_of(37);
        let subject = if is_revert { format!("Revert \"{subject}\"") } else { subject };
        let message = format!("{subject}\n\nRefs: #{n}\n");
        writeln!(
            stream,
            "commit refs/heads/main\nauthor {person}\ncommitter {person}\ndata {}\n{message}",
            message.len()
        )
        .expect("a commit");
    }
    stream.push_str("done\n");
    git(&["init", "--quiet", directory.to_str().expect("UTF-8")], "");
    let head = ["symbolic-ref", "HEAD", "refs/heads/main"];
    let import = ["fast-import", "--quiet", "--done"];
    for (arguments, input) in [(&head, ""), (&import, stream.as_str())] {
        let within = ["-C", directory.to_str().expect("UTF-8")];
        git(&[&within, arguments.as_slice()].concat(), input);
    }
}

/// Runs git without the configuration of the user.
fn git(arguments: &[&str], input: &str) {
    let mut git = Command::new("git");
    git.args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let mut process = git.stdin(Stdio::piped()).spawn().expect("git starts");
    let mut stdin = process.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("git reads its input");
    drop(stdin);
    assert!(process.wait().expect("git ends").success(), "{arguments:?}");
}
