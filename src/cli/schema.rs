//! `metamcp schema`: what a configuration file can say.

use super::{Failed, output};
use crate::config::schema;

/// Print the JSON Schema of the configuration file
///
/// Draft 2020-12, made from the types that the file is read into: every key with its meaning,
/// default, range and words. Editors complete and check TOML by it; rules over several keys are
/// checked by `metamcp check` alone.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_: &Args) -> Result<(), Failed> {
    output::print(&format!("{:#}\n", schema::schema()));
    Ok(())
}
