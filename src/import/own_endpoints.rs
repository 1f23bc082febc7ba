//! The ways to metamcp itself, which clients declare as a server.

use std::net::SocketAddr;

use super::{foreign_server::ForeignTransport, variable_syntax::ForeignText};
use crate::config::{defaults, load, own_command};

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
                let Some(command) = command.as_plain() else { return false };
                let args: Vec<&str> = args.iter().map_while(ForeignText::as_plain).collect();
                let words = own_command::unwrapped(command, &args);
                let (program, first) = (words.first(), words.get(1));
                let has_name = |it: &String| own_command::program_name(it) == "metamcp";
                let is_own = program.is_some_and(has_name)
                    || program.is_some() && program == self.program.as_ref();
                is_own && first.is_some_and(|first| first == "stdio")
            }
        }
    }
}
