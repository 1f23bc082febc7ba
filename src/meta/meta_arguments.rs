//! The arguments of each meta-tool, read from the arguments of a call.
//!
//! Pure.

use super::{
    arguments::{ArgumentError, DetailLevel, FieldReader, PageArguments, unwrapped},
    call::{CallArguments, RunArguments},
    chain::{ChainIncludes, StepArguments},
    definitions::MetaTool,
    discover::DiscoverArguments,
    execute::ExecuteArguments,
    provision::ProvisionArguments,
};
use crate::{
    config::defaults,
    protocol::ObjectMembers,
    tool::{RequestedTool, error::BACKEND_KIND},
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
    /// The arguments of `mcp_execute` and `execute_code`.
    Execute(ExecuteArguments),
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
}

impl MetaArguments {
    /// Reads the arguments of `tool` from `text`, the JSON text of `params.arguments`.
    ///
    /// # Errors
    ///
    /// [`ArgumentError`] names the first field that is missing, unknown or wrong.
    pub fn read(tool: MetaTool, text: Option<&str>) -> Result<Self, ArgumentError> {
        let text = unwrapped(text.unwrap_or("{}"));
        let fields = FieldReader::of_tool(tool, &text)?;
        Ok(match tool {
            MetaTool::Discover => Self::Discover(DiscoverArguments::read(&fields)?),
            MetaTool::Provision => Self::Provision(ProvisionArguments::read(&fields)?),
            MetaTool::Call => Self::Call(CallArguments::read(&fields)?),
            MetaTool::Execute | MetaTool::ExecuteCode => {
                Self::Execute(ExecuteArguments::read(tool, &fields)?)
            }
            MetaTool::SearchTools => Self::SearchTools {
                query: fields.required("query")?,
                page: PageArguments::read(&fields)?,
            },
            MetaTool::ListNamespaces => Self::ListNamespaces(PageArguments::read(&fields)?),
            MetaTool::ListTools => {
                // All tools are of this kind.
                fields.word("backend_kind", &[(BACKEND_KIND, ())])?;
                let backend_name = fields.text("backend_name")?;
                Self::ListTools { backend_name, page: PageArguments::read(&fields)? }
            }
            MetaTool::DescribeTool => Self::DescribeTool {
                tool: fields.tool_id()?,
                detail: match fields.word("detail_level", &DetailLevel::WORDS)? {
                    Some(detail) => detail,
                    None => return Err(fields.missing("detail_level")),
                },
                examples_max: fields
                    .count("examples_max", 0, defaults::EXAMPLES_MAX)?
                    .unwrap_or(defaults::EXAMPLES_MAX),
            },
            MetaTool::ListToolExamples => Self::ListToolExamples {
                tool: fields.tool_id()?,
                max: fields
                    .count("max", 1, defaults::EXAMPLES_MAX)?
                    .unwrap_or(defaults::EXAMPLES_MAX),
            },
            MetaTool::RunTool => Self::RunTool(RunArguments::read(&fields)?),
            MetaTool::RunChain => Self::RunChain {
                steps: StepArguments::read_all(&fields)?,
                includes: ChainIncludes::read(&fields)?,
            },
        })
    }

    /// Returns the tool that `tool` is to call by `text`, the JSON text of `params.arguments`, even if
    /// other arguments are invalid.
    pub fn named_tool(tool: MetaTool, text: Option<&str>) -> Option<RequestedTool> {
        let text = unwrapped(text?);
        let members = ObjectMembers::read(&text)?;
        match tool {
            MetaTool::Call => {
                let (server, tool) = (members.string("server"), members.string("tool")?);
                Some(RequestedTool { server, tool })
            }
            MetaTool::RunTool => {
                Some(RequestedTool { server: None, tool: members.string("tool_id")? })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
