//! The session that the tests of this module use.

use std::sync::Arc;

use super::{ServerScope, Session, SessionKind};
use crate::{capacity_holder::Holder, connection::SessionOwner};

impl Session {
    /// Returns the session of a client that sends the id `a`.
    pub(super) fn of_test() -> Arc<Self> {
        let owner = SessionOwner::new(1, "{}");
        let kind = SessionKind::Known { id: "a".into(), version: None, owner };
        Arc::new(Self::new(kind, ServerScope::Every, Holder::unknown()))
    }
}
