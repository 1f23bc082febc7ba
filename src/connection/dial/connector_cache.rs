//! The connectors of servers over HTTP, one for each declaration.
//!
//! All connections of a server share its connector, with the certificates and the TLS sessions in
//! it. A reload applies renewed certificates to new connections.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::ConnectError;
use crate::{
    config::{HttpServerConfig, ServerConfigs, TransportConfig},
    error_report::chain,
    http_client::{AddressPolicy, Connector, ConnectorSettings},
    server_name::ServerName,
};

/// The connectors of servers over HTTP.
#[derive(Debug, Default)]
pub(super) struct ConnectorCache(Mutex<CachedConnectors>);

#[derive(Debug, Default)]
struct CachedConnectors {
    /// The connectors, with the declarations that they are for.
    known: BTreeMap<ServerName, (HttpServerConfig, Arc<Connector>)>,
}

impl ConnectorCache {
    /// Returns the connector of a server. The first call reads its certificates.
    pub(super) fn connector(
        &self,
        server: &ServerName,
        declared: &HttpServerConfig,
        credentials: Option<&Path>,
    ) -> Result<Arc<Connector>, ConnectError> {
        let mut cached = self.cached();
        if let Some((known, connector)) = cached.known.get(server)
            && known == declared
        {
            return Ok(Arc::clone(connector));
        }
        let settings = ConnectorSettings::of(declared, AddressPolicy::declared(), credentials);
        let connector = Connector::new(settings)
            .map_err(|source| ConnectError::Connector { server: server.clone(), source })?;
        cached.known.insert(server.clone(), (declared.clone(), Arc::clone(&connector)));
        Ok(connector)
    }

    /// Forgets the connectors of other declarations, and reads certificates again for new
    /// connections. A certificate that cannot be read is not replaced.
    pub(super) fn reload(&self, servers: &ServerConfigs) {
        let mut cached = self.cached();
        cached.known.retain(|server, (known, _)| {
            let declared = servers.get(server).map(|declared| &declared.transport);
            matches!(declared, Some(TransportConfig::Http(declared)) if declared == known)
        });
        for (server, (_, connector)) in &cached.known {
            if let Err(error) = connector.reload() {
                let (code, hint, error) = (error.code(), error.hint(), chain(&error));
                tracing::warn!(
                    mcp_server = %server, code, hint, error,
                    "server `{server}` keeps its previous certificates: {error}"
                );
            }
        }
    }

    fn cached(&self) -> MutexGuard<'_, CachedConnectors> {
        // Held while a few small files are read, never across an await.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
