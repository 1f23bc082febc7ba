//! The command line. Each command's doc comment is its manual.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod check;
mod demo_server;
mod import;
mod output;
mod search;
mod serve;
mod service;
mod status;

/// Run each MCP server once per host and serve it to every client
#[derive(Debug, Parser)]
#[command(name = "metamcp", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Check(check::Args),
    Status(status::Args),
    Search(search::SearchArgs),
    Grep(search::GrepArgs),
    Import(import::Args),
    DemoServer(demo_server::Args),
}

/// Why a command failed, and the exit code that says so.
#[derive(Debug)]
struct Failed {
    code: u8,
    text: String,
    hint: Option<String>,
}

/// The command ran and failed.
const FAILED: u8 = 1;
/// The command line is wrong. Source: sysexits.h, EX_USAGE.
const USAGE: u8 = 64;
/// No service answers. Source: sysexits.h, EX_UNAVAILABLE.
const UNAVAILABLE: u8 = 69;
/// The configuration is wrong. Source: sysexits.h, EX_CONFIG.
const CONFIG: u8 = 78;

impl Failed {
    fn new(code: u8, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Runs the command that the arguments ask for and returns the exit code: 0 done, 1 failed, 64
/// wrong usage, 69 no service answers, 78 wrong configuration.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            output::complain(&error.to_string());
            return ExitCode::from(USAGE);
        }
        // Help and the version are not mistakes.
        Err(text) => {
            output::print(&text.to_string());
            return ExitCode::SUCCESS;
        }
    };
    let done = match cli.command {
        Command::Serve(args) => serve::run(args),
        Command::Check(args) => check::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Search(args) => search::search(&args),
        Command::Grep(args) => search::grep(&args),
        Command::Import(args) => import::run(&args),
        Command::DemoServer(args) => demo_server::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            output::complain(&format!("error: {}\n", failed.text));
            if let Some(hint) = failed.hint {
                output::complain(&format!("hint: {hint}\n"));
            }
            ExitCode::from(failed.code)
        }
    }
}
