//! The ways to metamcp itself, which clients declare as a server.

use std::net::SocketAddr;

use super::{foreign_server::ForeignTransport, variable_syntax::ForeignText};
use crate::config::{defaults, load};

/// The ways in which a client reaches metamcp on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnEndpoints {
    /// The addresses of the service.
    pub addresses: Vec<SocketAddr>,
    /// The program file of metamcp, which may have another name.
    pub program: Option<String>,
}

impl Default for OwnEndpoints {
    fn default() -> Self {
        Self { addresses: vec![defaults::HTTP_ADDRESS], program: None }
    }
}

impl OwnEndpoints {
    /// Returns whether a transport leads to metamcp.
    pub(super) fn leads(&self, transport: &ForeignTransport) -> bool {
        match transport {
            ForeignTransport::Endpoint(endpoint) => {
                let url = endpoint.url.as_plain().and_then(|url| url.parse().ok());
                let leads_to = |url: &hyper::Uri| {
                    self.addresses.iter().any(|own| load::is_own_port(url, *own))
                };
                url.is_some_and(|url| leads_to(&url))
            }
            ForeignTransport::Program { command, args, .. } => {
                let program = command.as_plain();
                let first = args.first().and_then(ForeignText::as_plain);
                let is_own = program.is_some() && program == self.program.as_deref();
                let has_name =
                    program.and_then(|program| program.rsplit('/').next()) == Some("metamcp");
                (is_own || has_name) && first == Some("stdio")
            }
        }
    }
}
