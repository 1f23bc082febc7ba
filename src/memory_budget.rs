//! The memory budget for messages, shared by all clients and servers.
//!
//! The budget counts bytes whose number another party chooses: lines and bodies while they are
//! read, messages until the last hop has written them, stored results, and documents being
//! processed. A message of [`defaults::MEMORY_COUNTED_MIN`] bytes or more carries its
//! [`MemoryReservation`]: its bytes are given back when the last slice of them is dropped. Smaller
//! messages are not counted.
//!
//! If the budget is used up, reclaimable memory is dropped first. Then the answer of an HTTP
//! upstream waits, its body unread. All other requests are refused: the newest asker gets
//! [`MemoryExhausted`]. A party that holds bytes gets more at once or not at all, unless the
//! `ledger` proves that it does not wait for itself.
//!
//! Bytes belong to the account of a client as soon as it is known. No account can take all of them:
//! the last part of the budget is for accounts that have less than such a part.
//!
//! The budget is global to the process: [`global`].

use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use serde::Serialize;
use tokio::{sync::oneshot, time};

use crate::{
    capacity_holder::Account,
    config::defaults,
    protocol::{
        RpcError,
        rpc_error::{INTERNAL_ERROR, NO_ROOM},
    },
};

mod cgroup_limit;
mod ledger;
mod metered_lines;

pub use cgroup_limit::default_max;
use ledger::{AccountLedger, LedgerDecision, LedgerTicket};
pub use metered_lines::{MeteredLine, MeteredLines};

/// The stable name of the error.
pub const MEMORY_EXHAUSTED: &str = "MEMORY_EXHAUSTED";

/// A limit on the memory for messages.
#[derive(Debug)]
pub struct MemoryBudget {
    ledger: Mutex<AccountLedger<Waiter>>,
    comforts: Mutex<Vec<Weak<dyn ReclaimableMemory>>>,
}

type Waiter = oneshot::Sender<Result<MemoryReservation, MemoryExhausted>>;

/// A cache that can be dropped without loss: clients only have to repeat work.
pub trait ReclaimableMemory: Send + Sync + std::fmt::Debug {
    /// Drops the cached bytes.
    fn reclaim(&self);
}

/// Bytes of a budget, given back on drop.
#[derive(Debug)]
pub struct MemoryReservation {
    budget: &'static MemoryBudget,
    account: Option<Account>,
    n_bytes: usize,
}

/// The refusal of bytes that the budget does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the memory for messages is used up: {used} of {max} bytes are in use{}, and {wanted} more are needed",
    own.map(|own| format!(" ({own} of them by this account)")).unwrap_or_default()
)]
pub struct MemoryExhausted {
    /// The bytes that were requested.
    pub wanted: usize,
    /// The bytes in use.
    pub used: usize,
    /// The size of the budget.
    pub max: usize,
    /// The bytes of the asking account, if known.
    pub own: Option<usize>,
}

/// The figures of a budget, for status output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryUsage {
    /// The bytes in use.
    pub used_bytes: usize,
    /// The most bytes ever in use.
    pub peak_bytes: usize,
    /// The size of the budget.
    pub max_bytes: usize,
    /// The number of refusals.
    pub refused: u64,
}

/// Returns the budget of this process.
pub fn global() -> &'static MemoryBudget {
    static GLOBAL: MemoryBudget = MemoryBudget::new(defaults::MEMORY_MAX);
    &GLOBAL
}

/// Counts `bytes` against the budget of this process while they live, unless they are few.
///
/// # Errors
///
/// [`MemoryExhausted`] if there is no room for them.
pub fn counted(account: Option<Account>, bytes: Bytes) -> Result<Bytes, MemoryExhausted> {
    let reservation = reserve(account, bytes.len())?;
    Ok(if reservation.n_bytes == 0 { bytes } else { reservation.attach(bytes) })
}

/// Reserves `n_bytes` of the budget of this process for a copy, or none if they are few.
///
/// # Errors
///
/// [`MemoryExhausted`] if there is no room for it.
pub fn reserve(
    account: Option<Account>,
    n_bytes: usize,
) -> Result<MemoryReservation, MemoryExhausted> {
    let mut reservation = MemoryReservation::of(account);
    if n_bytes >= defaults::MEMORY_COUNTED_MIN {
        reservation.grow_to(n_bytes)?;
    }
    Ok(reservation)
}

/// Counts `bytes`, which the budget contains already, for an account while they live, unless they
/// are few.
///
/// # Errors
///
/// [`MemoryExhausted`] if the account has so many that the rest is for others.
pub fn attributed(account: Account, bytes: Bytes) -> Result<Bytes, MemoryExhausted> {
    global().attributed(account, bytes)
}

impl MemoryExhausted {
    /// The remedy for the caller.
    pub const HINT: &'static str =
        "Try again later, or ask for less at a time. The operator can raise `service.memory_max`.";

    /// Returns the error as a client sees it.
    pub fn to_rpc(&self) -> RpcError {
        RpcError::new(INTERNAL_ERROR, MEMORY_EXHAUSTED, self.to_string())
            .suggest(Self::HINT)
            .context(self.context())
    }

    /// Returns the error as an operator sees it.
    pub fn to_operator(&self) -> RpcError {
        RpcError { code: NO_ROOM, ..self.to_rpc() }
    }

    /// Returns the figures for the context of an error.
    pub fn context(&self) -> serde_json::Value {
        let Self { wanted, used, max, own } = self;
        match own {
            Some(own) => {
                serde_json::json!({ "used": used, "max": max, "wanted": wanted, "own": own })
            }
            None => serde_json::json!({ "used": used, "max": max, "wanted": wanted }),
        }
    }
}

impl MemoryBudget {
    /// Returns a budget of `max` bytes.
    pub const fn new(max: usize) -> Self {
        Self { ledger: Mutex::new(AccountLedger::new(max)), comforts: Mutex::new(Vec::new()) }
    }

    /// Reserves bytes without an account, at once. Do not call it under a lock that a
    /// [`ReclaimableMemory`] takes.
    ///
    /// # Errors
    ///
    /// [`MemoryExhausted`] if there is no room for them.
    pub fn try_reserve(&'static self, wanted: usize) -> Result<MemoryReservation, MemoryExhausted> {
        let mut reservation = MemoryReservation { budget: self, account: None, n_bytes: 0 };
        reservation.grow_to(wanted)?;
        Ok(reservation)
    }

    /// Reserves bytes of `account` for a party that holds `holds` bytes already. Waits up to
    /// [`defaults::MEMORY_WAIT`] for them, in the order of the askers. Cancel safe: nothing stays
    /// reserved.
    ///
    /// # Errors
    ///
    /// [`MemoryExhausted`] if the bytes are not free in time, or never can be.
    pub async fn reserve(
        &'static self,
        account: Option<Account>,
        wanted: usize,
        holds: usize,
    ) -> Result<MemoryReservation, MemoryExhausted> {
        // New askers do not overtake waiting ones.
        let is_awaited = self.ledger().has_waiters();
        if !is_awaited && self.take(account, wanted) {
            return Ok(MemoryReservation { budget: self, account, n_bytes: wanted });
        }
        let (asker, granted) = oneshot::channel();
        let (ticket, decisions) = self.ledger().wait(asker, account, wanted, holds);
        // On drop, bytes granted meanwhile are given back: the receiver is gone by then.
        let _end = EndOfWait { budget: self, ticket };
        self.announce(decisions);
        let outcome = time::timeout(defaults::MEMORY_WAIT, granted).await;
        match outcome {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(self.refuse(account, wanted)),
        }
    }

    /// Does the work of [`attributed`].
    fn attributed(&'static self, account: Account, bytes: Bytes) -> Result<Bytes, MemoryExhausted> {
        let n_bytes = bytes.len();
        if n_bytes < defaults::MEMORY_COUNTED_MIN {
            return Ok(bytes);
        }
        // metamcp's own bytes count for no account.
        if account == Account::Service {
            return Ok(bytes);
        }
        // A separate statement, because the following code takes the lock again.
        let fits = self.ledger().attribute(account, n_bytes);
        if !fits {
            self.reclaim();
            let fits = self.ledger().attribute(account, n_bytes);
            if !fits {
                return Err(self.refuse(Some(account), n_bytes));
            }
        }
        let share = Share { budget: self, account, n_bytes };
        Ok(Bytes::from_owner(Counted { bytes, _count: share }))
    }

    /// Changes the size of the budget.
    pub fn resize(&'static self, max: usize) {
        let decisions = self.ledger().resize(max);
        self.announce(decisions);
    }

    /// Registers `comfort`, whose bytes are dropped when room is needed.
    pub fn register_reclaimable(&self, comfort: Weak<dyn ReclaimableMemory>) {
        let mut comforts = self.comforts.lock().unwrap_or_else(PoisonError::into_inner);
        comforts.retain(|known| known.strong_count() > 0);
        comforts.push(comfort);
    }

    /// Returns the total of bytes ever given back.
    pub fn freed(&self) -> u64 {
        self.ledger().freed()
    }

    /// Returns the figures for status output.
    pub fn usage(&self) -> MemoryUsage {
        let (used_bytes, peak_bytes, max_bytes, refused) = self.ledger().figures();
        MemoryUsage { used_bytes, peak_bytes, max_bytes, refused }
    }

    /// Takes bytes. If they are not free, reclaimable memory is dropped first.
    fn take(&self, account: Option<Account>, wanted: usize) -> bool {
        if self.ledger().take(account, wanted) {
            return true;
        }
        // A request that can never fit must not drop anything.
        if wanted > self.ledger().figures().2 {
            return false;
        }
        self.reclaim();
        self.ledger().take(account, wanted)
    }

    fn reclaim(&self) {
        let comforts = self.comforts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        comforts.iter().filter_map(Weak::upgrade).for_each(|comfort| comfort.reclaim());
    }

    fn refuse(&self, account: Option<Account>, wanted: usize) -> MemoryExhausted {
        let mut ledger = self.ledger();
        ledger.refused();
        let (used, _, max, n_refused) = ledger.figures();
        let own = account.map(|account| ledger.share(account));
        drop(ledger);
        if n_refused.is_power_of_two() {
            tracing::warn!(
                wanted,
                used,
                max,
                own,
                n_refused,
                "memory for messages is used up ({used} of {max} bytes): a request is refused; `service.memory_max` is the bound"
            );
        }
        MemoryExhausted { wanted, used, max, own }
    }

    /// Sends decisions to the askers. Bytes for an asker that is gone are given back.
    fn announce(&'static self, decisions: Vec<LedgerDecision<Waiter>>) {
        for decision in decisions {
            let (asker, outcome) = match decision {
                LedgerDecision::Granted(asker, account, n_bytes) => {
                    (asker, Ok(MemoryReservation { budget: self, account, n_bytes }))
                }
                LedgerDecision::Refused(asker, account, wanted) => {
                    (asker, Err(self.refuse(account, wanted)))
                }
            };
            let _gone = asker.send(outcome);
        }
    }

    fn ledger(&self) -> MutexGuard<'_, AccountLedger<Waiter>> {
        // Held for operations on plain data only: no reservation is dropped meanwhile.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        Bytes::from_owner(Counted { bytes, _count: self })
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

/// A guard that ends a wait for bytes: if the wait was abandoned, the next asker is served.
struct EndOfWait {
    budget: &'static MemoryBudget,
    ticket: LedgerTicket,
}

impl Drop for EndOfWait {
    fn drop(&mut self) {
        let decisions = self.budget.ledger().withdraw(self.ticket);
        self.budget.announce(decisions);
    }
}

/// Bytes that were reserved without an account and count for one.
struct Share {
    budget: &'static MemoryBudget,
    account: Account,
    n_bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        let decisions = self.budget.ledger().release(self.account, self.n_bytes);
        self.budget.announce(decisions);
    }
}

/// Bytes with the reservation or share that counts them.
struct Counted<C> {
    bytes: Bytes,
    _count: C,
}

impl<C> AsRef<[u8]> for Counted<C> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests;
