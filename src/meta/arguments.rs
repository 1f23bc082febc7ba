//! The typed arguments of the meta-tools.
//!
//! The definition of each tool is the only list of its fields, and the source of their descriptions
//! in errors. Models nest and spell arguments in their own ways, so every unambiguous form is
//! accepted: an object or a list written as a string, one item instead of a list, and `null` or an
//! empty text for a missing field.

mod error;
mod field_reader;
mod keyword_arguments;

use std::time::Duration;

pub use error::ArgumentError;
use field_reader::FieldReader;
pub use keyword_arguments::{BackendKind, DetailLevel};

use super::{chain::ChainIncludes, definitions::MetaTool};
use crate::{
    config::defaults,
    tool::{FieldSelection, RequestedTool, ToolId},
};

/// The arguments of a meta-tool.
#[derive(Clone, Debug, PartialEq)]
pub enum MetaArguments {
    /// The arguments of `mcp_discover`.
    Discover(DiscoverArguments),
    /// The arguments of `mcp_provision`.
    Provision(ProvisionArguments),
    /// The arguments of `mcp_call`.
    Call(CallArguments),
    /// The arguments of `mcp_execute`.
    Execute {
        /// The program.
        code: String,
    },
    /// The arguments of `search_tools`.
    SearchTools {
        /// The text to search for.
        query: String,
        /// The page of the list.
        page: PageArguments,
    },
    /// The arguments of `list_namespaces`.
    ListNamespaces(PageArguments),
    /// The arguments of `list_tools`.
    ListTools {
        /// Only tools of this kind; all tools are of [`BackendKind::Mcp`].
        backend_kind: Option<BackendKind>,
        /// Only tools of this server.
        backend_name: Option<String>,
        /// The page of the list.
        page: PageArguments,
    },
    /// The arguments of `describe_tool`.
    DescribeTool {
        /// The tool.
        tool: RequestedTool,
        /// The level of detail.
        detail: DetailLevel,
        /// The maximum number of examples.
        examples_max: usize,
    },
    /// The arguments of `list_tool_examples`.
    ListToolExamples {
        /// The tool.
        tool: RequestedTool,
        /// The maximum number of examples.
        max: usize,
    },
    /// The arguments of `run_tool`.
    RunTool(RunArguments),
    /// The arguments of `run_chain`.
    RunChain {
        /// The steps, in the order to run them; never empty.
        steps: Vec<StepArguments>,
        /// The additions to the results.
        includes: ChainIncludes,
    },
    /// The arguments of `execute_code`.
    ExecuteCode {
        /// The language of the program.
        language: String,
        /// The program.
        code: String,
        /// The maximum duration.
        timeout: Option<Duration>,
        /// The maximum number of tool calls.
        tool_calls_max: Option<usize>,
    },
}

/// The arguments of `mcp_discover`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoverArguments {
    /// The text to search for; `None` for all.
    pub query: Option<String>,
    /// Only this server.
    pub server: Option<String>,
    /// Only this tool.
    pub tool: Option<RequestedTool>,
    /// The level of detail for each tool.
    pub detail: DetailLevel,
    /// The page of the list.
    pub page: PageArguments,
}

/// The arguments of `mcp_provision`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvisionArguments {
    /// The need that a server should meet.
    pub intent: String,
    /// More context.
    pub context: Option<String>,
    /// `true` to start the best match, if that is allowed.
    pub auto_provision: bool,
}

/// The arguments of `mcp_call`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallArguments {
    /// The tool.
    pub tool: RequestedTool,
    /// Its arguments, as the JSON text of an object.
    pub args: String,
    /// The wanted parts of the result; empty for all.
    pub fields: FieldSelection,
    /// The maximum duration.
    pub timeout: Option<Duration>,
    /// The position from which to read on in a kept result.
    pub cursor: Option<String>,
}

/// The arguments of `run_tool`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunArguments {
    /// The tool.
    pub tool: RequestedTool,
    /// Its arguments, as the JSON text of an object.
    pub args: String,
    /// `true` if a stream is requested, which is not supported.
    pub is_stream: bool,
    /// `true` if another backend than the tool's server is requested, which is not supported.
    pub is_overridden: bool,
    /// `true` to add the tool's definition.
    pub include_tool: bool,
    /// `true` to add the server that ran it.
    pub include_backend: bool,
    /// `true` to add the original result.
    pub include_mcp_result: bool,
    /// The position from which to read on in a kept result.
    pub cursor: Option<String>,
}

/// A step of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepArguments {
    /// The tool.
    pub tool: RequestedTool,
    /// Its arguments, as the JSON text of an object.
    pub args: String,
    /// `true` to add the result of the previous step as the argument `previous`.
    pub use_previous: bool,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageArguments {
    /// The maximum number of entries: 1 to [`defaults::DISCOVER_LIMIT_MAX`].
    pub limit: usize,
    /// The position at which it begins.
    pub cursor: Option<String>,
}

impl MetaArguments {
    /// Reads the arguments of `tool` from `text`, the JSON text of `params.arguments`.
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
                includes: ChainIncludes {
                    backends: fields.flag("include_backends", true)?,
                    tools: fields.flag("include_tools", false)?,
                },
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
        // The name of the tool may begin with the server.
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

/// Reads a maximum number of entries, and clamps it to `min` and `max`.
fn count(
    fields: &FieldReader<'_>,
    name: &'static str,
    min: usize,
    max: usize,
) -> Result<Option<usize>, ArgumentError> {
    let found = fields.integer(name)?.map(|found| usize::try_from(found.max(0)).unwrap_or(max));
    Ok(found.map(|found| found.clamp(min, max)))
}

/// Reads a duration in milliseconds, from 1 to `max`.
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
