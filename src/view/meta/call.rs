//! A call of one tool, through a tool of ours.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{Desk, Reply, Resolved};
use crate::{
    call::{CallError, Sequel, Then, Turn, Unanswered},
    config::defaults,
    connection::Limits,
    era::{self, Untranslatable},
    meta::{
        self, ErrorObject, Tool, ToolId,
        arguments::{Call, Run},
        fields::Fields,
    },
    protocol::{
        Members, Message, RpcError,
        error::{CAPABILITY_REQUIRED, URL_ELICITATION_REQUIRED},
        jsonrpc::Part,
    },
    session::Session,
    view::{Outcome, Views},
};

/// What becomes of the answer of the tool.
enum Form {
    /// The client gets it as it is, as far as it has asked for it.
    AsItIs(Fields),
    /// It is part of an object.
    Wrapped {
        /// What else is in it.
        run: Box<Run>,
        /// The tool's definition, JSON text.
        definition: String,
    },
}

/// Makes the answer to the client of the answer of the tool.
struct Finish {
    desk: Arc<Desk>,
    reply: Reply,
    id: ToolId,
    form: Form,
    bytes_max: usize,
    since: Instant,
}
