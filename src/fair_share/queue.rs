//! The holders of a bounded resource, and the parties that wait for it.
//!
//! ```text
//!            enqueue                dequeue                 release
//!  holder ────────────▶ waiting ───────────────▶ holding ────────────▶ forgotten
//!     │                    │ remove                 ▲
//!     │                    ▼                        │
//!     │                forgotten                    │
//!     └─────────────────── hold ────────────────────┘
//! ```
//!
//! The queue has no capacity: the caller decides when it serves the next holder. The queue
//! guarantees that no holder is served while another one waits whose account holds fewer. Inside an
//! account, the same holds for its members. Equal ones take turns, and a newcomer joins at the end
//! of the turn. The requests of one member are served in their order.
//!
//! Pure: no clock, no I/O. Every operation takes logarithmic time unless it says otherwise.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::capacity_holder::{Account, AccountMember, Holder};

/// A place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueTicket {
    holder: Holder,
    number: u64,
}

impl QueueTicket {
    /// Returns the party that waits.
    pub fn holder(&self) -> Holder {
        self.holder
    }

    /// Returns the number of the ticket: a later one has a larger number.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// The holders of a bounded resource, and the parties that wait for it.
#[derive(Debug)]
pub struct FairQueue<T> {
    accounts: HashMap<Account, Standing>,
    members: HashMap<Holder, Standing>,
    /// The waiting accounts, in the order of service.
    account_ranks: BTreeSet<(Rank, Account)>,
    /// The waiting members, by account, in the order of service.
    member_ranks: BTreeSet<(Account, Rank, AccountMember)>,
    waiting: BTreeMap<QueueTicket, T>,
    /// The counter of tickets and turns.
    n_turns: u64,
}

/// The rank of a waiting party: the number of units that it holds, and the time of its last turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    n_held: usize,
    turn: u64,
}

/// The counters of one party.
#[derive(Clone, Copy, Debug)]
struct Standing {
    rank: Rank,
    n_waiting: usize,
    /// The members of an account that hold or wait.
    n_members: usize,
}

/// A change of the counters of one party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Hold,
    Release,
    Wait,
    Leave,
    /// The change from waiting to holding.
    Serve,
}

impl Standing {
    fn new(turn: u64) -> Self {
        Self { rank: Rank { n_held: 0, turn }, n_waiting: 0, n_members: 0 }
    }

    fn apply(&mut self, change: Change, turn: u64) {
        match change {
            Change::Hold => self.rank.n_held += 1,
            Change::Release => self.rank.n_held = self.rank.n_held.saturating_sub(1),
            Change::Wait => self.n_waiting += 1,
            Change::Leave => self.n_waiting = self.n_waiting.saturating_sub(1),
            Change::Serve => {
                self.n_waiting = self.n_waiting.saturating_sub(1);
                self.rank = Rank { n_held: self.rank.n_held + 1, turn };
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.rank.n_held == 0 && self.n_waiting == 0
    }
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            accounts: HashMap::new(),
            members: HashMap::new(),
            account_ranks: BTreeSet::new(),
            member_ranks: BTreeSet::new(),
            waiting: BTreeMap::new(),
            n_turns: 0,
        }
    }
}

impl<T> FairQueue<T> {
    /// Counts one unit more for `holder`, which did not wait.
    pub fn add(&mut self, holder: Holder) {
        self.change(holder, Change::Hold);
    }

    /// Counts one unit fewer for `holder`.
    pub fn release(&mut self, holder: Holder) {
        if self.members.contains_key(&holder) {
            self.change(holder, Change::Release);
        }
    }

    /// Queues `holder`, with `value` to be returned when it is served.
    pub fn enqueue(&mut self, holder: Holder, value: T) -> QueueTicket {
        self.change(holder, Change::Wait);
        let ticket = QueueTicket { holder, number: self.n_turns };
        self.waiting.insert(ticket, value);
        ticket
    }

    /// Removes a waiting entry; `None` when it was served before.
    pub fn remove(&mut self, ticket: QueueTicket) -> Option<T> {
        let value = self.waiting.remove(&ticket)?;
        self.change(ticket.holder, Change::Leave);
        Some(value)
    }

    /// Returns the holder to be served next.
    pub fn next(&self) -> Option<Holder> {
        let (_, account) = *self.account_ranks.first()?;
        let first = Rank { n_held: 0, turn: 0 };
        let (_, _, member) =
            *self.member_ranks.range((account, first, AccountMember::Whole)..).next()?;
        Some(Holder { account, member })
    }

    /// Returns the ticket to be served next.
    pub fn next_ticket(&self) -> Option<QueueTicket> {
        let holder = self.next()?;
        self.waiting.range(QueueTicket { holder, number: 0 }..).next().map(|(ticket, _)| *ticket)
    }

    /// Serves the next holder, which holds one unit more from then on.
    pub fn dequeue(&mut self) -> Option<(QueueTicket, T)> {
        let ticket = self.next_ticket()?;
        let value = self.waiting.remove(&ticket)?;
        self.change(ticket.holder, Change::Serve);
        Some((ticket, value))
    }

    /// Removes the newest entry of the member that has the most waiting, in the account that has
    /// the most waiting. Takes linear time in the number of holders.
    pub fn shed(&mut self) -> Option<(QueueTicket, T)> {
        let accounts = self.accounts.iter();
        let (account, _) = accounts.max_by_key(|(account, of)| (of.n_waiting, **account))?;
        let members = self.members.iter().filter(|(holder, _)| holder.account == *account);
        let (holder, _) = members.max_by_key(|(holder, of)| (of.n_waiting, **holder))?;
        let (from, to) = (0, u64::MAX);
        let [from, to] = [from, to].map(|number| QueueTicket { holder: *holder, number });
        let ticket = *self.waiting.range(from..=to).next_back()?.0;
        Some((ticket, self.remove(ticket)?))
    }

    /// Returns how many entries wait.
    pub fn n_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns how many units the account of `holder` holds.
    pub fn n_of_account(&self, holder: Holder) -> usize {
        self.accounts.get(&holder.account).map_or(0, |of| of.rank.n_held)
    }

    /// Returns how many units `holder` itself holds.
    pub fn n_of_member(&self, holder: Holder) -> usize {
        self.members.get(&holder).map_or(0, |of| of.rank.n_held)
    }

    /// Returns how many accounts hold or wait.
    pub fn n_accounts(&self) -> usize {
        self.accounts.len()
    }

    /// Returns how many members of the account of `holder` hold or wait.
    pub fn n_members(&self, holder: Holder) -> usize {
        self.accounts.get(&holder.account).map_or(0, |of| of.n_members)
    }

    /// Removes all waiting entries, in no order; the counts of held units stay.
    pub fn drain(&mut self) -> Vec<T> {
        let tickets: Vec<QueueTicket> = self.waiting.keys().copied().collect();
        tickets.into_iter().filter_map(|ticket| self.remove(ticket)).collect()
    }

    fn change(&mut self, holder: Holder, change: Change) {
        self.n_turns += 1;
        let turn = self.n_turns;
        let Holder { account, member } = holder;

        let mut of = *self.members.entry(holder).or_insert_with(|| Standing::new(turn));
        let was_known = !of.is_empty();
        self.member_ranks.remove(&(account, of.rank, member));
        of.apply(change, turn);
        if of.n_waiting > 0 {
            self.member_ranks.insert((account, of.rank, member));
        }
        let is_known = !of.is_empty();
        match is_known {
            true => drop(self.members.insert(holder, of)),
            false => drop(self.members.remove(&holder)),
        }

        let mut of = *self.accounts.entry(account).or_insert_with(|| Standing::new(turn));
        self.account_ranks.remove(&(of.rank, account));
        of.apply(change, turn);
        of.n_members = of.n_members + usize::from(is_known) - usize::from(was_known);
        if of.n_waiting > 0 {
            self.account_ranks.insert((of.rank, account));
        }
        match of.is_empty() {
            false => drop(self.accounts.insert(account, of)),
            true => drop(self.accounts.remove(&account)),
        }
    }
}

#[cfg(test)]
mod tests;
