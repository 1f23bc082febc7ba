//! The methods `tools/…`, except `tools/call-async`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    ControlParams, ControlRequest, MethodResult,
    listing::{each, entry, rendered, unavailable},
    params::ParamKind,
};
use crate::{
    capacity_holder::Holder,
    compute_pool::StopFlag,
    config::defaults,
    protocol::{
        ObjectMembers, RpcError,
        list_page::{ListItem, ListKind},
        rpc_error::INVALID_PARAMS,
    },
    redact,
    search::{RankingStrategy, SearchPattern},
    server_name::ServerName,
    tool::{
        ArgumentVerdict, FieldSelection, FindQuery, RequestedTool, ResolvedTool,
        schema_collapse::{collapsed, common_depth},
        schema_path::part_of,
        warnings, with_note,
    },
    view::{OperatorView, operator},
};

impl ParamKind for RankingStrategy {
    const WORDS: &'static str = "`keyword`, `bm25` or `hybrid`";
}

/// The details of each tool of a list.
#[derive(Clone, Copy)]
enum ToolDetail {
    /// Its name, title and annotations.
    Name,
    /// Also its description and its schemas, to this depth.
    Depth(usize),
    /// The same, as deep as all schemas together fit into this many bytes.
    Budget(usize),
}

impl ToolDetail {
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
pub(super) async fn list(request: &ControlRequest<'_>) -> MethodResult {
    let server: Option<String> = request.params.optional("server")?;
    let detail = ToolDetail::of(&request.params)?;
    let is_reported = request.params.flag("report")?;
    let operators = &request.service.parts.operators;
    let listed = operators.list(ListKind::Tools, server.as_deref()).await?;
    let tools = each(&listed).map(|(server, item)| (server.clone(), item.clone())).collect();
    let unavailable = is_reported.then(|| unavailable(&listed));
    Ok(rendered(&entries(operators, tools, detail).await, unavailable, None))
}

/// Answers `tools/grep`.
pub(super) async fn grep(request: &ControlRequest<'_>) -> MethodResult {
    let pattern: String = request.params.required("pattern")?;
    let detail = ToolDetail::of(&request.params)?;
    let is_reported = request.params.flag("report")?;
    let limit: Option<usize> = request.params.optional("limit")?;
    let pattern = SearchPattern::new(&pattern).map_err(|error| {
        RpcError::new(INVALID_PARAMS, error.code(), error.to_string())
            .suggest(error.hint())
            .context(json!({ "parameter": "pattern" }))
    })?;
    // Looks for one more, to know whether there are more.
    let limit = limit.unwrap_or(usize::MAX - 1).clamp(1, usize::MAX - 1);
    let found = request
        .service
        .parts
        .operators
        .directory()
        .grep(pattern, limit)
        .await
        .map_err(|error| operator::to_rpc_error(&error))?;
    let tools = found.each().map(|(_, server, item)| (server.name.clone(), item.clone()));
    let entries = entries(&request.service.parts.operators, tools.collect(), detail).await;
    let unavailable = is_reported.then(|| found.unavailable().to_string());
    Ok(rendered(&entries, unavailable, Some(found.has_more)))
}

/// Answers `tools/search`.
pub(super) async fn search(request: &ControlRequest<'_>) -> MethodResult {
    let text: String = request.params.required("query")?;
    let server: Option<String> = request.params.optional("server")?;
    let limit: Option<usize> = request.params.optional("limit")?;
    let query = FindQuery {
        text: Some(&text),
        server: server.as_deref(),
        strategy: request.params.optional("strategy")?,
        offset: 0,
        limit: limit.unwrap_or(defaults::DISCOVER_LIMIT).clamp(1, defaults::DISCOVER_LIMIT_MAX),
        is_explained: request.params.flag("explain")?,
    };
    let operators = &request.service.parts.operators;
    let known = operators.directory().known_tools(query.server.or(query.text)).await;
    let found = operators.directory().find(Holder::SERVICE, known, &query).await;
    Ok(found.map_err(|error| operator::to_rpc_error(&error))?.to_value().to_string())
}

/// Answers `tools/info`.
pub(super) async fn info(request: &ControlRequest<'_>) -> MethodResult {
    let wanted = requested_tool(&request.params)?;
    let path: Option<String> = request.params.optional("path")?;
    let depth: Option<usize> = request.params.optional("schemaDepth")?;
    let tool = request.service.parts.operators.tool(&wanted).await?;
    let bytes = tool.item.json().len();
    let describe = move |_: &StopFlag| described(&tool, path.as_deref(), depth);
    request.service.parts.operators.compute(bytes, describe).await?
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
pub(super) async fn call(request: &ControlRequest<'_>) -> MethodResult {
    let wanted = requested_tool(&request.params)?;
    let paths: Vec<String> = request.params.optional("fields")?.unwrap_or_default();
    let fields = FieldSelection::parse(paths.iter().map(String::as_str)).map_err(|error| {
        request.params.invalid("fields", &format!("a list of paths such as `rows[].name`: {error}"))
    })?;
    let call = operator::OperatorCall {
        tool: &wanted,
        args: request.params.object("arguments")?.unwrap_or("{}"),
        timeout: request.params.timeout()?,
        meta: request.params.meta()?,
        holder: request.holder(),
    };
    let operators = &request.service.parts.operators;
    let prepared = operators.call(&call).await?;
    let result = operator::finish(prepared.exchange, request.requester.lines.as_ref()).await?;
    let n_bytes = result.len();
    let select_fields = move |stop: &StopFlag| {
        let result = fields.apply(&result, stop);
        prepared.warning.and_then(|words| with_note(&result, &words)).unwrap_or(result)
    };
    operators.compute(n_bytes, select_fields).await
}

/// Answers `tools/validate`.
pub(super) async fn validate(request: &ControlRequest<'_>) -> MethodResult {
    let wanted = requested_tool(&request.params)?;
    let args = request.params.object("arguments")?.unwrap_or("{}");
    let operators = &request.service.parts.operators;
    let tool = operators.tool(&wanted).await?;
    let (mut errors, mut doubts, mut unchecked) = (Vec::new(), Vec::new(), None);
    match operators.verdict(&tool, args).await {
        ArgumentVerdict::Fits => {}
        ArgumentVerdict::Wrong(misfit) => {
            errors.extend(misfit.problems.iter().map(ToString::to_string));
        }
        ArgumentVerdict::Doubtful(found) => doubts.extend(found.iter().map(ToString::to_string)),
        // The call would pass: the server decides.
        ArgumentVerdict::Unchecked(reason) => unchecked = Some(reason),
    }
    let warnings = warnings(tool.item.json());
    let mut warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    warnings.append(&mut doubts);
    let mut result = ObjectMembers::default();
    result.set("valid", errors.is_empty().to_string());
    result.set("errors", json!(errors).to_string());
    if let Some(reason) = unchecked {
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
async fn entries(
    operators: &OperatorView,
    tools: Vec<(ServerName, ListItem)>,
    detail: ToolDetail,
) -> Vec<String> {
    let names = |tools: &[(ServerName, ListItem)]| {
        tools.iter().map(|(server, item)| named(server, &short(item))).collect()
    };
    if matches!(detail, ToolDetail::Name) {
        return names(&tools);
    }
    let tools = Arc::new(tools);
    let reading = Arc::clone(&tools);
    let bytes = tools.iter().map(|(_, item)| item.json().len()).sum();
    let entries = operators.compute(bytes, move |_| with_schemas(&reading, detail)).await;
    // The names are useful without schemas, too.
    entries.unwrap_or_else(|_| names(&tools))
}

fn named(server: &ServerName, tool: &ObjectMembers<'_>) -> String {
    entry(server, "tool", &tool.to_string())
}

/// The members of a tool that are schemas.
const SCHEMAS: [&str; 2] = ["inputSchema", "outputSchema"];

fn with_schemas(tools: &[(ServerName, ListItem)], detail: ToolDetail) -> Vec<String> {
    let schemas = tools.iter().map(|(_, item)| {
        let members = ObjectMembers::read(item.json()).unwrap_or_default();
        SCHEMAS.map(|name| serde_json::from_str(members.get(name)?).ok())
    });
    let schemas: Vec<[Option<Value>; 2]> = schemas.collect();
    let depth = match detail {
        ToolDetail::Name => 0,
        ToolDetail::Depth(depth) => depth,
        ToolDetail::Budget(bytes_max) => {
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
        named(server, &tool)
    });
    each.collect()
}
