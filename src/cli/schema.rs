//! `metamcp schema`: the JSON Schema of the configuration file.

use super::{Failed, output};
use crate::config::schema;

/// Print the JSON Schema of the configuration file
///
/// Draft 2020-12, generated from the types of the configuration: every key with its meaning,
/// default, range and accepted words. Editors use it to complete and check TOML; only `metamcp
/// check` checks rules over several keys.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_: &Args) -> Result<(), Failed> {
    output::print(&format!("{:#}\n", schema::schema()));
    Ok(())
}
