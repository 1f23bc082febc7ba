//! The methods `tools/…`, except `tools/call-async`.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{
    Asker, ControlParams, ControlService, MethodResult,
    listing::{self, each, entry, rendered, unavailable},
    params::ParamKind,
};
use crate::{
    capacity_holder::Holder,
    compute_pool::StopFlag,
    config::defaults,
    meta::{
        ArgumentVerdict, FieldSelection, RequestedTool,
        describe::{collapsed, common_depth, part_of},
        result_document::with_note,
        warnings,
    },
    protocol::{
        ObjectMembers, RpcError,
        list_page::{ListItem, ListKind},
        rpc_error::INVALID_PARAMS,
    },
    redact,
    search::{RankingStrategy, SearchPattern},
    server_name::ServerName,
    view::{FindQuery, ResolvedTool, Views, operator},
};

impl ParamKind for RankingStrategy {
    const WORDS: &'static str = "`keyword`, `bm25` or `hybrid`";
}

/// The details of each tool of a list.
#[derive(Clone, Copy)]
enum Shown {
    /// Its name, title and annotations.
    Name,
    /// Also its description and its schemas, to this depth.
    Depth(usize),
    /// The same, as deep as all schemas together fit into this many bytes.
    Budget(usize),
}

impl Shown {
    fn of(params: &ControlParams<'_>) -> Result<Self, Box<RpcError>> {
        let depth = params.optional("schemaDepth")?;
        let budget: Option<usize> = params.optional("schemaBudget")?;
        Ok(match (params.flag("includeSchema")?, depth) {
            (false, _) => Self::Name,
            (true, Some(depth)) => Self::Depth(depth),
            (true, None) => Self::Budget(budget.unwrap_or(defaults::SCHEMA_BUDGET)),
        })
    }
}

/// Answers `tools/list`.
pub(super) async fn list(desk: &ControlService, params: &ControlParams<'_>) -> MethodResult {
    let server: Option<String> = params.optional("server")?;
    let (shown, is_reported) = (Shown::of(params)?, params.flag("report")?);
    let listed = desk.views.operator_list(ListKind::Tools, server.as_deref()).await?;
    let tools = each(&listed).map(|(server, item)| (server.clone(), item.clone())).collect();
    let unavailable = is_reported.then(|| unavailable(&listed));
    Ok(rendered(&entries(&desk.views, tools, shown).await, unavailable, None))
}

/// Answers `tools/grep`.
pub(super) async fn grep(desk: &ControlService, params: &ControlParams<'_>) -> MethodResult {
    let pattern: String = params.required("pattern")?;
    let (shown, is_reported) = (Shown::of(params)?, params.flag("report")?);
    let limit: Option<usize> = params.optional("limit")?;
    let pattern = SearchPattern::new(&pattern).map_err(|error| {
        RpcError::new(INVALID_PARAMS, error.code(), error.to_string())
            .suggest(error.hint())
            .context(json!({ "parameter": "pattern" }))
    })?;
    // Looks for one more, to know whether there are more.
    let limit = limit.unwrap_or(usize::MAX - 1).clamp(1, usize::MAX - 1);
    let found = desk.views.grep(pattern, limit).await?;
    let tools = found.each().map(|(_, server, item)| (server.name.clone(), item.clone()));
    let entries = entries(&desk.views, tools.collect(), shown).await;
    let unavailable = is_reported.then(|| found.unavailable().to_string());
    Ok(rendered(&entries, unavailable, Some(found.has_more)))
}

/// Answers `tools/search`.
pub(super) async fn search(desk: &ControlService, params: &ControlParams<'_>) -> MethodResult {
    let query: String = params.required("query")?;
    let server: Option<String> = params.optional("server")?;
    let limit: Option<usize> = params.optional("limit")?;
    let wish = FindQuery {
        text: Some(&query),
        server: server.as_deref(),
        strategy: params.optional("strategy")?,
        offset: 0,
        limit: limit.unwrap_or(defaults::DISCOVER_LIMIT).clamp(1, defaults::DISCOVER_LIMIT_MAX),
        is_explained: params.flag("explain")?,
    };
    let views = &desk.views;
    let found = views
        .find(Holder::SERVICE, views.known_tools(wish.server.or(wish.text)).await, &wish)
        .await;
    Ok(found.map_err(|error| operator::to_rpc_error(&error))?.to_value().to_string())
}

/// Answers `tools/info`.
pub(super) async fn info(desk: &ControlService, params: &ControlParams<'_>) -> MethodResult {
    let wanted = requested_tool(params)?;
    let path: Option<String> = params.optional("path")?;
    let depth: Option<usize> = params.optional("schemaDepth")?;
    let tool = desk.views.operator_tool(&wanted).await?;
    let bytes = tool.item.json().len();
    let described = move || described(&tool, path.as_deref(), depth);
    desk.views.operator_compute(bytes, move |_| described()).await?
}

/// Returns the definition of a tool with the requested part of its schema.
fn described(tool: &ResolvedTool, path: Option<&str>, depth: Option<usize>) -> MethodResult {
    let mut members = ObjectMembers::read(tool.item.json()).unwrap_or_default();
    if path.is_some() || depth.is_some() {
        let schema = members.get("inputSchema").unwrap_or("{}");
        let schema: Value = serde_json::from_str(schema).unwrap_or_default();
        let part = match path {
            Some(path) => part_of(&schema, path).ok_or_else(|| {
                let shown = redact::cut(path, defaults::SUGGESTION_BYTES_MAX);
                let text = format!("the schema of `{}` has nothing at `{shown}`", tool.id);
                RpcError::new(INVALID_PARAMS, "SCHEMA_PATH_NOT_FOUND", text)
                    .suggest(format!("{} Leave `path` out to see all of it.", known(&schema)))
                    .context(json!({ "path": shown, "tool": tool.id.to_string() }))
            })?,
            None => &schema,
        };
        let part = depth.map_or_else(|| part.clone(), |depth| collapsed(part, depth));
        members.set("inputSchema", part.to_string());
    }
    members.set("server", json!(tool.id.server).to_string());
    Ok(members.to_string())
}

/// Answers `tools/call`.
pub(super) async fn call(
    desk: &ControlService,
    params: &ControlParams<'_>,
    asker: &Asker,
) -> MethodResult {
    let wanted = requested_tool(params)?;
    let timeout = match params.optional::<u64>("timeout")? {
        Some(0) => return Err(params.invalid("timeout", "at least 1 ms")),
        timeout => timeout.map(Duration::from_millis),
    };
    let paths: Vec<String> = params.optional("fields")?.unwrap_or_default();
    let fields = FieldSelection::parse(paths.iter().map(String::as_str)).map_err(|error| {
        params.invalid("fields", &format!("a list of paths such as `rows[].name`: {error}"))
    })?;
    let call = operator::OperatorCall {
        tool: &wanted,
        args: params.object("arguments")?.unwrap_or("{}"),
        timeout,
        meta: params.meta()?,
        holder: asker.holder(),
    };
    let begun = desk.views.operator_call(&call).await?;
    let result = operator::finish(begun.exchange, asker.lines.as_ref()).await?;
    let n_bytes = result.len();
    let make_ready = move |stop: &StopFlag| {
        let result = fields.apply(&result, stop);
        begun.warning.and_then(|words| with_note(&result, &words)).unwrap_or(result)
    };
    desk.views.operator_compute(n_bytes, make_ready).await
}

/// Answers `tools/validate`.
pub(super) async fn validate(desk: &ControlService, params: &ControlParams<'_>) -> MethodResult {
    let wanted = requested_tool(params)?;
    let args = params.object("arguments")?.unwrap_or("{}");
    let tool = desk.views.operator_tool(&wanted).await?;
    let (mut errors, mut doubts, mut unsupported) = (Vec::new(), Vec::new(), None);
    match desk.views.operator_verdict(&tool, args).await {
        ArgumentVerdict::Fits => {}
        ArgumentVerdict::Wrong(misfit) => {
            errors.extend(misfit.problems.iter().map(ToString::to_string));
        }
        ArgumentVerdict::Doubtful(found) => doubts.extend(found.iter().map(ToString::to_string)),
        // The call would pass: the server decides.
        ArgumentVerdict::Unchecked(reason) => unsupported = Some(reason.to_string()),
    }
    let warnings = warnings(tool.item.json());
    let mut warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    warnings.append(&mut doubts);
    let mut result = ObjectMembers::default();
    result.set("valid", errors.is_empty().to_string());
    result.set("errors", json!(errors).to_string());
    if let Some(reason) = unsupported {
        warnings.push(format!("the arguments were not checked: {reason}"));
        result.set("unsupported", "true");
    }
    result.set("warnings", json!(warnings).to_string());
    result.set("server", json!(tool.id.server).to_string());
    result.set("tool", short(&tool.item).to_string());
    Ok(result.to_string())
}

/// Reads the name of the requested tool.
pub(super) fn requested_tool(params: &ControlParams<'_>) -> Result<RequestedTool, Box<RpcError>> {
    Ok(RequestedTool { server: None, tool: params.required("name")? })
}

/// Returns a sentence that lists the properties of a schema.
fn known(schema: &Value) -> String {
    let names = schema["properties"].as_object().into_iter().flat_map(|all| all.keys());
    let names: Vec<&str> = names.map(String::as_str).take(PARTS_SHOWN_MAX).collect();
    match names.as_slice() {
        [] => "It has no properties.".to_owned(),
        names => format!("It has `{}`.", names.join("`, `")),
    }
}

/// The maximum number of properties that an error names.
const PARTS_SHOWN_MAX: usize = 20;

/// Returns the name, the title and the annotations of a tool.
fn short(item: &ListItem) -> ObjectMembers<'_> {
    let members = ObjectMembers::read(item.json()).unwrap_or_default();
    let mut short = ObjectMembers::default();
    for name in ["name", "title", "annotations"] {
        if let Some(value) = members.get(name) {
            short.set(name, value.to_owned());
        }
    }
    short
}

/// Returns the entries of a list, each as JSON text. Schemas are read outside of the event loop:
/// there may be thousands.
async fn entries(views: &Views, tools: Vec<(ServerName, ListItem)>, shown: Shown) -> Vec<String> {
    if matches!(shown, Shown::Name) {
        let tools = tools.iter();
        return tools.map(|(server, item)| named(server, &short(item))).collect();
    }
    let tools = Arc::new(tools);
    let reading = Arc::clone(&tools);
    let bytes = tools.iter().map(|(_, item)| item.json().len()).sum();
    let entries = views.operator_compute(bytes, move |_| with_schemas(&reading, shown)).await;
    // The names are useful without schemas, too.
    entries.unwrap_or_else(|_| {
        tools.iter().map(|(server, item)| named(server, &short(item))).collect()
    })
}

fn named(server: &ServerName, tool: &ObjectMembers<'_>) -> String {
    entry(server, "tool", &tool.to_string())
}

/// The members of a tool that are schemas.
const SCHEMAS: [&str; 2] = ["inputSchema", "outputSchema"];

fn with_schemas(tools: &[(ServerName, ListItem)], shown: Shown) -> Vec<String> {
    let schemas = tools.iter().map(|(_, item)| {
        let members = ObjectMembers::read(item.json()).unwrap_or_default();
        SCHEMAS.map(|name| serde_json::from_str(members.get(name)?).ok())
    });
    let schemas: Vec<[Option<Value>; 2]> = schemas.collect();
    let depth = match shown {
        Shown::Name => 0,
        Shown::Depth(depth) => depth,
        Shown::Budget(bytes_max) => {
            let all: Vec<&Value> = schemas.iter().flatten().flatten().collect();
            common_depth(&all, bytes_max)
        }
    };
    let each = tools.iter().zip(&schemas).map(|((server, item), schemas)| {
        let mut tool = short(item);
        if let Some(description) = ObjectMembers::one(item.json(), "description") {
            tool.set("description", description);
        }
        for (name, schema) in SCHEMAS.iter().zip(schemas) {
            if let Some(schema) = schema {
                tool.set(name, collapsed(schema, depth).to_string());
            }
        }
        listing::entry(server, "tool", &tool.to_string())
    });
    each.collect()
}
