//! Fair shares: the parties that hold a bounded resource, and the choice of the next one.
//!
//! A share belongs to an [`Account`](crate::capacity_holder::Account), and inside it to a
//! [`Member`](crate::capacity_holder::AccountMember). All bounded resources follow one rule:
//!
//! - Free capacity is never refused.
//! - At the bound, the largest holder loses its longest idle unit ([`Evictables`]).
//! - Capacity that cannot be taken away is waited for. The next unit goes to the holder with the
//!   fewest; among equals, to the one that was served the longest ago ([`FairQueue`]).
//!
//! ```text
//!                      ┌─ something idle ──▶ Evictables: the largest holder loses it
//!   ask ── at bound ──▶│
//!                      └─ all in use ──────▶ FairQueue: the holder with the fewest is next
//! ```

mod admission;
mod eviction;
mod queue;

pub use admission::{Admission, AdmissionPermit};
pub use eviction::{EvictablePermit, EvictableUse, Evictables, EvictionBounds};
pub use queue::{FairQueue, QueueTicket};
