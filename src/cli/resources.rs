//! `metamcp resources` and `metamcp read`: the resources of all servers, and the contents of one.

use serde_json::{Value, json};

use super::{
    FAILED, Failed, call::result, item_output, output, service_target, service_target::OutputArgs,
};

/// List the resources of all servers, or of one
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// List only the resources of this server
    server: Option<String>,
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let list = ("resources/list", &json!({ "server": args.server, "report": true }));
    let texts = ("resource", "No server has a resource.\n");
    item_output::print_list(&args.common, list, texts, |resource| {
        let about = item_output::first_line(resource, &["description", "title", "name"]);
        [output::word(&resource["uri"]), output::word(&resource["mimeType"]), about]
    })
}

/// Read a resource
///
/// Prints texts unchanged, and other contents as one line of description; --json prints everything.
#[derive(Debug, clap::Args)]
pub(super) struct ReadArgs {
    /// The resource: `SERVER/URI`, `SERVER/NAME` as listed by `metamcp resources`, or SERVER before
    /// a separate URI
    #[arg(value_name = "SERVER/URI")]
    resource: String,
    /// The URI, if the first argument names only the server
    uri: Option<String>,
    #[command(flatten)]
    common: OutputArgs,
}

pub(super) fn read(args: &ReadArgs) -> Result<(), Failed> {
    let target = &args.common.target;
    let (server, uri) = match &args.uri {
        // With a separate URI, only the server of the first word counts.
        Some(uri) => {
            let server = args.resource.split('/').next().unwrap_or_default();
            (server.to_owned(), uri.clone())
        }
        // The name of a server has no colon.
        None if args.resource.split('/').next().is_some_and(|word| word.contains(':')) => {
            (server_of(args)?, args.resource.clone())
        }
        None => {
            let (server, name) = item_output::split(&args.resource, "resource")?;
            let uri =
                if name.contains(':') { name.to_owned() } else { uri_of(args, server, name)? };
            (server.to_owned(), uri)
        }
    };
    let read = target.ask("resources/read", &json!({ "server": server, "uri": uri }))?;
    args.common.print(&read, |read| {
        for contents in output::items(&read["contents"]) {
            match contents["text"].as_str() {
                Some(text) => output::content(text),
                None => {
                    let block = json!({ "type": "resource", "resource": contents });
                    result::print(&[result::block(&block)]);
                }
            }
        }
    })
}

/// Returns the URI of the resource with this name.
fn uri_of(args: &ReadArgs, server: &str, name: &str) -> Result<String, Failed> {
    let listed = args.common.target.ask("resources/list", &json!({ "server": server }))?;
    let listed = service_target::value(&listed)?;
    let resources = output::items(&listed).iter().map(|item| &item["resource"]);
    let named: Vec<&Value> = resources.filter(|resource| resource["name"] == name).collect();
    match named[..] {
        [resource] => Ok(resource["uri"].as_str().unwrap_or_default().to_owned()),
        [] => Err(Failed::new(FAILED, format!("server `{server}` lists no resource `{name}`"))
            .hint("Run `metamcp resources` to list them, or name the resource by its URI.")),
        _ => {
            let text = format!("server `{server}` lists several resources named `{name}`");
            Err(Failed::new(FAILED, text).hint("Name the resource by its URI."))
        }
    }
}

/// Returns the server that lists the resource whose URI is given alone.
fn server_of(args: &ReadArgs) -> Result<String, Failed> {
    let uri = args.resource.as_str();
    let listed = args.common.target.ask("resources/list", &json!({}))?;
    let listed = service_target::value(&listed)?;
    let items = output::items(&listed).iter().filter(|item| item["resource"]["uri"] == uri);
    let servers: Vec<String> = items.map(|item| output::word(&item["server"])).collect();
    match &servers[..] {
        [server] => Ok(server.clone()),
        [] => Err(Failed::new(FAILED, format!("no server lists a resource `{uri}`"))
            .hint("Write SERVER/URI; `metamcp resources` lists them.")),
        [first, ..] => {
            let text = format!("several servers list a resource `{uri}`: {}", servers.join(", "));
            Err(Failed::new(FAILED, text)
                .hint(format!("Name the server: `metamcp read {first}/{uri}`.")))
        }
    }
}
