//! The commands of the documentation work: they run against a service of demonstration servers, and
//! print what the pages show.
//!
//! A block of the kind `console` has commands after `$ `, and the output that a page shows below
//! them; `…` stands for any text. In the line before it, `<!-- not run: REASON -->` marks a block
//! that cannot run here, and `<!-- exit code 64 -->` one that must fail.

#![expect(clippy::disallowed_methods, reason = "the test runs the commands of the pages")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use super::page_paths;

/// The fewest commands that must have run, so that a mistake here cannot skip them all.
const RUN_MIN: usize = 30;

/// The time in which each command ends.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// The start of the comment that keeps a block from running.
const NOT_RUN: &str = "<!-- not run: ";

/// The start of the comment with the exit code of a block's commands.
const EXIT_CODE: &str = "<!-- exit code ";

/// The configuration file, below the home of the user.
const CONFIGURATION_FILE: &str = ".config/metamcp/metamcp.toml";

/// The configuration of the service: the demonstration servers, as `serve` without one has them.
const CONFIGURATION: &str = r#"
[servers.clock]
command = "metamcp"
args = ["demo-server", "clock"]

[servers.scratch]
command = "metamcp"
args = ["demo-server", "scratch"]

[servers.patience]
command = "metamcp"
args = ["demo-server", "patience"]
"#;

/// The log of a service that a command has started.
const LOG_FILE: &str = ".local/state/metamcp/metamcp.log";

/// The file of a client, which `metamcp import` finds.
const CLIENT_FILE: &str = r#"{ "mcpServers": { "time": { "command": "mcp-server-time" } } }"#;

/// One block of commands.
struct ConsoleBlock {
    page: PathBuf,
    commands: Vec<ShownCommand>,
    exit_code: i32,
    is_run: bool,
}

/// One command, and the output that its page shows.
struct ShownCommand {
    command: String,
    output: Vec<String>,
}

/// Returns the blocks of a page.
fn blocks(page: &Path, text: &str) -> Vec<ConsoleBlock> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        if lines[index] != "```console" {
            index += 1;
            continue;
        }
        let before = index.checked_sub(1).map_or("", |index| lines[index]);
        let end = (index..lines.len()).find(|at| lines[*at] == "```").expect("the end of a block");
        let exit_code = before.strip_prefix(EXIT_CODE).and_then(|rest| rest.strip_suffix(" -->"));
        found.push(ConsoleBlock {
            page: page.to_owned(),
            commands: commands(&lines[index + 1..end]),
            exit_code: exit_code.map_or(0, |code| code.parse().expect("an exit code")),
            is_run: !before.starts_with(NOT_RUN),
        });
        index = end + 1;
    }
    found
}

/// Returns the commands of a block.
fn commands(lines: &[&str]) -> Vec<ShownCommand> {
    let mut commands: Vec<ShownCommand> = Vec::new();
    for line in lines {
        let continued = commands
            .last_mut()
            .filter(|last| last.command.ends_with('\\') && last.output.is_empty());
        if let Some(last) = continued {
            last.command.push_str(&format!("\n{line}"));
        } else if let Some(command) = line.strip_prefix("$ ") {
            commands.push(ShownCommand { command: command.to_owned(), output: Vec::new() });
        } else if let Some(last) = commands.last_mut() {
            last.output.push((*line).to_owned());
        } else {
            // A command of root, which never runs here.
            commands.push(ShownCommand { command: (*line).to_owned(), output: Vec::new() });
        }
    }
    commands
}

/// Returns whether `text` is `pattern`, in which `…` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

/// The service that the commands use, and their directory.
struct DocumentedService {
    child: Child,
    directory: tempfile::TempDir,
    address: String,
}

impl DocumentedService {
    /// Starts `metamcp serve` with its demonstration servers.
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let programs = directory.path().join("bin");
        fs::create_dir(&programs).expect("made");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_metamcp"), programs.join("metamcp"))
            .expect("linked");
        for (path, text) in
            [(CONFIGURATION_FILE, CONFIGURATION), (".cursor/mcp.json", CLIENT_FILE), (LOG_FILE, "")]
        {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            fs::write(path, text).expect("written");
        }
        let log = fs::File::create(directory.path().join(LOG_FILE)).expect("opened");
        let mut command = Self::command(directory.path(), env!("CARGO_BIN_EXE_metamcp"));
        command.args(["serve", "--set", "listen.http=127.0.0.1:0"]);
        command.stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("started");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let address = output
            .lines()
            .map_while(Result::ok)
            .find_map(|line| {
                let (_, rest) = line.split_once("http://")?;
                let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ':');
                Some(rest[..end.unwrap_or(rest.len())].to_owned())
            })
            .expect("the service prints its address");
        // `doctor` looks for the service at the address of the file.
        let configuration = format!("[listen]\nhttp = \"{address}\"\n{CONFIGURATION}");
        fs::write(directory.path().join(CONFIGURATION_FILE), configuration).expect("written");
        Self { child, directory, address }
    }

    /// Returns a command with the environment of a user whose home is `home`.
    fn command(home: &Path, program: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command
            .current_dir(home)
            .env_clear()
            .env("HOME", home)
            .env("PATH", format!("{}/bin:{path}", home.display()))
            .env("XDG_RUNTIME_DIR", home)
            .env("METAMCP_SOCKET", home.join("control.sock"))
            .env("METAMCP_LISTEN_CONTROL", home.join("control.sock"));
        command
    }

    /// Runs a command of a page, and returns its exit code and output.
    fn run(&self, command: &str) -> (Option<i32>, String, String) {
        let command = command.replace("127.0.0.1:12011", &self.address);
        let mut shell = Self::command(self.directory.path(), "timeout");
        shell.arg(COMMAND_TIMEOUT.as_secs().to_string()).args(["bash", "-c", &command]);
        let output = shell.stdin(Stdio::null()).output().expect("started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }
}

impl Drop for DocumentedService {
    fn drop(&mut self) {
        let _is_gone = self.run("metamcp stop");
        let _is_dead = self.child.kill();
        let _exit = self.child.wait();
    }
}

/// Returns what is wrong with a command, if anything is.
fn fault(
    service: &DocumentedService,
    block: &ConsoleBlock,
    shown: &ShownCommand,
) -> Option<String> {
    let ShownCommand { command, output } = shown;
    let (code, printed, errors) = service.run(command);
    let pattern = output.join("\n");
    if code != Some(block.exit_code) {
        Some(format!("{:?}: `{command}` ends with {code:?}: {printed}{errors}", block.page))
    } else if !output.is_empty() && !fits(&pattern, printed.trim_end()) {
        Some(format!("{:?}: `{command}` prints:\n{printed}and not:\n{pattern}", block.page))
    } else {
        None
    }
}

#[test]
fn the_commands_of_the_documentation_work_and_print_what_it_shows() {
    let blocks: Vec<_> = page_paths()
        .iter()
        .flat_map(|page| blocks(page, &fs::read_to_string(page).expect("text")))
        .collect();
    let service = DocumentedService::start();
    let mut faults = Vec::new();
    let mut n_run = 0;
    for block in blocks.iter().filter(|block| block.is_run) {
        for shown in &block.commands {
            n_run += 1;
            faults.extend(fault(&service, block, shown));
        }
    }
    let n_left_out = blocks.iter().filter(|block| !block.is_run).count();
    println!("{n_run} commands ran, {n_left_out} blocks did not");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(n_run >= RUN_MIN, "only {n_run} commands ran");
}

/// Returns the names of the commands of `metamcp` that a command line calls.
fn called(command: &str) -> impl Iterator<Item = &str> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let at_start = |at: usize| at == 0 || matches!(words[at - 1], "#" | "|" | "&&" | "server$");
    let found: Vec<&str> = (1..words.len())
        .filter(|at| words[at - 1] == "metamcp" && at_start(at - 1))
        .map(|at| words[at])
        .filter(|name| is_name(name) && !name.starts_with('-'))
        .collect();
    found.into_iter()
}

#[test]
fn every_command_of_the_documentation_exists() {
    let declared = metamcp::cli::command();
    let mut unknown = Vec::new();
    for page in page_paths() {
        for block in blocks(&page, &fs::read_to_string(&page).expect("text")) {
            for shown in &block.commands {
                unknown.extend(
                    called(&shown.command)
                        .filter(|name| declared.find_subcommand(name).is_none())
                        .map(|name| format!("{}: metamcp {name}", page.display())),
                );
            }
        }
    }
    assert!(unknown.is_empty(), "no such commands: {unknown:#?}");
}

#[test]
fn an_ellipsis_stands_for_any_text() {
    assert!(fits("a … c", "a b\nb c"));
    assert!(fits("a …", "a b"));
    assert!(fits("abc", "abc"));
    assert!(!fits("abc", "abcd"));
    assert!(!fits("a … c", "a b d"));
    assert!(!fits("a … b … c", "a c"));
}

#[test]
fn a_block_has_commands_with_output_and_a_mark() {
    let page = "<!-- exit code 64 -->\n```console\n$ a \\\n  b\nout\n$ c\n```\n";
    let found = blocks(Path::new("p"), page);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].exit_code, found[0].is_run), (64, true));
    let texts: Vec<_> =
        found[0].commands.iter().map(|shown| (&*shown.command, &*shown.output)).collect();
    assert_eq!(texts, [("a \\\n  b", &["out".to_owned()][..]), ("c", &[][..])]);
    let marked = "<!-- not run: needs root -->\n```console\n# a\n```\n";
    assert!(!blocks(Path::new("p"), marked)[0].is_run);
}
