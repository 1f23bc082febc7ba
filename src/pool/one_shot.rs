//! A client that owns connections for only one request.

use std::sync::Arc;

use super::Pool;
use crate::connection::SessionOwner;

/// A client that metamcp cannot distinguish from others. Where each client has its own connection,
/// this one keeps it for one request.
#[derive(Debug)]
pub struct OneShotClient {
    pool: Arc<Pool>,
    owner: SessionOwner,
}

impl OneShotClient {
    /// Returns the one-shot client for `owner`, which must be unique.
    pub fn new(pool: Arc<Pool>, owner: SessionOwner) -> Self {
        Self { pool, owner }
    }

    /// Returns the client as the owner of connections.
    pub fn owner(&self) -> &SessionOwner {
        &self.owner
    }
}

impl Drop for OneShotClient {
    fn drop(&mut self) {
        self.owner.close();
        self.pool.release(&self.owner);
    }
}
