//! Servers that are added while the service runs, when somebody asks for what they do.
//!
//! ```text
//!  intent ──▶ matching ──┬── tools that are there
//!                        ├── declared servers ──▶ trust ──▶ added ──▶ pool
//!                        └── a registry, which only suggests
//! ```
//!
//! Only what the operator has declared under `[provision.servers]` can be added, as it is declared:
//! of what a client says, nothing but a choice among these names gets through to the pool. The
//! intent is compared with texts, and never is a command, an argument, a name or an address.

mod added_servers;
mod candidates;
mod matching;
mod provisioner;
mod registry;
mod remembered_tools;
mod reply;
mod request;
mod trust;

pub use matching::{MatchScore, RequestedTask};
pub use provisioner::Provisioner;
#[doc(hidden)]
pub use registry::read_page;
pub use reply::{
    CallableTool, ExistingServer, ListedServer, MatchSource, ProvisionReply, ServerMatch,
};
pub use request::ProvisionRequest;
pub use trust::{LowConfidence, TrustVerdict, UntrustedNamespace};
