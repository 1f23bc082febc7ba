//! Bytes of the memory budget that a party has reserved.

use bytes::Bytes;

use super::{MemoryBudget, MemoryExhausted, counted, global};
use crate::{capacity_holder::Account, config::defaults};

/// Bytes of a budget, given back on drop.
#[derive(Debug)]
pub struct MemoryReservation {
    pub(super) budget: &'static MemoryBudget,
    pub(super) account: Option<Account>,
    pub(super) n_bytes: usize,
}

impl MemoryReservation {
    /// Returns an empty reservation in the budget of this process, for bytes of `account`.
    pub fn of(account: Option<Account>) -> Self {
        // metamcp's own bytes count for no account.
        let account = account.filter(|account| *account != Account::Service);
        Self { budget: global(), account, n_bytes: 0 }
    }

    /// Returns the number of bytes.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Grows to `n_bytes`, at once or not at all.
    ///
    /// # Errors
    ///
    /// [`MemoryExhausted`] if there is no room: the reservation is unchanged.
    pub fn grow_to(&mut self, n_bytes: usize) -> Result<(), MemoryExhausted> {
        let more = n_bytes.saturating_sub(self.n_bytes);
        if more > 0 && !self.budget.take(self.account, more) {
            return Err(self.budget.refuse(self.account, more));
        }
        self.n_bytes += more;
        Ok(())
    }

    /// Gives back all but `n_bytes`.
    pub fn shrink_to(&mut self, n_bytes: usize) {
        drop(self.split(self.n_bytes.saturating_sub(n_bytes)));
    }

    /// Shrinks or grows to `n_bytes`.
    ///
    /// # Errors
    ///
    /// See [`MemoryReservation::grow_to`].
    pub fn resize(&mut self, n_bytes: usize) -> Result<(), MemoryExhausted> {
        self.shrink_to(n_bytes);
        self.grow_to(n_bytes)
    }

    /// Splits off up to `n_bytes` as a separate reservation.
    #[must_use]
    pub fn split(&mut self, n_bytes: usize) -> Self {
        let n_bytes = n_bytes.min(self.n_bytes);
        self.n_bytes -= n_bytes;
        Self { n_bytes, ..*self }
    }

    /// Adds another reservation of the same budget and account.
    fn merge(&mut self, mut other: Self) {
        debug_assert_eq!(self.account, other.account, "the bytes of one account");
        self.n_bytes += std::mem::take(&mut other.n_bytes);
    }

    /// Counts `bytes`. An existing reservation that is large enough is used, and the rest of it
    /// given back.
    ///
    /// # Errors
    ///
    /// [`MemoryExhausted`] if there is no room for them.
    pub fn count(&mut self, bytes: Bytes) -> Result<Bytes, MemoryExhausted> {
        if bytes.len() < defaults::MEMORY_COUNTED_MIN || self.n_bytes < bytes.len() {
            return counted(self.account, bytes);
        }
        let all = self.split(self.n_bytes);
        Ok(all.attach(bytes))
    }

    /// Grows to `n_bytes` for a party that holds `holds` other bytes, as [`MemoryBudget::reserve`]
    /// does. Cancel safe: the reservation is unchanged.
    ///
    /// # Errors
    ///
    /// See [`MemoryBudget::reserve`]; the reservation is unchanged.
    pub async fn wait_for(&mut self, n_bytes: usize, holds: usize) -> Result<(), MemoryExhausted> {
        let more = n_bytes.saturating_sub(self.n_bytes);
        if more > 0 {
            let more = self.budget.reserve(self.account, more, holds + self.n_bytes).await?;
            self.merge(more);
        }
        Ok(())
    }

    /// Ties the reservation to `bytes`: it ends with the last slice of them.
    #[must_use]
    pub fn attach(mut self, bytes: Bytes) -> Bytes {
        if bytes.is_empty() {
            return bytes;
        }
        self.shrink_to(bytes.len());
        Bytes::from_owner(CountedBytes { bytes, _count: self })
    }
}

impl Default for MemoryReservation {
    /// Returns an empty reservation in the budget of this process, for bytes without an account.
    fn default() -> Self {
        Self::of(None)
    }
}

impl Drop for MemoryReservation {
    #[inline]
    fn drop(&mut self) {
        if self.n_bytes > 0 {
            let decisions = self.budget.ledger().free(self.account, self.n_bytes);
            self.budget.announce(decisions);
        }
    }
}

/// Bytes that were reserved without an account and count for one.
pub(super) struct AccountShare {
    pub(super) budget: &'static MemoryBudget,
    pub(super) account: Account,
    pub(super) n_bytes: usize,
}

impl Drop for AccountShare {
    fn drop(&mut self) {
        let decisions = self.budget.ledger().release(self.account, self.n_bytes);
        self.budget.announce(decisions);
    }
}

/// Bytes with the reservation or share that counts them.
pub(super) struct CountedBytes<C> {
    pub(super) bytes: Bytes,
    pub(super) _count: C,
}

impl<C> AsRef<[u8]> for CountedBytes<C> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
