//! The comparison of a client's server with metamcp, and with the servers that metamcp serves.

use super::{
    credentials::CredentialNames,
    foreign_server::ForeignServer,
    own_endpoints::OwnEndpoints,
    plan,
    server_conversion::{self, ConvertedServer, ServerSetting},
};
use crate::{config::TransportConfig, server_name::ServerName};

impl ForeignServer {
    /// Returns the client's name for it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether its client has disabled it.
    pub fn is_disabled(&self) -> bool {
        self.is_disabled
    }

    /// Returns whether the file of the user declares it for one project.
    pub fn is_of_project(&self) -> bool {
        self.origin.project.is_some()
    }

    /// Returns whether it is metamcp itself: at one of its addresses, or through its bridge.
    pub fn is_metamcp(&self, own: &OwnEndpoints) -> bool {
        self.transport.as_ref().is_ok_and(|transport| own.leads(transport))
    }

    /// Returns whether both start the same program in the same way, or lead to the same endpoint.
    pub fn has_transport_of(&self, other: &Self) -> bool {
        self.transport.is_ok() && self.transport == other.transport
    }

    /// Returns whether both are the same in all that is imported.
    pub fn is_same_declaration(&self, other: &Self) -> bool {
        self.name == other.name
            && self.transport == other.transport
            && self.is_disabled == other.is_disabled
    }

    /// Returns whether it gets this name when it is imported, unless another server has it.
    pub fn has_name(&self, name: &ServerName) -> bool {
        plan::valid(&self.name) == name.as_str()
    }

    /// Returns whether it is imported with the program and arguments, or the URL, of `transport`.
    pub fn is_declared_as(&self, transport: &TransportConfig) -> bool {
        let Ok(name) = ServerName::new(&plan::valid(&self.name)) else { return false };
        let converted = server_conversion::convert(self, &name, &mut CredentialNames::default());
        match transport {
            TransportConfig::Stdio { command, args, .. } => {
                text(&converted, "command") == Some(command) && list(&converted, "args") == args
            }
            TransportConfig::Http(http) => {
                let url = text(&converted, "url").and_then(|url| url.parse::<hyper::Uri>().ok());
                url.is_some_and(|url| url == http.url)
            }
            TransportConfig::Unit { .. } => false,
        }
    }
}

fn setting<'a>(converted: &'a ConvertedServer, key: &str) -> Option<&'a ServerSetting> {
    converted.settings.iter().find(|(known, _)| *known == key).map(|(_, setting)| setting)
}

fn text<'a>(converted: &'a ConvertedServer, key: &str) -> Option<&'a String> {
    match setting(converted, key) {
        Some(ServerSetting::Text(text)) => Some(text),
        _ => None,
    }
}

fn list<'a>(converted: &'a ConvertedServer, key: &str) -> &'a [String] {
    match setting(converted, key) {
        Some(ServerSetting::List(items)) => items,
        _ => &[],
    }
}
