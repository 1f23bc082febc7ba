//! The command line. The doc comment of each command is its manual page.

use std::{ffi::OsString, process::ExitCode};

use clap::{FromArgMatches as _, Parser, Subcommand};
use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{Signal, SignalKind, signal},
};

pub use self::generate::command;
use crate::{name_sources, sandbox};

mod add;
mod argument_list;
mod auth;
mod auto_start;
mod call;
mod call_line;
mod calls;
mod check;
mod client_change;
mod client_file;
mod client_list;
mod complete;
mod complete_words;
mod config_edit;
mod configuration;
mod connect;
mod credential_files;
mod demo_server;
mod doctor;
mod effective;
mod file_calls;
mod generate;
mod help;
mod import;
mod installed_client;
mod interruptible_request;
mod item_output;
mod journal_calls;
mod log_file;
mod login;
mod logs;
mod missing_parts;
mod output;
mod overrides;
mod port_holder;
mod progress_line;
mod prompts;
mod quantity;
mod reload;
mod resources;
mod run;
mod secret_input;
mod serve;
mod server_report;
mod server_switch;
mod servers;
mod service_ring;
mod service_target;
mod status;
mod status_report;
mod stdio;
mod stop;
mod tasks;
mod terminal;
#[cfg(test)]
mod tests;
mod text_table;
mod tools;
mod top;
mod typegen;
mod unwritable;
mod watched_report;

use terminal::ColourChoice;

/// Run each MCP server once per host and serve it to every client
///
/// `metamcp serve` runs the service. Most other commands talk to the running service over its
/// control socket.
#[derive(Debug, Parser)]
#[command(
    name = "metamcp",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = EXIT_CODES
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    options: GlobalOptions,
}

/// The options of every command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
struct GlobalOptions {
    /// Use colours: auto, always or never; auto heeds NO_COLOR and CLICOLOR_FORCE
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true
    )]
    color: ColourChoice,
    /// Print no hints and no progress on standard error
    #[arg(short, long, global = true)]
    quiet: bool,
}

/// The exit codes, for scripts.
const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    the command failed: the service or a server refused, or a tool or a script failed
  64   the command line is invalid
  69   no service answers
  78   the configuration is invalid
  130  a call or a script was cancelled with ctrl-c";

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Check(check::Args),
    Status(status::Args),
    Servers(servers::Args),
    Add(add::Args),
    Remove(server_switch::RemoveArgs),
    Enable(server_switch::EnableArgs),
    Disable(server_switch::DisableArgs),
    Tools(tools::Args),
    Info(tools::InfoArgs),
    Call(call::Args),
    Run(run::Args),
    Grep(tools::GrepArgs),
    Search(tools::SearchArgs),
    Resources(resources::Args),
    Read(resources::ReadArgs),
    Prompts(prompts::Args),
    Prompt(prompts::PromptArgs),
    Complete(complete::Args),
    Tasks(tasks::Args),
    Task(tasks::TaskArgs),
    Auth(auth::Args),
    Login(login::Args),
    Logout(login::LogoutArgs),
    Reload(reload::Args),
    Stop(stop::Args),
    Logs(logs::Args),
    Calls(calls::Args),
    Top(top::Args),
    Doctor(doctor::Args),
    Import(import::Args),
    Connect(connect::Args),
    Disconnect(connect::DisconnectArgs),
    Typegen(typegen::Args),
    Schema(generate::SchemaArgs),
    Stdio(stdio::Args),
    DemoServer(demo_server::Args),
    Completions(generate::CompletionsArgs),
    Man(generate::ManArgs),
    Help(help::HelpArgs),
}

/// The failure of a command, with its exit code.
#[derive(Debug, PartialEq, Eq)]
struct Failed {
    code: u8,
    /// Empty if the failure is already printed.
    text: String,
    details: Vec<String>,
    hint: Option<String>,
}

/// The command ran and failed.
const FAILED: u8 = 1;
/// The command line is invalid. Source: sysexits.h, EX_USAGE.
const USAGE: u8 = 64;
/// No service answers. Source: sysexits.h, EX_UNAVAILABLE.
const UNAVAILABLE: u8 = 69;
/// The configuration is invalid. Source: sysexits.h, EX_CONFIG.
const CONFIG: u8 = 78;
/// The user pressed ctrl-c. Source: shells, 128 plus the number of SIGINT.
const CANCELLED: u8 = 130;

impl Failed {
    fn new(code: u8, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), details: Vec::new(), hint: None }
    }

    /// Returns the failure of an invalid command line.
    fn usage(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(USAGE, text).hint(hint)
    }

    /// Returns a failure that is already printed.
    fn printed(code: u8) -> Self {
        Self::new(code, "")
    }

    /// Adds a separate line below the text.
    fn detail(mut self, line: impl Into<String>) -> Self {
        self.details.push(line.into());
        self
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn print(&self) {
        if !self.text.is_empty() {
            output::eprint(&format!("error: {}\n", self.text));
        }
        for line in &self.details {
            output::eprint(&format!("  {line}\n"));
        }
        if let Some(hint) = &self.hint {
            output::hint(&format!("hint: {hint}\n"));
        }
    }
}

/// Creates a runtime: with one thread for a command, with several for a service.
fn runtime(mut builder: Builder) -> Result<Runtime, Failed> {
    // The tests of commands wait without taking time.
    #[cfg(test)]
    builder.start_paused(true);
    let built = builder.enable_all().build();
    built.map_err(|error| Failed::new(FAILED, format!("cannot start the async runtime: {error}")))
}

/// Catches ctrl-c from now on. Before this call, and in commands without it, ctrl-c ends the
/// process.
fn listen_for_ctrl_c() -> Result<Signal, Failed> {
    signal(SignalKind::interrupt())
        .map_err(|error| Failed::new(FAILED, format!("cannot catch ctrl-c: {error}")))
}

fn as_text(word: Option<&OsString>) -> Option<&str> {
    word.and_then(|word| word.to_str())
}

/// Runs a command.
fn execute(command: Command) -> Result<(), Failed> {
    match command {
        Command::Serve(args) => serve::run(args),
        Command::Check(args) => check::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Servers(args) => servers::run(&args),
        Command::Add(args) => add::run(&args),
        Command::Remove(args) => server_switch::remove(&args),
        Command::Enable(args) => server_switch::enable(&args),
        Command::Disable(args) => server_switch::disable(&args),
        Command::Tools(args) => tools::run(&args),
        Command::Info(args) => tools::info(&args),
        Command::Call(args) => call::run(args),
        Command::Run(args) => run::run(&args),
        Command::Grep(args) => tools::grep(&args),
        Command::Search(args) => tools::search(&args),
        Command::Resources(args) => resources::run(&args),
        Command::Read(args) => resources::read(&args),
        Command::Prompts(args) => prompts::run(&args),
        Command::Prompt(args) => prompts::get(args),
        Command::Complete(args) => complete::run(&args),
        Command::Tasks(args) => tasks::run(&args),
        Command::Task(args) => tasks::inspect(&args),
        Command::Auth(args) => auth::run(&args),
        Command::Login(args) => login::run(&args),
        Command::Logout(args) => login::logout(&args),
        Command::Reload(args) => reload::run(&args),
        Command::Stop(args) => stop::run(&args),
        Command::Logs(args) => logs::run(&args),
        Command::Calls(args) => calls::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Connect(args) => connect::run(&args),
        Command::Disconnect(args) => connect::disconnect(&args),
        Command::Typegen(args) => typegen::run(&args),
        Command::Schema(args) => generate::schema(&args),
        Command::Stdio(args) => stdio::run(&args),
        Command::DemoServer(args) => demo_server::run(&args),
        Command::Completions(args) => generate::completions(&args),
        Command::Man(args) => generate::manual(&args),
        Command::Help(args) => help::run(&args),
    }
}

/// Runs the command of the arguments and returns its exit code; `metamcp --help` lists the codes.
pub fn main() -> ExitCode {
    // Started by the service, once for each script: without the parser, which takes longer.
    let mut words = std::env::args_os().skip(1);
    let first = words.next();
    if first.as_ref().is_some_and(|word| word == "sandbox") {
        let [profile, parent] = [words.next(), words.next()];
        return sandbox::main(as_text(profile.as_ref()), as_text(parent.as_ref()));
    }
    if first.is_some_and(|word| word == complete_words::NAME) {
        // Run by the scripts of shells with `--` and the words of a command line.
        let words = words.skip(1).map(|word| word.to_string_lossy().into_owned());
        return exit_code(complete_words::run(words));
    }
    let parsed = help::command_line().try_get_matches();
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            return exit_code(Err(help::usage_error(&error)));
        }
        // Help and version are not errors.
        Err(text) => {
            output::print(&text.to_string());
            return ExitCode::SUCCESS;
        }
    };
    name_sources::restrict_sources();
    terminal::choose_colour(cli.options.color);
    if cli.options.quiet {
        output::be_quiet();
    }
    // A service continues even if its first output could not be written.
    let is_serving = matches!(cli.command, Command::Serve(_) | Command::DemoServer(_));
    let done = execute(cli.command);
    let done = match (done, output::lost()) {
        (Ok(()), Some(error)) if !is_serving => {
            Err(Failed::new(FAILED, format!("cannot write to standard output: {error}")))
        }
        (done, _) => done,
    };
    exit_code(done)
}

/// Prints a failure, and returns the exit code of a command.
fn exit_code(done: Result<(), Failed>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            failed.print();
            ExitCode::from(failed.code)
        }
    }
}
