//! The memory budget for messages, shared by all clients and servers.
//!
//! The budget counts bytes whose number another party chooses: lines and bodies while they are
//! read, messages until the last hop has written them, stored results, and documents being
//! processed. A message of [`defaults::MEMORY_COUNTED_MIN`] bytes or more carries its
//! [`MemoryReservation`]: its bytes are given back when the last slice of them is dropped. Smaller
//! messages are not counted.
//!
//! If the budget is used up, reclaimable memory is dropped first. Then the answer of an HTTP
//! upstream waits, its body unread. All other requests are refused: the newest request gets
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
    config::{ServiceConfig, defaults},
    protocol::{
        RpcError,
        rpc_error::{INTERNAL_ERROR, NO_ROOM},
    },
};

mod cgroup_limit;
mod ledger;
mod metered_lines;
mod reservation;

use cgroup_limit::default_max;
use ledger::{AccountLedger, LedgerDecision, LedgerTicket};
pub use metered_lines::{MeteredLine, MeteredLines};
pub use reservation::MemoryReservation;
use reservation::{AccountShare, CountedBytes};

/// The stable name of the error.
pub const MEMORY_EXHAUSTED: &str = "MEMORY_EXHAUSTED";

/// A limit on the memory for messages.
#[derive(Debug)]
pub struct MemoryBudget {
    ledger: Mutex<AccountLedger<Waiter>>,
    reclaimable: Mutex<Vec<Weak<dyn ReclaimableMemory>>>,
}

type Waiter = oneshot::Sender<Result<MemoryReservation, MemoryExhausted>>;

/// A cache that can be dropped without loss: clients only have to repeat work.
pub trait ReclaimableMemory: Send + Sync + std::fmt::Debug {
    /// Drops the cached bytes.
    fn reclaim(&self);
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
    /// The bytes of the requesting account, if known.
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

impl MemoryExhausted {
    /// The remedy for the caller.
    pub const HINT: &'static str =
        "Try again later, or request less at a time. The operator can raise `service.memory_max`.";

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
        let mut context = serde_json::json!({ "used": used, "max": max, "wanted": wanted });
        if let Some(own) = own {
            context["own"] = serde_json::json!(own);
        }
        context
    }
}

impl MemoryBudget {
    /// Returns a budget of `max` bytes.
    pub const fn new(max: usize) -> Self {
        Self { ledger: Mutex::new(AccountLedger::new(max)), reclaimable: Mutex::new(Vec::new()) }
    }

    /// Reserves bytes of `account` for a party that holds `holds` bytes already. Waits up to
    /// [`defaults::MEMORY_WAIT`] for them, in the order of requests. Cancel safe: nothing stays
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
        // New requests do not overtake waiting ones.
        let is_awaited = self.ledger().has_waiters();
        if !is_awaited && self.take(account, wanted) {
            return Ok(MemoryReservation { budget: self, account, n_bytes: wanted });
        }
        let (waiter, granted) = oneshot::channel();
        let (ticket, decisions) = self.ledger().wait(waiter, account, wanted, holds);
        // On drop, bytes granted meanwhile are given back: the receiver is gone by then.
        let _end = EndOfWait { budget: self, ticket };
        self.announce(decisions);
        match time::timeout(defaults::MEMORY_WAIT, granted).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(self.refuse(account, wanted)),
        }
    }

    /// Counts `bytes`, which the budget contains already, for an account while they live, unless
    /// they are few.
    ///
    /// # Errors
    ///
    /// [`MemoryExhausted`] if the account has so many that the rest is for others.
    pub fn attributed(
        &'static self,
        account: Account,
        bytes: Bytes,
    ) -> Result<Bytes, MemoryExhausted> {
        let n_bytes = bytes.len();
        // metamcp's own bytes count for no account.
        if n_bytes < defaults::MEMORY_COUNTED_MIN || account == Account::Service {
            return Ok(bytes);
        }
        let fits = || self.ledger().attribute(account, n_bytes);
        if !fits() {
            self.reclaim();
            if !fits() {
                return Err(self.refuse(Some(account), n_bytes));
            }
        }
        let share = AccountShare { budget: self, account, n_bytes };
        Ok(Bytes::from_owner(CountedBytes { bytes, _count: share }))
    }

    /// Sizes the budget as declared.
    pub fn configure(&'static self, declared: &ServiceConfig) {
        self.resize(declared.memory_max.unwrap_or_else(default_max));
    }

    /// Changes the size of the budget.
    fn resize(&'static self, max: usize) {
        let decisions = self.ledger().resize(max);
        self.announce(decisions);
    }

    /// Registers `cache`, whose bytes are dropped when room is needed.
    pub fn register_reclaimable(&self, cache: Weak<dyn ReclaimableMemory>) {
        let mut reclaimable = self.reclaimable.lock().unwrap_or_else(PoisonError::into_inner);
        reclaimable.retain(|known| known.strong_count() > 0);
        reclaimable.push(cache);
    }

    /// Returns the total of bytes ever given back.
    pub fn freed(&self) -> u64 {
        self.ledger().freed()
    }

    /// Returns the figures for status output.
    pub fn usage(&self) -> MemoryUsage {
        self.ledger().usage()
    }

    /// Takes bytes. If they are not free, reclaimable memory is dropped first.
    fn take(&self, account: Option<Account>, wanted: usize) -> bool {
        if self.ledger().take(account, wanted) {
            return true;
        }
        // A request that can never fit must not drop anything.
        if wanted > self.ledger().usage().max_bytes {
            return false;
        }
        self.reclaim();
        self.ledger().take(account, wanted)
    }

    fn reclaim(&self) {
        let reclaimable = self.reclaimable.lock().unwrap_or_else(PoisonError::into_inner).clone();
        reclaimable.iter().filter_map(Weak::upgrade).for_each(|cache| cache.reclaim());
    }

    fn refuse(&self, account: Option<Account>, wanted: usize) -> MemoryExhausted {
        let mut ledger = self.ledger();
        ledger.refused();
        let MemoryUsage { used_bytes: used, max_bytes: max, refused: n_refused, .. } =
            ledger.usage();
        let own = account.map(|account| ledger.share(account));
        drop(ledger);
        if n_refused.is_power_of_two() {
            tracing::warn!(
                wanted,
                used,
                max,
                own,
                n_refused,
                "memory for messages is used up ({used} of {max} bytes), a request is refused: raise `service.memory_max` if this persists"
            );
        }
        MemoryExhausted { wanted, used, max, own }
    }

    /// Sends decisions to the waiters. Bytes for a waiter that is gone are given back.
    fn announce(&'static self, decisions: Vec<LedgerDecision<Waiter>>) {
        for decision in decisions {
            let (waiter, outcome) = match decision {
                LedgerDecision::Granted(waiter, account, n_bytes) => {
                    (waiter, Ok(MemoryReservation { budget: self, account, n_bytes }))
                }
                LedgerDecision::Refused(waiter, account, wanted) => {
                    (waiter, Err(self.refuse(account, wanted)))
                }
            };
            let _gone = waiter.send(outcome);
        }
    }

    fn ledger(&self) -> MutexGuard<'_, AccountLedger<Waiter>> {
        // Held for operations on plain data only: no reservation is dropped meanwhile.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard that ends a wait for bytes: if the wait was abandoned, the next waiter is served.
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

#[cfg(test)]
mod tests;
