//! The entry point; all code is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    metamcp::cli::main()
}
