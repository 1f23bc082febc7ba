//! Servers that are added while the service runs, when a client asks for what they do.
//!
//! ```text
//!  intent ──▶ matching ──┬── known tools
//!                        ├── declared servers ──▶ trust ──▶ added ──▶ pool
//!                        └── a registry, which only suggests
//! ```
//!
//! Only servers that the operator declares under `[provision.servers]` can be added, as they are
//! declared. A client can only choose among these names: its intent is compared with texts, and
//! never becomes a command, an argument, a name or an address.

mod added_servers;
mod candidates;
mod matching;
mod provisioner;
mod registry;
mod reply;
mod trust;

pub use matching::{MatchScore, RequestedTask};
pub use provisioner::{ProvisionRequest, Provisioner};
#[doc(hidden)]
pub use registry::read_page;
pub use reply::{
    CallableTool, ExistingServer, ListedServer, MatchSource, ProvisionReply, ServerMatch,
};
pub use trust::{TrustVerdict, UntrustedNamespace};
