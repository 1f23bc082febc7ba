//! `metamcp reload`: a reload of the configuration.

use std::path::PathBuf;

use serde_json::json;

use super::{FAILED, Failed, output, service_target::OutputArgs};

/// Have the service read its configuration again
///
/// Unchanged servers keep their connections and running requests. An invalid configuration changes
/// nothing: the error is reported, and the exit code is 78.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Make the service use this file from now on; only for its own user and root
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let path = args.config.as_deref().map(std::path::absolute).transpose();
    let path = path.map_err(|error| {
        Failed::new(FAILED, format!("cannot resolve the path of the file: {error}"))
    })?;
    let params = json!({ "configPath": path });
    let changes = args.common.target.call_service("config/reload", &params)?;
    args.common.print(&changes, |changes| {
        let mut lines = Vec::new();
        for (member, sign) in [("added", "+"), ("removed", "-"), ("changed", "~")] {
            let names = output::items(&changes[member]).iter();
            lines.extend(names.map(|name| format!("{sign} {}\n", output::word(name))));
        }
        match lines.is_empty() {
            true => output::print("No server has changed.\n"),
            false => output::print(&lines.concat()),
        }
    })
}
