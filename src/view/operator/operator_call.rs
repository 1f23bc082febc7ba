//! The calls of operators at their stages, and the lists that operators get.

use std::time::Duration;

use crate::{
    call::Exchange,
    capacity_holder::Holder,
    catalog::Listing,
    pool::ConnectionLease,
    protocol::Message,
    server_name::ServerName,
    tool::{RequestedTool, ResolvedTool, ToolId},
};

/// An operator's tool call.
#[derive(Clone, Debug)]
pub struct OperatorCall<'a> {
    /// The tool.
    pub tool: &'a RequestedTool,
    /// The arguments, as the JSON text of an object.
    pub args: &'a str,
    /// The time limit, including the time to connect; at most that of any request.
    pub timeout: Option<Duration>,
    /// The `_meta` parameter, as the JSON text of an object: the progress token, if there is one.
    pub meta: Option<&'a str>,
    /// The party that the call counts for.
    pub holder: Holder,
}

/// A tool call that is ready to be sent.
pub struct PreparedCall {
    /// The id of the tool.
    pub id: ToolId,
    /// The exchange; the first [`Exchange::next`] sends the call.
    pub exchange: Exchange,
    /// The reason why the arguments were not checked, if so.
    pub warning: Option<String>,
}

/// A tool call with checked arguments.
#[derive(Debug)]
pub struct CheckedCall {
    /// The tool.
    pub tool: ResolvedTool,
    /// The request for the tool.
    pub request: Message,
    /// The reason why the arguments were not checked, if so.
    pub warning: Option<String>,
}

/// A list of several servers, or of one.
#[derive(Debug)]
pub struct OperatorList {
    /// The lists, in the order of the servers' names.
    pub listings: Vec<(ServerName, Listing)>,
    /// The servers whose list is unknown, with the reasons.
    pub unavailable: Vec<(ServerName, String)>,
}

/// A call that runs without its caller.
pub struct BackgroundCall {
    /// The exchange with the server.
    pub exchange: Box<Exchange>,
    /// The lease of the connection that the server's task belongs to.
    pub lease: Option<ConnectionLease>,
}
