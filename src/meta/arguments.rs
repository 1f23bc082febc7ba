//! The arguments of the meta tools, with types.
//!
//! What each tool takes is written down once, in its definition: which fields there are, and what
//! the errors say of them, is read from there. Models nest and spell things in their own ways; what
//! can only mean one thing is taken as that: an object or a list that is written as a string, one
//! thing where a list of such is wanted, `null` or an empty text for a field that is left out.

mod error;
mod field_reader;
mod word_arguments;

use std::time::Duration;

pub use error::ArgumentError;
use field_reader::FieldReader;
pub use word_arguments::{BackendKind, DetailLevel};

use super::{
    definitions::MetaTool,
    field_selection::FieldSelection,
    tool_id::{RequestedTool, ToolId},
};
use crate::config::defaults;

/// What a tool of ours is called with.
#[derive(Clone, Debug, PartialEq)]
pub enum MetaArguments {
    /// Of `mcp_discover`.
    Discover(DiscoverArguments),
    /// Of `mcp_provision`.
    Provision(ProvisionArguments),
    /// Of `mcp_call`.
    Call(CallArguments),
    /// Of `mcp_execute`.
    Execute {
        /// The program.
        code: String,
    },
    /// Of `search_tools`.
    SearchTools {
        /// What is looked for.
        query: String,
        /// Which part of it.
        page: PageArguments,
    },
    /// Of `list_namespaces`.
    ListNamespaces(PageArguments),
    /// Of `list_tools`.
    ListTools {
        /// Only what runs on this; all that we have runs on [`BackendKind::Mcp`].
        backend_kind: Option<BackendKind>,
        /// Only tools of this server.
        backend_name: Option<String>,
        /// Which part of it.
        page: PageArguments,
    },
    /// Of `describe_tool`.
    DescribeTool {
        /// The tool.
        tool: RequestedTool,
        /// How much of it.
        detail: DetailLevel,
        /// How many examples at most.
        examples_max: usize,
    },
    /// Of `list_tool_examples`.
    ListToolExamples {
        /// The tool.
        tool: RequestedTool,
        /// How many at most.
        max: usize,
    },
    /// Of `run_tool`.
    RunTool(RunArguments),
    /// Of `run_chain`.
    RunChain {
        /// What to run, in this order; never none.
        steps: Vec<StepArguments>,
        /// Add which server ran each step.
        include_backends: bool,
        /// Add the definition of each tool.
        include_tools: bool,
    },
    /// Of `execute_code`.
    ExecuteCode {
        /// What it is written in.
        language: String,
        /// The program.
        code: String,
        /// How long it may take.
        timeout: Option<Duration>,
        /// How many tools it may call.
        tool_calls_max: Option<usize>,
    },
}

/// What `mcp_discover` is to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoverArguments {
    /// What is looked for; without it, all there is.
    pub query: Option<String>,
    /// Only this server.
    pub server: Option<String>,
    /// Only this tool.
    pub tool: Option<RequestedTool>,
    /// How much of each tool.
    pub detail: DetailLevel,
    /// Which part of it.
    pub page: PageArguments,
}

/// What `mcp_provision` is to find a server for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvisionArguments {
    /// What is needed.
    pub intent: String,
    /// More about it.
    pub context: Option<String>,
    /// Start the best match, if that is allowed.
    pub auto_provision: bool,
}

/// What `mcp_call` is to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallArguments {
    /// The tool.
    pub tool: RequestedTool,
    /// Its arguments, as the JSON text of an object.
    pub args: String,
    /// The parts of the result that are wanted; none for all.
    pub fields: FieldSelection,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// Where to read on in a result that is there already.
    pub cursor: Option<String>,
}

/// What `run_tool` is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunArguments {
    /// The tool.
    pub tool: RequestedTool,
    /// Its arguments, as the JSON text of an object.
    pub args: String,
    /// It is asked for a stream, which there is none of.
    pub is_stream: bool,
    /// It is asked to run on something else than its server, which it cannot.
    pub is_overridden: bool,
    /// Add the tool's definition.
    pub include_tool: bool,
    /// Add which server ran it.
    pub include_backend: bool,
    /// Add the result as it came.
    pub include_mcp_result: bool,
    /// Where to read on in a result that is there already.
    pub cursor: Option<String>,
}

/// A step of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepArguments {
    /// The tool.
    pub tool: RequestedTool,
    /// Its arguments, as the JSON text of an object.
    pub args: String,
    /// Add the result of the step before as the argument `previous`.
    pub use_previous: bool,
}

/// Which part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageArguments {
    /// How many entries at most: 1 to [`defaults::DISCOVER_LIMIT_MAX`].
    pub limit: usize,
    /// Where it begins.
    pub cursor: Option<String>,
}

impl MetaArguments {
    /// Reads what `tool` is called with: `text` is the JSON text of `params.arguments`.
    ///
    /// # Errors
    ///
    /// [`ArgumentError`] names the first field that is missing, unknown or wrong.
    pub fn read(tool: MetaTool, text: Option<&str>) -> Result<Self, ArgumentError> {
        let text = field_reader::unwrapped(text.unwrap_or("{}"));
        let fields = FieldReader::of_tool(tool, &text)?;
        Ok(match tool {
            MetaTool::Discover => Self::Discover(DiscoverArguments::read(&fields)?),
            MetaTool::Provision => Self::Provision(ProvisionArguments {
                intent: fields.required("intent")?,
                context: fields.text("context")?,
                auto_provision: fields.flag("autoProvision", false)?,
            }),
            MetaTool::Call => Self::Call(CallArguments::read(&fields)?),
            MetaTool::Execute => Self::Execute { code: fields.required("code")? },
            MetaTool::SearchTools => {
                Self::SearchTools { query: fields.required("query")?, page: paging(&fields)? }
            }
            MetaTool::ListNamespaces => Self::ListNamespaces(paging(&fields)?),
            MetaTool::ListTools => Self::ListTools {
                backend_kind: fields.word("backend_kind", &BackendKind::WORDS)?,
                backend_name: fields.text("backend_name")?,
                page: paging(&fields)?,
            },
            MetaTool::DescribeTool => Self::DescribeTool {
                tool: tool_id(&fields)?,
                detail: match fields.word("detail_level", &DetailLevel::WORDS)? {
                    Some(detail) => detail,
                    None => return Err(fields.missing("detail_level")),
                },
                examples_max: count(&fields, "examples_max", 0, defaults::EXAMPLES_MAX)?
                    .unwrap_or(defaults::EXAMPLES_MAX),
            },
            MetaTool::ListToolExamples => Self::ListToolExamples {
                tool: tool_id(&fields)?,
                max: count(&fields, "max", 1, defaults::EXAMPLES_MAX)?
                    .unwrap_or(defaults::EXAMPLES_MAX),
            },
            MetaTool::RunTool => Self::RunTool(RunArguments::read(&fields)?),
            MetaTool::RunChain => Self::RunChain {
                steps: steps(&fields)?,
                include_backends: fields.flag("include_backends", true)?,
                include_tools: fields.flag("include_tools", false)?,
            },
            MetaTool::ExecuteCode => Self::ExecuteCode {
                language: fields.required("language")?,
                code: fields.required("code")?,
                timeout: timeout(&fields, "timeout_ms", defaults::EXECUTE_TIMEOUT_MAX)?,
                tool_calls_max: count(&fields, "max_tool_calls", 1, defaults::EXECUTE_CALLS_MAX)?,
            },
        })
    }
}

impl DiscoverArguments {
    fn read(fields: &FieldReader<'_>) -> Result<Self, ArgumentError> {
        let server = fields.text("server")?;
        let tool = fields.text("tool")?;
        Ok(Self {
            query: fields.text("query")?,
            tool: tool.map(|tool| RequestedTool { server: server.clone(), tool }),
            server,
            detail: fields.word("detail", &DetailLevel::WORDS)?.unwrap_or_default(),
            page: paging(fields)?,
        })
    }
}

impl CallArguments {
    fn read(fields: &FieldReader<'_>) -> Result<Self, ArgumentError> {
        let (server, tool) = (fields.text("server")?, fields.required("tool")?);
        // The server may stand in front of the tool.
        if server.is_none() && ToolId::parse(&tool).is_err() {
            return Err(fields.missing("server"));
        }
        let paths = fields.texts("fields")?;
        Ok(Self {
            tool: RequestedTool { server, tool },
            args: fields.object("args")?,
            fields: FieldSelection::parse(paths.iter().map(String::as_str))
                .map_err(|error| fields.invalid("fields", error.to_string()))?,
            timeout: timeout(fields, "timeoutMs", defaults::META_CALL_TIMEOUT_MAX)?,
            cursor: fields.text("cursor")?,
        })
    }
}

impl RunArguments {
    fn read(fields: &FieldReader<'_>) -> Result<Self, ArgumentError> {
        Ok(Self {
            tool: tool_id(fields)?,
            args: fields.object("args")?,
            is_stream: fields.flag("stream", false)?,
            is_overridden: fields.has("backend_override"),
            include_tool: fields.flag("include_tool", false)?,
            include_backend: fields.flag("include_backend", false)?,
            include_mcp_result: fields.flag("include_mcp_result", false)?,
            cursor: fields.text("cursor")?,
        })
    }
}

fn tool_id(fields: &FieldReader<'_>) -> Result<RequestedTool, ArgumentError> {
    Ok(RequestedTool { server: None, tool: fields.required("tool_id")? })
}

fn paging(fields: &FieldReader<'_>) -> Result<PageArguments, ArgumentError> {
    let limit = count(fields, "limit", 1, defaults::DISCOVER_LIMIT_MAX)?;
    Ok(PageArguments {
        limit: limit.unwrap_or(defaults::DISCOVER_LIMIT),
        cursor: fields.text("cursor")?,
    })
}

/// Reads how many entries there may be. One who asks for more than there can be gets those.
fn count(
    fields: &FieldReader<'_>,
    name: &'static str,
    min: usize,
    max: usize,
) -> Result<Option<usize>, ArgumentError> {
    let bounds = (i64::try_from(min).unwrap_or(0), i64::try_from(max).unwrap_or(i64::MAX));
    let found = fields.integer(name)?.map(|found| found.clamp(bounds.0, bounds.1));
    Ok(found.and_then(|found| usize::try_from(found).ok()))
}

/// Reads how long something may take, in milliseconds, at least one.
fn timeout(
    fields: &FieldReader<'_>,
    name: &'static str,
    max: Duration,
) -> Result<Option<Duration>, ArgumentError> {
    let Some(found) = fields.integer(name)? else { return Ok(None) };
    let found = u64::try_from(found).ok().filter(|found| *found > 0).map(Duration::from_millis);
    match found.filter(|found| *found <= max) {
        Some(found) => Ok(Some(found)),
        None => Err(fields.invalid(name, format!("it must be 1 to {} ms", max.as_millis()))),
    }
}

fn steps(fields: &FieldReader<'_>) -> Result<Vec<StepArguments>, ArgumentError> {
    let steps = fields.items("steps", |step| {
        Ok(StepArguments {
            tool: tool_id(step)?,
            args: step.object("args")?,
            use_previous: step.flag("use_previous", false)?,
        })
    })?;
    if steps.is_empty() {
        return Err(fields.missing("steps"));
    }
    Ok(steps)
}

#[cfg(test)]
mod tests;
