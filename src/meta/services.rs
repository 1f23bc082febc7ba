//! The services that the meta-tools use.

use std::sync::Arc;

use super::kept_results::KeptResults;
use crate::{
    forward::Forwarder,
    provision::Provisioner,
    tool::{ArgumentChecker, ToolDirectory},
};

/// The services that the meta-tools use.
#[derive(Debug)]
pub(super) struct MetaServices {
    pub(super) forwarder: Arc<Forwarder>,
    pub(super) directory: Arc<ToolDirectory>,
    pub(super) checker: Arc<ArgumentChecker>,
    pub(super) provisioner: Arc<Provisioner>,
    /// The large results from which clients read on.
    pub(super) results: Arc<KeptResults>,
}
