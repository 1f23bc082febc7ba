//! Fair shares: the parties that hold a bounded thing, and the next one to have it.
//!
//! A share belongs to an [`Account`](crate::holder::Account), and inside it to a
//! [`Member`](crate::holder::AccountMember). One rule holds for all that is bounded:
//!
//! - Free capacity is never refused.
//! - At the bound, the largest holder loses what it has left idle for the longest ([`Evictables`]).
//! - What cannot be taken away is waited for. The next one belongs to the holder that holds the
//!   fewest, and of equal ones to the holder that was served the longest ago ([`FairQueue`]).
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
