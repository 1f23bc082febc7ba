//! A client that has no connection of its own beyond one request.

use std::sync::Arc;

use super::Pool;
use crate::connection::SessionOwner;

/// A client that cannot be told from others, for as long as one request: where each client has a
/// connection of its own, this one has it until then.
#[derive(Debug)]
pub struct OneShotClient {
    pool: Arc<Pool>,
    owner: SessionOwner,
}

impl OneShotClient {
    /// Returns the guest `owner`, of whom there is no other.
    pub fn new(pool: Arc<Pool>, owner: SessionOwner) -> Self {
        Self { pool, owner }
    }

    /// Returns the guest as the owner of connections.
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
