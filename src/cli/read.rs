//! `metamcp read`: the contents of one resource.

use serde_json::{Value, json};

use super::{
    FAILED, Failed, call::result, item_output, output, service_target, service_target::OutputArgs,
};

/// Read a resource
///
/// Prints texts unchanged, and other contents as one line of description; --json prints everything.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The resource: `SERVER/URI`, `SERVER/NAME` as listed by `metamcp resources`, or SERVER before
    /// a separate URI
    #[arg(value_name = "SERVER/URI")]
    resource: String,
    /// The URI, if the first argument names only the server
    uri: Option<String>,
    #[command(flatten)]
    reader: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let target = &args.reader.target;
    let (server, uri) = match &args.uri {
        // With a separate URI, only the server of the first word counts.
        Some(uri) => (args.resource.split('/').next().unwrap_or_default(), uri.clone()),
        None => {
            let (server, name) = item_output::split(&args.resource, "resource")?;
            let uri =
                if name.contains(':') { name.to_owned() } else { uri_of(args, server, name)? };
            (server, uri)
        }
    };
    let read = target.ask("resources/read", &json!({ "server": server, "uri": uri }))?;
    args.reader.print(&read, |read| {
        for contents in read["contents"].as_array().into_iter().flatten() {
            match contents["text"].as_str() {
                Some(text) => output::content(text),
                None => {
                    let block = json!({ "type": "resource", "resource": contents });
                    result::print(&[result::block(&block)]);
                }
            }
        }
        Ok(())
    })
}

/// Returns the URI of the resource with this name.
fn uri_of(args: &Args, server: &str, name: &str) -> Result<String, Failed> {
    let listed = args.reader.target.ask("resources/list", &json!({ "server": server }))?;
    let listed = service_target::value(&listed)?;
    let resources = listed.as_array().into_iter().flatten().map(|item| &item["resource"]);
    let named: Vec<&Value> = resources.filter(|resource| resource["name"] == name).collect();
    match named[..] {
        [resource] => Ok(resource["uri"].as_str().unwrap_or_default().to_owned()),
        [] => Err(Failed::new(FAILED, format!("server `{server}` lists no resource `{name}`"))
            .hint("`metamcp resources` lists them; one that is not listed is read by its URI.")),
        _ => {
            Err(Failed::new(FAILED, format!("server `{server}` lists several resources `{name}`"))
                .hint("Name it by its URI."))
        }
    }
}
